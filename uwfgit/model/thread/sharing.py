"""How far a thread is shared, and whether it has diverged from a remote's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from uwfgit.ids import Oid, ThreadId
from uwfgit.store.handle import Store
from uwfgit.store.refs import BUNDLE, find_tracked, is_ancestor

Shared = Literal["never", "behind", "yes"]


class Sharing(Struct, frozen=True, kw_only=True):
    """What remotes had of a thread at the last fetch, compared with ours.

    ``shared`` is that of the remote that has most: ``behind`` lacks something
    of ours. ``diverged`` names the remotes whose tip and ours do not
    fast-forward.
    """

    shared: Shared = "never"
    diverged: tuple[str, ...] = ()


NOT_SHARED: Final = Sharing()


def compare_sharing(store: Store, tip: Oid, tracked: Mapping[str, Oid]) -> Sharing:
    """Compare our tip of a thread with those that remotes had."""
    if not tracked:
        return NOT_SHARED
    shared: Shared = "never"
    diverged = []
    for remote, theirs in tracked.items():
        if is_ancestor(store, tip, theirs):
            has: Shared = "yes"
        else:
            has = "behind"
            if not is_ancestor(store, theirs, tip):
                diverged.append(remote)
        # A bundle's tip is kept only to be resolved; nobody has ours through it.
        if remote != BUNDLE and shared != "yes":
            shared = has
    return Sharing(shared=shared, diverged=tuple(diverged))


def find_sharing(store: Store, thread: ThreadId, tip: Oid) -> Sharing:
    """Compare one thread with what remotes had of it."""
    tracked = find_tracked(store, thread)
    return compare_sharing(store, tip, tracked) if tracked else NOT_SHARED
