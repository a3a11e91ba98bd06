"""The children of what is sent: they go along, or nobody there can prove it."""

from __future__ import annotations

from collections.abc import Mapping

from uwfgit.ids import Oid
from uwfgit.model.thread.family import family_of
from uwfgit.store.handle import Store
from uwfgit.store.layout import find_ref_thread, thread_ref
from uwfgit.store.refs import find_ref
from uwfgit.sync.exchange.exchange import compare


def with_children(
    store: Store, wanted: Mapping[str, Oid], theirs: Mapping[str, Oid]
) -> dict[str, Oid]:
    """Put the children of threads before them, as far as another store lacks them.

    Args:
        store: Whose.
        wanted: The branches to send.
        theirs: What the other has, by our names.
    """
    found: dict[str, Oid] = {}
    for ref, oid in wanted.items():
        found |= _list_children(store, ref, theirs)
        found[ref] = oid
    return found


def _list_children(store: Store, ref: str, theirs: Mapping[str, Oid]) -> dict[str, Oid]:
    thread = find_ref_thread(ref)
    found = {}
    for child in family_of(store, thread) if thread is not None else ():
        name = thread_ref(child)
        tip = find_ref(store, name)
        if tip is not None and compare(store, tip, theirs.get(name)) in {
            "ahead",
            "new",
        }:
            found[name] = tip
    return found
