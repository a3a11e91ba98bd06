"""A thread's branch: started, forked, cancelled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from uwfgit.constants import MAX_SUMMARY_BYTES, RULES_VERSION
from uwfgit.errors import SizeError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.commit import (
    after_event,
    agent_person,
    committer,
    event_person,
    write_event,
    writes_event,
)
from uwfgit.model.ledger.draft import Changes, file_entry
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node.builtin import format_nodes
from uwfgit.model.node.node import START_TYPE, make_node
from uwfgit.model.thread.derive import summary_file, task_file
from uwfgit.model.thread.message import event_trailers, format_message, summary_subject
from uwfgit.model.thread.record import Record, Tip, open_record
from uwfgit.model.thread.state import ForkedFrom, ThreadState
from uwfgit.model.thread.usage import Usage, add_usage
from uwfgit.model.workflow.workflow import (
    Workflow,
    require_workflow_file,
    workflow_nodes,
)
from uwfgit.store.canonical import Json
from uwfgit.store.layout import (
    START_NODES,
    SUMMARY_FILE,
    TASK_FILE,
    WORKFLOW_FILE,
    thread_folder,
)
from uwfgit.store.objects import Entry


def append_start(
    ledger: Ledger,
    *,
    thread: ThreadId,
    workflow: Workflow,
    data: bytes,
    start: Mapping[str, Json],
    current_role: str,
) -> Record:
    """Write a thread's first commit and create its branch.

    Args:
        thread: A new id.
        workflow: What the thread pins.
        data: The bytes of ``workflow.yaml``.
        start: Prompt, cwd and so on of the StartNode; its ``workflow`` and
            ``rules`` are added here.
        current_role: The role the first exec runs.

    Raises:
        RefConflictError: The branch exists already.
    """
    tip = _write_start(ledger, thread, workflow, data, start, current_role)
    return open_record(ledger.store, tip)


@writes_event
def _write_start(
    ledger: Ledger,
    thread: ThreadId,
    workflow: Workflow,
    data: bytes,
    start: Mapping[str, Json],
    current_role: str,
) -> Tip:
    *schemas, pinned = workflow_nodes(workflow)
    node = make_node(
        START_TYPE, {**start, "workflow": pinned.hash, "rules": RULES_VERSION}
    )
    folder = thread_folder(thread)
    nodes = [*format_nodes(), *schemas, pinned, node]
    changes: Changes = {
        f"{folder}/{START_NODES}/{each.name}": file_entry(each.data) for each in nodes
    }
    require_workflow_file(data)
    changes[f"{folder}/{WORKFLOW_FILE}"] = file_entry(data)
    changes[f"{folder}/{TASK_FILE}"] = file_entry(task_file(node.payload["prompt"]))
    oid = _entry(changes, f"{folder}/{START_NODES}/{pinned.name}").oid
    person = committer(ledger)
    now = person.time * 1000
    state = ThreadState(
        thread=thread,
        status="idle",
        workflow_name=workflow.name,
        workflow_hash=pinned.hash,
        workflow_oid=oid,
        start=node.hash,
        head=node.hash,
        steps=0,
        current_role=current_role,
        started_at_ms=now,
        updated_at_ms=now,
        started_by=str(person),
        updated_by=str(person),
    )
    trailers = (
        ("Uwf-Node", node.hash),
        ("Uwf-Workflow", f"{pinned.hash} {oid}"),
        ("Uwf-Next", current_role),
    )
    message = format_message(
        f"start {workflow.name}: {node.payload['prompt'].strip()}",
        node.payload["prompt"],
        event_trailers("start", thread, trailers),
    )
    return write_event(
        ledger,
        None,
        changes,
        state=state,
        author=person,
        person=person,
        message=message,
    )


@writes_event
def append_fork(
    ledger: Ledger, origin: Tip, *, thread: ThreadId, forked_from: ForkedFrom
) -> Tip:
    """Branch a new thread off a commit; nothing is copied or moved.

    Args:
        ledger: Where to.
        origin: The commit to fork at, with its state.
        thread: A new id.
        forked_from: The step forked at.
    """
    person = event_person(ledger, origin)
    state = after_event(
        replace(origin.state, thread=thread, forked_from=forked_from), person
    )
    trailer = ("Uwf-Forked-From", f"{forked_from.thread} {forked_from.step}")
    message = format_message(
        f"fork from {forked_from.thread} at step {forked_from.number}",
        "",
        event_trailers("fork", thread, [trailer]),
    )
    return write_event(
        ledger,
        origin,
        {},
        state=state,
        author=person,
        person=person,
        message=message,
        old=None,
    )


@writes_event
def append_cancel(ledger: Ledger, tip: Tip, *, reason: str | None) -> Tip:
    """Give a thread up for good; a reason stands in the message only."""
    person = event_person(ledger, tip)
    state = replace(
        tip.state,
        status="cancelled",
        current_role=None,
        suspended_role=None,
        suspend_message=None,
        retry_at_ms=None,
    )
    message = format_message(
        f"cancel: {reason}" if reason and reason.strip() else "cancel",
        reason or "",
        event_trailers("cancel", tip.thread),
    )
    return write_event(
        ledger,
        tip,
        {},
        state=after_event(state, person),
        author=person,
        person=person,
        message=message,
        old=tip.commit,
    )


@writes_event
def append_summary(
    ledger: Ledger, tip: Tip, *, text: str, usage: Usage | None, by: str
) -> Tip:
    """Put a summary of a thread that does not run into its tree.

    Args:
        ledger: Where to.
        tip: The thread; it has ended, waits or is cancelled.
        text: The summary.
        usage: What it cost.
        by: The label of the model or agent that wrote it.

    Raises:
        SizeError: It is longer than a summary may be.
        RefConflictError: The branch moved meanwhile. Nothing was recorded.
    """
    data = summary_file(text)
    if len(data) > MAX_SUMMARY_BYTES:
        raise SizeError("the summary", found=len(data), limit=MAX_SUMMARY_BYTES)
    person = event_person(ledger, tip)
    after = after_event(tip.state, person)
    state = replace(
        after,
        completed_at_ms=tip.state.completed_at_ms,
        usage=add_usage(tip.state.usage, usage),
    )
    path = f"{thread_folder(tip.thread)}/{SUMMARY_FILE}"
    text = data.decode()
    return write_event(
        ledger,
        tip,
        {path: file_entry(data)},
        state=state,
        author=agent_person(by, person),
        person=person,
        message=format_message(
            summary_subject(text), text, event_trailers("summary", tip.thread)
        ),
        old=tip.commit,
    )


def _entry(changes: Changes, path: str) -> Entry:
    entry = changes[path]
    assert entry is not None  # noqa: S101 - a file that was just set
    return entry
