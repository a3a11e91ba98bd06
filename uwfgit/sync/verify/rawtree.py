"""Objects as git stores them: raw bytes, within bounds, compared in lockstep.

The only way in which verify reads objects. libgit2's own view of a tree hides
odd modes, and its view of a commit can be changed by grafts, so it looks at
nothing but bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct, field

from uwfgit.constants import MAX_BLOB_BYTES, MAX_TREE_ENTRIES
from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.raw import COMMIT, KINDS, MAX_COMMIT_BYTES, MAX_TREE_BYTES, TREE
from uwfgit.sync.verify.report import refusal, shown

MAX_PATH_PARTS: Final = 10
"""``threads/T/history/000/00001-role/replaced/1/attempts/1/output.md``."""
MAX_CHANGES: Final = 10_000
"""Files one commit may change; no event comes near."""
_CACHED_TREES: Final = 512

_FILE_MODE: Final = b"100644"
_FOLDER_MODE: Final = b"40000"
_ENTRY = re.compile(rb"(100644|40000) ([^\0/]+)\0(.{20})", re.DOTALL)
_ENTRY_OVERHEAD: Final = 22
"""A blank, a NUL and an oid, besides mode and name."""
_MODE = re.compile(rb"([^ \0]{0,10})[ \0]")

RawEntry: TypeAlias = tuple[bytes, bytes]
"""Mode and raw oid, as a tree has them."""
TreeChanges: TypeAlias = dict[str, tuple[Oid | None, Oid | None]]
"""Path of a file → blob before and after; ``None`` where there is none."""


class Tree(Struct, kw_only=True):
    """A tree that was read; its entries by name are made when they are needed."""

    data: bytes = b""
    count: int = 0
    last: bytes = b""
    """What git sorted the last entry by."""
    _entries: dict[bytes, RawEntry] | None = None

    @property
    def entries(self) -> dict[bytes, RawEntry]:
        """The entries by name."""
        if self._entries is None:
            found = _ENTRY.findall(self.data)
            self._entries = {name: (mode, oid) for mode, name, oid in found}
        return self._entries


_NOTHING: Final = Tree()


class Objects(Struct, kw_only=True):
    """Reads objects of one store; trees seen of late are kept."""

    store: Store
    bytes_read: int = 0
    _trees: dict[Oid, Tree] = field(default_factory=dict)

    def read(self, oid: Oid, kind: int, *, limit: int = MAX_BLOB_BYTES) -> bytes:
        """Read an object whose kind and size were checked first.

        Raises:
            CorruptError: It is missing, damaged, too large or of another kind.
        """
        try:
            found, size, data = self.store.raw.load(oid, limit=limit)
        except CorruptError as exc:
            raise _missing(oid) from exc
        if found != kind:
            raise refusal("kind", f"object {oid} is not a {KINDS[kind]}")
        if data is None:
            raise refusal("size", f"object {oid} has {size} bytes, at most {limit}")
        self.bytes_read += size
        return data

    def read_known(self, oid: Oid, data: bytes) -> None:
        """Read the blob that must hold ``data``, of which ``oid`` is the name.

        Raises:
            CorruptError: It is missing or damaged.
        """
        try:
            found = self.store.raw.load(oid, limit=len(data)).data
        except CorruptError as exc:
            raise _missing(oid) from exc
        if found != data:
            raise _missing(oid)

    def commit(self, oid: Oid) -> bytes:
        """Read a commit's bytes."""
        return self.read(oid, COMMIT, limit=MAX_COMMIT_BYTES)

    def genesis_tree(self) -> Oid:
        """Name the tree that every thread and every workflow starts with."""
        # Its bytes are constant, so where the tree's name stands is too.
        return Oid(self.commit(GENESIS_OID)[5:45].decode())

    def tree(self, oid: Oid, base: Tree = _NOTHING) -> Tree:
        """Read a tree.

        Args:
            base: One that was read and may be the start of this one, so that
                what folders of a hundred steps share is parsed once.

        Raises:
            CorruptError: It is missing, too wide, or not as uwf writes one.
        """
        known = self._trees.get(oid)
        if known is not None:
            return known
        tree = parse_tree(oid, self.read(oid, TREE, limit=MAX_TREE_BYTES), base)
        if len(self._trees) >= _CACHED_TREES:
            del self._trees[next(iter(self._trees))]
        self._trees[oid] = tree
        return tree

    def find(self, root: Oid, path: str) -> RawEntry | None:
        """Look up a path below a tree; ``None`` when nothing stands there."""
        oid = root
        *folders, last = path.encode().split(b"/")
        for name in folders:
            entry = self.tree(oid).entries.get(name)
            if entry is None or entry[0] != _FOLDER_MODE:
                return None
            oid = _hex(entry)
        return self.tree(oid).entries.get(last)

    def find_file(self, root: Oid, path: str) -> Oid | None:
        """Look up a file; ``None`` when there is none."""
        return _blob(self.find(root, path))

    def count(self, root: Oid, path: str) -> int:
        """Count what stands in a folder; 0 when there is none."""
        return _folder(self, self.find(root, path)).count

    def files(self, root: Oid, path: str) -> dict[str, Oid]:
        """Return the files at or below a path, by their paths from ``root``."""
        found: TreeChanges = {}
        _compare(self, None, self.find(root, path), path, found)
        return {name: new for name, (_, new) in found.items() if new is not None}


