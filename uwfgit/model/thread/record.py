"""One thread as recorded: its tip, its nodes and its chain, read from one tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.constants import MAX_STATE_BYTES
from uwfgit.errors import CorruptError, EarlierFormatError, NotFoundError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node.node import (
    DETAIL_TYPE,
    ERROR_TYPE,
    JSON_TYPES,
    START_TYPE,
    STEP_TYPE,
    SUSPEND_TYPE,
    WORKFLOW_TYPE,
    Node,
)
from uwfgit.model.node.places import (
    NodePlace,
    NodePlaces,
    add_place,
    list_nodes,
    read_nodes,
)
from uwfgit.model.schema.typed import read_payload, require_typed
from uwfgit.model.thread.state import ThreadState, decode_state
from uwfgit.model.thread.step import Start, Step, StepNode, read_start, read_step
from uwfgit.model.wording import count_of
from uwfgit.model.workflow.workflow import Workflow, workflow_from_node
from uwfgit.store.canonical import Json
from uwfgit.store.handle import Store
from uwfgit.store.layout import (
    HISTORY,
    OUTPUT_FILE,
    STATE_FILE,
    TRASH_PREFIX,
    WORKFLOW_FILE,
    find_step_name,
    thread_folder,
    thread_ref,
)
from uwfgit.store.objects import find_entry, list_tree, read_blob, read_commit
from uwfgit.store.refs import find_ref


@contextmanager
def naming_mend(thread: ThreadId) -> Iterator[None]:
    """Let what is corrupt of a thread say where more is told; it goes on."""
    try:
        yield
    except CorruptError as exc:
        exc.hint = exc.hint or (
            f"uwf verify {thread} says more; uwf doctor names what may fix it"
        )
        raise


_Read = TypeVar("_Read")
_RECORDS: Final = {WORKFLOW_TYPE, START_TYPE, STEP_TYPE, DETAIL_TYPE}
"""Types that every thread carries; one that has none of them is of an earlier format.
"""


_OUTPUTS: Final = {ERROR_TYPE, SUSPEND_TYPE}
"""Types of outputs that no role declares."""


class Tip(Struct, frozen=True, kw_only=True):
    """The newest commit of a thread's branch and the state it stores."""

    thread: ThreadId
    commit: Oid
    tree: Oid
    committed_at: int
    state: ThreadState


def load_tip(store: Store, thread: ThreadId) -> Tip:
    """Read a thread's newest commit and state.

    Raises:
        NotFoundError: There is no such branch.
        CorruptError: Something on the way is missing or malformed.
    """
    with naming_mend(thread):
        commit = find_ref(store, thread_ref(thread))
        if commit is None:
            removed = find_ref(store, TRASH_PREFIX + thread)
            hint = f"it was removed; bring it back: uwf thread restore {thread}"
            raise NotFoundError("thread", thread, hint=hint if removed else None)
        return read_tip(store, thread, commit)


def read_tip(store: Store, thread: ThreadId, oid: Oid) -> Tip:
    """Read the state a commit of a thread stores.

    Raises:
        CorruptError: The commit or its ``thread.json`` is missing or malformed.
    """
    commit = read_commit(store, oid)
    entry = find_entry(store, commit.tree, f"{thread_folder(thread)}/{STATE_FILE}")
    if entry is None:
        raise CorruptError(f"commit {oid} has no {STATE_FILE} of thread {thread}")
    state = decode_state(read_blob(store, entry.oid, limit=MAX_STATE_BYTES))
    if state.thread != thread:
        raise CorruptError(f"{STATE_FILE} in {oid} is of thread {state.thread}")
    return Tip(
        thread=thread,
        commit=oid,
        tree=commit.tree,
        committed_at=commit.committer.time,
        state=state,
    )


