"""One thread as recorded: where its nodes stand in its tree, and reading them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.constants import MAX_BLOB_BYTES
from uwfgit.errors import CorruptError, EarlierFormatError, NotFoundError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import (
    DETAIL_TYPE,
    ERROR_TYPE,
    JSON_TYPES,
    START_TYPE,
    STEP_TYPE,
    SUSPEND_TYPE,
    WORKFLOW_TYPE,
    Node,
    read_payload,
    require_typed,
)
from uwfgit.model.thread.step import Start, Step, StepNode, read_start, read_step
from uwfgit.model.thread.tip import Tip, iter_lineage, load_tip, mend_hint
from uwfgit.model.wording import count_of
from uwfgit.model.workflow.workflow import Workflow, workflow_from_node
from uwfgit.store.canonical import Json, decode_payload, node_hash, parse_payload
from uwfgit.store.handle import Store
from uwfgit.store.layout import (
    HISTORY,
    NODES,
    OUTPUT_FILE,
    THREADS,
    WORKFLOW_FILE,
    find_node_name,
    find_step_name,
    thread_folder,
)
from uwfgit.store.objects import find_entry, list_names, list_tree, read_blob
from uwfgit.store.raw import BLOB

_Read = TypeVar("_Read")
_Given = ParamSpec("_Given")
_RECORDS: Final = {WORKFLOW_TYPE, START_TYPE, STEP_TYPE, DETAIL_TYPE}
"""Types that every thread carries; one that has none of them is of an earlier format.
"""
_OUTPUTS: Final = {ERROR_TYPE, SUSPEND_TYPE}
"""Types of outputs that no role declares."""

NodePlace = tuple[Hash, Oid]
"""A node's type, and its blob."""
NodePlaces = dict[Hash, NodePlace]
"""Where a thread's nodes stand: hash → type and blob."""


