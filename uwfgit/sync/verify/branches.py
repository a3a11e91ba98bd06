"""The branches of threads, those too that libgit2 does not show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from uwfgit.errors import NotFoundError
from uwfgit.ids import ThreadId
from uwfgit.store.handle import Store
from uwfgit.store.layout import THREAD_PREFIX, thread_ref
from uwfgit.store.lookup.refscan import list_broken
from uwfgit.store.refs import find_ref, list_refs


def list_thread_refs(
    store: Store, threads: Iterable[ThreadId] | None
) -> tuple[tuple[str, str], ...]:
    """Return the branches of some threads, or of all; a broken one points at nothing.

    Raises:
        NotFoundError: One that was named has no branch.
    """
    if threads is not None:
        return tuple(_find(store, threads))
    whole, below = THREAD_PREFIX.rstrip("/"), THREAD_PREFIX
    found: dict[str, str] = {
        ref: oid
        for ref, oid in list_refs(store, whole).items()
        if ref == whole or ref.startswith(below)
    }
    # libgit2 passes by a ref whose file holds garbage.
    for ref in list_broken(store.path, below):
        found.setdefault(ref, "")
    return tuple(sorted(found.items()))


def _find(store: Store, threads: Iterable[ThreadId]) -> Iterator[tuple[str, str]]:
    broken = set(list_broken(store.path, THREAD_PREFIX))
    for thread in threads:
        ref = thread_ref(thread)
        target = "" if ref in broken else find_ref(store, ref)
        if target is None:
            raise NotFoundError("thread", thread)
        yield ref, target