class Record(Struct, kw_only=True):
    """A thread opened for reading many of its nodes, and kept up to date by appends.

    ``places`` is loaded once from the newest tree: history is never needed to
    find a node, and hashes are resolved in the thread's own folders only.
    ``replies`` are the roles of the replies so far, once somebody counted them.
    With ``checked`` every node is compared with its name; git's own check of
    its bytes is always made.
    """

    store: Store
    tip: Tip
    places: NodePlaces
    checked: bool = True
    replies: list[str] | None = None
    _roles: dict[int, str] | None = None
    _steps: dict[Hash, Step] = field(default_factory=dict)
    _ahead: dict[Hash, Node] = field(default_factory=dict)
    _start: Start | None = None
    _workflow: Workflow | None = None

    def node(self, node: Hash, expected: Hash | None = None) -> Node:
        """Read a node of this thread; one of an expected type fits that type.

        Raises:
            CorruptError: It is not there, damaged, or of another type.
        """
        with naming_mend(self.tip.thread):
            found = self._read(node, expected)
            if expected is not None:
                require_typed(found)
            return found

    def _read(self, node: Hash, expected: Hash | None = None) -> Node:
        ahead = self._ahead.get(node)
        if ahead is not None and (expected is None or expected == ahead.type):
            return ahead
        wanted = [(node, self.place(node, expected))]
        return read_nodes(self.store, wanted, checked=self.checked)[0]

    def run(self, node: Hash) -> StepNode:
        """Read the StepNode of a step or of a failed try.

        Raises:
            CorruptError: It is missing, damaged or does not fit.
        """
        return self._steps.get(node) or self.read(node, STEP_TYPE, StepNode)

    def read(self, node: Hash, expected: Hash, kind: type[_Read]) -> _Read:
        """Read a node of a built-in type as the struct that declares its fields.

        Raises:
            CorruptError: It is missing, damaged or does not fit.
        """
        with naming_mend(self.tip.thread):
            return read_payload(self._read(node, expected), kind)

    def place(self, node: Hash, expected: Hash | None = None) -> NodePlace:
        """Return where a node of this thread stands.

        Raises:
            CorruptError: It is not there, or of another type.
        """
        place = self.places.get(node)
        if place is None:
            raise CorruptError(f"thread {self.tip.thread} lacks node {node}")
        if expected is not None and place[0] != expected:
            raise CorruptError(f"node {node} has type {place[0]}, not {expected}")
        return place

    @property
    def start(self) -> Start:
        """The thread's StartNode."""
        if self._start is None:
            with naming_mend(self.tip.thread):
                start = read_start(self._read(self.tip.state.start, START_TYPE))
            if start.inputs is not None:
                given = self.node(start.inputs, JSON_TYPES["object"]).payload
                start = replace(start, values=self._in_file_order(given))
            self._start = start
        return self._start

    @property
    def workflow(self) -> Workflow:
        """The workflow the thread pins."""
        if self._workflow is None:
            found = self._read_workflow(self.start.workflow)
            if found.inputs:
                found = replace(found, inputs=self._in_file_order(found.inputs))
            self._workflow = found
        return self._workflow

    @property
    def workflow_file(self) -> bytes:
        """The pinned workflow's file; empty where it is not there."""
        path = f"{thread_folder(self.tip.thread)}/{WORKFLOW_FILE}"
        entry = find_entry(self.store, self.tip.tree, path)
        return b"" if entry is None else read_blob(self.store, entry.oid)

    def _in_file_order(self, named: Mapping[str, Json]) -> dict[str, Json]:
        # Late: a thread without inputs reads no YAML.
        from uwfgit.model.workflow.pinned import in_file_order  # noqa: PLC0415

        return in_file_order(named, self.workflow_file)

    def _read_workflow(self, pinned: Hash) -> Workflow:
        with naming_mend(self.tip.thread):
            return workflow_from_node(self._read(pinned, WORKFLOW_TYPE), self._read)

    def child_hash(self, name: str) -> Hash | None:
        """Find the pinned workflow that a role is done by, itself by its own name."""
        known = self.start.children.get(name)
        is_own = known is None and name == self.tip.state.workflow_name
        return self.start.workflow if is_own else known

    def child_workflow(self, name: str) -> Workflow | None:
        """Read a workflow that a role is done by; ``None`` when none is pinned."""
        pinned = self.child_hash(name)
        return None if pinned is None else self._read_workflow(pinned)

    def step(self, step: Hash, number: int) -> Step:
        """Read a StepNode; ``number`` is what the caller knows it to be.

        Raises:
            CorruptError: It, or its output, is missing, damaged or does not fit.
        """
        known = self._steps.get(step)
        if known is not None:
            return known
        with naming_mend(self.tip.thread):
            bare = read_step(self._read(step, STEP_TYPE), number)
            output = self._read(bare.output_hash)
            if output.type in _OUTPUTS:
                require_typed(output)
            if not isinstance(output.payload, dict):
                raise CorruptError(f"output of step {step} is not a mapping")
        found = self._steps[step] = replace(bare, output=output.payload)
        return found

    def find_read(self, step: Hash) -> Step | None:
        """Return a step that was read already; ``None`` where it was not."""
        return self._steps.get(step)

    def iter_steps(self) -> Iterator[Step]:
        """Yield the logical chain, newest first, reading as it goes.

        Raises:
            CorruptError: As for :meth:`step`, or the chain is of another length.
        """
        number = self.tip.state.steps
        step: Hash | None = self.tip.state.head if number else None
        with naming_mend(self.tip.thread):
            while step is not None:
                if number < 1:
                    raise CorruptError(f"chain of thread {self.tip.thread} is too long")
                found = self.step(step, number)
                yield found
                step, number = found.prev, number - 1
            if number:
                message = f"chain of thread {self.tip.thread} is too short"
                raise CorruptError(message)

    def step_at(self, number: int) -> Step:
        """Read the step of the logical chain with a number.

        Raises:
            NotFoundError: There is none.
        """
        for step in self.iter_steps():
            if step.number == number:
                return step
        state = self.tip.state
        raise NotFoundError(
            "step",
            f"{state.thread}:{number}",
            hint=f"the thread has {count_of(state.steps, 'step')}",
        )

    def steps(self) -> tuple[Step, ...]:
        """Read the logical chain, oldest first."""
        # A chain can only be followed node by node, the tree be read in one go.
        steps = [n for n, (kind, _) in self.places.items() if kind == STEP_TYPE]
        with suppress(CorruptError, KeyError, TypeError):
            outputs = [n.payload["output"] for n in self._read_ahead(steps)]
            self._read_ahead(outputs)
        try:
            return tuple(self.iter_steps())[::-1]
        finally:
            self._ahead = {}

    def _read_ahead(self, nodes: Iterable[Hash]) -> tuple[Node, ...]:
        wanted = {n: self.places[n] for n in nodes if n not in self._steps}
        found = read_nodes(self.store, wanted.items(), checked=self.checked)
        self._ahead |= {node.hash: node for node in found}
        return found

    def roles(self) -> dict[int, str]:
        """Return the role of each step of the chain, from folder names alone."""
        if self._roles is None:
            found: dict[int, str] = {}
            last = self.tip.state.steps
            for state in iter_lineage(self.store, self.tip):
                # The nearest thread that holds a step's output counts, the own first.
                for number, role in _own_roles(self.store, self.tip.tree, state.thread):
                    if number <= last:
                        found.setdefault(number, role)
                if state.forked_from is not None:
                    last = min(last, state.forked_from.number)
            self._roles = dict(sorted(found.items()))
        return self._roles

    def advance(
        self,
        tip: Tip,
        nodes: NodePlaces,
        step: Step | None = None,
        *,
        reply: str | None = None,
    ) -> None:
        """Follow an event that was just written.

        Args:
            tip: The thread's new tip.
            nodes: Where the nodes stand that it added.
            step: The step that it recorded.
            reply: The role whose reply it holds.

        Raises:
            CorruptError: A node of it has another content under its hash here.
        """
        for node, (node_type, oid) in nodes.items():
            add_place(self.places, node, node_type, oid)
        self.tip = tip
        if reply is not None and self.replies is not None:
            self.replies.append(reply)
        if step is not None:
            self._steps[step.hash] = step
            if self._roles is not None:
                self._roles[step.number] = step.role


