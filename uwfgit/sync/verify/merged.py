"""Threads that were merged into another branch, as a forge does with a review."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from uwfgit.errors import CorruptError
from uwfgit.ids import Oid, ThreadId
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_folder
from uwfgit.store.objects import find_entry, read_commit
from uwfgit.store.raw import COMMIT, MAX_COMMIT_BYTES
from uwfgit.sync.verify.events import thread_of
from uwfgit.sync.verify.shape import parse_commit, parse_message

_MOST: Final = 100_000
"""Commits that are looked at."""


def find_merged(store: Store, tip: Oid) -> dict[ThreadId, Oid]:
    """Find the threads merged into a branch, each with its newest event in it.

    Empty when the branch itself ends at an event, and when nothing was merged as
    commits: a squashed merge leaves none.

    Args:
        store: Where the commits are; nothing of it is believed.
        tip: The branch's commit.
    """
    found: dict[ThreadId, Oid] = {}
    if _read_thread(store, tip) is None:
        for thread, oid in _iter_tips(store, tip):
            if thread not in found or not store.raw.descends(found[thread], oid):
                found[thread] = oid
    return found


def is_as_merged(store: Store, tip: Oid, thread: ThreadId, event: Oid) -> bool:
    """Whether a branch holds of a thread what its newest event there left."""
    folder = thread_folder(thread)
    here = find_entry(store, read_commit(store, tip).tree, folder)
    return here == find_entry(store, read_commit(store, event).tree, folder)


def _iter_tips(store: Store, tip: Oid) -> Iterator[tuple[ThreadId, Oid]]:
    """Yield the events that commits of other kinds stand on."""
    waiting, seen = deque([tip]), {tip}
    while waiting and len(seen) < _MOST:
        oid = waiting.popleft()
        thread = _read_thread(store, oid)
        if thread is not None:
            yield thread, oid
            continue
        if oid == GENESIS_OID:
            continue
        new = [each for each in _parents(store, oid) if each not in seen]
        waiting += new
        seen.update(new)


def _parents(store: Store, oid: Oid) -> tuple[Oid, ...]:
    try:
        return store.raw.read_links(oid).parents
    except CorruptError:
        return ()


def _read_thread(store: Store, oid: Oid) -> ThreadId | None:
    """Read which thread a commit is an event of; ``None`` for any other commit."""
    try:
        data = store.raw.read(oid, COMMIT, limit=MAX_COMMIT_BYTES)
        return thread_of(parse_message(parse_commit(oid, data).message))
    except CorruptError:
        return None
