"""A step that is done by a workflow: a thread of its own, run to its end.

The child is found again by what is recorded: the step or attempt that names it,
else its StartNode, which names the parent and the parent's head.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.agents.base import Failure, WorkflowAgent
from uwfgit.config import Limits
from uwfgit.constants import STATUS, SUSPEND
from uwfgit.engine.ask.answer import Answer
from uwfgit.engine.ask.budget import NOTHING_BESIDE
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.engine import Engine
from uwfgit.engine.run.run import Run
from uwfgit.engine.run.thread import Parent, fork_thread, start_child
from uwfgit.ids import Hash, ThreadId, mint_thread_id
from uwfgit.model.node import SUSPEND_TYPE
from uwfgit.model.schema.check import validate_value
from uwfgit.model.thread.event import RUN_EVENTS, STEP_EVENTS, find_cause, iter_events
from uwfgit.model.thread.family import find_child
from uwfgit.model.thread.hold import why_suspended
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.step import Child, StartedFor, Usage, usage_since
from uwfgit.model.thread.tip import load_tip, read_tip
from uwfgit.store.git.enclosing import find_enclosing
from uwfgit.store.git.worktree import root_commit
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref


class ChildResult(Struct, frozen=True, kw_only=True):
    """What a child thread gave; ``answer`` is ``None`` where it can just go on."""

    child: Child
    answer: Answer | Failure | None
    usage: Usage | None
    ran: int
    """How many steps it took, its own children's with them."""
    why: str | None
    """Why it stopped where it can go on."""
    record: Record
    """The child, whose nodes its output may link."""


class _Found(Struct, frozen=True, kw_only=True):
    thread: ThreadId
    note: str | None = None
    is_done: bool = False
    """Whether nothing is left to run: it ended unseen, or was given up."""


def run_child(run: Run, agent: WorkflowAgent) -> ChildResult:
    """Do a step by a thread of another workflow.

    Raises:
        StateError: Threads would be nested too deeply.
        NotFoundError: The thread does not pin the workflow.
        LockedError: Someone else runs the child.
    """
    found = _find(run, agent) or _Found(thread=_start(run, agent))
    store = run.engine.ledger.store
    if found.is_done:
        end, ran, why = RunEnd.DONE, 0, None
    else:
        before = open_record(store, found.thread)
        inner = _inner(run, _taken(run, before))
        report = run.cycle.go_on(inner, found.thread, found.note)
        end, ran, why = report.end, report.ran, report.problem
    tip = load_tip(store, found.thread)
    record = open_record(store, tip)
    child = Child(thread=tip.thread, oid=tip.commit)
    return ChildResult(
        child=child,
        answer=_answer(run, record, end),
        usage=usage_since(_taken(run, record), tip.state.usage),
        ran=ran,
        why=why,
        record=record,
    )


def _left(limits: Limits, used: Usage | None) -> Limits:
    """Return what a child may still cost, of what its parent may."""
    if used is None:
        return limits
    cost, tokens = limits.max_cost_usd, limits.max_tokens
    turns, minutes = limits.max_turns, limits.max_minutes
    spent = used.input_tokens + used.output_tokens
    return replace(
        limits,
        max_cost_usd=None if cost is None else cost - (used.cost_usd or 0),
        max_tokens=None if tokens is None else tokens - spent,
        max_turns=None if turns is None else turns - used.turns,
        max_minutes=None if minutes is None else minutes - used.duration_ms / 60_000,
    )


def _inner(run: Run, taken: Usage | None) -> Engine:
    """Return what the child runs with: the parent's slot, ground and what is left."""
    engine, ground = run.engine, run.cycle.ground
    limits = replace(engine.settings.limits, max_steps=run.cycle.steps_left - 1)
    limits = _left(limits, usage_since(taken, run.used))
    # One that is a workflow itself plays the role, not those of the workflow.
    asked = run.cycle.agent if run.role.workflow is not None else None
    return replace(
        engine,
        settings=replace(engine.settings, limits=limits),
        beside=NOTHING_BESIDE,
        above=(*engine.above, run.thread),
        environment={**engine.environment, "UWF_STEP": run.token},
        on_ready=lambda: None,
        choose=lambda flag, workflow, role: engine.choose(
            flag or asked, workflow, role
        ),
        admit=lambda *_: ground and replace(ground, cwd=run.cwd),
    )


def _start(run: Run, agent: WorkflowAgent) -> ThreadId:
    environment = run.engine.environment
    enclosing = find_enclosing(run.cwd)
    inside, root = None, None
    if enclosing is not None:
        inside = run.cwd.resolve().relative_to(enclosing.root).as_posix()
        root = root_commit(
            enclosing.root, environment=environment, memory=run.engine.home
        )
    parent = Parent(
        record=run.record,
        head=run.prev or run.record.tip.state.start,
        most=run.engine.settings.limits.depth,
    )
    tip = start_child(
        run.engine.ledger,
        parent,
        agent.workflow,
        role=run.cycle.routed.role,
        prompt=run.cycle.routed.prompt,
        cwd=Path(run.cwd),
        cwd_in_repo=inside,
        root_commit=root,
        resolve=run.engine.find_workflow,
    )
    return tip.thread


