"""A thread as a page shows it: its steps with all that led to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.engine.run.control import read_end
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.hold import is_pause_pending
from uwfgit.errors import CorruptError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.kin import find_parent_step
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.prices import UNKNOWN, Cost, thread_cost
from uwfgit.model.node import DETAIL_TYPE
from uwfgit.model.picture.chart import Chart, chart_of
from uwfgit.model.picture.edge_counts import trips_of
from uwfgit.model.schema.variants import as_asked
from uwfgit.model.thread.event import RUN_EVENTS, Event, iter_events
from uwfgit.model.thread.family import named_children
from uwfgit.model.thread.hold import find_hold
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.step import Step
from uwfgit.model.thread.tip import Tip
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.store.layout import SUMMARY_FILE, thread_folder
from uwfgit.store.objects import find_entry, read_blob
from uwfgit.store.refs import list_refs
from uwfgit.sync.exchange.remotes import APPROVED_PREFIX
from uwfgit.web.view.listing import Line, first_line

BLOCK: Final = 50
"""Steps on one page; all of them stand on the time line."""


class Run(Struct, frozen=True, kw_only=True):
    """One run of a role: a step of the chain, a failed attempt, or a replaced step.

    ``event`` is the commit that recorded it; ``detail`` what its agent did, or
    ``problem`` why that cannot be read; ``code`` what it changed in the code, where
    that is to stand on the page itself.
    """

    step: Step
    event: Event | None
    detail: Mapping[str, Any]
    problem: str = ""
    code: str = ""


class Numbered(Struct, frozen=True, kw_only=True):
    """All that stands under one number: the step, and what came before it.

    ``run`` is ``None`` behind the newest step, where only attempts stand.
    """

    number: int
    run: Run | None
    attempts: tuple[Run, ...]
    replaced: tuple[Run, ...]


class Relative(Struct, frozen=True, kw_only=True):
    """A thread beside this one, in the tree of forks."""

    thread: ThreadId
    number: int
    """The step of this thread, or of its origin, at which they part."""
    status: str
    is_origin: bool


Wait = Literal["", "asked", "failed", "lost", "held"]
"""Why a thread waits: a role asks, its last run failed, no role follows, a hold."""
_WAITS: Final[Mapping[RunEnd, Wait]] = {
    RunEnd.AGENT_FAILED: "failed",
    RunEnd.REFUSED: "lost",
}


class Kin(Struct, frozen=True, kw_only=True):
    """A thread that does a step of this one, or a step of which this one does.

    The number is that step's; 0 where nothing names it yet, or it is not here.
    """

    thread: ThreadId
    number: int
    workflow: str = ""
    status: str = ""
    """Empty where the thread is not here."""


class ThreadView(Struct, frozen=True, kw_only=True):
    """A thread's page: facts, path, and one block of steps in full."""

    tip: Tip
    status: str
    task: str
    cwd: str
    workflow: Workflow
    chart: Chart
    steps: tuple[Step, ...]
    events: tuple[Event, ...]
    """All of them, newest first."""
    block: tuple[Numbered, ...]
    first: int
    """The number of the first step in the block."""
    relatives: tuple[Relative, ...]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    summary: str = ""
    cost: Cost | None = None
    parent: Kin | None = None
    """The thread whose step this one does."""
    children: tuple[Kin, ...] = ()
    wait: Wait = ""
    is_pausing: bool = False
    """Whether its run was asked to end after the step at hand."""
    approvals: tuple[str, ...] = ()
    """The steps that someone approved, by number or hash, as the tags say."""

    @property
    def title(self) -> str:
        """The task's first line."""
        return first_line(self.task)


def block_start(number: int) -> int:
    """Return the number of the first step of the block a step stands in."""
    return (max(1, number) - 1) // BLOCK * BLOCK + 1


def view_thread(
    ledger: Ledger,
    tip: Tip,
    *,
    status: str,
    known: Mapping[ThreadId, Line],
    first: int | None = None,
    whole: bool = False,
) -> ThreadView:
    """Read a thread for its page.

    Args:
        ledger: Where it is.
        tip: Its newest commit.
        status: As people see it.
        known: All threads, so that those beside it are found.
        first: The first step of the block; by default of the newest one.
        whole: All steps in one block.

    Raises:
        CorruptError: Something of it is missing or damaged.
    """
    record = open_record(ledger.store, tip, checked=False)
    steps = record.steps()
    events = tuple(iter_events(ledger.store, tip.commit))
    start = 1 if whole else block_start(first if first is not None else len(steps))
    end = len(steps) if whole else min(start + BLOCK - 1, len(steps))
    trips = trips_of(record.workflow, tip.state, steps)
    if status == "running" and trips.mark == "waits":
        trips = replace(trips, mark="next")
    chart = chart_of(record.workflow, trips)
    given = record.start.values
    above = find_parent_step(ledger, record)
    approved = f"{APPROVED_PREFIX}{tip.thread}/"
    return ThreadView(
        tip=tip,
        status=status,
        task=record.start.prompt,
        cwd=record.start.cwd,
        workflow=record.workflow,
        chart=chart,
        steps=steps,
        events=events,
        block=tuple(_block(record, steps, events, start, end)),
        first=start,
        relatives=tuple(_relatives(tip, known.values())),
        inputs=given if isinstance(given, dict) else {},
        summary=_summary(record),
        cost=_cost(record, events),
        parent=None if above is None else _kin(*above, known),
        children=tuple(_children(record, steps, known)),
        wait=_wait(record),
        is_pausing=is_pause_pending(ledger, tip.thread),
        approvals=tuple(
            ref.removeprefix(approved) for ref in list_refs(record.store, approved)
        ),
    )