def _missing(oid: Oid) -> CorruptError:
    return refusal("missing", f"object {oid} is missing or damaged")


def parse_tree(oid: Oid, data: bytes, base: Tree = _NOTHING) -> Tree:
    """Read a tree's raw bytes; a ``base`` they start with is not read again.

    Raises:
        CorruptError: A mode other than 100644 and 40000, entries out of order,
            twice or too many, or none at all.
    """
    if base.data and not data.startswith(base.data):
        base = _NOTHING
    entries = _ENTRY.findall(data, len(base.data))
    names = {name for _, name, _ in entries}
    if base.data and any(b" %b\0" % name in base.data for name in names):
        return parse_tree(oid, data)
    length = sum(len(mode) + len(name) for mode, name, _ in entries)
    if length + len(entries) * _ENTRY_OVERHEAD != len(data) - len(base.data):
        raise _odd_entry(oid, data)
    count = base.count + len(entries)
    if not entries:
        raise refusal("tree", f"tree {oid} is empty")
    if count > MAX_TREE_ENTRIES:
        raise refusal("size", f"tree {oid} has more than {MAX_TREE_ENTRIES} entries")
    # Git sorts a folder as if its name ended in a slash.
    keys = [n + b"/" if mode == _FOLDER_MODE else n for mode, n, _ in entries]
    if len(names) != len(keys) or keys[0] <= base.last or keys != sorted(keys):
        raise refusal("tree", f"tree {oid} is not sorted, or has an entry twice")
    return Tree(data=data, count=count, last=keys[-1])


def _odd_entry(oid: Oid, data: bytes) -> CorruptError:
    position = 0
    while match := _ENTRY.match(data, position):
        position = match.end()
    mode = _MODE.match(data, position)
    if mode is not None and mode[1] not in (_FILE_MODE, _FOLDER_MODE):
        return refusal("mode", f"tree {oid} has an entry of mode {shown(mode[1])}")
    return refusal("tree", f"tree {oid} is malformed")


def diff_trees(objects: Objects, old: Oid, new: Oid) -> TreeChanges:
    """Compare two trees, descending only where they differ.

    Raises:
        CorruptError: The new one is malformed, too deep, or differs in more
            than ``MAX_CHANGES`` files.
    """
    changes: TreeChanges = {}
    if old != new:
        left = objects.tree(old)
        _compare_trees(objects, left, objects.tree(new, left), "", changes)
    return changes


def _compare(
    objects: Objects,
    old: RawEntry | None,
    new: RawEntry | None,
    path: str,
    found: TreeChanges,
) -> None:
    if old == new:
        return
    before, after = _blob(old), _blob(new)
    if before != after:
        found[path] = (before, after)
        if len(found) > MAX_CHANGES:
            raise refusal("size", f"more than {MAX_CHANGES} files change", path)
    left = _folder(objects, old)
    right = _folder(objects, new, left)
    if (left.count or right.count) and path.count("/") >= MAX_PATH_PARTS - 1:
        raise refusal("depth", f"a folder deeper than {MAX_PATH_PARTS}", path)
    _compare_trees(objects, left, right, f"{path}/", found)


def _compare_trees(
    objects: Objects, left: Tree, right: Tree, prefix: str, found: TreeChanges
) -> None:
    for name, old, new in _differing(left, right):
        # No rule gives a path with a backslash, so an odd name stays one.
        path = prefix + name.decode(errors="backslashreplace")
        _compare(objects, old, new, path, found)


def _differing(
    left: Tree, right: Tree
) -> Iterator[tuple[bytes, RawEntry | None, RawEntry | None]]:
    if right.data.startswith(left.data):
        for mode, name, oid in _ENTRY.findall(right.data, len(left.data)):
            yield name, None, (mode, oid)
        return
    before, after = left.entries, right.entries
    for name, entry in after.items():
        if before.get(name) != entry:
            yield name, before.get(name), entry
    for name, entry in before.items():
        if name not in after:
            yield name, entry, None


def _hex(entry: RawEntry) -> Oid:
    return Oid(entry[1].hex())


def _blob(entry: RawEntry | None) -> Oid | None:
    return _hex(entry) if entry is not None and entry[0] == _FILE_MODE else None


def _folder(objects: Objects, entry: RawEntry | None, base: Tree = _NOTHING) -> Tree:
    if entry is None or entry[0] != _FOLDER_MODE:
        return _NOTHING
    return objects.tree(_hex(entry), base)
