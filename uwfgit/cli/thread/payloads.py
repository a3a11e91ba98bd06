"""The JSON of threads, steps and runs; the only place that names its keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import asdict

from uwfgit.constants import ERROR_STATUS
from uwfgit.errors import CorruptError
from uwfgit.ids import Oid, ThreadId, thread_time_ms
from uwfgit.model.ledger.ledger import Ledger, ThreadRow
from uwfgit.model.ledger.prices import Cost, cost_at, cost_payload, step_cost
from uwfgit.model.ledger.standing import status_of
from uwfgit.model.thread.attempts import Attempt
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.state import ThreadState
from uwfgit.model.thread.step import Step, write_fields
from uwfgit.model.thread.tip import Shared, Sharing, Tip
from uwfgit.store.handle import Store

if TYPE_CHECKING:
    from uwfgit.engine.run.report import RunReport, StepReport


def thread_payload(
    tip: Tip,
    *,
    running: bool,
    sharing: Sharing,
    task: str | None = None,
    failed: Attempt | None = None,
) -> dict[str, Any]:
    """Return a thread as ``thread show`` prints it.

    Args:
        tip: The thread.
        running: Whether someone runs it now.
        sharing: How it stands to its remotes.
        task: The first line of its task.
        failed: The failed try it waits after.
    """
    state = tip.state
    origin = state.forked_from
    return {
        "threadId": tip.thread,
        "task": task,
        "workflowName": state.workflow_name,
        "workflowHash": state.workflow_hash,
        "start": state.start,
        "head": state.head,
        "oid": tip.commit,
        "status": status_of(state, running=running, sharing=sharing),
        "currentRole": state.current_role,
        "suspendedRole": state.suspended_role,
        "suspendMessage": state.suspend_message,
        "retryAtMs": state.retry_at_ms,
        "attempt": attempt_item(failed) if failed is not None else None,
        "done": state.status == "end",
        "steps": state.steps,
        "usage": to_builtins(state.usage),
        "startedAtMs": state.started_at_ms,
        "updatedAtMs": state.updated_at_ms,
        "completedAtMs": state.completed_at_ms,
        "forkedFrom": (
            {"thread": origin.thread, "step": origin.step, "number": origin.number}
            if origin
            else None
        ),
        "by": state.started_by,
        "shared": sharing.shared,
    }


def row_payload(
    row: ThreadRow,
    *,
    status: str,
    shared: Shared,
    children: Sequence[ThreadId] = (),
    cost: Cost | None = None,
) -> dict[str, Any]:
    """Return a thread as ``thread list`` prints it; null what a corrupt one lacks.

    Args:
        row: The thread.
        status: How it stands.
        shared: With whom.
        children: The threads here that did steps of it.
        cost: What it cost.
    """
    return {
        **_identity(row.thread, row.commit, row.state),
        "task": row.task,
        "status": status,
        **_progress(row.thread, row.state),
        "parent": _parent_payload(row.parent),
        "children": list(children),
        "shared": shared,
        "usage": to_builtins(row.state.usage if row.state else None),
        "cost": cost_payload(cost),
        "problem": row.problem,
    }


def _parent_payload(parent: tuple[str, str] | None) -> dict[str, str] | None:
    return parent and {"thread": parent[0], "step": parent[1]}


def _identity(
    thread: ThreadId, commit: Oid, state: ThreadState | None
) -> dict[str, Any]:
    return {
        "threadId": thread,
        "workflowName": state.workflow_name if state else None,
        "workflowHash": state.workflow_hash if state else None,
        "head": state.head if state else None,
        "oid": commit,
    }


def _progress(thread: ThreadId, state: ThreadState | None) -> dict[str, Any]:
    return {
        "currentRole": state.current_role if state else None,
        "suspendedRole": state.suspended_role if state else None,
        "suspendMessage": state.suspend_message if state else None,
        "retryAtMs": state.retry_at_ms if state else None,
        "done": state is not None and state.status == "end",
        "steps": state.steps if state else None,
        "startedAtMs": state.started_at_ms if state else thread_time_ms(thread),
        "updatedAtMs": state.updated_at_ms if state else None,
        "completedAtMs": state.completed_at_ms if state else None,
        "by": state.started_by if state else None,
    }


def step_item(record: Record, step: Step) -> dict[str, Any]:
    """Return a step of a thread as ``step list`` prints it."""
    return {
        "number": step.number,
        "hash": step.hash,
        "role": step.role,
        "status": step.status,
        "agent": step.agent,
        "child": None if step.child is None else asdict(step.child),
        "durationMs": duration_ms(step),
        "usage": to_builtins(step.usage),
        "cost": cost_payload(step_cost(record, step)),
        "warnings": list(step.warnings),
    }


def attempt_item(attempt: Attempt) -> dict[str, Any]:
    """Return a failed try as ``step list`` prints it."""
    return {
        "number": attempt.number,
        "hash": attempt.hash,
        "role": attempt.role,
        "status": ERROR_STATUS,
        "agent": attempt.agent,
        "durationMs": attempt.duration_ms,
        "usage": to_builtins(attempt.usage),
        "error": attempt.error,
        "saidLast": attempt.said,
    }


def duration_ms(step: Step) -> int:
    """Return how long a step took, corrections included."""
    return max(0, step.completed_at_ms - step.started_at_ms)


def step_payload(record: Record, step: Step, detail: Any) -> dict[str, Any]:  # noqa: ANN401 - a JSON value
    """Return a step in full: all fields, output and detail expanded."""
    from uwfgit.model.schema.variants import as_asked

    role = record.workflow.roles.get(step.role)
    output = step.output if role is None else as_asked(role.schema, step.output)
    return {
        "threadId": record.tip.thread,
        **step_item(record, step),
        "start": step.start,
        "prev": step.prev,
        "outputHash": step.output_hash,
        "output": dict(output),
        "detailHash": step.detail_hash,
        "detail": detail,
        **write_fields(step),
        "previousAttempts": list(step.previous_attempts or ()),
    }


def run_payload(
    report: RunReport, *, background: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a run: what it did, how the thread stands, and why it ran no further.

    ``ran`` counts the steps of threads that did some of its own as well.
    ``error`` is as that of any other command; it is null where a step or the
    status says enough.
    """
    return {
        "threadId": report.thread,
        "workflowHash": report.workflow_hash,
        "status": report.status,
        "done": report.done,
        "steps": [_cycle_payload(step) for step in report.steps],
        "ran": max(report.ran, len(report.steps)),
        "background": background,
        "error": (
            error_payload(report.code, report.problem, report.hint)
            if report.code
            else None
        ),
    }


