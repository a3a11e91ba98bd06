"""Threads without a run: start, fork, cancel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import END, RULES_VERSION, START
from uwfgit.engine.decide.conditions import require_conditions
from uwfgit.engine.decide.moderator import Routed, RoutingError, base_prompt
from uwfgit.engine.run.hold import hold_thread
from uwfgit.errors import (
    CorruptError,
    InvalidError,
    NotFoundError,
    RoutingFailedError,
    StateError,
    UsageError,
)
from uwfgit.ids import Hash, ThreadId, mint_thread_id
from uwfgit.model.ledger.branch import append_fork, append_start, append_word
from uwfgit.model.ledger.commit import require_recordable
from uwfgit.model.ledger.ledger import Ledger, find_step_commit, lineage
from uwfgit.model.node import START_TYPE, make_node
from uwfgit.model.thread.event import RUN_EVENTS, TABLE, EventName, iter_events
from uwfgit.model.thread.family import find_child
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.state import ForkedFrom
from uwfgit.model.thread.step import Start, read_start
from uwfgit.model.thread.tip import Tip, load_tip, read_tip
from uwfgit.model.workflow.children import Resolve, pin_children, resolve_children
from uwfgit.model.workflow.document import workflow_document
from uwfgit.model.workflow.inputs import input_nodes, require_inputs
from uwfgit.model.workflow.workflow import Workflow, workflow_nodes
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.canonical import Json
from uwfgit.store.locks.holding import write_whole


def start_thread(  # noqa: PLR0913 - one argument a fact
    ledger: Ledger,
    *,
    workflow: Workflow,
    data: bytes,
    prompt: str,
    cwd: Path,
    cwd_in_repo: str | None = None,
    root_commit: str | None = None,
    parent: Parent | None = None,
    children: Mapping[str, Workflow] | None = None,
    inputs: Mapping[str, Json] | None = None,
    thread: ThreadId | None = None,
    private: bool = False,
    check: Callable[[Routed], None] = lambda _: None,
) -> Tip:
    """Pin a workflow and create a thread; nothing runs.

    Args:
        ledger: Where to.
        workflow: What the thread pins.
        data: The bytes of the workflow's file.
        prompt: The task.
        cwd: The folder its agents work in; absolute, must exist.
        cwd_in_repo: That folder within its work tree.
        root_commit: The first commit of that repository.
        parent: The thread that starts this one; what it starts is private when it is.
        children: The workflows that its roles reach, by name.
        inputs: What the run is given, by the names the workflow declares.
        thread: Its id; a new one without it.
        private: Whether it is never to be shared.
        check: Told of its first step before anything is recorded; may refuse it.

    Raises:
        InvalidError: The prompt is blank, the folder is missing, or the inputs are
            not those of the workflow.
        StateError: Threads would be nested too deeply.
        RoutingFailedError: The workflow has no first role for this task.
        ConfigError: It has conditions, which cannot be evaluated here.
    """
    require_task(prompt)
    if not cwd.is_absolute() or not cwd.is_dir():
        raise InvalidError(
            f"'{cwd}' is not an existing folder", hint="give one with --cwd"
        )
    require_recordable(cwd)
    thread = thread or mint_thread_id(ledger.now_ms(), ledger.random(10))
    start: dict[str, Json] = {
        "prompt": prompt,
        "cwd": str(cwd),
        "cwdInRepo": cwd_in_repo,
        "rootCommit": root_commit,
    }
    if parent is not None:
        start |= parent.payload()
    if private:
        start["private"] = True
    pinned, nodes = pin_children(children or {})
    if pinned:
        start["children"] = pinned
    values = require_inputs(workflow.inputs or {}, inputs or {})
    if workflow.inputs:
        type_node, node = input_nodes(values)
        start["inputs"] = node.hash
        nodes = (*nodes, type_node, node)
    require_conditions(workflow)
    routed = first_prompt(
        workflow, start, thread=thread, inputs=values if workflow.inputs else None
    )
    if isinstance(routed, RoutingError):
        raise RoutingFailedError(routed.message)
    if routed.role == END:
        raise RoutingFailedError(f"workflow '{workflow.name}' leads straight to $END")
    check(routed)
    record = append_start(
        ledger,
        thread=thread,
        workflow=workflow,
        data=data,
        start=start,
        current_role=routed.role,
        extra=nodes,
    )
    return record.tip


def first_prompt(
    workflow: Workflow,
    start: Mapping[str, Json],
    *,
    thread: str,
    inputs: Mapping[str, Json] | None = None,
) -> Routed | RoutingError:
    """Return role, prompt and location of a thread's first step.

    Args:
        workflow: What the thread will pin.
        start: Its StartNode's payload, as far as the caller chooses it.
        thread: Its id.
        inputs: What the run is given.

    Raises:
        ConfigError: There are conditions, which cannot be evaluated here.
    """
    return base_prompt(
        workflow,
        (),
        task=start["prompt"],
        thread=thread,
        start=_first_start(workflow, start, inputs),
        inputs=inputs,
    )


def _first_start(
    workflow: Workflow, start: Mapping[str, Json], inputs: Mapping[str, Json] | None
) -> Start | None:
    """Return what conditions of ``$START`` see of a StartNode that is not made yet."""
    if not isinstance(workflow.graph.get(START), tuple):
        return None
    pinned = workflow_nodes(workflow)[-1].hash
    node = make_node(START_TYPE, {**start, "workflow": pinned, "rules": RULES_VERSION})
    return replace(read_start(node), values=inputs)


def require_task(prompt: str) -> None:
    """Refuse a task that says nothing.

    Raises:
        InvalidError: It is one.
    """
    if not prompt.strip():
        raise InvalidError("the task is empty", hint="give one with -p TEXT")


class Parent(Struct, frozen=True, kw_only=True):
    """The thread that starts another, and its head at that moment."""

    record: Record
    head: Hash
    most: int
    """How deep threads may be nested."""

    def payload(self) -> Mapping[str, Json]:
        """Return what the StartNode says of it.

        Raises:
            StateError: Threads would be nested too deeply.
        """
        start, thread = self.record.start, self.record.tip.thread
        if start.depth >= self.most:
            raise StateError(
                f"thread {thread} may not start another: it is {start.depth} deep "
                f"already, at most {self.most} (limits.depth)",
                hint="`uwf config set limits.depth N` allows more",
            )
        payload: dict[str, Json] = {
            "depth": start.depth + 1,
            "parent": {"thread": thread, "step": self.head},
        }
        return payload | ({"private": True} if start.private else {})


def start_child(
    ledger: Ledger,
    parent: Parent,
    name: str,
    *,
    role: str,
    prompt: str,
    cwd: Path,
    cwd_in_repo: str | None,
    root_commit: str | None,
    resolve: Resolve | None,
) -> Tip:
    """Start a thread that does a step of another.

    Args:
        ledger: Where to.
        parent: Whose step.
        name: The workflow: one that the parent pins, else one to be found.
        role: The role it does, which may give it inputs.
        prompt: The task.
        cwd: The step's folder.
        cwd_in_repo: That folder within its work tree.
        root_commit: The first commit of that repository.
        resolve: Finds a workflow that is not pinned.

    Raises:
        NotFoundError: Nothing has that name.
        StateError: Threads would be nested too deeply.
    """
    record = parent.record
    pinned = record.child_workflow(name)
    if pinned is None and resolve is None:
        raise NotFoundError("workflow", name, hint="the thread does not pin it")

    def find(wanted: str) -> Workflow:
        found = record.child_workflow(wanted) if pinned is not None else None
        if found is None and resolve is not None:
            return resolve(wanted)
        if found is None:
            raise NotFoundError("workflow", wanted, hint="the thread does not pin it")
        return found

    workflow = find(name)
    given = record.workflow.roles.get(role)
    head = f"# Written by uwf: pinned by thread {record.tip.thread}\n"
    return start_thread(
        ledger,
        workflow=workflow,
        data=(head + dump_yaml(workflow_document(workflow))).encode(),
        prompt=prompt,
        cwd=cwd,
        cwd_in_repo=cwd_in_repo,
        root_commit=root_commit,
        parent=parent,
        children=resolve_children(workflow, find),
        inputs=given.inputs if given is not None else None,
    )


def fork_thread(
    ledger: Ledger,
    thread: ThreadId,
    *,
    at: int | None = None,
    from_role: str | None = None,
    step: Hash | None = None,
    name: ThreadId | None = None,
) -> Tip:
    """Branch a new thread off one; nothing is copied, moved or deleted.

    Args:
        ledger: Where to.
        thread: The thread to fork; it stays as it is.
        at: Fork at this step, 0 for the start. Without any choice, at the head.
        from_role: Fork before this role's newest step, so that it runs again.
        step: Fork at this step, a replaced one too.
        name: What the new thread is called; by default a new id.

    Raises:
        NotFoundError: There is no such step.
        UsageError: More than one choice.
    """
    if sum(choice is not None for choice in (at, from_role, step)) > 1:
        raise UsageError("choose one of --at, --from-role and a step")
    record = open_record(ledger.store, thread)
    number = fork_point(record, at=at, from_role=from_role)
    wanted = step or (record.step_at(number).hash if number else record.tip.state.start)
    event = find_step_commit(record.store, record.tip, wanted)
    if event is None:
        hint = "fork at a step of the thread, or one that a poke replaced"
        raise NotFoundError("step", wanted, hint=hint)
    origin = read_tip(ledger.store, event.thread, event.commit.oid)
    fork = name or mint_thread_id(ledger.now_ms(), ledger.random(10))
    # First: a fork that is there is never without them.
    ledger.local.let_follow(thread, fork)
    return append_fork(
        ledger,
        origin,
        thread=fork,
        forked_from=ForkedFrom(
            thread=event.thread, step=wanted, number=origin.state.steps
        ),
    )


def fork_point(record: Record, *, at: int | None, from_role: str | None) -> int:
    """Return the number of the step that a fork by these choices is made at.

    Raises:
        NotFoundError: There is no such step.
        UsageError: Both choices.
    """
    if at is not None and from_role is not None:
        raise UsageError("choose one of --at, --from-role and a step")
    if from_role is None:
        return record.tip.state.steps if at is None else at
    numbers = [number for number, name in record.roles().items() if name == from_role]
    if not numbers:
        hint = f"it has no step in thread {record.tip.thread}"
        raise NotFoundError("role", from_role, hint=hint)
    return max(numbers) - 1


def say_word(
    ledger: Ledger,
    thread: ThreadId,
    event: EventName,
    *,
    reason: str | None,
    command: str,
) -> Tip:
    """Record a person's word on a thread that does not run.

    Raises:
        StateError: It may not follow on the thread's state.
        LockedError: It is running.
    """

    def say() -> Tip:
        tip = load_tip(ledger.store, thread)
        status = tip.state.status
        if status not in TABLE[event].follows:
            said = {"end": "at its end", "cancelled": "cancelled already"}
            raise StateError(f"thread {thread} is {said.get(status, status)}")
        return append_word(ledger, tip, event, reason=reason)

    with hold_thread(ledger, thread, command=command):
        return write_whole(ledger.store, say, decides_anew=True)


def cancel_thread(
    ledger: Ledger, thread: ThreadId, *, reason: str | None, command: str
) -> Tip:
    """Give a thread up, and its children; it is kept and cannot run again.

    Raises:
        StateError: It has ended or is cancelled already.
        LockedError: It is running.
    """
    tip = say_word(ledger, thread, "cancel", reason=reason, command=command)
    for child in _open_children(ledger, thread):
        cancel_thread(ledger, child, reason=reason, command=command)
    return tip


def _open_children(ledger: Ledger, thread: ThreadId) -> Iterator[ThreadId]:
    """Yield the threads that did steps of one, or began to, and have not ended."""
    record = open_record(ledger.store, thread)
    own: set[ThreadId] = set()
    for event in iter_events(ledger.store, record.tip.commit):
        if event.thread != thread:
            break
        if event.node is not None and event.name in RUN_EVENTS:
            named = find_child(record, event.node)
            own |= {named.thread} if named is not None else set()
    kin = {*lineage(ledger, record.tip)}
    ledger.lookup.refresh()
    for child in dict.fromkeys((*ledger.lookup.find_children(thread), *own)):
        # One that is not here, or damaged, is nobody's to cancel.
        with suppress(NotFoundError, CorruptError):
            found = open_record(ledger.store, child)
            state, parent = found.tip.state, found.start.parent
            # A fork of a child says that its parent is the one of before.
            is_own = state.forked_from is None or child in own
            # A record of others may name any thread as who did its step.
            is_kin = parent is not None and parent.thread in kin
            if state.status in {"idle", "suspended"} and is_own and is_kin:
                yield child
