"""The steps of a thread by the snapshots they name; a chain alone proves nothing."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.code.chain import Snapshot
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.node import STEP_TYPE
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import Step

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
    """Index the steps of a thread, inherited, replaced and failed ones too.

    Raises:
        CorruptError: One of them cannot be read.
    """
    numbers = {step.hash: step.number for step in record.steps()}
    found: dict[Oid, list[KnownStep]] = {}
    for name, place in record.places.items():
        if place[0] == STEP_TYPE:
            number = numbers.get(name)
            step = known_step(record, record.step(name, number or 0), number=number)
            if step.after is not None:
                found.setdefault(step.after, []).append(step)
    # A step of the chain itself before those that were replaced or failed.
    ordered = {
        tree: tuple(sorted(steps, key=lambda step: step.number is None))
        for tree, steps in found.items()
    }
    return StepIndex(steps=ordered)


def known_step(record: Record, step: Step, *, number: int | None) -> KnownStep:
    """Return what is known of the code around a step; ``None``: not of the chain."""
    snapshot = step.code.snapshot
    return KnownStep(
        thread=record.tip.thread,
        number=number,
        hash=step.hash,
        detail=step.detail_hash,
        role=step.role,
        agent=step.agent,
        status=step.status,
        prompt=step.edge_prompt,
        note=step.note,
        before=_oid(snapshot.before if snapshot else None),
        after=_oid(snapshot.after if snapshot else None),
        head_before=step.code.before,
        head_after=step.code.after,
        started_at=step.started_at_ms // _MS,
        completed_at=-(-step.completed_at_ms // _MS),
        is_in_chain=number is not None,
        shared=step.code.shared,
    )


def _oid(text: str | None) -> Oid | None:
    return None if text is None else Oid(text)
