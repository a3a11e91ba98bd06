"""What a client answers for a hub's pages: the views themselves, as JSON."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from uwfgit.web.serve.asked import (
    first_step,
    node_hash,
    parse_question,
    step_number,
    thread_id,
    version_of,
)
from uwfgit.web.serve.live import stream
from uwfgit.web.serve.reading import Reading
from uwfgit.web.view.wire import pack_view


class Views:
    """The handlers below ``/view``."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def routes(self) -> list[Route]:
        """Return the routes."""
        places = {
            "/live": self.live,
            "/threads": self.threads,
            "/threads/{thread}": self.thread,
            "/threads/{thread}/nodes/{node}": self.node,
            "/threads/{thread}/verify": self.proof,
            "/threads/{thread}/code/{number}": self.code,
            "/compare/{a}/{b}": self.comparison,
            "/workflows": self.workflows,
            "/workflows/{name}": self.newest,
            "/workflows/{name}/{hash}": self.workflow,
            "/workflows/{name}/{hash}/changes": self.changes,
        }
        return [
            Route(path, handler, methods=["GET"]) for path, handler in places.items()
        ]

    async def live(self, request: Request) -> Response:
        """A word whenever a thread changes."""
        del request
        return stream(self.reading.follow_all())

    async def threads(self, request: Request) -> Response:
        """The listing, searched and in order."""
        return _view(await self.reading.listing(parse_question(request.query_params)))

    async def thread(self, request: Request) -> Response:
        """A thread, and one block of its steps."""
        return _view(await self.reading.thread(thread_id(request), first_step(request)))

    async def node(self, request: Request) -> Response:
        """A node, as one thread has it."""
        return _view(await self.reading.node(thread_id(request), node_hash(request)))

    async def proof(self, request: Request) -> Response:
        """What the proof of a thread says."""
        return _view(await self.reading.proof(thread_id(request)))

    async def code(self, request: Request) -> Response:
        """What a step changed in the code."""
        return _view(await self.reading.code(thread_id(request), step_number(request)))

    async def comparison(self, request: Request) -> Response:
        """Two threads side by side."""
        a, b = (thread_id(request, name) for name in ("a", "b"))
        return _view(await self.reading.comparison(a, b))

    async def workflows(self, request: Request) -> Response:
        """The registered workflows."""
        del request
        return _view(await self.reading.workflows())

    async def newest(self, request: Request) -> Response:
        """A workflow as it stands now."""
        return _view(await self.reading.workflow(request.path_params["name"], None))

    async def workflow(self, request: Request) -> Response:
        """A version of a workflow."""
        return _view(await self.reading.workflow(*version_of(request)))

    async def changes(self, request: Request) -> Response:
        """What a version changed in the file before it."""
        return _view(await self.reading.changes(*version_of(request)))


def _view(value: object) -> Response:
    return JSONResponse(pack_view(value))
