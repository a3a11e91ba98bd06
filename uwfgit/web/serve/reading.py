"""What pages ask of a store, and how a store here answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import anyio.to_thread
from msgspec.structs import replace

from uwfgit.errors import NotFoundError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.registry import list_workflows
from uwfgit.model.ledger.standing import is_running, status_of
from uwfgit.model.thread.compare import compare_chains
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import find_sharing, load_tip
from uwfgit.web.serve.acts import (
    Command,
    Outcome,
    RefusedError,
    Request,
    Run,
    start_command,
    thread_command,
)
from uwfgit.web.serve.live import Messages, listing_messages, thread_messages
from uwfgit.web.serve.shelf import Shelf
from uwfgit.web.view.comparison import ComparisonView, Side
from uwfgit.web.view.listing import (
    Line,
    Listing,
    Question,
    answer,
    titles_of,
)
from uwfgit.web.view.node import NodeView, view_node
from uwfgit.web.view.report import Report
from uwfgit.web.view.thread import ThreadView, as_asked_for, view_thread
from uwfgit.web.view.workflow import (
    WorkflowLine,
    WorkflowView,
    list_registered,
    pinned_by,
    version_diff,
    view_registered,
)


class Reading(Protocol):
    """Answers what pages ask of one store. All raise what a command would."""

    async def listing(self, question: Question) -> Listing:
        """Return the threads that were asked for."""

    async def thread(self, thread: ThreadId, first: int | None) -> ThreadView:
        """Return a thread, and the steps from ``first`` on, or the newest."""

    async def node(self, thread: ThreadId, node: Hash) -> NodeView:
        """Return a node, as one thread has it."""

    async def comparison(self, a: ThreadId, b: ThreadId) -> ComparisonView:
        """Return two threads side by side."""

    async def proof(self, thread: ThreadId) -> Report:
        """Prove a thread."""

    async def code(self, thread: ThreadId, number: int) -> Report:
        """Return what a step changed in the code."""

    async def workflows(self) -> tuple[WorkflowLine, ...]:
        """Return the registered workflows."""

    async def workflow(self, name: str, version: Hash | None) -> WorkflowView:
        """Return a version of a workflow: the newest, another, or a thread's own."""

    async def changes(self, name: str, version: Hash) -> str:
        """Return what a version changed in the file before it."""

    def follow(self, thread: ThreadId, seen: Oid | None) -> Messages:
        """Return what happens to a thread from a commit on."""

    def follow_all(self) -> Messages:
        """Return a word whenever any thread changes."""


class Acting(Protocol):
    """Sets things going in one store."""

    async def act(self, thread: ThreadId, act: str, wanted: Request) -> Outcome:
        """Do something with a thread."""

    async def start(
        self, workflow: str, wanted: Request, inputs: Mapping[str, Any]
    ) -> Outcome:
        """Start a thread of a registered workflow."""

    async def trust_screen(
        self, thread: ThreadId, act: str, wanted: Request
    ) -> str | None:
        """Return what must be agreed to first; ``None`` where nobody can."""


