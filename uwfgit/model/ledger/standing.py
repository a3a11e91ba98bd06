"""How a thread stands for people: what of it runs, and its status in their words."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from uwfgit.ids import ThreadId, is_thread_id
from uwfgit.model.ledger.ledger import ThreadRow
from uwfgit.model.thread.state import ThreadState
from uwfgit.model.thread.tip import Sharing, compare_sharing
from uwfgit.store.handle import Store
from uwfgit.store.locks.flock import read_holder
from uwfgit.store.refs import list_tracked


def status_of(state: ThreadState, *, running: bool, sharing: Sharing) -> str:
    """Return the status people see: two of them are not the thread's own."""
    if running:
        return "running"
    return "diverged" if sharing.diverged else state.status


def find_running(store: Store) -> frozenset[str]:
    """Find the threads whose lock is held, by the lock files that are not empty."""
    folder = store.locks
    try:
        with os.scandir(folder) as entries:
            busy = [
                e.name for e in entries if is_thread_id(e.name) and e.stat().st_size
            ]
    except OSError:
        return frozenset()
    return frozenset(name for name in busy if read_holder(folder / name) is not None)


def is_running(store: Store, thread: ThreadId) -> bool:
    """Whether somebody holds a thread's lock."""
    return read_holder(store.locks / thread) is not None


def list_sharing(store: Store, rows: Sequence[ThreadRow]) -> Mapping[ThreadId, Sharing]:
    """Compare with what remotes had; only threads that differ are walked."""
    tracked = list_tracked(store)
    return {
        row.thread: compare_sharing(store, row.commit, tracked[row.thread])
        for row in rows
        if row.thread in tracked
    }
