"""A client's store as pages know it: every view is asked for, and checked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar, cast, get_args
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.errors import InvalidError, UwfError
from uwfgit.ids import Hash, Oid, ThreadId, is_oid
from uwfgit.web.hub.frames import Ask
from uwfgit.web.hub.line import GoneError, Line, OddError, SlowError
from uwfgit.web.serve.acts import Outcome, Request
from uwfgit.web.serve.live import Message, Messages, What
from uwfgit.web.view.comparison import ComparisonView
from uwfgit.web.view.listing import Listing, Question
from uwfgit.web.view.node import NodeView
from uwfgit.web.view.report import Report
from uwfgit.web.view.thread import Run, ThreadView
from uwfgit.web.view.wire import pack_view, read_view
from uwfgit.web.view.workflow import WorkflowLine, WorkflowView

T = TypeVar("T")


class _Call(Struct, frozen=True, kw_only=True):
    name: str
    arguments: Any
    result: str | None


class _Turn(Struct, frozen=True, kw_only=True):
    role: str
    content: str
    reasoning: str | None
    toolCalls: tuple[_Call, ...] | None  # noqa: N815 - as the record has it


class FarError(UwfError):
    """What a client said of a question of ours."""

    def __init__(self, code: str, message: str, hint: str | None) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class FarReading:
    """How the store of a client answers; ``line`` gives the line there is to it."""

    def __init__(self, line: Callable[[], Line]) -> None:
        self.line = line

    async def listing(self, question: Question) -> Listing:
        """Return the threads that were asked for."""
        asked = {
            "q": question.words,
            "status": question.status,
            "workflow": question.workflow,
            "sort": question.order,
            "from": str(question.offset),
        }
        return await self._view(Listing, f"/view/threads?{urlencode(asked)}")

    async def thread(self, thread: ThreadId, first: int | None) -> ThreadView:
        """Return a thread, and the steps from ``first`` on, or the newest."""
        query = "" if first is None else f"?from={first}"
        view = await self._view(ThreadView, f"/view/threads/{thread}{query}")
        # What agents said has a shape that no view's type fixes.
        block = (
            replace(
                each,
                run=_checked_run(each.run) if each.run is not None else None,
                attempts=tuple(map(_checked_run, each.attempts)),
                replaced=tuple(map(_checked_run, each.replaced)),
            )
            for each in view.block
        )
        return replace(view, block=tuple(block))

    async def node(self, thread: ThreadId, node: Hash) -> NodeView:
        """Return a node, as one thread has it."""
        return await self._view(NodeView, f"/view/threads/{thread}/nodes/{node}")

    async def comparison(self, a: ThreadId, b: ThreadId) -> ComparisonView:
        """Return two threads side by side."""
        return await self._view(ComparisonView, f"/view/compare/{a}/{b}")

    async def proof(self, thread: ThreadId) -> Report:
        """Have the client prove a thread."""
        return await self._view(Report, f"/view/threads/{thread}/verify")

    async def code(self, thread: ThreadId, number: int) -> Report:
        """Return what a step changed in the code."""
        return await self._view(Report, f"/view/threads/{thread}/code/{number}")

    async def workflows(self) -> tuple[WorkflowLine, ...]:
        """Return the registered workflows."""
        kind: type[tuple[WorkflowLine, ...]] = tuple[WorkflowLine, ...]
        return await self._view(kind, "/view/workflows")

    async def workflow(self, name: str, version: Hash | None) -> WorkflowView:
        """Return a version of a workflow: the newest, another, or a thread's own."""
        place = f"/view/workflows/{name}"
        path = place if version is None else f"{place}/{version}"
        return await self._view(WorkflowView, path)

    async def changes(self, name: str, version: Hash) -> str:
        """Return what a version changed in the file before it."""
        return await self._view(str, f"/view/workflows/{name}/{version}/changes")

    async def follow(self, thread: ThreadId, seen: Oid | None) -> Messages:
        """Return what happens to a thread from a commit on."""
        query = "" if seen is None else f"?since={seen}"
        async for message in self._messages(f"/api/threads/{thread}/live{query}"):
            yield message

    async def follow_all(self) -> Messages:
        """Return a word whenever any thread changes."""
        async for message in self._messages("/view/live"):
            yield message

    async def act(self, thread: ThreadId, act: str, wanted: Request) -> Outcome:
        """Do something with a thread, if its machine allows it."""
        fields = {key: each for key, each in wanted.fields.items() if key != "trust"}
        return await self._do(f"/api/threads/{thread}/{act}", fields)

    async def start(
        self, workflow: str, wanted: Request, inputs: Mapping[str, Any]
    ) -> Outcome:
        """Start a thread of a registered workflow, if its machine allows it."""
        fields = {"workflow": workflow, "prompt": wanted.text("prompt")}
        return await self._do("/api/threads", {**fields, "inputs": dict(inputs)})

    async def trust_screen(
        self, thread: ThreadId, act: str, wanted: Request
    ) -> str | None:
        """Return nothing: trust is given on the machine itself, never from afar."""
        del thread, act, wanted
        return None

    async def _view(self, kind: type[T], path: str) -> T:
        line = self.line()
        status, text = await line.read("GET", path)
        value = _parse(line, text)
        if status != 200:  # noqa: PLR2004 - done
            raise _error(line, status, value)
        try:
            return read_view(kind, value)
        except InvalidError as exc:
            raise OddError(line.name, exc.message) from exc

    async def _do(self, path: str, fields: Mapping[str, Any]) -> Outcome:
        line = self.line()
        kind = {"content-type": "application/json"}
        body = json.dumps(dict(fields))
        status, text = await line.read("POST", path, headers=kind, body=body)
        value = _parse(line, text)
        if status == 200 and isinstance(value, dict):  # noqa: PLR2004 - done
            return Outcome(code=0, value=value)
        error = _error(line, status, value)
        told = {"code": error.code, "message": error.message, "hint": error.hint}
        return Outcome(code=1, error=told)

    async def _messages(self, path: str) -> Messages:
        line = self.line()
        try:
            async with line.asked(Ask(id=0, path=path)) as answer:
                async for block in _blocks(answer.pieces):
                    yield _message(line, block)
        except (GoneError, SlowError):
            # The reader comes back by itself, and so does the client.
            return