def _naming_mend(
    reads: Callable[Concatenate[Record, _Given], _Read],
) -> Callable[Concatenate[Record, _Given], _Read]:
    """Let what is corrupt say where to read more of it."""

    @wraps(reads)
    def read(record: Record, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Read:
        try:
            return reads(record, *args, **kwargs)
        except CorruptError as exc:
            exc.hint = exc.hint or mend_hint(record.tip.thread)
            raise

    return read


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

    @_naming_mend
    def node(self, node: Hash, expected: Hash | None = None) -> Node:
        """Read a node of this thread; one of an expected type fits that type.

        Raises:
            CorruptError: It is not there, damaged, or of another type.
        """
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

    @_naming_mend
    def read(self, node: Hash, expected: Hash, kind: type[_Read]) -> _Read:
        """Read a node of a built-in type as the struct that declares its fields.

        Raises:
            CorruptError: It is missing, damaged or does not fit.
        """
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
            start = self._read_start()
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

    @_naming_mend
    def _read_start(self) -> Start:
        return read_start(self._read(self.tip.state.start, START_TYPE))

    def _in_file_order(self, named: Mapping[str, Json]) -> dict[str, Json]:
        # Late: a thread without inputs reads no YAML.
        from uwfgit.model.workflow.pinned import in_file_order  # noqa: PLC0415

        return in_file_order(named, self.workflow_file)

    @_naming_mend
    def _read_workflow(self, pinned: Hash) -> Workflow:
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

    @_naming_mend
    def step(self, step: Hash, number: int) -> Step:
        """Read a StepNode; ``number`` is what the caller knows it to be.

        Raises:
            CorruptError: It, or its output, is missing, damaged or does not fit.
        """
        known = self._steps.get(step)
        if known is not None:
            return known
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
        while step is not None and number > 0:
            found = self.step(step, number)
            yield found
            step, number = found.prev, number - 1
        if number or step is not None:
            length = "short" if number else "long"
            raise CorruptError(
                f"chain of thread {self.tip.thread} is too {length}",
                hint=mend_hint(self.tip.thread),
            )

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
                path = f"{thread_folder(state.thread)}/{HISTORY}"
                history = find_entry(self.store, self.tip.tree, path)
                buckets = list_tree(self.store, history.oid) if history else {}
                for bucket in buckets.values():
                    for name, entry in list_tree(self.store, bucket.oid).items():
                        step = find_step_name(name)
                        # The nearest thread that holds a step's output counts, the
                        # own first; a folder without one holds failed attempts alone.
                        if step is None or step[0] > last or step[0] in found:
                            continue
                        if OUTPUT_FILE in list_tree(self.store, entry.oid):
                            found[step[0]] = step[1]
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


def open_record(
    store: Store, thread: ThreadId | Tip, *, checked: bool = True
) -> Record:
    """Open a thread for reading its nodes.

    Args:
        store: Where it is.
        thread: It as it is now, or a tip of it.
        checked: Whether each node is compared with its name; a command that
            only shows them can do without.

    Raises:
        NotFoundError: There is no such branch.
        CorruptError: A tree is missing or holds what no rule gives.
        EarlierFormatError: It was written before format 1 was fixed.
    """
    tip = thread if isinstance(thread, Tip) else load_tip(store, thread)
    try:
        places = list_nodes(store, tip.tree)
    except CorruptError as exc:
        exc.hint = exc.hint or mend_hint(tip.thread)
        raise
    if places and not _RECORDS & places.keys():
        raise EarlierFormatError(f"thread {tip.thread}")
    return Record(store=store, tip=tip, places=places, checked=checked)


def read_node(store: Store, node: Hash, node_type: Hash, oid: Oid) -> Node:
    """Read a node's blob and check that it is what its name says.

    Raises:
        CorruptError: Missing, not canonical, or of another hash.
    """
    # Not by read_nodes: for one alone that takes a fifth longer.
    data = store.raw.read(oid, BLOB, limit=MAX_BLOB_BYTES)
    payload = decode_payload(node_type, data)
    if node_hash(node_type, payload) != node:
        raise CorruptError(f"blob {oid} is not node {node}")
    return Node(hash=node, type=node_type, payload=payload)


def read_nodes(
    store: Store, wanted: Iterable[tuple[Hash, NodePlace]], *, checked: bool = True
) -> tuple[Node, ...]:
    """Read many nodes at once, in their order.

    One kind of work after the other, each for all of them: taking turns costs
    half as much again.

    Args:
        store: Where they are.
        wanted: Their names and places.
        checked: Whether each is compared with its name, as :func:`read_node` does.

    Raises:
        CorruptError: One is missing, or not what it should be.
    """
    named = tuple(wanted)
    read = store.raw.read
    blobs = [read(oid, BLOB, limit=MAX_BLOB_BYTES) for _, (_, oid) in named]
    parse = decode_payload if checked else parse_payload
    nodes = tuple(
        Node(hash=node, type=kind, payload=parse(kind, data))
        for (node, (kind, _)), data in zip(named, blobs, strict=True)
    )
    for node, (_, (_, oid)) in zip(nodes, named, strict=True) if checked else ():
        if node_hash(node.type, node.payload) != node.hash:
            raise CorruptError(f"blob {oid} is not node {node.hash}")
    return nodes


def list_nodes(store: Store, tree: Oid) -> NodePlaces:
    """Find every node of a thread, those of the threads it was forked from too.

    Raises:
        CorruptError: Two contents stand under one hash, or a tree is missing.
    """
    places: NodePlaces = {}
    threads = find_entry(store, tree, THREADS)
    if threads is None:
        return places
    for thread in list_tree(store, threads.oid).values():
        folder = find_entry(store, thread.oid, NODES)
        if folder is None:
            continue
        for file, oid in list_names(store, folder.oid):
            name = find_node_name(file)
            if name is None:
                raise CorruptError(f"'{file}' is not a node's file name")
            add_place(places, name[0], name[1], oid)
    return places


def add_place(places: NodePlaces, node: Hash, node_type: Hash, oid: Oid) -> None:
    """Note where a node stands.

    Raises:
        CorruptError: The hash already names another content.
    """
    known = places.setdefault(node, (node_type, oid))
    if known != (node_type, oid):
        raise CorruptError(
            f"hash {node} names two contents: {known[1]} and {oid}",
            hint="one of the two was made to collide; do not use it",
        )
