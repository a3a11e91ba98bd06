"""Step-like events: step, resume, poke and attempt.

Each adds one StepNode. Its place, role, prompt and output are recomputed from
the steps before and the pinned workflow.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from itertools import chain
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import MAX_LINKED_NODES, MAX_TIME, SUSPEND
from uwfgit.engine.decide.moderator import Routed, RoutingError, outcome_of
from uwfgit.errors import ConfigError, OverrunError
from uwfgit.ids import Hash
from uwfgit.model.node import (
    DETAIL_TYPE,
    ERROR_TYPE,
    STEP_TYPE,
    SUSPEND_TYPE,
    Node,
)
from uwfgit.model.thread.derive import find_hash_strings, find_hash_words
from uwfgit.model.thread.event import EventName, tell_attempt, tell_step
from uwfgit.model.thread.record import NodePlaces
from uwfgit.model.thread.state import StepOutcome, agent_label
from uwfgit.model.thread.step import Step, read_step
from uwfgit.store.canonical import Json
from uwfgit.sync.verify.children import check_child
from uwfgit.sync.verify.nodes import Places, close_over, load_node, take_added, without
from uwfgit.sync.verify.rawtree import TreeChanges
from uwfgit.sync.verify.report import Fact, VerifyFindings, refusal, shown
from uwfgit.sync.verify.settle import REPLAYED, Expected, check_order
from uwfgit.sync.verify.shape import Message, RawCommit
from uwfgit.sync.verify.step_files import attempt_files, next_run_folder, step_files
from uwfgit.sync.verify.view import ChildView, Link, VerifyRun, View, pending_after


class _Slot(Struct, frozen=True, kw_only=True):
    """The place in the chain that a step-like event is for."""

    number: int
    before: Link | None
    """The chain it follows."""
    replaced: Step | None
    """The step a poke asks for again."""

    @property
    def prev(self) -> Hash | None:
        return None if self.before is None else self.before.hash


def check_step(
    run: VerifyRun,
    commit: RawCommit,
    message: Message,
    *,
    event: str,
    view: View,
    places: NodePlaces,
    changes: TreeChanges,
    findings: VerifyFindings,
) -> tuple[Expected, NodePlaces]:
    """Check what a step-like event adds, and say what else it must leave.

    Raises:
        CorruptError: There is no telling what the event adds.
    """
    check_order(event, view, findings)
    node, slot, added = _read_node(run, message, event, view, places, changes, findings)
    nodes = ChainMap(added, places)
    step, kind = _read_step(run, node, slot, nodes)
    _check_fields(step, event, view, nodes, findings)
    _check_times(step, view, findings, is_replayed=REPLAYED in message.trailers)
    linked = added.keys() - {step.hash, step.output_hash, step.detail_hash}
    if len(linked) > MAX_LINKED_NODES:
        findings.note("size", f"it links more than {MAX_LINKED_NODES} new nodes")
    _check_route(run, step, slot, view, places, findings)
    child = check_child(
        run,
        step,
        kind,
        is_attempt=event == "attempt",
        view=view,
        nodes=nodes,
        findings=findings,
    )
    facts = _Facts(
        event=cast("EventName", event), kind=kind, step=step, slot=slot, child=child
    )
    return _expect(run, commit, view, nodes, facts), added


def _read_node(
    run: VerifyRun,
    message: Message,
    event: str,
    view: View,
    places: NodePlaces,
    changes: TreeChanges,
    findings: VerifyFindings,
) -> tuple[Node, _Slot, NodePlaces]:
    claimed = message.trailers.get("Uwf-Node", "")
    last = view.state.steps
    for number in (last + 1, last) if last else (last + 1,):
        folder = next_run_folder(run.objects, view, number)
        added = take_added(changes, folder, places, findings, own=claimed)
        if added:
            break
    else:
        raise refusal("event", f"the {event} adds no StepNode")
    if added.get(Hash(claimed), ("",))[0] != STEP_TYPE:
        raise refusal("event", f"Uwf-Node {shown(claimed)} is no StepNode added here")
    node = load_node(run.reader, added, Hash(claimed))
    sound = close_over(
        run.reader,
        _roots(run, node.payload, ChainMap(added, places), Hash(claimed)),
        known=without(places, Hash(claimed)),
        added=added,
        folder=folder,
        findings=findings,
    )
    if claimed not in sound:
        raise refusal("event", "the StepNode of this event is not valid")
    slot = _slot(run, node.payload, event, view, places)
    if number != slot.number:
        findings.note(
            "path", f"the nodes of step {slot.number} stand elsewhere", folder
        )
    return node, slot, added


def _roots(
    run: VerifyRun,
    payload: Json,
    nodes: Places,
    node: Hash,
) -> Iterator[Hash]:
    """Yield the StepNode and what its output and body name of the thread's nodes."""
    yield node
    if not isinstance(payload, dict):
        return
    body, output = payload.get("body"), payload.get("output")
    if isinstance(body, str):
        yield from (word for word in find_hash_words([body]) if word in nodes)
    if isinstance(output, str) and output in nodes:
        value = load_node(run.reader, nodes, Hash(output)).payload
        yield from (name for name in find_hash_strings(value) if name in nodes)


def _slot(
    run: VerifyRun, payload: dict[str, Any], event: str, view: View, places: NodePlaces
) -> _Slot:
    head = view.chain
    following = _Slot(number=view.state.steps + 1, before=head, replaced=None)
    if event in {"step", "resume"} or head is None:
        if event == "poke":
            raise refusal("event", "a poke without a step before it")
        return following
    before = head.before
    prev = None if before is None else before.hash
    if event == "poke" or payload["prev"] == prev:
        old = run.load_step(places, head)
        return _Slot(number=head.number, before=before, replaced=old)
    return following