async def _blocks(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    rest = ""
    async for piece in pieces:
        *blocks, rest = (rest + piece).split("\n\n")
        for block in blocks:
            yield block


def _message(line: Line, block: str) -> Message | None:
    """Read a message; ``None`` for a word that says only that the line is there."""
    parts = dict(each.split(": ", 1) for each in block.split("\n") if ": " in each)
    event, oid = parts.get("event"), parts.get("id", "")
    if event not in get_args(What):
        return None
    data = _parse(line, parts.get("data", ""))
    if not isinstance(data, dict):
        raise OddError(line.name, "an event is not an object")
    if event == "turns":
        try:
            turns = read_view(tuple[_Turn, ...], data.get("items"))
        except InvalidError as exc:
            raise OddError(line.name, exc.message) from exc
        data = {"items": pack_view(turns)}
    return Message(
        event=cast("What", event), data=data, oid=Oid(oid) if is_oid(oid) else None
    )


def _checked_run(run: Run) -> Run:
    try:
        turns = read_view(tuple[_Turn, ...], run.detail.get("turns", []))
    except InvalidError as exc:
        return replace(run, detail={}, problem=exc.message)
    return replace(run, detail={**run.detail, "turns": pack_view(turns)})


def _parse(line: Line, text: str) -> Any:  # noqa: ANN401 - a JSON value
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise OddError(line.name, "it is not JSON") from exc


def _error(line: Line, status: int, value: Any) -> UwfError:  # noqa: ANN401 - a JSON value
    error = value.get("error") if isinstance(value, dict) else None
    try:
        told = read_view(_Told, error)
    except InvalidError:
        return OddError(line.name, f"status {status}")
    return FarError(told.code, told.message, told.hint)


class _Told(Struct, frozen=True, kw_only=True):
    code: str
    message: str
    hint: str | None = None
