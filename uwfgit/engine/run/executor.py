"""The commands that run steps: exec, resume and poke, under the thread's lock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from uwfgit.constants import END
from uwfgit.engine.decide.moderator import (
    Routed,
    RoutingError,
    find_detour,
    next_prompt,
)
from uwfgit.engine.judge.judging import Supervisor
from uwfgit.engine.judge.supervise import Look, supervise
from uwfgit.engine.run.cycle import run_cycle
from uwfgit.engine.run.ends import CycleEnd, RunEnd
from uwfgit.engine.run.engine import Cycle, Engine
from uwfgit.engine.run.hold import (
    hold_to_run,
    is_pause_asked,
    thread_lock_path,
)
from uwfgit.engine.run.report import (
    RunReport,
    StepReport,
    make_step_report,
    report_interrupted,
    report_run,
    report_waiting,
)
from uwfgit.errors import (
    BudgetError,
    ConflictError,
    RoutingFailedError,
    StateError,
    UwfError,
)
from uwfgit.ids import ThreadId
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.tip import find_sharing, load_tip

__all__ = [
    "Engine",
    "RunReport",
    "StepReport",
    "admit_thread",
    "exec_thread",
    "poke_thread",
    "resume_thread",
    "thread_lock_path",
]


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
        StateError: The thread was cancelled, or has diverged.
        UntrustedError: Others made it, and the user has not agreed to run it.
        LockedError: Someone else runs it.
    """
    with hold_to_run(engine, thread) as held:
        is_pausing = partial(is_pause_asked, engine.ledger, thread, held.holder)
        record = open_record(engine.ledger.store, thread)
        _require_runnable(record)
        most = engine.settings.limits.max_steps
        limit = most if count is None else count
        first = _route(record) if _can_go_on(engine, record) else None
        ground = engine.admit(record, first.role, agent, cwd) if first else None
        reports: list[StepReport] = []
        last: CycleEnd | None = None
        began, is_paused, ran = record.tip.commit, False, 0
        try:
            while _can_go_on(engine, record):
                # Children's steps count too unless a count of cycles was asked for.
                left = limit - (ran if count is None else len(reports))
                if left <= 0:
                    break
                is_idle = record.tip.state.status == "idle"
                cycle = Cycle(
                    event="step" if is_idle else "resume",
                    routed=_route(record) if first is None or last else first,
                    agent=agent,
                    cwd=cwd,
                    ground=ground,
                    steps_left=most - ran,
                    go_on=_go_on,
                    is_last=lambda: left == 1 or is_pausing(),  # noqa: B023 - asked while it runs
                )
                last, report = _run_next(
                    engine, record, cycle, on_step, is_first=last is None
                )
                reports.append(report)
                ran += 1 + last.below
                is_paused = is_pausing()
                if last.end is not RunEnd.DONE or is_paused:
                    break
                if engine.supervisor is not None:
                    steps = engine.taken + len(reports)
                    look = _look(engine, record, engine.supervisor, steps)
                    if look.stops:
                        told = report_run(record, reports, last, ran=ran)
                        return report_waiting(record, told)
                    engine = replace(engine, beside=look.beside)
        except KeyboardInterrupt:
            # Read again: it may have come right after a ref was moved.
            return report_interrupted(open_record(engine.ledger.store, thread), began)
        is_limited = count is None and not is_paused
        return report_run(record, reports, last, ran=ran, limited=is_limited)


def _look(engine: Engine, record: Record, who: Supervisor, steps: int) -> Look:
    """Let the supervisor look at the run when its turn has come."""
    if steps % who.every or record.tip.state.status != "idle":
        return Look(stops=False, beside=engine.beside)
    return supervise(
        engine.ledger,
        record,
        who,
        beside=engine.beside,
        masker=engine.masker,
        warn=engine.tell,
    )


def _go_on(engine: Engine, thread: ThreadId, note: str | None) -> RunReport:
    """Run the child of a step: on from where it waits, then as far as it goes."""
    store, ran = engine.ledger.store, 0
    if load_tip(store, thread).state.status in {"suspended", "end"}:
        report = resume_thread(engine, thread, note=note)
        if report.end is not RunEnd.DONE or report.status != "idle":
            return report
        ran = report.ran
        left = engine.settings.limits.max_steps - ran
        limits = replace(engine.settings.limits, max_steps=left)
        engine = replace(engine, settings=replace(engine.settings, limits=limits))
    rest = exec_thread(engine, thread, count=None)
    return replace(rest, ran=rest.ran + ran)


def _can_go_on(engine: Engine, record: Record) -> bool:
    """Whether exec may run a thread: it is idle, or waited for a limit that is over."""
    state = record.tip.state
    if state.status == "suspended" and state.retry_at_ms is not None:
        return engine.ledger.now_ms() >= state.retry_at_ms
    return state.status == "idle"


