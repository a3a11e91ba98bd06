"""The API: what the command line prints as JSON, over HTTP, for scripts and hubs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from uwfgit.errors import InvalidError, NotFoundError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger, iter_threads, load_node
from uwfgit.model.ledger.prices import cost_at
from uwfgit.model.ledger.registry import (
    list_workflows,
    load_registered,
    workflow_history,
)
from uwfgit.model.ledger.standing import list_sharing
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import NOT_SHARED, load_tip
from uwfgit.web.serve.acts import THREAD_ACTS, Outcome, RefusedError
from uwfgit.web.serve.acts import Request as Wanted
from uwfgit.web.serve.asked import node_hash, parse_question, seen_commit, thread_id
from uwfgit.web.serve.live import stream
from uwfgit.web.serve.site import Served, Shapes
from uwfgit.web.view.listing import answer

_MOST = 1_000
_USUAL = 50
API_ACTS = THREAD_ACTS.keys() - {"approve"}


class Api:
    """The handlers of one store's API."""

    def __init__(self, shapes: Shapes, served: Served) -> None:
        self.shapes = shapes
        self.served = served
        self.shelf = served.shelf

    def routes(self) -> list[Route]:
        """Return the routes below ``/api``."""
        return [
            Route("/workflows", self.workflows, methods=["GET"]),
            Route("/workflows/{name}", self.workflow, methods=["GET"]),
            Route("/threads", self.threads, methods=["GET"]),
            Route("/threads", self.start, methods=["POST"]),
            Route("/threads/{thread}", self.thread, methods=["GET"]),
            Route("/threads/{thread}/live", self.live, methods=["GET"]),
            Route("/threads/{thread}/nodes/{node}", self.node, methods=["GET"]),
            Route("/threads/{thread}/{act}", self.act, methods=["POST"]),
        ]

    async def workflows(self, request: Request) -> Response:
        """The registered workflows, as ``workflow list`` has them."""
        del request

        def ask(ledger: Ledger) -> list[dict[str, Any]]:
            items = []
            for name in list_workflows(ledger):
                newest = workflow_history(ledger, name)[0]
                items.append(
                    {
                        "name": name,
                        "hash": newest.hash,
                        "oid": newest.oid,
                        "origin": newest.origin,
                        "timestampMs": newest.timestamp_ms,
                    }
                )
            return items

        return JSONResponse({"items": await self.shelf.ask(ask)})

    async def workflow(self, request: Request) -> Response:
        """A registered workflow, as ``workflow show`` has it."""
        name = request.path_params["name"]
        found = await self.shelf.ask(lambda ledger: load_registered(ledger, name))
        workflow = found.workflow
        return JSONResponse(
            {
                "name": workflow.name,
                "hash": found.version.hash,
                "source": "registry",
                "origin": found.version.origin,
                "description": workflow.description,
                "version": workflow.version,
                "inputs": dict(workflow.inputs) if workflow.inputs else None,
                "roles": self.shapes.roles(workflow),
                "graph": self.shapes.graph(workflow),
            }
        )

    async def threads(self, request: Request) -> Response:
        """Threads, as ``thread list`` has them; searched and in order as the page."""
        limit = request.query_params.get("limit", "")
        most = min(int(limit), _MOST) if limit.isascii() and limit.isdigit() else _USUAL
        lines = await self.shelf.lines()
        question = parse_question(request.query_params, limit=most)
        listing = answer(lines, question)
        chosen = {line.thread: line for line in listing.lines}

        def ask(ledger: Ledger) -> list[dict[str, Any]]:
            rows = {row.thread: row for row in iter_threads(ledger, among=chosen)}
            sharing = list_sharing(ledger.store, list(rows.values()))
            return [
                self.shapes.row(
                    row := rows[thread],
                    status=line.status,
                    shared=sharing.get(thread, NOT_SHARED).shared,
                    children=line.children,
                    cost=cost_at(ledger.store, thread, row.commit, row.state),
                )
                for thread, line in chosen.items()
                if thread in rows
            ]

        items = await self.shelf.ask(ask)
        return JSONResponse(
            {"items": items, "found": listing.found, "total": listing.total}
        )

    async def thread(self, request: Request) -> Response:
        """A thread, as ``thread show`` has it, and its steps as ``step list``."""
        thread = thread_id(request)

        def ask(ledger: Ledger) -> dict[str, Any]:
            tip = load_tip(ledger.store, thread)
            record = open_record(ledger.store, tip, checked=False)
            shown = self.shapes.thread(ledger, tip)
            return {
                **shown,
                "items": [self.shapes.step(record, step) for step in record.steps()],
            }

        return JSONResponse(await self.shelf.ask(ask))

    async def live(self, request: Request) -> Response:
        """A thread's events as they come, the turns of a running step among them."""
        reading = self.served.place.reading
        return stream(reading.follow(thread_id(request), seen_commit(request)))

    async def node(self, request: Request) -> Response:
        """A node, as ``cas get`` has it; a hash names one inside a thread."""
        thread, name = thread_id(request), node_hash(request)
        found = await self.shelf.ask(
            lambda ledger: load_node(ledger, name, thread=thread)
        )
        return JSONResponse({"type": found.type, "payload": found.payload})

    async def start(self, request: Request) -> Response:
        """Start a thread of a registered workflow."""
        fields = await self._fields(request)
        wanted = Wanted(fields=fields, agents=self.served.agents)
        name = wanted.text("workflow")
        inputs = fields.get("inputs") or {}
        if not isinstance(inputs, dict):
            raise InvalidError("inputs: is not a JSON object")
        if name not in await self.shelf.ask(list_workflows):
            raise NotFoundError("workflow", name)
        return _answer(await self.served.place.acting.start(name, wanted, inputs))

    async def act(self, request: Request) -> Response:
        """Do something with a thread; the answer is the command's own."""
        thread, act = thread_id(request), request.path_params["act"]
        if act not in API_ACTS:
            raise NotFoundError("act", act)
        fields = {
            key: each
            for key, each in (await self._fields(request)).items()
            if key != "trust"
        }
        wanted = Wanted(fields=fields, agents=self.served.agents)
        await self.shelf.ask(lambda ledger: load_tip(ledger.store, ThreadId(thread)))
        return _answer(await self.served.place.acting.act(thread, act, wanted))

    async def _fields(self, request: Request) -> Mapping[str, Any]:
        if not self.served.acts:
            raise RefusedError("nothing can be changed here")
        try:
            value = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError) as exc:
            raise InvalidError(f"the body is not JSON: {exc}") from exc
        if not isinstance(value, dict):
            raise InvalidError("the body is not a JSON object")
        return value


def _answer(outcome: Outcome) -> Response:
    if outcome.error is not None:
        value = {**outcome.value, "error": dict(outcome.error)}
        return JSONResponse(value, status_code=outcome.http_status)
    return JSONResponse(dict(outcome.value))