def _wait(record: Record) -> Wait:
    """Say why a thread waits, by how its newest run ended."""
    if record.tip.state.status != "suspended":
        return ""
    if find_hold(record.store, record.tip.commit, record.tip.state) is not None:
        return "held"
    return _WAITS.get(read_end(record), "asked")


def _cost(record: Record, events: Sequence[Event]) -> Cost | None:
    try:
        return thread_cost(record, events)
    except CorruptError:
        # The step whose record is damaged says so itself.
        return UNKNOWN


def _summary(record: Record) -> str:
    path = f"{thread_folder(record.tip.thread)}/{SUMMARY_FILE}"
    entry = find_entry(record.store, record.tip.tree, path)
    if entry is None:
        return ""
    return read_blob(record.store, entry.oid).decode("utf-8", "replace")


def _block(
    record: Record, steps: Sequence[Step], events: Sequence[Event], start: int, end: int
) -> Iterable[Numbered]:
    by_node = {event.node: event for event in events if event.node is not None}
    others = _other_runs(record, steps, events)
    last = end + 1 if end == len(steps) else end
    for number in range(start, last + 1):
        step = steps[number - 1] if number <= len(steps) else None
        aside = others.get(number, ())
        if step is None and not aside:
            continue
        yield Numbered(
            number=number,
            run=_run(record, step, by_node.get(step.hash)) if step else None,
            attempts=tuple(run for run in aside if _is_attempt(run)),
            replaced=tuple(run for run in aside if not _is_attempt(run)),
        )


def _is_attempt(run: Run) -> bool:
    return run.event is not None and run.event.name == "attempt"


def as_asked_for(record: Record, step: Step) -> Step:
    """Return a step with the fields of its answer as its role was asked for them."""
    role = record.workflow.roles.get(step.role)
    if role is None:
        return step
    return replace(step, output=as_asked(role.schema, step.output))


def _run(record: Record, step: Step, event: Event | None) -> Run:
    step = as_asked_for(record, step)
    try:
        detail = record.node(step.detail_hash, DETAIL_TYPE).payload
    except CorruptError as exc:
        return Run(step=step, event=event, detail={}, problem=exc.message)
    return Run(step=step, event=event, detail=detail)


def _other_runs(
    record: Record, steps: Sequence[Step], events: Sequence[Event]
) -> dict[int, tuple[Run, ...]]:
    """Find the runs that are no part of the chain, by the number they have."""
    chain = {step.hash for step in steps}
    numbers: dict[Hash | None, int] = {None: 0}
    found: dict[int, tuple[Run, ...]] = {}
    for event in reversed(events):
        node = event.node
        if node is None or event.name not in RUN_EVENTS:
            continue
        number = numbers.get(event.prev, len(steps)) + 1
        numbers[node] = number
        if node not in chain and node in record.places:
            run = _run(record, record.step(node, number), event)
            found[number] = (*found.get(number, ()), run)
    return found


def _children(
    record: Record,
    steps: Sequence[Step],
    known: Mapping[ThreadId, Line],
) -> Iterator[Kin]:
    named = dict.fromkeys(named_children(record), 0)
    for step in steps:
        if step.child is not None:
            named[step.child.thread] = step.number
    for line in known.values():
        if line.began_for == record.tip.thread and line.workflow and not line.fork_of:
            named.setdefault(line.thread, 0)
    for thread, number in sorted(named.items()):
        yield _kin(thread, number, known)


def _kin(thread: ThreadId, number: int, known: Mapping[ThreadId, Line]) -> Kin:
    line = known.get(thread)
    if line is None or not line.workflow:
        return Kin(thread=thread, number=number)
    return Kin(thread=thread, number=number, workflow=line.workflow, status=line.status)


def _relatives(tip: Tip, lines: Iterable[Line]) -> Iterable[Relative]:
    origin = tip.state.forked_from
    for line in lines:
        if not line.workflow or line.thread == tip.thread:
            continue
        if origin is not None and line.thread == origin.thread:
            yield Relative(
                thread=line.thread,
                number=origin.number,
                status=line.status,
                is_origin=True,
            )
        if line.fork_of == tip.thread:
            yield Relative(
                thread=line.thread,
                number=line.fork_at,
                status=line.status,
                is_origin=False,
            )