def _run_next(
    engine: Engine,
    record: Record,
    cycle: Cycle,
    on_step: Callable[[StepReport], None] | None,
    *,
    is_first: bool,
) -> tuple[CycleEnd, StepReport]:
    """Run a cycle and tell what it did.

    Raises:
        UwfError: It could not begin, and was the first of its run.
    """
    try:
        end = run_cycle(engine, record, cycle)
    except UwfError as exc:
        if is_first:
            raise
        # What ran before it is reported all the same.
        end = CycleEnd(
            number=record.tip.state.steps + 1,
            role=cycle.routed.role,
            step=None,
            status=None,
            error=f"{exc.message}; {exc.hint}" if exc.hint else exc.message,
            end=RunEnd.HELD if isinstance(exc, ConflictError) else RunEnd.REFUSED,
            code=exc.code if isinstance(exc, BudgetError) else None,
        )
    report = make_step_report(record.tip.state, end)
    if on_step is not None:
        on_step(report)
    return end, report


def _require_runnable(record: Record) -> None:
    thread = record.tip.thread
    if record.tip.state.status == "cancelled":
        raise StateError(
            f"thread {thread} is cancelled",
            hint=f"go on in a fork: uwf thread fork {thread}",
        )
    diverged = find_sharing(record.store, thread, record.tip.commit).diverged
    if diverged:
        raise StateError(
            f"thread {thread} has diverged from '{diverged[0]}'",
            hint=f"see both sides and choose: uwf thread resolve {thread}",
        )


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
    with hold_to_run(engine, thread):
        record = open_record(engine.ledger.store, thread)
        state = record.tip.state
        if state.status == "idle":
            raise StateError(
                f"thread {thread} is idle, there is nothing to resume",
                hint=f"run its next step: uwf thread exec {thread}",
            )
        _require_runnable(record)
        detour = find_detour(record)
        if detour is not None:
            message = f"thread {thread} has no next role ({state.suspend_message})"
            raise StateError(message, hint=detour)
        cycle = Cycle(
            event="resume", routed=_route(record), agent=agent, cwd=cwd, note=note
        )
        return _run_one(engine, record, cycle, on_step)


def _run_one(
    engine: Engine,
    record: Record,
    cycle: Cycle,
    on_step: Callable[[StepReport], None] | None,
) -> RunReport:
    cycle = replace(
        cycle,
        ground=engine.admit(record, cycle.routed.role, cycle.agent, cycle.cwd),
        steps_left=engine.settings.limits.max_steps,
        go_on=_go_on,
    )
    began = record.tip.commit
    try:
        end, report = _run_next(engine, record, cycle, on_step, is_first=True)
        return report_run(record, [report], end, ran=1 + end.below)
    except KeyboardInterrupt:
        return report_interrupted(
            open_record(engine.ledger.store, record.tip.thread), began
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
    with hold_to_run(engine, thread):
        record = open_record(engine.ledger.store, thread)
        state = record.tip.state
        _require_runnable(record)
        if not state.steps:
            command = "resume" if state.status == "suspended" else "exec"
            raise StateError(
                f"thread {thread} has no step to poke",
                hint=f"run its first step: uwf thread {command} {thread}",
            )
        old = record.step(state.head, state.steps)
        # Its own edge, for the location, should its folder be gone.
        edge = next_prompt(record, skip=1)
        routed = Routed(
            role=old.role,
            prompt=old.edge_prompt,
            location=edge.location if isinstance(edge, Routed) else None,
        )
        cycle = Cycle(event="poke", routed=routed, agent=agent, cwd=cwd, note=note)
        return _run_one(engine, record, cycle, on_step)


def admit_thread(
    engine: Engine,
    thread: ThreadId,
    event: Literal["exec", "resume", "poke"],
    *,
    agent: str | None = None,
    cwd: Path | None = None,
) -> None:
    """Have a thread admitted that another process is about to run.

    What else stands in the way is for that one to find: it holds the thread.

    Raises:
        UwfError: It may not run.
    """
    record = open_record(engine.ledger.store, thread)
    state = record.tip.state
    if event == "exec":
        role = state.current_role
    elif event == "poke":
        role = record.step(state.head, state.steps).role if state.steps else None
    else:
        routed = None if state.status == "idle" else next_prompt(record)
        role = routed.role if isinstance(routed, Routed) else None
    if role and role != END and state.status != "cancelled":
        engine.admit(record, role, agent, cwd)


def _route(record: Record) -> Routed:
    routed = next_prompt(record)
    if isinstance(routed, RoutingError):
        raise RoutingFailedError(routed.message)
    if routed.role == END:
        raise StateError(
            f"workflow '{record.workflow.name}' leads from $START.resume to $END",
            hint="there is nothing to resume; fork the thread or start another",
        )
    return routed
