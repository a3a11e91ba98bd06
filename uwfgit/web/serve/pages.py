"""The pages of a store, asked for by browsers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from uwfgit.errors import InvalidError, UwfError
from uwfgit.ids import ThreadId, is_thread_id
from uwfgit.web.render.diff import diff_page
from uwfgit.web.render.forms.acts import thread_acts
from uwfgit.web.render.forms.form import INPUT
from uwfgit.web.render.forms.refused import (
    folder_form,
    problem_page,
    trust_form,
    written,
)
from uwfgit.web.render.forms.start import start_form
from uwfgit.web.render.markup import Html, join
from uwfgit.web.render.node import node_page
from uwfgit.web.render.report import report_page
from uwfgit.web.render.steps import turns_list
from uwfgit.web.render.thread import thread_page
from uwfgit.web.render.threads import threads_page
from uwfgit.web.render.workflow import (
    changes_page,
    files_list,
    workflow_page,
    workflows_page,
)
from uwfgit.web.serve.acts import Outcome, RefusedError, typed_inputs
from uwfgit.web.serve.acts import Request as Wanted
from uwfgit.web.serve.asked import (
    first_step,
    node_hash,
    parse_question,
    seen_commit,
    step_number,
    thread_id,
    version_of,
)
from uwfgit.web.serve.gate import BAD_TOKEN
from uwfgit.web.serve.live import Turns, stream
from uwfgit.web.serve.site import EDIT_ROOT, Place, Serving

_FIELDS: Final = 2_000
_OTHERS: Final = "Made by others"


class Pages:
    """The handlers of the pages below a root; ``find`` says of which store they are."""

    def __init__(self, serving: Serving, find: Callable[[Request], Place]) -> None:
        self.serving = serving
        self.find = find

    def routes(self) -> list[Route]:
        """Return the routes below the store's root."""
        get = {
            "/threads": self.threads,
            "/threads/live": self.threads_live,
            "/threads/{thread}": self.thread,
            "/threads/{thread}/live": self.thread_live,
            "/threads/{thread}/nodes/{node}": self.node,
            "/threads/{thread}/verify": self.verify,
            "/threads/{thread}/code/{number}": self.code,
            "/compare/{a}/{b}": self.compare,
            "/workflows": self.workflows,
            "/workflows/{name}": self.current,
            "/workflows/{name}/{hash}": self.workflow,
            "/workflows/{name}/{hash}/changes": self.changes,
        }
        post = {
            "/threads/{thread}/{act}": self.act,
            "/workflows/{name}/start": self.start,
        }
        return [
            *(Route(path, handler, methods=["GET"]) for path, handler in get.items()),
            *(Route(path, handler, methods=["POST"]) for path, handler in post.items()),
        ]

    async def threads(self, request: Request) -> Response:
        """The listing, searched and in order."""
        place = self.find(request)
        listing = await place.reading.listing(parse_question(request.query_params))
        base = f"{place.root}/threads"
        return HTMLResponse(threads_page(self.serving.site(place), listing, base=base))

    async def threads_live(self, request: Request) -> Response:
        """A word whenever the listing changes."""
        return stream(self.find(request).reading.follow_all())

    async def thread(self, request: Request) -> Response:
        """A thread, the newest block of its steps or another one."""
        place, thread = self.find(request), thread_id(request)
        view = await place.reading.thread(thread, first_step(request))
        site = self.serving.site(place, first=view.first)
        acts = thread_acts(site, view, place.agents)
        return HTMLResponse(thread_page(site, view, acts=acts))

    async def thread_live(self, request: Request) -> Response:
        """A thread's events from the commit that was seen last."""

        def show(turns: Turns) -> dict[str, str]:
            return {"html": turns_list(turns)}

        place, thread = self.find(request), thread_id(request)
        return stream(place.reading.follow(thread, seen_commit(request)), show)

    async def node(self, request: Request) -> Response:
        """A raw node, as one thread has it."""
        place, thread = self.find(request), thread_id(request)
        view = await place.reading.node(thread, node_hash(request))
        return HTMLResponse(node_page(self.serving.site(place), thread, view))

    async def verify(self, request: Request) -> Response:
        """What the proof of a thread says, as the command prints it."""
        place, thread = self.find(request), thread_id(request)
        report = await place.reading.proof(thread)
        return HTMLResponse(report_page(self.serving.site(place), thread, report))

    async def code(self, request: Request) -> Response:
        """What a step changed in the code, as the command prints it."""
        place, thread = self.find(request), thread_id(request)
        report = await place.reading.code(thread, step_number(request))
        return HTMLResponse(report_page(self.serving.site(place), thread, report))

    async def compare(self, request: Request) -> Response:
        """Two threads side by side."""
        place = self.find(request)
        a, b = (thread_id(request, name) for name in ("a", "b"))
        view = await place.reading.comparison(a, b)
        return HTMLResponse(diff_page(self.serving.site(place), view))

    async def workflows(self, request: Request) -> Response:
        """The registered workflows."""
        place = self.find(request)
        found = await place.reading.workflows()
        desk = self.serving.desk if place is self.serving.stores[0].place else None
        names = desk.names() if desk is not None else ()
        files = files_list(names, EDIT_ROOT)
        return HTMLResponse(workflows_page(self.serving.site(place), found, files))

    async def current(self, request: Request) -> Response:
        """Lead to the newest version of a registered workflow."""
        place, name = self.find(request), request.path_params["name"]
        view = await place.reading.workflow(name, None)
        links = self.serving.site(place).links
        return RedirectResponse(str(links.workflow(name, view.hash)), status_code=303)

    async def workflow(self, request: Request) -> Response:
        """A version of a workflow: of the registry, or pinned by a thread."""
        place, (name, version) = self.find(request), version_of(request)
        view = await place.reading.workflow(name, version)
        site = self.serving.site(place)
        # A start takes the current version, whichever is shown.
        is_current = any(v.current and v.hash == view.hash for v in view.versions)
        acts = start_form(site, name, view.workflow.inputs) if is_current else None
        return HTMLResponse(workflow_page(site, view, acts=acts))

    async def changes(self, request: Request) -> Response:
        """What a version of a workflow changed in the file before it."""
        place, (name, version) = self.find(request), version_of(request)
        text = await place.reading.changes(name, version)
        page = changes_page(self.serving.site(place), name, version, text)
        return HTMLResponse(page)

    async def act(self, request: Request) -> Response:
        """Do something with a thread, and show it."""
        place, thread = self.find(request), thread_id(request)
        act, fields = request.path_params["act"], await self._fields(request, place)
        wanted = Wanted(fields=fields, agents=place.agents)
        outcome = await _done(place.acting.act(thread, act, wanted))
        links = self.serving.site(place).links
        if outcome.is_done:
            back = links.thread((act == "fork" and _thread_of(outcome)) or thread)
            return RedirectResponse(str(back), status_code=303)
        needs = (outcome.error or {}).get("needs")
        if needs and not fields.get("trust"):
            screen = await place.acting.trust_screen(thread, act, wanted)
            if screen is not None:
                told = _messages(outcome.error or {})
                lines = (line for line in screen.splitlines() if line not in told)
                screen = "\n".join(lines)
                view = await place.reading.thread(thread, None)
                form = (
                    trust_form(self.serving.site(place), view, screen, act, fields)
                    if needs == ["--trust"]
                    else folder_form(view, screen, act, fields)
                )
                return self._problem(
                    place, outcome, links.thread(thread), form, title=_OTHERS
                )
        return self._problem(
            place, outcome, links.thread(thread), written(fields), title="Not done"
        )

    async def start(self, request: Request) -> Response:
        """Start a thread of a registered workflow, and run it if that is wanted."""
        place, name = self.find(request), request.path_params["name"]
        fields = await self._fields(request, place)
        newest = await place.reading.workflow(name, None)
        inputs = typed_inputs(newest.workflow.inputs or {}, fields)
        wanted = Wanted(fields=fields, agents=place.agents)
        outcome = await _done(place.acting.start(name, wanted, inputs))
        started = _thread_of(outcome)
        links = self.serving.site(place).links
        if outcome.is_done and started is not None:
            if wanted.is_on("run"):
                every = Wanted(fields={"all": "1"}, agents=())
                ran = await place.acting.act(started, "exec", every)
                if not ran.is_done:
                    back = links.thread(started)
                    title = "Started, but not run"
                    return self._problem(place, ran, back, title=title)
            return RedirectResponse(str(links.thread(started)), status_code=303)
        site, asked = self.serving.site(place), newest.workflow.inputs or {}
        again = start_form(site, name, asked, fields)
        carried = {"prompt", *(f"{INPUT}{each}" for each in asked)} if again else set()
        rest = {name: text for name, text in fields.items() if name not in carried}
        back = links.workflow(name, newest.hash)
        more = join(again, written(rest))
        return self._problem(place, outcome, back, more, title="Not done")

    def _problem(
        self,
        place: Place,
        outcome: Outcome,
        back: str | None,
        more: Html | None = None,
        *,
        title: str,
    ) -> Response:
        error = outcome.error or {"message": f"the command ended with {outcome.code}"}
        hint = error.get("hint")
        page = problem_page(
            self.serving.site(place),
            title,
            _messages(error),
            str(hint) if hint and title != _OTHERS else None,
            back,
            more,
        )
        return HTMLResponse(page, status_code=outcome.http_status)

    async def _fields(self, request: Request, place: Place) -> dict[str, str]:
        return await read_form(request, self.serving, place)