def _read_step(
    run: VerifyRun,
    node: Node,
    slot: _Slot,
    nodes: Places,
) -> tuple[Step, str]:
    bare = read_step(node, slot.number)
    output = load_node(run.reader, nodes, bare.output_hash).payload
    if not isinstance(output, dict):
        raise refusal("type", "the output of the step is not a mapping")
    detail = load_node(run.reader, nodes, bare.detail_hash, DETAIL_TYPE).payload
    if not isinstance(detail, dict) or not isinstance(detail.get("kind"), str):
        raise refusal("event", "the detail of the step is not valid")
    return replace(bare, output=output), detail["kind"]


def _check_fields(
    step: Step,
    event: str,
    view: View,
    nodes: Places,
    findings: VerifyFindings,
) -> None:
    findings.expect("start", step.start, view.start.hash, code="prev")
    pending = () if event == "attempt" else view.pending.get(step.role, ())
    wanted = list(pending) or None
    found = None if step.previous_attempts is None else list(step.previous_attempts)
    findings.expect("previousAttempts", found, wanted, code="attempts")
    if event == "poke" and step.note is None:
        findings.note("note", "a poke without a note")
    if event == "attempt":
        findings.expect("extractedBy", step.extracted_by, None, code="output")
        output: Hash | None = ERROR_TYPE
    elif step.status == SUSPEND:
        output = SUSPEND_TYPE
    else:
        output = view.schemas.get(step.role)
    of_output = nodes[step.output_hash][0]
    findings.expect("the output's type", of_output, output, code="type")


def _check_times(
    step: Step, view: View, findings: VerifyFindings, *, is_replayed: bool
) -> None:
    for name, at_ms in (
        ("startedAtMs", step.started_at_ms),
        ("completedAtMs", step.completed_at_ms),
    ):
        if at_ms // 1000 >= MAX_TIME:
            findings.note("time", f"{name} is {at_ms}")
    state, completed = view.state, step.completed_at_ms
    # A replay keeps its times, and what it follows now may be later.
    earliest = state.started_at_ms if is_replayed else state.updated_at_ms
    if completed < earliest:
        findings.note("time", f"completedAtMs is {completed}, before {earliest}")
    if completed < step.started_at_ms:
        findings.note("time", f"completedAtMs is {completed}, before startedAtMs")


def _check_route(
    run: VerifyRun,
    step: Step,
    slot: _Slot,
    view: View,
    places: NodePlaces,
    findings: VerifyFindings,
) -> None:
    findings.expect("prev", step.prev, slot.prev, code="prev")
    old = slot.replaced
    if old is not None:
        findings.expect("role", step.role, old.role, code="role")
        if step.edge_prompt == old.edge_prompt:
            return
    told: Routed | RoutingError | None = None
    for thread in view.lineage:
        routed = run.route(places, view, slot.before, thread)
        told = told or routed
        if isinstance(routed, Routed) and routed.prompt == step.edge_prompt:
            told = routed
            break
    if not isinstance(told, Routed):
        message = "the graph gives no step here" if told is None else told.code
        findings.note("routing", message)
        return
    findings.expect("role", step.role, told.role, code="role")
    findings.expect("edgePrompt", step.edge_prompt, told.prompt, code="prompt")


class _Facts(Struct, frozen=True, kw_only=True):
    event: EventName
    kind: str
    step: Step
    slot: _Slot
    child: ChildView | None

    @property
    def is_attempt(self) -> bool:
        return self.event == "attempt"


def _expect(
    run: VerifyRun, commit: RawCommit, view: View, nodes: Places, facts: _Facts
) -> Expected:
    step, slot = facts.step, facts.slot
    outcome = None if facts.is_attempt else _outcome(run, view, nodes, facts)
    if outcome is None:
        told = tell_attempt(
            view.state, step, of_poke=slot.replaced is not None, by=commit.committer
        )
        files = attempt_files(run.objects, view, step)
        links = view.chain
    else:
        told = tell_step(view.state, facts.event, step, outcome, by=commit.committer)
        files = step_files(
            run.objects, view, nodes, step, is_poke=slot.replaced is not None
        )
        links = Link(hash=step.hash, number=step.number, before=slot.before)
        run.keep_step(step)
    taken = view.taken
    if step.child is not None:
        child = facts.child and facts.child.view
        # Put last: of forks of one child, the one named last counts.
        taken = {key: each for key, each in taken.items() if key != step.child.thread}
        taken[step.child.thread] = child.state.usage if child else None
    following = replace(
        view.after(commit, told.state),
        chain=links,
        pending=pending_after(view.pending, step, is_attempt=facts.is_attempt),
        taken=taken,
    )
    return Expected(
        view=following,
        files=files,
        told=told,
        fact=Fact(
            event=facts.event,
            agent=facts.kind,
            has_note=step.note is not None,
            child=None if step.child is None else step.child.thread,
            is_child_here=facts.child is not None and facts.child.is_whole,
        ),
        agent=(agent_label(step.agent), step.completed_at_ms // 1000),
    )


def _outcome(run: VerifyRun, view: View, nodes: Places, facts: _Facts) -> StepOutcome:
    step = facts.step
    try:
        return outcome_of(
            view.workflow,
            step.role,
            step.output,
            step.body,
            task=view.start.prompt,
            thread=view.thread,
            start=view.start,
            newest_first=chain((step,), run.iter_steps(nodes, facts.slot.before)),
        )
    except (ConfigError, OverrunError) as exc:
        raise refusal("routing", str(exc)) from exc
