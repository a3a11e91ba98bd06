"""Steps that another thread did: what they take must be what that thread says.

The child is proven by its commit, where its objects are here; where they are not,
the step says so by its fact, and whoever wants them all refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from uwfgit.constants import SUSPEND
from uwfgit.ids import Hash
from uwfgit.model.node import STEP_TYPE, WORKFLOW_TYPE
from uwfgit.model.thread.record import NodePlaces
from uwfgit.model.thread.step import Start, Step, Usage, usage_since
from uwfgit.store.canonical import Json, encode_json
from uwfgit.sync.verify.nodes import NodeReader, Places, load_node
from uwfgit.sync.verify.report import VerifyFindings
from uwfgit.sync.verify.view import ChildView, VerifyRun, View

_KIND = "workflow"


def check_pinned(
    reader: NodeReader,
    start: Start,
    payload: Mapping[str, Json],
    places: NodePlaces,
    findings: VerifyFindings,
) -> None:
    """Note when a StartNode does not pin exactly the workflows its roles reach."""
    reached: set[str] = set()
    waiting = list(_named(payload))
    while waiting:
        name = waiting.pop()
        pinned = start.children.get(name)
        if name in reached:
            continue
        reached.add(name)
        if pinned is None:
            findings.note("child", f"workflow '{name}' is not pinned")
            continue
        child = load_node(reader, places, pinned, WORKFLOW_TYPE).payload
        if child["name"] != name:
            findings.note("child", f"what is pinned as '{name}' is another workflow")
        waiting += _named(child)
    for name in start.children.keys() - reached:
        findings.note("child", f"no role is done by workflow '{name}'")
    if (start.parent is None) != (start.depth == 0):
        findings.note("child", f"a thread of depth {start.depth} and its parent differ")


def _named(workflow: Mapping[str, Json]) -> Iterator[str]:
    for role in workflow["roles"].values():
        if "workflow" in role and role["workflow"] != workflow["name"]:
            yield role["workflow"]


def check_child(
    run: VerifyRun,
    step: Step,
    kind: str,
    *,
    is_attempt: bool,
    view: View,
    nodes: Places,
    findings: VerifyFindings,
) -> ChildView | None:
    """Check a step that names a child; returns the child where it is here."""
    role = view.workflow.roles.get(step.role)
    wanted = role.workflow if role is not None else None
    if step.child is None:
        if not is_attempt and (kind == _KIND or wanted is not None):
            findings.note("child", f"role {step.role} names no child that did it")
        return None
    if kind != _KIND:
        findings.note("child", f"an agent of kind {kind} names a child")
    child = run.look(step.child.oid)
    if child is None:
        return None
    if not child.is_sound:
        findings.note("child", f"child {step.child.thread} does not verify")
    if child.view is None:
        return None
    _check_kin(step, child.view, wanted, view=view, nodes=nodes, findings=findings)
    if is_attempt:
        phase, status = step.output.get("phase"), child.view.state.status
        is_over = phase == "child" and status in {"suspended", "cancelled", "end"}
        if not is_over and phase != "interrupted":
            message = f"a child that is {status} is not a failure of phase {phase}"
            findings.note("child", message)
    else:
        _check_result(step, child, findings)
    wanted_usage = usage_since(taken_before(view, child.view), child.view.state.usage)
    findings.expect("usage", step.usage, wanted_usage, code="child")
    return child


def taken_before(view: View, child: View) -> Usage | None:
    """Return what earlier steps and tries took of a child's usage."""
    for thread, usage in reversed(tuple(view.taken.items())):
        if thread in child.lineage:
            return usage
    return None


def _check_kin(
    step: Step,
    child: View,
    wanted: str | None,
    *,
    view: View,
    nodes: Places,
    findings: VerifyFindings,
) -> None:
    assert step.child is not None  # noqa: S101 - asked by the caller
    if child.thread != step.child.thread:
        findings.note("child", f"its commit is of thread {child.thread}")
    parent = child.start.parent
    thread, head = (parent.thread, parent.step) if parent else ("", "")
    if thread not in view.lineage:
        findings.note("child", f"child {child.thread} is not of this thread")
    place = nodes.get(Hash(head))
    if head != view.start.hash and (place is None or place[0] != STEP_TYPE):
        findings.note("child", f"child {child.thread} began at no step of this thread")
    if child.start.depth != view.start.depth + 1:
        findings.note("child", f"child {child.thread} is {child.start.depth} deep")
    if thread == view.thread and child.start.prompt != step.edge_prompt:
        findings.note("child", f"child {child.thread} has another task")
    if wanted is None:
        return
    pinned = _pinned(view, wanted)
    findings.expect("the child's workflow", child.start.workflow, pinned, code="child")
    if pinned in nodes:
        oid = nodes[pinned][1]
        findings.expect(
            "the child's workflow", child.state.workflow_oid, oid, code="child"
        )
    for name, workflow in child.start.children.items():
        findings.expect(
            f"workflow '{name}'", workflow, _pinned(view, name), code="child"
        )


def _pinned(view: View, name: str) -> Hash:
    own = view.start.workflow if name == view.workflow.name else Hash("")
    return view.start.children.get(name, own)


def _check_result(step: Step, child: ChildView, findings: VerifyFindings) -> None:
    view, last = child.view, child.last
    if view is None or last is None:
        findings.note("child", "the child has no step")
        return
    output, wanted = dict(step.output), "end"
    expected = dict(last.output)
    if step.status == SUSPEND:
        wanted = "suspended"
        reason = f"child {view.thread}: {view.state.suspend_message}"
        expected = {"$status": SUSPEND, "reason": reason}
        if last.status != SUSPEND:
            findings.note("child", "the child does not wait for an answer")
    findings.expect("the child's status", view.state.status, wanted, code="child")
    # Not the values: to Python, 1 and true are equal.
    if encode_json(output) != encode_json(expected):
        findings.note("child", "the output is not what the child ended with")
    findings.expect("the body", step.body, last.body, code="child")
