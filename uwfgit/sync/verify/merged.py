"""Threads that were merged into another branch, as a forge does with a review."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from uwfgit.errors import CorruptError
from uwfgit.ids import Oid, ThreadId
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_folder
from uwfgit.store.objects import find_entry, read_commit
from uwfgit.sync.verify.events import find_thread_at
from uwfgit.sync.verify.rawtree import Objects

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
    if find_thread_at(Objects(store=store), tip) is None:
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
    objects = Objects(store=store)
    waiting, seen = deque([tip]), {tip}
    while waiting and len(seen) < _MOST:
        oid = waiting.popleft()
        thread = find_thread_at(objects, oid)
        if thread is not None:
            yield thread, oid
            continue
        if oid == GENESIS_OID:
            continue
        with suppress(CorruptError):
            parents = store.raw.read_links(oid).parents
            new = [each for each in parents if each not in seen]
            waiting += new
            seen.update(new)