def refused_payload(
    thread: ThreadId, stands: dict[str, Any] | None, error: dict[str, Any]
) -> dict[str, Any]:
    """Return a run that did not begin, with the keys of one that did.

    Args:
        thread: Which thread.
        stands: It as ``thread show`` prints it; ``None`` when it cannot be read.
        error: Why it did not begin.
    """
    return {
        "threadId": thread,
        "workflowHash": stands["workflowHash"] if stands else None,
        "status": stands["status"] if stands else "corrupt",
        "done": stands["done"] if stands else False,
        "steps": [],
        "ran": 0,
        "background": None,
        "error": error,
    }


def error_payload(code: str, message: str | None, hint: str | None) -> dict[str, Any]:
    """Return why a command, or a run, failed."""
    return {"code": code, "message": message, "hint": hint}


def _cycle_payload(step: StepReport) -> dict[str, Any]:
    return {
        "number": step.number,
        "hash": step.hash,
        "role": step.role,
        "status": step.status,
        "threadStatus": step.thread_status,
        "head": step.head,
        "currentRole": step.current_role,
        "done": step.done,
        "suspendedRole": step.suspended_role,
        "suspendMessage": step.suspend_message,
        "error": step.error,
    }


def outcome_payload(ledger: Ledger, tip: Tip) -> dict[str, Any]:
    """Return what a thread came to, and the threads above and below it."""
    from uwfgit.model.ledger.kin import list_children
    from uwfgit.model.thread.record import open_record
    from uwfgit.model.thread.summary import find_summary, return_code

    record = open_record(ledger.store, tip, checked=False)
    found = find_summary(ledger.store, tip)
    summary = None if found is None else {"text": found.text, "by": found.by}
    state = tip.state
    code = return_code(state.status)
    return {
        "parent": to_builtins(record.start.parent),
        "children": list(list_children(ledger, record)),
        "inputs": None if record.start.values is None else dict(record.start.values),
        "summary": summary,
        "result": None
        if code is None
        else {"status": state.status, "returnCode": code, "summary": summary},
    }


def shown_payload(ledger: Ledger, tip: Tip) -> dict[str, Any]:
    """Return a thread as ``thread show`` and the API tell of it."""
    from uwfgit.model.ledger.standing import is_running
    from uwfgit.model.thread.task import find_task_line
    from uwfgit.model.thread.tip import find_sharing

    store = ledger.store
    payload = thread_payload(
        tip,
        running=is_running(store, tip.thread),
        sharing=find_sharing(store, tip.thread, tip.commit),
        task=find_task_line(store, tip),
        failed=_find_failed(store, tip),
    )
    cost = cost_at(store, tip.thread, tip.commit, tip.state)
    return {
        **payload,
        **outcome_payload(ledger, tip),
        "cost": cost_payload(cost),
        "note": ledger.local.find_note(tip.thread),
        "warnings": _list_warnings(store, tip),
    }


def _list_warnings(store: Store, tip: Tip) -> list[str]:
    """Return the warnings of the newest step, as far as it can be read."""
    from uwfgit.model.thread.record import open_record

    state = tip.state
    if not state.steps:
        return []
    try:
        record = open_record(store, tip, checked=False)
        return list(record.step(state.head, state.steps).warnings)
    except CorruptError:
        return []


def _find_failed(store: Store, tip: Tip) -> Attempt | None:
    if tip.state.status != "suspended":
        return None
    from uwfgit.model.thread.attempts import find_last_attempt
    from uwfgit.model.thread.record import open_record

    try:
        return find_last_attempt(open_record(store, tip, checked=False))
    except CorruptError:
        # What is damaged in it is for others to tell.
        return None
