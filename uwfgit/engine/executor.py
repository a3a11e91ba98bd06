"""The commands that run steps: exec, resume and poke, under the thread's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from uwfgit.constants import END
from uwfgit.engine.cycle import (
    EXIT_DONE,
    EXIT_FAILED,
    EXIT_WAITING,
    CycleEnd,
    run_cycle,
)
from uwfgit.engine.moderator import Routed, RoutingError
from uwfgit.engine.plan import base_prompt, is_routing_error
from uwfgit.engine.run import Cycle, Engine
from uwfgit.errors import RoutingFailedError, StateError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger import Ledger
from uwfgit.model.record import Record, load_tip, open_record
from uwfgit.store.locks import lock

__all__ = [
    "Engine",
    "RunReport",
    "StepReport",
    "exec_thread",
    "hold_thread",
    "poke_thread",
    "resume_thread",
    "thread_lock_path",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What one cycle did and where it left the thread.

    ``hash`` is the recorded step, or the failed attempt; ``status`` is the
    ``$status``, ``thread_status`` the thread's.
    """

    number: int
    hash: Hash | None
    role: str
    status: str | None
    thread_status: str
    head: Hash
    current_role: str | None
    done: bool
    suspended_role: str | None
    suspend_message: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What a command that runs steps did; ``problem`` says why it stopped early."""

    thread: ThreadId
    workflow_hash: Hash
    status: str
    done: bool
    steps: tuple[StepReport, ...]
    exit_code: int
    problem: str | None = None
    hint: str | None = None


def thread_lock_path(ledger: Ledger, thread: ThreadId) -> Path:
    """Give the file whose lock a running thread holds."""
    return ledger.store.state_dir / "locks" / thread


@contextmanager
def hold_thread(ledger: Ledger, thread: ThreadId, *, command: str) -> Iterator[None]:
    """Hold a thread for the length of the block.

    Raises:
        LockedError: Someone else holds it; names the holder.
    """
    path = thread_lock_path(ledger, thread)
    with lock(path, command=command, what=f"thread {thread}"):
        yield


def exec_thread(
    engine: Engine,
    thread: ThreadId,
    *,
    count: int | None,
    agent: str | None = None,
    cwd: Path | None = None,
    on_step: Callable[[StepReport], None] | None = None,
) -> RunReport:
    """Run up to ``count`` cycles, or until the thread stops.

    Args:
        engine: What running needs.
        thread: Which thread.
        count: ``None`` runs until it stops, at most ``limits.maxSteps`` cycles.
        agent: The ``--agent`` flag.
        cwd: The ``--cwd`` flag.
        on_step: Told of each cycle as it ends.

    Raises:
        StateError: The thread was cancelled.
        LockedError: Someone else runs it.
    """
    with hold_thread(engine.ledger, thread, command=engine.command):
        record = _open(engine, thread)
        if record.tip.state.status == "cancelled":
            raise StateError(
                f"thread {thread} is cancelled",
                hint=f"go on in a fork: uwf thread fork {thread}",
            )
        limit = engine.settings.limits.max_steps if count is None else count
        ends: list[CycleEnd] = []
        reports: list[StepReport] = []
        while record.tip.state.status == "idle" and len(ends) < limit:
            cycle = Cycle(event="step", routed=_route(record), agent=agent, cwd=cwd)
            ends.append(run_cycle(engine, record, cycle))
            reports.append(_tell(record, ends[-1], on_step))
            if ends[-1].exit_code:
                break
        return _exec_report(record, ends, reports, limited=count is None)


def _exec_report(
    record: Record, ends: list[CycleEnd], reports: list[StepReport], *, limited: bool
) -> RunReport:
    state = record.tip.state
    report = _report(record, ends, reports)
    if not ends and state.status == "suspended":
        return _waiting(record, report)
    if limited and ends and not ends[-1].exit_code and state.status == "idle":
        return _with_problem(
            report,
            EXIT_FAILED,
            f"stopped after {len(ends)} steps (limits.maxSteps)",
            f"go on with: uwf thread exec {state.thread} --all",
        )
    return report


def resume_thread(
    engine: Engine,
    thread: ThreadId,
    *,
    note: str | None = None,
    agent: str | None = None,
    cwd: Path | None = None,
    on_step: Callable[[StepReport], None] | None = None,
) -> RunReport:
    """Run one cycle of a thread that waits for a person, or that has ended.

    Raises:
        StateError: The thread is idle or cancelled, or has no next role.
        LockedError: Someone else runs it.
    """
    with hold_thread(engine.ledger, thread, command=engine.command):
        record = _open(engine, thread)
        _check_resumable(record)
        cycle = Cycle(
            event="resume", routed=_route(record), agent=agent, cwd=cwd, note=note
        )
        end = run_cycle(engine, record, cycle)
        return _report(record, [end], [_tell(record, end, on_step)])


def _check_resumable(record: Record) -> None:
    state = record.tip.state
    thread = state.thread
    if state.status == "idle":
        raise StateError(
            f"thread {thread} is idle, there is nothing to resume",
            hint=f"run its next step: uwf thread exec {thread}",
        )
    if state.status == "cancelled":
        raise StateError(
            f"thread {thread} is cancelled",
            hint=f"go on in a fork: uwf thread fork {thread}",
        )
    if is_routing_error(state.suspend_message):
        raise StateError(
            f"thread {thread} has no next role ({state.suspend_message})",
            hint=f"have the step done again: uwf thread poke {thread} -p TEXT; "
            f"or branch off before it: uwf thread fork {thread} --at "
            f"{max(state.steps - 1, 0)}",
        )


def poke_thread(
    engine: Engine,
    thread: ThreadId,
    *,
    note: str,
    agent: str | None = None,
    cwd: Path | None = None,
    on_step: Callable[[StepReport], None] | None = None,
) -> RunReport:
    """Have the newest step done again with a person's correction.

    Raises:
        StateError: The thread is cancelled or has no step.
        LockedError: Someone else runs it.
    """
    with hold_thread(engine.ledger, thread, command=engine.command):
        record = _open(engine, thread)
        state = record.tip.state
        if state.status == "cancelled":
            raise StateError(
                f"thread {thread} is cancelled",
                hint=f"go on in a fork: uwf thread fork {thread}",
            )
        if not state.steps:
            raise StateError(
                f"thread {thread} has no step to poke",
                hint=f"run its first step: uwf thread exec {thread}",
            )
        old = record.step(state.head, state.steps)
        routed = Routed(
            role=old.role,
            prompt=old.edge_prompt,
            location=_old_location(record),
            missing=(),
        )
        cycle = Cycle(event="poke", routed=routed, agent=agent, cwd=cwd, note=note)
        end = run_cycle(engine, record, cycle)
        return _report(record, [end], [_tell(record, end, on_step)])


def _old_location(record: Record) -> str | None:
    """Give the location of the newest step's own edge, should its folder be gone."""
    routed = _base(record, skip=1)
    return routed.location if isinstance(routed, Routed) else None