async def _done(asked: Awaitable[Outcome]) -> Outcome:
    """Return what became of a form; why it was not done is told beside its text."""
    try:
        return await asked
    except UwfError as exc:
        told = {"code": exc.code, "message": exc.message, "hint": exc.hint}
        return Outcome(code=1, error=told)


def _messages(error: Mapping[str, Any]) -> list[str]:
    """Return all that is wrong; of a client's answer, which may be anything."""
    found = error.get("problems")
    several = [str(each) for each in found] if isinstance(found, list) else []
    return several or [str(error.get("message"))]


def _thread_of(outcome: Outcome) -> ThreadId | None:
    """Return the thread an act made; of a client's answer, which may be anything."""
    made = outcome.value.get("threadId")
    return ThreadId(made) if isinstance(made, str) and is_thread_id(made) else None


async def read_form(request: Request, serving: Serving, place: Place) -> dict[str, str]:
    """Read a form that carries the page's token.

    Raises:
        InvalidError: It is not one, or has far too many fields.
        RefusedError: It has no token, or nothing may be done here.
    """
    try:
        text = (await request.body()).decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError as exc:
        raise InvalidError(f"the form cannot be read: {exc}") from exc
    fields = dict(pairs)
    is_known = serving.rules.keys.is_page_token(fields.pop("token", ""))
    if not is_known and not request.scope["uwf.bearer"]:
        raise RefusedError(BAD_TOKEN.message)
    if not place.acts:
        raise RefusedError("nothing can be changed here")
    return fields
