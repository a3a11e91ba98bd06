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
from uwfgit.model.thread.record import Record, load_tip, open_record


class Kin(Struct, frozen=True, kw_only=True):
    """A thread with all above and below it, those above first.

    ``parents`` says whose step each does; ``changed`` are the nodes of each that
    name another one.
    """

    threads: tuple[ThreadId, ...]
    parents: Mapping[ThreadId, ThreadId]
    changed: Mapping[ThreadId, frozenset[Hash]]


def find_kin(ledger: Ledger, thread: ThreadId) -> Kin:
    """Return the threads that name a thread, and those that it names, and so on.

    Raises:
        StateError: Two threads share one that did a step of both.
        CorruptError: One cannot be read.
    """
    record = open_record(ledger.store, load_tip(ledger.store, thread))
    if record.start.parent is None and next(iter_below(ledger, record), None) is None:
        return Kin(threads=(thread,), parents={}, changed={thread: frozenset()})
    rows = list_threads(ledger)
    top = _find_top(ledger, rows, record)
    records = [top, *iter_below(ledger, top)]
    here = {each.tip.thread for each in records}
    parents: dict[ThreadId, ThreadId] = {}
    for each in records[1:]:
        parent = _find_parent(ledger, rows, each)
        if parent in here:
            parents[each.tip.thread] = parent
    return Kin(
        threads=tuple(each.tip.thread for each in records),
        parents=parents,
        changed={
            each.tip.thread: frozenset(
                {
                    *([each.start.hash] if each is not top else []),
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


def _find_top(ledger: Ledger, rows: Sequence[ThreadRow], record: Record) -> Record:
    for _ in range(MAX_NESTED):
        parent = _find_parent(ledger, rows, record)
        if parent is None:
            return record
        record = open_record(ledger.store, load_tip(ledger.store, parent))
    raise CorruptError(f"thread {record.tip.thread} does a step of itself")


def _find_parent(
    ledger: Ledger, rows: Sequence[ThreadRow], record: Record
) -> ThreadId | None:
    """Return the one thread a step of which another does, if that is here."""
    takers = sorted(find_takers(ledger, rows, record))
    if len(takers) > 1:
        raise StateError(
            f"thread {record.tip.thread} did a step of {' and '.join(takers[:2])}",
            hint=f"remove one of them first: uwf thread rm {takers[-1]}",
        )
    if takers:
        return takers[0]
    begun = record.start.parent
    is_own = begun is not None and record.tip.state.forked_from is None
    is_here = begun is not None and any(row.thread == begun[0] for row in rows)
    return ThreadId(begun[0]) if begun is not None and is_own and is_here else None
