"""What became of a run, step by step: as it happened, or read back from git."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import SUSPEND
from uwfgit.engine.decide.plan import is_routing_error
from uwfgit.engine.run.ends import RunEnd
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node.node import STEP_TYPE
from uwfgit.model.thread.event import RUN_EVENTS
from uwfgit.model.thread.events import Event, iter_events
from uwfgit.model.thread.record import Record, read_tip
from uwfgit.model.thread.state import ThreadState

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


def make_step_report(
    state: ThreadState,
    *,
    number: int,
    step: Hash | None,
    role: str,
    status: str | None,
    error: str | None,
    said: str | None = None,
) -> StepReport:
    """Put what a cycle did beside the state it left the thread in."""
    return StepReport(
        number=number,
        hash=step,
        role=role,
        status=status,
        thread_status=state.status,
        head=state.head,
        current_role=state.current_role,
        done=state.status == "end",
        suspended_role=state.suspended_role,
        suspend_message=state.suspend_message,
        error=error,
        said=said,
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
        output = record.node(node, STEP_TYPE).payload["output"]
        error = str(record.node(output).payload.get("error"))
    elif event.status != SUSPEND and is_routing_error(state.suspend_message):
        error = state.suspend_message
    return make_step_report(
        state,
        number=number,
        step=node,
        role=event.role or "-",
        status=event.status,
        error=error,
    )