def _open(engine: Engine, thread: ThreadId) -> Record:
    store = engine.ledger.store
    return open_record(store, load_tip(store, thread))


def _base(record: Record, *, skip: int = 0) -> Routed | RoutingError:
    return base_prompt(
        record.workflow,
        islice(record.iter_steps(), skip, None),
        task=record.start.prompt,
        thread=record.tip.thread,
    )


def _route(record: Record) -> Routed:
    routed = _base(record)
    if isinstance(routed, RoutingError):
        raise RoutingFailedError(routed.message)
    if routed.role == END:
        raise StateError(
            f"workflow '{record.workflow.name}' leads from $START.resume to $END",
            hint="there is nothing to resume; fork the thread or start another",
        )
    return routed


def _tell(
    record: Record, end: CycleEnd, on_step: Callable[[StepReport], None] | None
) -> StepReport:
    state = record.tip.state
    report = StepReport(
        number=end.number,
        hash=end.step,
        role=end.role,
        status=end.status,
        thread_status=state.status,
        head=state.head,
        current_role=state.current_role,
        done=state.status == "end",
        suspended_role=state.suspended_role,
        suspend_message=state.suspend_message,
        error=end.error,
    )
    if on_step is not None:
        on_step(report)
    return report


def _report(
    record: Record, ends: list[CycleEnd], reports: list[StepReport]
) -> RunReport:
    state = record.tip.state
    return RunReport(
        thread=state.thread,
        workflow_hash=state.workflow_hash,
        status=state.status,
        done=state.status == "end",
        steps=tuple(reports),
        exit_code=ends[-1].exit_code if ends else EXIT_DONE,
        problem=ends[-1].error if ends else None,
    )


def _waiting(record: Record, report: RunReport) -> RunReport:
    state = record.tip.state
    return _with_problem(
        report,
        EXIT_WAITING,
        f"thread {state.thread} waits for a person: {state.suspend_message}",
        f"answer with: uwf thread resume {state.thread} -p TEXT",
    )


def _with_problem(
    report: RunReport, exit_code: int, problem: str, hint: str
) -> RunReport:
    return RunReport(
        thread=report.thread,
        workflow_hash=report.workflow_hash,
        status=report.status,
        done=report.done,
        steps=report.steps,
        exit_code=exit_code,
        problem=problem,
        hint=hint,
    )
