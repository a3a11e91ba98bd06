"""A commit of a queue, read; the only place that says which commits are one."""

from __future__ import annotations

from msgspec import Struct

from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.store.handle import Store
from uwfgit.store.objects import EMPTY_TREE, read_commit
from uwfgit.sync.exchange.queue_state import QueueState, parse_queue_state


class Entry(Struct, frozen=True, kw_only=True):
    """A state of a thread in a queue, the commit that says so, and who made it when."""

    oid: Oid
    parent: Oid | None
    state: QueueState
    committed_at: int
    by: str


def read_entry(store: Store, oid: Oid) -> Entry | None:
    """Read a queue commit; ``None`` when it is none that uwf writes."""
    try:
        commit = read_commit(store, oid)
    except CorruptError:
        return None
    state = parse_queue_state(commit.message)
    if state is None or commit.tree != EMPTY_TREE or len(commit.parents) > 1:
        return None
    return Entry(
        oid=oid,
        parent=commit.parents[0] if commit.parents else None,
        state=state,
        committed_at=commit.committer.time,
        by=commit.committer.who,
    )