def iter_lineage(store: Store, tip: Tip) -> Iterator[ThreadState]:
    """Yield the states of a thread and of those it was forked from, nearest first.

    Raises:
        CorruptError: One is missing or malformed, or they go round in a circle.
    """
    state, seen = tip.state, {tip.thread}
    yield state
    while state.forked_from is not None:
        origin = state.forked_from.thread
        if origin in seen:
            raise CorruptError(f"thread {origin} is said to be a fork of itself")
        seen.add(origin)
        path = f"{thread_folder(origin)}/{STATE_FILE}"
        entry = find_entry(store, tip.tree, path)
        if entry is None:
            raise CorruptError(f"'{path}' is missing, a thread was forked from it")
        state = decode_state(read_blob(store, entry.oid, limit=MAX_STATE_BYTES))
        if state.thread != origin:
            raise CorruptError(f"'{path}' is of thread {state.thread}")
        yield state


def _own_roles(store: Store, tree: Oid, thread: ThreadId) -> Iterator[tuple[int, str]]:
    history = find_entry(store, tree, f"{thread_folder(thread)}/{HISTORY}")
    if history is None:
        return
    for bucket in list_tree(store, history.oid).values():
        for name, entry in list_tree(store, bucket.oid).items():
            step = find_step_name(name)
            if step is not None and OUTPUT_FILE in list_tree(store, entry.oid):
                yield step


def load_record(store: Store, thread: ThreadId, *, checked: bool = True) -> Record:
    """Open a thread as it is for reading its nodes.

    Raises:
        NotFoundError: There is no such branch.
        CorruptError, EarlierFormatError: As :func:`open_record`.
    """
    return open_record(store, load_tip(store, thread), checked=checked)


def open_record(store: Store, tip: Tip, *, checked: bool = True) -> Record:
    """Open a thread at a tip for reading its nodes.

    Args:
        store: Where it is.
        tip: Its newest commit.
        checked: Whether each node is compared with its name; a command that
            only shows them can do without.

    Raises:
        CorruptError: A tree is missing or holds what no rule gives.
        EarlierFormatError: It was written before format 1 was fixed.
    """
    with naming_mend(tip.thread):
        places = list_nodes(store, tip.tree)
    if places and not _RECORDS & places.keys():
        raise EarlierFormatError(f"thread {tip.thread}")
    return Record(store=store, tip=tip, places=places, checked=checked)
