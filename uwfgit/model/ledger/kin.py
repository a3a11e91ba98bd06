"""Threads and the threads that did steps of them, as a store's listing shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from uwfgit.constants import MAX_NESTED
from uwfgit.errors import UwfError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.ledger import Ledger, lineage
from uwfgit.model.thread.family import named_children
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref


class Related(Protocol):
    """What a listing knows of a thread's origins."""

    @property
    def thread(self) -> ThreadId:
        """Its name."""

    @property
    def began_for(self) -> ThreadId | None:
        """The thread a step of which it was started for."""

    @property
    def fork_of(self) -> ThreadId | None:
        """The thread it was forked from."""


def find_parents(ledger: Ledger, rows: Sequence[Related]) -> dict[ThreadId, ThreadId]:
    """Return whose step each child does, of the threads that are here.

    A fork of a child is nobody's child until a fork of the parent names it.
    """
    found: dict[ThreadId, ThreadId] = {}
    forks: list[tuple[ThreadId, ThreadId]] = []
    begun = [row for row in rows if row.began_for is not None]
    here = {row.thread: row for row in rows} if begun else {}
    for row in begun:
        parent = row.began_for
        if parent is not None and row.fork_of is not None:
            forks.append((row.thread, parent))
        elif parent is not None and parent in here:
            found[row.thread] = parent
    if forks:
        # The oldest counts, where several name one.
        pairs = [*_iter_takers(ledger, here, {parent for _, parent in forks})]
        named = dict(reversed(pairs))
        found |= {child: named[child] for child, _ in forks if child in named}
    return {
        child: parent for child, parent in found.items() if _is_shallow(found, child)
    }


def _is_shallow(parents: Mapping[ThreadId, ThreadId], thread: ThreadId) -> bool:
    """Whether nothing stands above a thread beyond what verify allows.

    What others made may say of two threads that each did a step of the other.
    """
    above: ThreadId | None = thread
    for _ in range(MAX_NESTED + 1):
        above = parents.get(above) if above is not None else None
    return above is None


def find_takers(
    ledger: Ledger, rows: Iterable[Related], record: Record
) -> set[ThreadId]:
    """Return the threads here whose steps or tries one did: its parent, and forks."""
    if record.start.parent is None:
        return set()
    here = {row.thread: row for row in rows}
    found = _iter_takers(ledger, here, {record.start.parent.thread})
    return {taker for child, taker in found if child == record.tip.thread}


def _iter_takers(
    ledger: Ledger, here: Mapping[ThreadId, Related], parents: AbstractSet[ThreadId]
) -> Iterator[tuple[ThreadId, ThreadId]]:
    """Yield who did a step of whom, by reading some threads and all forks of them."""
    for thread in sorted(here):
        if not parents.isdisjoint(_lineage(here, thread)):
            for child in _named_by(ledger, thread):
                yield child, thread


def _lineage(here: Mapping[ThreadId, Related], thread: ThreadId) -> Iterator[ThreadId]:
    seen: set[ThreadId] = set()
    name: ThreadId | None = thread
    while name is not None and name not in seen:
        seen.add(name)
        yield name
        row = here.get(name)
        name = row.fork_of if row is not None else None


def _named_by(ledger: Ledger, thread: ThreadId) -> tuple[ThreadId, ...]:
    try:
        tip = load_tip(ledger.store, thread)
        return named_children(open_record(ledger.store, tip, checked=False))
    except UwfError:
        # What is damaged in it is for others to tell.
        return ()


def list_children(ledger: Ledger, record: Record) -> tuple[ThreadId, ...]:
    """Return the threads that did or do steps of one, oldest first.

    Those that its steps and tries name, here or not, and those that began for it
    and that nothing names yet.
    """
    thread = record.tip.thread
    named = set(named_children(record))
    begun = (
        child
        for child in ledger.lookup.find_children(thread)
        if child not in named and _is_original(ledger, child)
    )
    return tuple(sorted({*named, *begun}))


def iter_below(ledger: Ledger, record: Record) -> Iterator[Record]:
    """Yield the threads here that did or do steps of one, and those below them.

    A thread that none was ever started for costs one look at the lookup.

    Raises:
        CorruptError: One of them cannot be read.
    """
    seen = {record.tip.thread}
    # No recursion: nobody checked how deep threads from elsewhere are nested.
    waiting = [_children_of(ledger, record)]
    while waiting:
        child = next((each for each in waiting[-1] if each not in seen), None)
        if child is None:
            waiting.pop()
            continue
        seen.add(child)
        if find_ref(ledger.store, thread_ref(child)) is not None:
            found = open_record(ledger.store, child)
            yield found
            waiting.append(_children_of(ledger, found))


def _children_of(ledger: Ledger, record: Record) -> Iterator[ThreadId]:
    if any(map(ledger.lookup.find_children, lineage(ledger, record.tip))):
        yield from list_children(ledger, record)


def _is_original(ledger: Ledger, thread: ThreadId) -> bool:
    if find_ref(ledger.store, thread_ref(thread)) is None:
        return False
    try:
        return load_tip(ledger.store, thread).state.forked_from is None
    except UwfError:
        return False


def find_parent_step(ledger: Ledger, record: Record) -> tuple[ThreadId, int] | None:
    """Return the thread a step of which this one does, and that step's number.

    The number is 0 where the thread is not here.
    """
    parent = record.start.parent
    if parent is None:
        return None
    return parent.thread, find_step_number(ledger, parent.thread, parent.step)


def find_step_number(ledger: Ledger, thread: ThreadId, head: Hash) -> int:
    """Return the number of the step that follows a head; 0 where the thread lacks."""
    if find_ref(ledger.store, thread_ref(thread)) is None:
        return 0
    rows = ledger.lookup.find_steps(head)
    # Before the first step the head is the StartNode.
    return 1 + next((row.number for row in rows), 0)
