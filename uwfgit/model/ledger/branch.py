"""A thread's branch: started, forked, cancelled, summed up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uwfgit.constants import MAX_SUMMARY_BYTES, RULES_VERSION
from uwfgit.errors import SizeError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.commit import (
    FileChanges,
    agent_person,
    committer,
    event_person,
    write_event,
    writes_event,
)
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import START_TYPE, Node, format_nodes, make_node
from uwfgit.model.thread.derive import summary_file, task_file
from uwfgit.model.thread.event import tell_fork, tell_start, tell_summary, tell_word
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.state import ForkedFrom
from uwfgit.model.thread.step import Usage, add_usage, read_start
from uwfgit.model.thread.tip import Tip
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
from uwfgit.store.objects import new_file
from uwfgit.store.raw import BLOB, name_object


def append_start(
    ledger: Ledger,
    *,
    thread: ThreadId,
    workflow: Workflow,
    data: bytes,
    start: Mapping[str, Json],
    current_role: str,
    extra: Sequence[Node],
) -> Record:
    """Write a thread's first commit and create its branch.

    Args:
        thread: A new id.
        workflow: What the thread pins.
        data: The bytes of ``workflow.yaml``.
        start: Prompt, cwd and so on of the StartNode; its ``workflow`` and
            ``rules`` are added here.
        current_role: The role the first exec runs.
        extra: Nodes that the StartNode refers to besides, with all of theirs.

    Raises:
        RefConflictError: The branch exists already.
    """
    tip = _write_start(ledger, thread, workflow, data, start, current_role, extra)
    return open_record(ledger.store, tip)


@writes_event
def _write_start(
    ledger: Ledger,
    thread: ThreadId,
    workflow: Workflow,
    data: bytes,
    start: Mapping[str, Json],
    current_role: str,
    extra: Sequence[Node],
) -> Tip:
    *schemas, pinned = workflow_nodes(workflow)
    node = make_node(
        START_TYPE, {**start, "workflow": pinned.hash, "rules": RULES_VERSION}
    )
    folder = thread_folder(thread)
    nodes = [*format_nodes(), *schemas, pinned, *extra, node]
    changes: FileChanges = {
        f"{folder}/{START_NODES}/{each.name}": new_file(each.data) for each in nodes
    }
    require_workflow_file(data)
    changes[f"{folder}/{WORKFLOW_FILE}"] = new_file(data)
    changes[f"{folder}/{TASK_FILE}"] = new_file(task_file(node.payload["prompt"]))
    person = committer(ledger)
    told = tell_start(
        read_start(node),
        thread=thread,
        workflow=workflow.name,
        oid=name_object(BLOB, pinned.data),
        role=current_role,
        by=person,
    )
    return write_event(ledger, None, changes, told=told, author=person, person=person)


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
    told = tell_fork(origin.state, thread, by=person, origin=forked_from)
    return write_event(ledger, origin, {}, told=told, author=person, person=person)


@writes_event
def append_word(ledger: Ledger, tip: Tip, event: str, *, reason: str | None) -> Tip:
    """Record a person's word on a thread; a reason stands in the message only."""
    person = event_person(ledger, tip)
    return write_event(
        ledger,
        tip,
        {},
        told=tell_word(tip.state, event, reason, by=person),
        author=person,
        person=person,
        old=tip.commit,
    )


@writes_event
def append_summary(
    ledger: Ledger, tip: Tip, *, text: str, usage: Usage | None, judge: str
) -> Tip:
    """Put a summary of a thread that does not run into its tree.

    Args:
        ledger: Where to.
        tip: The thread; it has ended, waits or is cancelled.
        text: The summary.
        usage: What it cost.
        judge: The label of the model or agent that wrote it.

    Raises:
        SizeError: It is longer than a summary may be.
        RefConflictError: The branch moved meanwhile. Nothing was recorded.
    """
    data = summary_file(text)
    if len(data) > MAX_SUMMARY_BYTES:
        raise SizeError("the summary", found=len(data), limit=MAX_SUMMARY_BYTES)
    person = event_person(ledger, tip)
    path = f"{thread_folder(tip.thread)}/{SUMMARY_FILE}"
    total = add_usage(tip.state.usage, usage)
    return write_event(
        ledger,
        tip,
        {path: new_file(data)},
        told=tell_summary(tip.state, data.decode(), total, by=person),
        author=agent_person(judge, person),
        person=person,
        old=tip.commit,
    )
