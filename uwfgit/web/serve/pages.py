"""The pages of one store, asked for by browsers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast
from urllib.parse import parse_qsl

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from uwfgit.errors import InvalidError, NotFoundError, UwfError
from uwfgit.ids import Hash, Oid, ThreadId, find_hash, find_thread_id, is_oid
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.registry import list_workflows, load_registered
from uwfgit.model.ledger.standing import is_running, status_of
from uwfgit.model.node.node import META_TYPE
from uwfgit.model.schema.check import find_refs
from uwfgit.model.thread.compare import compare_chains
from uwfgit.model.thread.record import load_tip, open_record
from uwfgit.model.thread.sharing import find_sharing
from uwfgit.web.render.diff import diff_page
from uwfgit.web.render.editor import files_list
from uwfgit.web.render.forms import problem_page, start_form, thread_acts, trust_form
from uwfgit.web.render.frame import Site
from uwfgit.web.render.markup import Html
from uwfgit.web.render.node import node_page
from uwfgit.web.render.report import report_page
from uwfgit.web.render.steps import turns_list
from uwfgit.web.render.thread import thread_page
from uwfgit.web.render.threads import threads_page
from uwfgit.web.render.workflow import (
    changes_page,
    workflow_page,
    workflows_page,
)
from uwfgit.web.serve.acts import (
    Command,
    Outcome,
    start_command,
    thread_command,
    typed_inputs,
)
from uwfgit.web.serve.acts import Request as Wanted
from uwfgit.web.serve.gate import BAD_TOKEN
from uwfgit.web.serve.live import Turns, listing_stream, thread_stream
from uwfgit.web.serve.site import Served, Serving
from uwfgit.web.view.listing import (
    ORDERS,
    Line,
    Order,
    Question,
    answer,
    rows_of,
    titles_of,
)
from uwfgit.web.view.thread import ThreadView, view_thread
from uwfgit.web.view.workflow import (
    WorkflowView,
    list_registered,
    pinned_by,
    version_diff,
    view_registered,
)

_WORDS: Final = 200
_FIELDS: Final = 2_000
_FAR: Final = 10_000_000


def parse_question(asked: Mapping[str, str], *, limit: int = 50) -> Question:
    """Read what a listing is asked for; what makes no sense counts for nothing."""
    order = asked.get("sort", "")
    offset = asked.get("from", "0")
    return Question(
        words=asked.get("q", "")[:_WORDS],
        status=asked.get("status", ""),
        workflow=asked.get("workflow", ""),
        order=cast("Order", order) if order in ORDERS else "updated",
        offset=min(int(offset), _FAR) if offset.isascii() and offset.isdigit() else 0,
        limit=limit,
    )


def thread_id(request: Request, name: str = "thread") -> ThreadId:
    """Read a thread's whole id off the path.

    Raises:
        NotFoundError: It is none.
    """
    text = request.path_params[name]
    found = find_thread_id(text)
    if found is None or found != text:
        raise NotFoundError("thread", text)
    return found


def standing(ledger: Ledger, thread: ThreadId) -> str:
    """Return a thread's status as people see it.

    Raises:
        NotFoundError, CorruptError: It cannot be read.
    """
    tip = load_tip(ledger.store, thread)
    return status_of(
        tip.state,
        running=is_running(ledger.store, thread),
        sharing=find_sharing(ledger.store, thread, tip.commit),
    )


class Pages:
    """The handlers of one store's pages."""

    def __init__(self, serving: Serving, served: Served) -> None:
        self.serving = serving
        self.served = served
        self.shelf = served.shelf

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
        lines = await self.shelf.lines()
        listing = answer(lines, parse_question(request.query_params))
        page = threads_page(self._site(), listing, base=f"{self.shelf.root}/threads")
        return HTMLResponse(page)

    async def threads_live(self, request: Request) -> Response:
        """A word whenever the listing changes."""
        del request
        return listing_stream(self.shelf)

    async def thread(self, request: Request) -> Response:
        """A thread, the newest block of its steps or another one."""
        thread = thread_id(request)
        first = request.query_params.get("from", "")
        wanted = int(first[:7]) if first.isascii() and first.isdigit() else None
        view = await self._view(thread, wanted)
        site = self.serving.site(self.served, first=view.first)
        acts = thread_acts(site, view, self.served.agents)
        return HTMLResponse(thread_page(site, view, acts=acts))

    async def _view(self, thread: ThreadId, first: int | None = None) -> ThreadView:
        lines = await self.shelf.lines()
        return await self.shelf.ask(
            lambda ledger: view_thread(
                ledger,
                load_tip(ledger.store, thread),
                status=standing(ledger, thread),
                first=first,
                rows=rows_of(lines),
            )
        )

    async def thread_live(self, request: Request) -> Response:
        """A thread's events from the commit that was seen last."""
        thread = thread_id(request)
        seen = request.headers.get("last-event-id") or request.query_params.get("since")

        def show(turns: Turns) -> dict[str, str]:
            return {"html": turns_list(turns)}

        known = Oid(seen) if seen and is_oid(seen) else None
        return thread_stream(self.shelf, thread, known, show)

    async def node(self, request: Request) -> Response:
        """A raw node, as one thread has it."""
        thread, name = thread_id(request), find_hash(request.path_params["node"])
        if name is None:
            raise NotFoundError("node", request.path_params["node"])
        return HTMLResponse(
            await self.shelf.ask(lambda ledger: self._node(ledger, thread, name))
        )

    def _node(self, ledger: Ledger, thread: ThreadId, name: Hash) -> Html:
        record = open_record(ledger.store, load_tip(ledger.store, thread))
        if name not in record.places:
            raise NotFoundError("node", name)
        node = record.node(name)
        schema = record.node(node.type) if node.type in record.places else None
        is_typed = schema is not None and schema.type == META_TYPE
        refs = find_refs(schema.payload, node.payload) if schema and is_typed else ()
        return node_page(self._site(), thread, node, refs, oid=record.places[name][1])

    async def verify(self, request: Request) -> Response:
        """What the proof of a thread says, as the command prints it."""
        thread = thread_id(request)
        words = ("verify", thread, "--signatures")
        done = await self._do(Command(words=words, is_text=True))
        title = "It verifies" if done.code == 0 else "It does not verify"
        text = f"{done.value['out']}\n{done.value['err']}".strip()
        return self._report(thread, title, f"uwf verify {thread} --signatures", text)

    async def code(self, request: Request) -> Response:
        """What a step changed in the code, as the command prints it."""
        thread, number = thread_id(request), request.path_params["number"]
        if not number.isascii() or not number.isdigit():
            raise NotFoundError("step", number)
        words = ("step", "diff", f"{thread}:{int(number[:9])}")
        done = await self._do(Command(words=words, is_text=True))
        text = str(done.value["out"] or done.value["err"])
        title = f"What step {number} changed"
        return self._report(thread, title, f"uwf {' '.join(words)}", text, kind="diff")

    def _report(
        self, thread: ThreadId, title: str, told: str, text: str, *, kind: str = ""
    ) -> Response:
        return HTMLResponse(report_page(self._site(), thread, title, told, text, kind))

    async def compare(self, request: Request) -> Response:
        """Two threads side by side."""
        threads = [thread_id(request, name) for name in ("a", "b")]
        lines = [line for line in await self.shelf.lines() if line.thread in threads]
        titles = titles_of(lines)

        def ask(ledger: Ledger) -> Html:
            tips = [load_tip(ledger.store, thread) for thread in threads]
            chains = [
                open_record(ledger.store, tip, checked=False).steps() for tip in tips
            ]
            sides = [
                (
                    tip,
                    standing(ledger, tip.thread),
                    titles.get(tip.thread) or tip.thread,
                )
                for tip in tips
            ]
            return diff_page(
                self._site(), sides[0], sides[1], compare_chains(chains[0], chains[1])
            )

        return HTMLResponse(await self.shelf.ask(ask))

    async def workflows(self, request: Request) -> Response:
        """The registered workflows."""
        del request
        lines = await self.shelf.lines()
        found = await self.shelf.ask(lambda ledger: list_registered(ledger, lines))
        desk = self.serving.desk if self.served is self.serving.stores[0] else None
        names = desk.names() if desk is not None else ()
        files = files_list(names, "/edit")
        return HTMLResponse(workflows_page(self._site(), found, files))

    async def workflow(self, request: Request) -> Response:
        """A version of a workflow: of the registry, or pinned by a thread."""
        name, version = (
            request.path_params["name"],
            find_hash(request.path_params["hash"]),
        )
        if version is None:
            raise NotFoundError("workflow", name)
        lines = await self.shelf.lines()
        view = await self.shelf.ask(
            lambda ledger: _workflow(ledger, name, version, lines)
        )
        site = self._site()
        acts = start_form(site, name, view.workflow.inputs) if view.versions else None
        return HTMLResponse(workflow_page(site, view, titles_of(lines), acts=acts))

    async def changes(self, request: Request) -> Response:
        """What a version of a workflow changed in the file before it."""
        name = request.path_params["name"]
        version = find_hash(request.path_params["hash"])
        text = await self.shelf.ask(lambda ledger: version_diff(ledger, name, version))
        site = self._site()
        page = changes_page(site, name, str(version), text)
        return HTMLResponse(page)

    async def act(self, request: Request) -> Response:
        """Do something with a thread, and show it."""
        thread, act = thread_id(request), request.path_params["act"]
        fields = await self._fields(request)
        back = self._site().links.thread(thread)
        await self._check_trust(thread, fields)
        wanted = Wanted(fields=fields, agents=self.served.agents)
        outcome = await self._do(thread_command(thread, act, wanted))
        if outcome.is_done:
            other = outcome.value.get("threadId") if act == "fork" else None
            if isinstance(other, str):
                back = self._site().links.thread(ThreadId(other))
            return RedirectResponse(str(back), status_code=303)
        return await self._refused(thread, act, fields, outcome)

    async def start(self, request: Request) -> Response:
        """Start a thread of a registered workflow, and run it if that is wanted."""
        name = request.path_params["name"]
        fields = await self._fields(request)
        found = await self.shelf.ask(lambda ledger: load_registered(ledger, name))
        inputs = typed_inputs(found.workflow.inputs or {}, fields)
        wanted = Wanted(fields=fields, agents=self.served.agents)
        outcome = await self._do(start_command(name, wanted, inputs))
        started = outcome.value.get("threadId")
        if outcome.is_done and isinstance(started, str):
            if wanted.is_on("run"):
                every = Wanted(fields={"all": "1"}, agents=())
                await self._do(thread_command(ThreadId(started), "exec", every))
            return RedirectResponse(
                str(self._site().links.thread(ThreadId(started))), status_code=303
            )
        return self._problem(outcome, self._site().links.workflows())

    async def _fields(self, request: Request) -> dict[str, str]:
        return await read_form(request, self.serving, self.served)

    async def _do(self, command: Command) -> Outcome:
        return await anyio.to_thread.run_sync(self.served.run, command)

    async def _check_trust(self, thread: ThreadId, fields: Mapping[str, str]) -> None:
        """Refuse an answer that was given for another tip or workflow."""
        if not fields.get("trust"):
            return
        tip = await self.shelf.ask(lambda ledger: load_tip(ledger.store, thread))
        if (fields.get("tip"), fields.get("workflow")) != (
            tip.commit,
            tip.state.workflow_oid,
        ):
            raise _RefusedError("the thread has changed since it was shown; look again")

    async def _refused(
        self, thread: ThreadId, act: str, fields: Mapping[str, str], outcome: Outcome
    ) -> Response:
        site = self._site()
        back = site.links.thread(thread)
        if (outcome.error or {}).get("code") != "untrusted" or fields.get("trust"):
            return self._problem(outcome, back)
        view = await self._view(thread)
        wanted = Wanted(fields={**fields, "trust": ""}, agents=self.served.agents)
        refused = thread_command(thread, act, wanted)
        # The one screen of the command line, which then refuses once more.
        screen = await self._do(replace(refused, is_text=True))
        form = trust_form(site, view, str(screen.value["err"]), act, fields)
        message = str((outcome.error or {}).get("message", ""))
        page = problem_page(site, "Made by others", message, None, back, form)
        return HTMLResponse(page, status_code=409)

    def _problem(self, outcome: Outcome, back: str | None) -> Response:
        error = outcome.error or {"message": f"the command ended with {outcome.code}"}
        hint = error.get("hint")
        page = problem_page(
            self._site(),
            "Not done",
            str(error.get("message")),
            str(hint) if hint else None,
            back,
        )
        return HTMLResponse(page, status_code=outcome.http_status)

    def _site(self) -> Site:
        return self.serving.site(self.served)


