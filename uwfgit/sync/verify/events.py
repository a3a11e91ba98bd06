"""The events that add no step: start, fork, resolve, and a person's word."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from uwfgit.constants import END, RULES_VERSION, YAML_MAX_BYTES
from uwfgit.engine.decide.moderator import Routed
from uwfgit.errors import CorruptError, EarlierFormatError, InvalidError
from uwfgit.ids import Hash, Oid, ThreadId, is_thread_id
from uwfgit.model.node import (
    JSON_TYPES,
    META_TYPE,
    START_TYPE,
    WORKFLOW_TYPE,
    Node,
    format_nodes,
)
from uwfgit.model.thread.derive import task_file
from uwfgit.model.thread.event import (
    Told,
    tell_fork,
    tell_resolve,
    tell_start,
    tell_word,
)
from uwfgit.model.thread.record import NodePlaces
from uwfgit.model.thread.step import Start, read_start
from uwfgit.model.workflow.inputs import complete_inputs
from uwfgit.model.workflow.pinned import workflow_from_data
from uwfgit.model.workflow.workflow import Workflow, workflow_from_node, workflow_nodes
from uwfgit.store.canonical import encode_json
from uwfgit.store.layout import START_NODES, TASK_FILE, WORKFLOW_FILE, thread_folder
from uwfgit.store.raw import BLOB
from uwfgit.sync.verify.children import check_pinned
from uwfgit.sync.verify.nodes import close_over, load_node, take_added
from uwfgit.sync.verify.rawtree import Objects, TreeChanges
from uwfgit.sync.verify.report import Fact, VerifyFindings, refusal, shown
from uwfgit.sync.verify.settle import Expected, check_order
from uwfgit.sync.verify.shape import (
    Message,
    RawCommit,
    Stamp,
    parse_commit,
    parse_message,
)
from uwfgit.sync.verify.view import ALL_STEPS, KEPT_STEPS, VerifyRun, View

_RESOLVER: Final = ("uwf", "uwf@localhost", "+0000")


def check_start(
    run: VerifyRun,
    commit: RawCommit,
    message: Message,
    *,
    changes: TreeChanges,
    findings: VerifyFindings,
) -> tuple[Expected, NodePlaces]:
    """Check what a start adds to genesis, and say what else it must leave.

    Raises:
        CorruptError: There is no telling what was started.
    """
    thread = thread_of(message)
    folder = f"{thread_folder(thread)}/{START_NODES}"
    added = take_added(changes, folder, {}, findings)
    if META_TYPE in added and not added.keys() & {START_TYPE, WORKFLOW_TYPE}:
        earlier = EarlierFormatError("the thread")
        raise refusal(earlier.code, earlier.message)
    claimed = Hash(message.trailers.get("Uwf-Node", ""))
    if added.get(claimed, ("",))[0] != START_TYPE:
        raise refusal("event", f"Uwf-Node {shown(claimed)} is no StartNode added here")
    sound = close_over(
        run.reader,
        [claimed, *(node.hash for node in format_nodes())],
        known={},
        added=added,
        folder=folder,
        findings=findings,
    )
    if claimed not in sound:
        raise refusal("event", "the StartNode is not valid")
    start, node, workflow = _read_pinned(run, claimed, added, sound, findings)
    file = f"{thread_folder(thread)}/{WORKFLOW_FILE}"
    _check_file(run, file, node, changes, findings)
    view = _first_view(run, commit, thread, start, workflow, added)
    role = view.state.current_role or ""
    expected = Expected(
        view=view,
        files={f"{thread_folder(thread)}/{TASK_FILE}": task_file(start.prompt)},
        told=_tell_start(commit, thread, start, workflow, added, role=role),
        fact=Fact(event="start"),
    )
    return expected, added


def thread_of(message: Message) -> ThreadId:
    """Return the thread an event names.

    Raises:
        CorruptError: It names none.
    """
    text = message.trailers.get("Uwf-Thread", "")
    if not is_thread_id(text):
        raise refusal("trailers", f"Uwf-Thread is {shown(text)}")
    return ThreadId(text)


def find_thread_at(objects: Objects, oid: Oid) -> ThreadId | None:
    """Return the thread that a commit is an event of; ``None`` for any other commit."""
    try:
        commit = parse_commit(oid, objects.commit(oid))
        return thread_of(parse_message(commit.message))
    except CorruptError:
        return None


def _read_pinned(
    run: VerifyRun,
    claimed: Hash,
    added: NodePlaces,
    sound: Collection[Hash],
    findings: VerifyFindings,
) -> tuple[Start, Node, Workflow]:
    """Read what a thread was started with: its StartNode and its workflow."""
    start = read_start(load_node(run.reader, added, claimed))
    if start.rules != RULES_VERSION:
        raise refusal("rules", f"rules of version {start.rules} are not known")
    node = load_node(run.reader, added, start.workflow, WORKFLOW_TYPE)
    if node.hash not in sound:
        raise refusal("event", "the workflow node is not valid")
    check_pinned(run.reader, start, node.payload, added, findings)
    workflow = workflow_from_node(
        node, lambda name: load_node(run.reader, added, name, META_TYPE)
    )
    return _read_inputs(run, start, workflow, added, findings), node, workflow


def _read_inputs(
    run: VerifyRun,
    start: Start,
    workflow: Workflow,
    places: NodePlaces,
    findings: VerifyFindings,
) -> Start:
    """Read what the run was given; tell when that is not what the workflow asks."""
    if (start.inputs is None) != (not workflow.inputs):
        findings.note("inputs", "the inputs are not those the workflow declares")
    if start.inputs is None:
        return start
    node = load_node(run.reader, places, start.inputs, JSON_TYPES["object"])
    values, problems = complete_inputs(workflow.inputs or {}, node.payload)
    for problem in problems:
        findings.note("inputs", str(problem))
    if encode_json(values) != encode_json(node.payload):
        findings.note("inputs", "a default was not filled in")
    return replace(start, values=node.payload)


def _check_file(
    run: VerifyRun,
    path: str,
    node: Node,
    changes: TreeChanges,
    findings: VerifyFindings,
) -> None:
    oid = changes.pop(path, (None, None))[1]
    if oid is None:
        findings.note("file", "the file is missing", path)
        return
    try:
        data = run.objects.read(oid, BLOB, limit=YAML_MAX_BYTES)
    except CorruptError as exc:
        findings.note(exc.problems[0].code, exc.problems[0].message, path)
        return
    try:
        given = workflow_nodes(workflow_from_data(data))[-1]
    except InvalidError as exc:
        findings.note("workflow", f"the workflow file is not valid: {exc}", path)
        return
    # Not the payloads: to Python, 1 and true are equal.
    if given.data != node.data:
        findings.note("workflow", "the file does not give the workflow node", path)


def _first_view(
    run: VerifyRun,
    commit: RawCommit,
    thread: ThreadId,
    start: Start,
    workflow: Workflow,
    places: NodePlaces,
) -> View:
    told = _tell_start(commit, thread, start, workflow, places, role="")
    roles = load_node(run.reader, places, start.workflow).payload["roles"]
    has_conditions = any(isinstance(each, tuple) for each in workflow.graph.values())
    run.kept_steps = ALL_STEPS if has_conditions else KEPT_STEPS
    view = View(
        commit=commit.oid,
        root=commit.tree,
        committed_at=commit.committer.time,
        state=told.state,
        start=start,
        workflow=workflow,
        schemas={name: Hash(role["frontmatter"]) for name, role in roles.items()},
        chain=None,
        pending={},
        lineage=(thread,),
    )
    routed = run.route(places, view, None, thread)
    if not isinstance(routed, Routed) or routed.role == END:
        raise refusal("routing", "the workflow gives no first step for this task")
    return replace(view, state=replace(told.state, current_role=routed.role))


def _tell_start(
    commit: RawCommit,
    thread: ThreadId,
    start: Start,
    workflow: Workflow,
    places: NodePlaces,
    *,
    role: str,
) -> Told:
    return tell_start(
        start,
        thread=thread,
        workflow=workflow.name,
        oid=places[start.workflow][1],
        role=role,
        by=commit.committer,
    )


def check_fork(
    run: VerifyRun,
    commit: RawCommit,
    message: Message,
    *,
    view: View,
    findings: VerifyFindings,
) -> Expected:
    """Say what a fork must leave.

    Raises:
        CorruptError: It names no thread.
    """
    thread = thread_of(message)
    if thread in view.lineage or run.objects.find(view.root, thread_folder(thread)):
        findings.note("event", "the fork has the id of a thread it comes from")
    told = tell_fork(view.state, thread, by=commit.committer)
    following = view.after(commit, told.state)
    return Expected(
        view=replace(following, lineage=(thread, *view.lineage)),
        files={},
        told=told,
        fact=Fact(event="fork"),
    )


def check_word(
    commit: RawCommit, event: str, *, view: View, findings: VerifyFindings
) -> Expected:
    """Say what a person's word must leave."""
    check_order(event, view, findings)
    told = tell_word(view.state, event, None, by=commit.committer)
    return Expected(
        view=view.after(commit, told.state),
        files={},
        told=told,
        fact=Fact(event=event),
    )


def check_resolve(
    commit: RawCommit,
    *,
    view: View,
    other: View | None,
    is_merged: bool,
    findings: VerifyFindings,
) -> Expected:
    """Say what a resolve must leave: all as on its first parent.

    Args:
        other: What the second parent was found to be.
        is_merged: Whether one parent holds the other already.
    """
    if other is None:
        findings.note("resolve", "the second parent does not verify")
    elif other.thread != view.thread or other.start.hash != view.start.hash:
        findings.note("resolve", "the second parent is of another thread")
    if is_merged:
        findings.note("resolve", "the parents had not diverged")
    if commit.tree != view.root:
        findings.note("resolve", "the tree is not that of the first parent")
    if commit.is_signed:
        findings.note("resolve", "a resolve is never signed")
    times = (view.committed_at, other.committed_at if other else 0)
    name, email, zone = _RESOLVER
    stamp = Stamp(name=name, email=email, time=max(times), zone=zone)
    findings.expect("committer", commit.committer, stamp, code="resolve")
    following = replace(view, commit=commit.oid, committed_at=commit.committer.time)
    return Expected(
        view=following,
        files={},
        told=tell_resolve(view.state, commit.parents[0]),
        fact=Fact(event="resolve"),
    )
