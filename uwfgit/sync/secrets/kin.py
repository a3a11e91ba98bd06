"""The threads that are written again together: each names others by what they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from uwfgit.constants import MAX_NESTED
from uwfgit.errors import CorruptError, StateError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.kin import find_takers, iter_below
from uwfgit.model.ledger.ledger import Ledger, ThreadRow, list_threads
from uwfgit.model.thread.family import children_by_node
from uwfgit.model.thread.record import Record, open_record


class Kin(Struct, frozen=True, kw_only=True):
    """A thread with all below it, those above first.

    ``parents`` says whose step each does; ``changed`` are the nodes of each that
    name another one.
    """

    threads: tuple[ThreadId, ...]
    parents: Mapping[ThreadId, ThreadId]
    changed: Mapping[ThreadId, frozenset[Hash]]


def find_kin(ledger: Ledger, thread: ThreadId) -> tuple[Kin, ...]:
    """Return the threads that name a thread, and those that it names, and so on.

    A parent and its forks share what did a step of all: each is told with all that
    is below it, and what they share is told with each. The thread's own comes first.

    Raises:
        StateError: A thread did steps of two that stand below one.
        CorruptError: One cannot be read.
    """
    record = open_record(ledger.store, thread)
    if record.start.parent is None and next(iter_below(ledger, record), None) is None:
        return (Kin(threads=(thread,), parents={}, changed={thread: frozenset()}),)
    rows = list_threads(ledger)
    found: dict[ThreadId, Kin] = {}
    waiting = _find_tops(ledger, rows, record)
    while waiting:
        top = waiting.pop(0)
        if top.tip.thread not in found:
            records = [top, *iter_below(ledger, top)]
            found[top.tip.thread] = _make_kin(ledger, rows, records)
            for below in records[1:]:
                waiting += _find_tops(ledger, rows, below)
    return tuple(found.values())


def _make_kin(
    ledger: Ledger, rows: Sequence[ThreadRow], records: Sequence[Record]
) -> Kin:
    here = {each.tip.thread for each in records}
    parents: dict[ThreadId, ThreadId] = {}
    for each in records[1:]:
        thread = each.tip.thread
        above = [name for name in _find_parents(ledger, rows, each) if name in here]
        if len(above) > 1:
            raise StateError(
                f"thread {thread} did a step of {' and '.join(above[:2])}",
                hint=f"remove one of them first: uwf thread rm {above[-1]}",
            )
        if above:
            parents[thread] = above[0]
    return Kin(
        threads=tuple(each.tip.thread for each in records),
        parents=parents,
        changed={
            each.tip.thread: frozenset(
                {
                    *([each.start.hash] if each is not records[0] else []),
                    *(
                        node
                        for node, child in children_by_node(each).items()
                        if node and child.thread in here
                    ),
                }
            )
            for each in records
        },
    )


def _find_tops(
    ledger: Ledger, rows: Sequence[ThreadRow], record: Record
) -> list[Record]:
    """Return the threads above one that do no step of another, the oldest first."""
    tops, level = [], [record]
    for _ in range(MAX_NESTED):
        above: dict[ThreadId, Record] = {}
        for each in level:
            parents = _find_parents(ledger, rows, each)
            tops += [] if parents else [each]
            for name in parents:
                above[name] = open_record(ledger.store, name)
        level = [*above.values()]
        if not level:
            return tops
    raise CorruptError(f"thread {record.tip.thread} does a step of itself")


def _find_parents(
    ledger: Ledger, rows: Sequence[ThreadRow], record: Record
) -> list[ThreadId]:
    """Return the threads here a step of which another does, or began for."""
    takers = sorted(find_takers(ledger, rows, record))
    if takers:
        return takers
    begun = record.start.parent
    is_own = begun is not None and record.tip.state.forked_from is None
    is_here = begun is not None and any(row.thread == begun.thread for row in rows)
    return [begun.thread] if begun is not None and is_own and is_here else []
