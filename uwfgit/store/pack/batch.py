"""The objects of one event, gathered in memory and written at once, as a pack.

A loose object costs a file and, with fsync, two waits for the disk; a pack of any
number of them costs two files and three waits.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from uwfgit.ids import Oid
from uwfgit.store.handle import Store
from uwfgit.store.objects import (
    TREE_MODE,
    TreeEntry,
    encode_tree,
    list_tree,
    require_blob,
    require_width,
    write_object,
)
from uwfgit.store.pack.pack import (
    CODES,
    ObjectKind,
    WrittenPack,
    write_pack,
)
from uwfgit.store.raw import name_object


class Batch(Struct, kw_only=True):
    """Objects named already, and not yet written."""

    store: Store
    objects: dict[bytes, tuple[ObjectKind, bytes]] = field(default_factory=dict)

    def add(self, kind: ObjectKind, data: bytes) -> Oid:
        """Name an object and keep it for :meth:`write`.

        Raises:
            SizeError: It is a blob larger than any reader accepts.
        """
        if kind == "blob":
            require_blob(data)
        oid = name_object(CODES[kind], data)
        self.objects[oid] = (kind, data)
        return Oid(oid.hex())

    def find(self, oid: Oid) -> bytes | None:
        """Return the bytes of an object that waits here."""
        found = self.objects.get(bytes.fromhex(oid))
        return found[1] if found else None

    def edit_tree(
        self, base: Oid | None, changes: Mapping[str, TreeEntry | None]
    ) -> Oid:
        """Add ``base`` with some paths set, or removed where the value is ``None``.

        Only the trees on the way to a changed path are added, and the files whose
        content comes along; a tree left without entries disappears.

        Raises:
            SizeError: A folder would hold more than any reader accepts.
            CorruptError: A tree on the way cannot be read.
        """
        return self.add("tree", encode_tree(self._edit(base, changes)))

    def _edit(
        self, base: Oid | None, changes: Mapping[str, TreeEntry | None], at: str = ""
    ) -> dict[str, TreeEntry]:
        entries = list_tree(self.store, base) if base is not None else {}
        below: dict[str, dict[str, TreeEntry | None]] = {}
        for path, change in changes.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = change
                continue
            if change is not None and change.data is not None:
                self.objects[bytes.fromhex(change.oid)] = ("blob", change.data)
            _set(entries, name, change)
        for name, inner in below.items():
            old = entries.get(name)
            known = old.oid if old and old.is_tree else None
            found = self._edit(known, inner, f"{at}{name}/")
            tree = self.add("tree", encode_tree(found)) if found else None
            _set(entries, name, TreeEntry(oid=tree, mode=TREE_MODE) if tree else None)
        require_width(entries, at)
        return entries

    def write(self) -> WrittenPack:
        """Write all objects, which are safe from a repack until it is released.

        All of them, known or not: what a thread has lost, or git is about to
        prune, is there again afterwards.

        Raises:
            StoreError: The store cannot be written.
        """
        return write_pack(self.store, self.objects, fsync=self.store.fsync)

    def write_loose(self) -> None:
        """Write all objects of which no ref is to name one, for a prune to take.

        Raises:
            StoreError: The store cannot be written.
        """
        for kind, data in self.objects.values():
            write_object(self.store, CODES[kind], data)


def _set(entries: dict[str, TreeEntry], name: str, entry: TreeEntry | None) -> None:
    if entry is None:
        entries.pop(name, None)
    else:
        entries[name] = entry