async def read_form(
    request: Request, serving: Serving, served: Served
) -> dict[str, str]:
    """Read a form that carries the page's token.

    Raises:
        UwfError: It does not, or nothing may be done here.
    """
    fields = _parse_form(await request.body())
    is_known = serving.rules.keys.is_page_token(fields.pop("token", ""))
    if not is_known and not request.scope["uwf.bearer"]:
        raise _RefusedError(BAD_TOKEN.message)
    if not served.acts:
        raise _RefusedError("nothing can be changed here")
    return fields


def _parse_form(body: bytes) -> dict[str, str]:
    """Read a form's fields, as a browser encodes them.

    Raises:
        InvalidError: It is not one, or has far too many.
    """
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_FIELDS)
    except ValueError as exc:
        raise InvalidError(f"the form cannot be read: {exc}") from exc
    return dict(pairs)


class _RefusedError(UwfError):
    """What a page may not do."""

    code = "refused"


def _workflow(
    ledger: Ledger, name: str, version: Hash, lines: tuple[Line, ...]
) -> WorkflowView:
    if name in list_workflows(ledger):
        try:
            return view_registered(ledger, name, version, lines)
        except NotFoundError:
            pass
    threads = pinned_by(lines, version)
    if not threads:
        raise NotFoundError("workflow", f"{name}@{version}")
    record = open_record(
        ledger.store, load_tip(ledger.store, threads[0]), checked=False
    )
    return WorkflowView(
        workflow=record.workflow, hash=version, source="", threads=threads
    )
