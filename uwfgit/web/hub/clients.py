"""The hub itself: which clients are there, and the ways to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from uwfgit.errors import InvalidError, NotFoundError, UwfError
from uwfgit.web.hub.allowed import ACTS, EXEC, kept_headers
from uwfgit.web.hub.doors import Doors
from uwfgit.web.hub.far import FarReading
from uwfgit.web.hub.frames import Ask, Hello, read_hello
from uwfgit.web.hub.line import GoneError, Line
from uwfgit.web.render.frame import Stand
from uwfgit.web.serve.gate import CONNECT, Refusal
from uwfgit.web.serve.live import STREAM
from uwfgit.web.serve.site import FAR_ROOT, Place

_HELLO_SECONDS: Final = 10.0
_WRONG: Final = Refusal(status=401, code="refused", message="wrong secret")
_TAKEN: Final = Refusal(status=409, code="refused", message="name in use")


class Clients:
    """Connected clients by name; a name has one at a time."""

    def __init__(self, doors: Doors, *, patience_s: float) -> None:
        self.doors = doors
        self.patience_s = patience_s
        self._lines: dict[str, tuple[Line, str]] = {}
        self._begun: set[str] = set()

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes that are not pages: connecting, and the API."""
        api = f"/api{FAR_ROOT}/{{client}}/{{path:path}}"
        return (
            WebSocketRoute(f"{CONNECT}{{client}}", self.connect),
            Route(api, self.api, methods=["GET", "POST"]),
        )

    def stands(self) -> Sequence[Stand]:
        """Return all names, those that are gone too."""
        return [
            Stand(
                name=name,
                href=f"{FAR_ROOT}/{name}/threads",
                is_gone=name not in self._lines,
            )
            for name in self.doors.names()
        ]

    def place(self, name: str) -> Place:
        """Return a client's store.

        Raises:
            NotFoundError: No client has that name.
        """
        if name not in self.doors.names():
            raise NotFoundError("client", name)
        known = self._lines.get(name)
        # One that is gone is asked all the same: that it is gone is what is told.
        hello = known[0].hello if known else Hello(acts=ACTS | EXEC, agents=())
        reading = FarReading(partial(self._line, name))
        return Place(
            name=name,
            root=f"{FAR_ROOT}/{name}",
            reading=reading,
            acting=reading,
            # Whatever it says of itself: nothing else is ever asked of one.
            acts=hello.acts & (ACTS | EXEC),
            agents=hello.agents,
        )

    def _line(self, name: str) -> Line:
        known = self._lines.get(name)
        if known is None or known[1] != self.doors.digest(name):
            raise GoneError(name)
        return known[0]

    async def connect(self, socket: WebSocket) -> None:
        """Take a client in, and keep the line to it until it goes."""
        name = socket.path_params["client"]
        kind, _, secret = socket.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not self.doors.is_open(name, secret.strip()):
            await _deny(socket, _WRONG)
            return
        if name in self._begun:
            await _deny(socket, _TAKEN)
            return
        self._begun.add(name)
        try:
            await self._serve(socket, name)
        finally:
            self._begun.discard(name)
            self._lines.pop(name, None)

    async def _serve(self, socket: WebSocket, name: str) -> None:
        digest = self.doors.digest(name)
        await socket.accept()
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                message = await socket.receive()
            hello = read_hello(message.get("text") or b"")
        except (TimeoutError, InvalidError):
            await socket.close(1008)
            return
        line = Line(socket, name, hello, patience_s=self.patience_s)
        if digest is not None:
            self._lines[name] = (line, digest)
            await line.listen()

    async def api(self, request: Request) -> Response:
        """Hand a question of the API on; the client says what it answers."""
        name = request.path_params["client"]
        if name not in self.doors.names():
            raise NotFoundError("client", name)
        query = f"?{request.url.query}" if request.url.query else ""
        ask = Ask(
            id=0,
            method=request.method,
            path=f"/api/{request.path_params['path']}{query}",
            headers=kept_headers(request.headers),
            body=(await request.body()).decode("utf-8", "replace"),
        )
        return await _passed_on(self._line(name), ask)


async def _passed_on(line: Line, ask: Ask) -> Response:
    asked = line.asked(ask)
    answer = await asked.__aenter__()

    async def body() -> AsyncIterator[bytes]:
        try:
            async for piece in answer.pieces:
                yield piece.encode()
        except UwfError:
            # What has begun is cut off where the client left it.
            return
        finally:
            await asked.__aexit__(None, None, None)

    kind = answer.headers.get("content-type", "")
    is_stream = kind.startswith(STREAM)
    return StreamingResponse(
        body(),
        status_code=answer.status,
        # Whatever a client says: a browser is to show nothing of it as a page.
        media_type=STREAM if is_stream else "application/json",
    )


async def _deny(socket: WebSocket, refusal: Refusal) -> None:
    answer = JSONResponse(refusal.payload, status_code=refusal.status)
    await socket.send_denial_response(answer)