def _find(run: Run, agent: WorkflowAgent) -> _Found | None:
    """Find the child that goes on, by the record."""
    record, note = run.record, run.cycle.note
    state = record.tip.state
    tried = _find_tried(run)
    if tried is not None:
        status = load_tip(record.store, tried.thread).state.status
        if status == "cancelled":
            return None
        return _Found(
            thread=tried.thread, note=note, is_done=_has_ended_since(run, tried)
        )
    if run.replaced is not None:
        if run.replaced.child is None:
            return None
        return _own(run, run.replaced.child, run.replaced.number, note)
    last = record.step(state.head, state.steps) if state.steps else None
    if last is not None and last.status == SUSPEND and last.child is not None:
        return _own(run, last.child, last.number, note)
    return _find_unnamed(run, agent)


def _own(run: Run, child: Child, number: int, note: str | None) -> _Found:
    """Return a child that a step named; one that was inherited is forked first."""
    origin, store = run.record.tip.state.forked_from, run.record.store
    if origin is None or number > origin.number:
        is_over = load_tip(store, child.thread).state.status == "cancelled"
        is_done = is_over or _has_ended_since(run, child)
        return _Found(thread=child.thread, note=note, is_done=is_done)
    # As it was for the step: its first parent may have answered it meanwhile.
    head = read_tip(store, child.thread, child.oid).state.head
    ledger, step = run.engine.ledger, f"{run.thread} {run.number} {head}"
    begun = ledger.local.find_child(step)
    if begun is not None and find_ref(store, thread_ref(begun)) is not None:
        # It was killed before a record named it; as a fork, it names no parent.
        state = load_tip(store, begun).state
        if state.status != "cancelled":
            is_done = state.status == "end" and state.head != head
            return _Found(thread=begun, note=note, is_done=is_done)
    name = mint_thread_id(ledger.now_ms(), ledger.random(10))
    # First: a fork that is there is found again, whenever this is killed.
    ledger.local.set_child(step, name)
    fork_thread(ledger, child.thread, step=head, name=name)
    return _Found(thread=name, note=note)


def _has_ended_since(run: Run, child: Child) -> bool:
    """Whether a child was gone on with by itself, to its end, since it was named."""
    store = run.record.store
    was = read_tip(store, child.thread, child.oid).state.status
    return was != "end" and load_tip(store, child.thread).state.status == "end"


def _find_tried(run: Run) -> Child | None:
    """Find the child of a failed try at this very step, in this very thread."""
    for event in iter_events(run.record.store, run.record.tip.commit):
        if event.thread != run.thread or event.name in (*STEP_EVENTS, "start"):
            return None
        if event.name != "attempt" or event.node is None:
            continue
        child = find_child(run.record, event.node)
        if child is not None and event.role == run.cycle.routed.role:
            return child
    return None


def _find_unnamed(run: Run, agent: WorkflowAgent) -> _Found | None:
    """Find a child that began at this head and that nothing recorded names."""
    head = run.prev or run.record.tip.state.start
    wanted = StartedFor(thread=run.thread, step=head)
    pinned = run.record.child_hash(agent.workflow)
    ledger = run.engine.ledger
    ledger.lookup.refresh()
    for thread in reversed(ledger.lookup.find_children(run.thread)):
        record = open_record(run.record.store, thread)
        state = record.tip.state
        if record.start.parent != wanted or state.status == "cancelled":
            continue
        if agent.workflow == state.workflow_name or pinned == state.workflow_hash:
            return _Found(thread=thread, is_done=state.status == "end")
    return None


def _answer(run: Run, record: Record, end: RunEnd) -> Answer | Failure | None:
    state = record.tip.state
    name = f"child {state.thread}"
    if end is RunEnd.INTERRUPTED:
        return Failure(phase="interrupted", message=f"{name} was interrupted")
    if state.status == "end":
        return _take(run, record)
    if state.status == "cancelled":
        return Failure(phase="child", message=f"{name} was cancelled")
    if state.status == "idle":
        return None
    why = why_suspended(record.store, record.tip.commit, state)
    message = f"{name}: {why}"
    cause = find_cause(record.store, record.tip.commit)
    if cause.name in STEP_EVENTS and cause.status == SUSPEND:
        last = record.step(state.head, state.steps)
        return Answer(
            output={STATUS: SUSPEND, "reason": message},
            output_type=SUSPEND_TYPE,
            body=last.body,
        )
    return Failure(phase="child", message=message, retry_at_ms=state.retry_at_ms)


def _take(run: Run, record: Record) -> Answer | Failure:
    """Take what a child that ended said last, as far as it fits the role."""
    state = record.tip.state
    last = record.step(state.head, state.steps)
    found = validate_value(
        run.role.schema,
        last.output,
        is_link=lambda text: Hash(text) in record.places,
    )
    if not found:
        return Answer(output=last.output, output_type=run.output_type, body=last.body)
    text = "; ".join(map(str, found))
    return Failure(
        phase="child",
        message=f"what child {state.thread} ended with ({last.role}, "
        f"'{last.status}') does not fit role '{run.cycle.routed.role}': {text}",
    )


def _taken(run: Run, child: Record) -> Usage | None:
    """Return what earlier steps and tries of the parent took of a child's usage."""
    lineage = {child.tip.thread}
    lineage |= {e.thread for e in iter_events(child.store, child.tip.commit)}
    for event in iter_events(run.record.store, run.record.tip.commit):
        if event.node is None or event.name not in RUN_EVENTS:
            continue
        named = find_child(run.record, event.node)
        if named is not None and named.thread in lineage:
            return read_tip(run.record.store, named.thread, named.oid).state.usage
    return None