class StoreReading:
    """How a store of this machine answers."""

    def __init__(self, shelf: Shelf, run: Run) -> None:
        self.shelf = shelf
        self.run = run

    async def listing(self, question: Question) -> Listing:
        """Return the threads that were asked for."""
        return answer(await self.shelf.lines(), question)

    async def thread(self, thread: ThreadId, first: int | None) -> ThreadView:
        """Return a thread, and the steps from ``first`` on, or the newest."""
        lines = await self.shelf.lines()
        return await self.shelf.ask(
            lambda ledger: view_thread(
                ledger,
                load_tip(ledger.store, thread),
                status=_standing(ledger, thread),
                first=first,
                known={line.thread: line for line in lines},
            )
        )

    async def node(self, thread: ThreadId, node: Hash) -> NodeView:
        """Return a node, as one thread has it."""

        def ask(ledger: Ledger) -> NodeView:
            record = open_record(ledger.store, thread)
            return view_node(record, node)

        return await self.shelf.ask(ask)

    async def comparison(self, a: ThreadId, b: ThreadId) -> ComparisonView:
        """Return two threads side by side."""
        lines = [line for line in await self.shelf.lines() if line.thread in {a, b}]
        titles = titles_of(lines)

        def ask(ledger: Ledger) -> ComparisonView:
            tips = [load_tip(ledger.store, thread) for thread in (a, b)]
            records = [open_record(ledger.store, tip, checked=False) for tip in tips]
            chains = [
                [as_asked_for(record, step) for step in record.steps()]
                for record in records
            ]
            sides = [
                Side(
                    tip=tip,
                    status=_standing(ledger, tip.thread),
                    title=titles.get(tip.thread) or tip.thread,
                )
                for tip in tips
            ]
            found = compare_chains(chains[0], chains[1])
            return ComparisonView(a=sides[0], b=sides[1], found=found)

        return await self.shelf.ask(ask)

    async def proof(self, thread: ThreadId) -> Report:
        """Prove a thread, as the command does."""
        words = ("verify", thread)
        done = await self._do(Command(words=words, is_text=True))
        return Report(
            title="It verifies" if done.code == 0 else "It does not verify",
            told=f"uwf {' '.join(words)}",
            text=f"{done.value['out']}\n{done.value['err']}".strip(),
        )

    async def code(self, thread: ThreadId, number: int) -> Report:
        """Return what a step changed in the code, as the command prints it."""
        words = ("step", "diff", f"{thread}:{number}")
        done = await self._do(Command(words=words, is_text=True))
        return Report(
            title=f"What step {number} changed",
            told=f"uwf {' '.join(words)}",
            text=str(done.value["out"] or done.value["err"]),
            kind="diff" if done.code == 0 else "",
        )

    async def workflows(self) -> tuple[WorkflowLine, ...]:
        """Return the registered workflows."""
        lines = await self.shelf.lines()
        return await self.shelf.ask(lambda ledger: list_registered(ledger, lines))

    async def workflow(self, name: str, version: Hash | None) -> WorkflowView:
        """Return a version of a workflow: the newest, another, or a thread's own."""
        lines = await self.shelf.lines()
        return await self.shelf.ask(
            lambda ledger: _workflow(ledger, name, version, lines)
        )

    async def changes(self, name: str, version: Hash) -> str:
        """Return what a version changed in the file before it."""
        return await self.shelf.ask(lambda ledger: version_diff(ledger, name, version))

    def follow(self, thread: ThreadId, seen: Oid | None) -> Messages:
        """Return what happens to a thread from a commit on."""
        return thread_messages(self.shelf, thread, seen)

    def follow_all(self) -> Messages:
        """Return a word whenever any thread changes."""
        return listing_messages(self.shelf)

    async def act(self, thread: ThreadId, act: str, wanted: Request) -> Outcome:
        """Do something with a thread.

        Raises:
            RefusedError: What was agreed to is another tip or workflow by now.
        """
        fields = wanted.fields
        if fields.get("trust"):
            tip = await self.shelf.ask(lambda ledger: load_tip(ledger.store, thread))
            shown = (fields.get("tip"), fields.get("workflow"))
            if shown != (tip.commit, tip.state.workflow_oid):
                raise RefusedError(
                    "the thread has changed since it was shown; look again"
                )
        return await self._do(thread_command(thread, act, wanted))

    async def start(
        self, workflow: str, wanted: Request, inputs: Mapping[str, Any]
    ) -> Outcome:
        """Start a thread of a registered workflow."""
        return await self._do(start_command(workflow, wanted, inputs))

    async def trust_screen(
        self, thread: ThreadId, act: str, wanted: Request
    ) -> str | None:
        """Return the one screen of the command line, which then refuses once more."""
        fields = {**wanted.fields, "trust": ""}
        refused = thread_command(thread, act, replace(wanted, fields=fields))
        screen = await self._do(replace(refused, is_text=True))
        return str(screen.value["err"])

    async def _do(self, command: Command) -> Outcome:
        return await anyio.to_thread.run_sync(self.run, command)


def _standing(ledger: Ledger, thread: ThreadId) -> str:
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


def _workflow(
    ledger: Ledger, name: str, version: Hash | None, lines: tuple[Line, ...]
) -> WorkflowView:
    if name in list_workflows(ledger):
        try:
            return view_registered(ledger, name, version, lines)
        except NotFoundError:
            pass
    threads = pinned_by(lines, version) if version is not None else {}
    if version is None or not threads:
        raise NotFoundError("workflow", f"{name}@{version}" if version else name)
    record = open_record(ledger.store, next(iter(threads)), checked=False)
    return WorkflowView(
        workflow=record.workflow,
        hash=version,
        source=record.workflow_file.decode("utf-8", "replace"),
        threads=threads,
    )
