"""A thread's newest commit, and what remotes have of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from uwfgit.constants import MAX_STATE_BYTES
from uwfgit.errors import CorruptError, NotFoundError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.state import ThreadState, decode_state
from uwfgit.store.handle import Store
from uwfgit.store.layout import STATE_FILE, TRASH_PREFIX, thread_folder, thread_ref
from uwfgit.store.objects import find_entry, read_blob, read_commit
from uwfgit.store.refs import BUNDLE, find_ref, find_tracked, is_ancestor


class Tip(Struct, frozen=True, kw_only=True):
    """The newest commit of a thread's branch and the state it stores."""

    thread: ThreadId
    commit: Oid
    tree: Oid
    committed_at: int
    state: ThreadState


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


def mend_hint(thread: ThreadId) -> str:
    """Return what whoever meets something corrupt of a thread can do."""
    return f"uwf verify {thread} says more; uwf doctor names what may fix it"


def load_tip(store: Store, thread: ThreadId) -> Tip:
    """Read a thread's newest commit and state.

    Raises:
        NotFoundError: There is no such branch.
        CorruptError: Something on the way is missing or malformed.
    """
    try:
        commit = find_ref(store, thread_ref(thread))
        if commit is None:
            removed = find_ref(store, TRASH_PREFIX + thread)
            hint = f"it was removed; bring it back: uwf thread restore {thread}"
            raise NotFoundError("thread", thread, hint=hint if removed else None)
        return read_tip(store, thread, commit)
    except CorruptError as exc:
        exc.hint = exc.hint or mend_hint(thread)
        raise


def read_tip(store: Store, thread: ThreadId, oid: Oid) -> Tip:
    """Read the state a commit of a thread stores.

    Raises:
        CorruptError: The commit or its ``thread.json`` is missing or malformed.
    """
    commit = read_commit(store, oid)
    entry = find_entry(store, commit.tree, f"{thread_folder(thread)}/{STATE_FILE}")
    if entry is None:
        raise CorruptError(f"commit {oid} has no {STATE_FILE} of thread {thread}")
    state = decode_state(read_blob(store, entry.oid, limit=MAX_STATE_BYTES))
    if state.thread != thread:
        raise CorruptError(f"{STATE_FILE} in {oid} is of thread {state.thread}")
    return Tip(
        thread=thread,
        commit=oid,
        tree=commit.tree,
        committed_at=commit.committer.time,
        state=state,
    )


def iter_lineage(store: Store, tip: Tip) -> Iterator[ThreadState]:
    """Yield the states of a thread and of those it was forked from, nearest first.

    Raises:
        CorruptError: One is missing or malformed, or they go round in a circle.
    """
    state, seen = tip.state, {tip.thread}
    yield state
    while state.forked_from is not None:
        origin = state.forked_from.thread
        if origin in seen:
            raise CorruptError(f"thread {origin} is said to be a fork of itself")
        seen.add(origin)
        path = f"{thread_folder(origin)}/{STATE_FILE}"
        entry = find_entry(store, tip.tree, path)
        if entry is None:
            raise CorruptError(f"'{path}' is missing, a thread was forked from it")
        state = decode_state(read_blob(store, entry.oid, limit=MAX_STATE_BYTES))
        if state.thread != origin:
            raise CorruptError(f"'{path}' is of thread {state.thread}")
        yield state


def compare_sharing(store: Store, tip: Oid, tracked: Mapping[str, Oid]) -> Sharing:
    """Compare our tip of a thread with those that remotes had."""
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
    return compare_sharing(store, tip, find_tracked(store, thread))
