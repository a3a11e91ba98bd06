"""What became of a run, step by step: as it happened, or read back from git."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import SUSPEND
from uwfgit.engine.decide.moderator import is_routing_error
from uwfgit.engine.run.ends import CycleEnd, RunEnd
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import ERROR_TYPE
from uwfgit.model.thread.event import RUN_EVENTS, Event, find_cause, iter_events
from uwfgit.model.thread.hold import HELD, find_hold
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.state import ThreadState
from uwfgit.model.thread.tip import read_tip
from uwfgit.model.wording import count_of

ATTEMPT = "attempt"


class StepReport(Struct, frozen=True, kw_only=True):
    """What one cycle did and where it left the thread.

    ``hash`` is the recorded step, or the failed attempt; ``status`` is the
    ``$status``, ``thread_status`` the thread's. ``said`` is one line of the answer,
    of a failed try the last one, where the command itself heard it.
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
    said: str | None = None
    warnings: tuple[str, ...] = ()


class RunReport(Struct, frozen=True, kw_only=True):
    """What a command that runs steps did; ``problem`` says why it stopped early.

    ``code`` is the problem's stable word, where neither a step nor the thread's
    status tells a program about it.
    """

    thread: ThreadId
    workflow_hash: Hash
    status: str
    done: bool
    steps: tuple[StepReport, ...]
    end: RunEnd
    problem: str | None = None
    hint: str | None = None
    code: str | None = None
    ran: int = 0
    """How many steps were taken, those of children with them."""


def make_step_report(state: ThreadState, end: CycleEnd) -> StepReport:
    """Put what a cycle did beside the state it left the thread in."""
    return StepReport(
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
        said=end.said,
        warnings=end.warnings,
    )


def make_run_report(
    state: ThreadState,
    steps: tuple[StepReport, ...],
    *,
    end: RunEnd,
    problem: str | None = None,
    hint: str | None = None,
) -> RunReport:
    """Put what a run did beside the state it left the thread in."""
    return RunReport(
        thread=state.thread,
        workflow_hash=state.workflow_hash,
        status=state.status,
        done=state.status == "end",
        steps=steps,
        end=end,
        problem=problem,
        hint=hint,
    )


def with_problem(
    report: RunReport,
    end: RunEnd,
    problem: str,
    hint: str | None,
    *,
    code: str | None = None,
) -> RunReport:
    """Say why a run stopped early, or did not begin."""
    return replace(report, end=end, problem=problem, hint=hint, code=code)


def report_run(
    record: Record,
    steps: Sequence[StepReport],
    last: CycleEnd | None,
    *,
    ran: int,
    limited: bool = False,
) -> RunReport:
    """Say what cycles did, and by the last of them how it ended.

    Args:
        record: The thread after them.
        steps: What is told of them.
        last: How the last of them ended, if there was one.
        ran: How many steps they took, children's with them.
        limited: Whether ``limits.maxSteps`` bounded them.
    """
    state = record.tip.state
    if last is None:
        report = make_run_report(state, tuple(steps), end=RunEnd.DONE)
        is_waiting = state.status == "suspended"
        return report_waiting(record, report) if is_waiting else report
    problem, hint, end, code = last.error, None, last.end, last.code
    if last.end is RunEnd.INTERRUPTED and last.error is None:
        # One that is no failure itself was interrupted while its step was recorded.
        problem, hint = "interrupted", _way_on(state)
    elif limited and last.end is RunEnd.DONE and state.status == "idle":
        end, code = RunEnd.REFUSED, "limit"
        problem = f"limits.maxSteps is reached after {count_of(ran, 'step')}"
        hint = f"go on with: uwf thread exec {state.thread} --all"
    report = make_run_report(state, tuple(steps), end=end, problem=problem, hint=hint)
    return replace(report, ran=ran, code=code)


def report_waiting(record: Record, report: RunReport) -> RunReport:
    """Say of a suspended thread whom or what it waits for."""
    state = record.tip.state
    resume = f"uwf thread resume {state.thread}"
    cause = find_cause(record.store, record.tip.commit)
    message = state.suspend_message
    if state.retry_at_ms is not None:
        problem = f"thread {state.thread} waits for a limit of the agent's vendor"
        hint = f"wait for it with: uwf thread exec {state.thread} --wait"
    elif (held := find_hold(record.store, record.tip.commit, state)) is not None:
        problem, message = f"thread {state.thread} is {HELD}", held
        hint = f"release it with: {resume}"
    elif cause.name == ATTEMPT:
        role = state.suspended_role
        problem = f"thread {state.thread} stopped when role '{role}' failed"
        hint = f"try again with: {resume}"
    else:
        problem = f"thread {state.thread} waits for a person"
        hint = f"answer with: {resume} -p TEXT"
    return with_problem(report, RunEnd.WAITING, f"{problem}: {message}", hint)


def report_interrupted(record: Record, began: Oid) -> RunReport:
    """Say what a run did that Ctrl-C ended, by a record read after it."""
    return make_run_report(
        record.tip.state,
        steps_since(record, began),
        end=RunEnd.INTERRUPTED,
        problem="interrupted",
        hint=_way_on(record.tip.state),
    )


def _way_on(state: ThreadState) -> str:
    command = "exec" if state.status == "idle" else "resume"
    return f"go on with: uwf thread {command} {state.thread}"


def steps_since(record: Record, commit: Oid) -> tuple[StepReport, ...]:
    """Read back what the cycles after a commit of a thread's branch did.

    Raises:
        CorruptError: Something on the way is missing or malformed.
    """
    found = []
    for event in iter_events(record.store, record.tip.commit):
        if event.commit.oid == commit:
            break
        if event.name in RUN_EVENTS and event.node is not None:
            found.append(_read_back(record, event, event.node))
    return tuple(reversed(found))


def _read_back(record: Record, event: Event, node: Hash) -> StepReport:
    state = read_tip(record.store, event.thread, event.commit.oid).state
    number, error = state.steps, None
    if event.name == ATTEMPT:
        # A failed poke was to replace the head, any other try to follow it.
        is_poke = state.steps > 0 and event.prev != state.head
        number += 0 if is_poke else 1
        output = record.run(node).output_hash
        error = str(record.node(output, ERROR_TYPE).payload["error"])
    elif event.status != SUSPEND and is_routing_error(state.suspend_message):
        error = state.suspend_message
    end = CycleEnd(
        number=number,
        step=node,
        role=event.role or "-",
        status=event.status,
        error=error,
        end=RunEnd.DONE if error is None else RunEnd.REFUSED,
    )
    return make_step_report(state, end)
