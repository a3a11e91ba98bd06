"""A store of very many started threads, made at once: as after a gc."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from tests.benchmarks.stores import World
from uwfgit.ids import Oid, ThreadId, mint_thread_id
from uwfgit.model.thread.state import encode_state
from uwfgit.model.thread.tip import Tip
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import STATE_FILE, thread_folder, thread_ref
from uwfgit.store.objects import (
    TreeEntry,
    encode_tree,
    find_entry,
    list_tree,
    read_commit,
)
from uwfgit.store.pack import CODES, Batch, ObjectKind
from uwfgit.store.raw import name_object

Object = tuple[ObjectKind, bytes]


def make_many(world: World, count: int) -> tuple[Path, ThreadId]:
    """Make a store of ``count`` threads, refs packed; give it and one of them.

    One is started; the others are its tree under other ids.
    """
    path = world.make_store(f"many-{count}")
    with world.opened(path) as ledger:
        first = world.start(ledger)
        store = ledger.store
        folder = find_entry(store, first.tree, thread_folder(first.thread))
        assert folder is not None
        files = list_tree(store, folder.oid)
        model = store.repo[first.commit].read_raw()
        base = list_tree(store, read_commit(store, GENESIS_OID).tree)
        ids = [
            mint_thread_id(ledger.now_ms() - 1000 * index, os.urandom(10))
            for index in range(1, count)
        ]
        events = [list(_event(model, first, thread, files, base)) for thread in ids]
        batch = Batch(store=store)
        commits = [[batch.add(*each) for each in event][-1] for event in events]
        with batch.write():
            pass
    lines = [
        f"{oid} {thread_ref(thread)}\n"
        for thread, oid in zip(ids, commits, strict=True)
    ]
    lines.sort(key=lambda line: line.partition(" ")[2])
    head = "# pack-refs with: peeled fully-peeled sorted \n"
    (path / "packed-refs").write_text(head + "".join(lines))
    world.git(path, "pack-refs", "--all")
    return path, first.thread


def _event(
    model: bytes,
    first: Tip,
    thread: ThreadId,
    files: Mapping[str, TreeEntry],
    base: Mapping[str, TreeEntry],
) -> Iterator[Object]:
    """Give the objects of a start like the first one, the commit last."""
    state: Object = ("blob", encode_state(replace(first.state, thread=thread)))
    yield state
    own = _tree({**files, STATE_FILE: TreeEntry(oid=_oid(*state))})
    yield own
    threads = _tree({thread: TreeEntry(oid=_oid(*own), mode=0o40000)})
    yield threads
    root = _tree({**base, "threads": TreeEntry(oid=_oid(*threads), mode=0o40000)})
    yield root
    data = model.replace(first.tree.encode(), _oid(*root).encode())
    yield "commit", data.replace(first.thread.encode(), thread.encode())


def _tree(entries: Mapping[str, TreeEntry]) -> Object:
    return "tree", encode_tree(entries)


def _oid(kind: ObjectKind, data: bytes) -> Oid:
    return name_object(CODES[kind], data)
