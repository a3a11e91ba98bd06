"""The ``thread.json`` and the trailers that an event must leave (pure).

The design's table of events as functions of the state before, the commit and
what the event added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from uwfgit.constants import ERROR_STATUS, FORMAT_VERSION
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.thread.message import NONE, format_status
from uwfgit.model.thread.record import Start, Step
from uwfgit.model.thread.state import (
    ForkedFrom,
    Outcome,
    ThreadState,
    decode_state,
    hold_message,
    short_message,
    state_payload,
)
from uwfgit.model.thread.usage import Usage, add_usage
from uwfgit.sync.verify.shape import RawCommit

ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "step": frozenset({"idle"}),
    "resume": frozenset({"suspended", "end"}),
    "poke": frozenset({"idle", "suspended", "end"}),
    "attempt": frozenset({"idle", "suspended", "end"}),
    "hold": frozenset({"idle"}),
    "summary": frozenset({"suspended", "end", "cancelled"}),
    "cancel": frozenset({"idle", "suspended"}),
}
"""The states an event may come in; a fork or resolve may in any."""
_CANCEL: Final = "cancel:"


def state_of_start(
    commit: RawCommit, thread: ThreadId, start: Start, *, name: str, oid: Oid, role: str
) -> ThreadState:
    """Give the state after a start; ``oid`` is the workflow node's blob."""
    at_ms = commit.committer.time * 1000
    return ThreadState(
        thread=thread,
        status="idle",
        workflow_name=name,
        workflow_hash=start.workflow,
        workflow_oid=oid,
        start=start.hash,
        head=start.hash,
        steps=0,
        current_role=role,
        started_at_ms=at_ms,
        updated_at_ms=at_ms,
        started_by=commit.committer.who,
        updated_by=commit.committer.who,
    )


def state_of_step(
    before: ThreadState, commit: RawCommit, step: Step, outcome: Outcome
) -> ThreadState:
    """Give the state after a good step, resume or poke."""
    updated = max(before.updated_at_ms, step.completed_at_ms)
    message = outcome.suspend_message
    return replace(
        before,
        status=outcome.status,
        head=step.hash,
        steps=step.number,
        current_role=outcome.current_role,
        suspended_role=outcome.suspended_role,
        suspend_message=message if message is None else short_message(message),
        retry_at_ms=None,
        updated_at_ms=updated,
        completed_at_ms=updated if outcome.status == "end" else None,
        usage=add_usage(before.usage, step.usage),
        updated_by=commit.committer.who,
    )


def state_of_attempt(
    before: ThreadState, commit: RawCommit, step: Step, *, is_poke: bool
) -> ThreadState:
    """Give the state after a failed try; one of a poke leaves it as it was."""
    updated = max(before.updated_at_ms, step.completed_at_ms)
    counted = replace(
        before,
        updated_at_ms=updated,
        completed_at_ms=_completed(before, updated),
        usage=add_usage(before.usage, step.usage),
        updated_by=commit.committer.who,
    )
    if is_poke:
        return counted
    return replace(
        counted,
        status="suspended",
        current_role=None,
        suspended_role=step.role,
        suspend_message=short_message(str(step.output.get("error", ""))),
        retry_at_ms=step.output.get("retryAtMs"),
        completed_at_ms=None,
    )


def origin_of(before: ThreadState) -> ForkedFrom:
    """Say where a fork leaves from that follows a state."""
    return ForkedFrom(thread=before.thread, step=before.head, number=before.steps)


def state_of_fork(
    before: ThreadState, commit: RawCommit, thread: ThreadId, origin: ForkedFrom
) -> ThreadState:
    """Give the state of a fork: that of the commit it leaves from, renamed."""
    updated = _now(before, commit)
    return replace(
        before,
        thread=thread,
        forked_from=origin,
        updated_at_ms=updated,
        completed_at_ms=_completed(before, updated),
        updated_by=commit.committer.who,
    )


def state_of_cancel(before: ThreadState, commit: RawCommit) -> ThreadState:
    """Give the state after a cancel."""
    updated = _now(before, commit)
    return replace(
        before,
        status="cancelled",
        current_role=None,
        suspended_role=None,
        suspend_message=None,
        retry_at_ms=None,
        updated_at_ms=updated,
        completed_at_ms=updated,
        updated_by=commit.committer.who,
    )


