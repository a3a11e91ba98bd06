"""The steps of a thread by the snapshots they name; a chain alone proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.code.chain import Snapshot
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node.node import STEP_TYPE, Node
from uwfgit.model.node.places import read_nodes
from uwfgit.model.thread.record import NOT_TYPED, Record, untyped

_MS = 1000


class KnownStep(Struct, frozen=True, kw_only=True):
    """A step, or a failed try at one, and the code around it; times in seconds.

    ``number`` is ``None`` where only a snapshot's label can say it; ``before`` and
    ``after`` are trees of the code repository. A failed try, and a step that a poke
    replaced, are not in the chain: THREAD:NUMBER is another, or none.
    """

    thread: ThreadId
    number: int | None
    hash: Hash
    detail: Hash
    role: str
    agent: str
    status: str | None
    prompt: str
    note: str | None
    before: Oid | None
    after: Oid | None
    head_before: str | None
    head_after: str | None
    started_at: int
    completed_at: int
    shared: tuple[ThreadId, ...] = ()
    is_in_chain: bool = True

    @property
    def name(self) -> str:
        """What a command finds it by."""
        return f"{self.thread}:{self.number}" if self.is_in_chain else self.hash


class StepIndex(Struct, frozen=True, kw_only=True):
    """The steps of a thread by the tree they left behind."""

    steps: Mapping[Oid, tuple[KnownStep, ...]] = field(default_factory=dict)

    def find(self, snapshot: Snapshot) -> KnownStep | None:
        """Find the step that left a snapshot; ``None`` when the thread has none.

        A snapshot is what its thread names, never what its label says: anyone can
        write a label.
        """
        label = snapshot.label
        for step in self.steps.get(snapshot.tree, ()):
            if step.number in {None, label.number}:
                return replace(step, thread=label.thread, number=label.number)
        return None


def index_steps(record: Record) -> StepIndex:
    """Index the steps of a thread, inherited, replaced and failed ones too."""
    numbers = {step.hash: step.number for step in record.steps()}
    wanted = [
        (node, place) for node, place in record.places.items() if place[0] == STEP_TYPE
    ]
    nodes = read_nodes(record.store, wanted)
    hashes = {_output_of(node) for node in nodes}
    wanted = [(each, record.places[each]) for each in hashes if each in record.places]
    outputs = {node.hash: node.payload for node in read_nodes(record.store, wanted)}
    found: dict[Oid, list[KnownStep]] = {}
    for node in nodes:
        step = read_known(
            record.tip.thread, node, outputs, number=numbers.get(node.hash)
        )
        if step.after is not None:
            found.setdefault(step.after, []).append(step)
    # A step of the chain itself before those that were replaced or failed.
    ordered = {
        tree: tuple(sorted(steps, key=lambda step: step.number is None))
        for tree, steps in found.items()
    }
    return StepIndex(steps=ordered)


def read_known(
    thread: ThreadId, node: Node, outputs: Mapping[Hash, Any], *, number: int | None
) -> KnownStep:
    """Read a StepNode as a step whose code is known.

    Raises:
        CorruptError: Its payload is not that of a step.
    """
    output = outputs.get(_output_of(node))
    status = output.get("$status") if isinstance(output, dict) else None
    payload = node.payload
    try:
        code = payload["code"]
        snapshot = code.get("snapshot") or {"before": None, "after": None}
        return KnownStep(
            thread=thread,
            number=number,
            hash=node.hash,
            detail=Hash(payload["detail"]),
            role=payload["role"],
            agent=payload["agent"],
            status=status if isinstance(status, str) else None,
            prompt=payload["edgePrompt"],
            note=payload["note"],
            before=snapshot["before"],
            after=snapshot["after"],
            head_before=code["before"],
            head_after=code["after"],
            started_at=payload["startedAtMs"] // _MS,
            completed_at=-(-payload["completedAtMs"] // _MS),
            is_in_chain=number is not None,
            shared=tuple(ThreadId(each) for each in code.get("shared", ())),
        )
    except NOT_TYPED as exc:
        raise untyped(node.hash) from exc


def _output_of(node: Node) -> Hash:
    output = node.payload.get("output") if isinstance(node.payload, dict) else None
    if not isinstance(output, str):
        raise untyped(node.hash)
    return Hash(output)