def state_of_hold(
    before: ThreadState, commit: RawCommit, reason: str, usage: Usage | None
) -> ThreadState:
    """Give the state after a supervisor stopped a thread."""
    return replace(
        before,
        status="suspended",
        current_role=None,
        suspended_role=before.current_role,
        suspend_message=hold_message(reason),
        updated_at_ms=_now(before, commit),
        usage=add_usage(before.usage, usage),
        updated_by=commit.committer.who,
    )


def state_of_summary(
    before: ThreadState, commit: RawCommit, usage: Usage | None
) -> ThreadState:
    """Give the state after a summary, whose usage no node tells."""
    return replace(
        before,
        updated_at_ms=_now(before, commit),
        usage=usage,
        updated_by=commit.committer.who,
    )


def _completed(before: ThreadState, updated: int) -> int | None:
    return updated if before.status in {"end", "cancelled"} else None


def _now(before: ThreadState, commit: RawCommit) -> int:
    return max(before.updated_at_ms, commit.committer.time * 1000)


def trailers_of(
    event: str, thread: ThreadId, more: Mapping[str, str]
) -> dict[str, str]:
    """Give an event's trailers, in their order."""
    return {
        "Uwf-Format": str(FORMAT_VERSION),
        "Uwf-Event": event,
        "Uwf-Thread": thread,
        **more,
    }


def start_trailers(state: ThreadState) -> dict[str, str]:
    """Give the trailers a start has besides those of every event."""
    return {
        "Uwf-Node": state.start,
        "Uwf-Workflow": f"{state.workflow_hash} {state.workflow_oid}",
        "Uwf-Next": state.current_role or NONE,
    }


def step_trailers(step: Step, next_role: str | None) -> dict[str, str]:
    """Give the trailers a step-like event has besides those of every event."""
    return {
        "Uwf-Node": step.hash,
        "Uwf-Prev": step.prev or NONE,
        "Uwf-Role": step.role,
        "Uwf-Status": format_status(step.status),
        "Uwf-Next": next_role or NONE,
    }


def hold_trailers(hold: Hash, role: str | None) -> dict[str, str]:
    """Give the trailers a hold has besides those of every event."""
    return {"Uwf-Node": hold, "Uwf-Role": role or NONE}


def fork_trailers(origin: ForkedFrom) -> dict[str, str]:
    """Give the trailers a fork has besides those of every event."""
    return {"Uwf-Forked-From": f"{origin.thread} {origin.step}"}


def start_subject(state: ThreadState, task: str) -> str:
    """Give the subject of a start, as long as it comes."""
    return f"start {state.workflow_name}: {task.strip()}"


def step_subject(event: str, step: Step, *, is_error: bool) -> str:
    """Give the subject of a step-like event, as long as it comes.

    Args:
        event: Which.
        step: What it adds.
        is_error: Whether the step's output is of the built-in error type.
    """
    result = "answered" if step.status is None else step.status
    if is_error and step.status == ERROR_STATUS:
        result = f"failed: {step.output.get('error')}"
    how = "" if event in {"step", "attempt"} else f" ({event})"
    return f"{step.role}: {result}{how}"


def fork_subject(origin: ForkedFrom) -> str:
    """Give the subject of a fork."""
    return f"fork from {origin.thread} at step {origin.number}"


def resolve_subject(kept: Oid) -> str:
    """Give the subject of a resolve."""
    return f"resolve: keep {kept}"


def may_give_reason(subject: str, quote: str) -> bool:
    """Tell whether some reason gives a cancel this subject and this quote.

    Either may hold less than the other of a long one, and a blank or a control
    character comes out differently in each, so they are compared without.
    """
    told, given = ("".join(text.split()) for text in (subject, quote))
    if not given:
        # A reason of nothing but control characters leaves the colon.
        return subject in {"cancel", _CANCEL}
    given = _CANCEL + given
    told = told.removesuffix("…")
    return subject.startswith(_CANCEL) and (
        given.startswith(told) or told.startswith(given)
    )


def find_differences(
    data: bytes, wanted: ThreadState
) -> Iterator[tuple[str, object, object]]:
    """Give the fields of a ``thread.json`` that are not what they must be.

    Raises:
        CorruptError: The bytes are those of no state.
    """
    found = state_payload(decode_state(data))
    for key, value in state_payload(wanted).items():
        if found[key] != value:
            yield key, found[key], value


def pending_after(
    before: Mapping[str, tuple[Hash, ...]], step: Step, *, is_attempt: bool
) -> dict[str, tuple[Hash, ...]]:
    """Give the attempts that the next good step of each role must list."""
    if is_attempt:
        return {**before, step.role: (*before.get(step.role, ()), step.hash)}
    return {role: tries for role, tries in before.items() if role != step.role}
