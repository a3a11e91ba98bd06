"""Many objects at once: gathered in memory, written as one pack with its index.

A loose object costs a file and, with fsync, two waits for the disk; a pack of any
number of them costs two files and three waits. The only place that writes the files
below ``objects/pack``. Nothing is deltified; that is the work of git's own repack.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import struct
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

from msgspec import Struct, field

from uwfgit.errors import StoreError
from uwfgit.ids import Oid
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.objects import (
    EMPTY_TREE,
    TREE_MODE,
    TreeEntry,
    encode_tree,
    list_tree,
    require_blob,
    write_object,
)
from uwfgit.store.raw import BLOB, COMMIT, TREE, name_object

_NOTE: Final = re.compile(rb"uwf pid ([0-9]{1,10}) on ([^\n]{1,255})\n")
_STALE_SECONDS: Final = 3600
"""In a container this machine's processes look dead; nobody keeps one so long."""


def keep_note() -> bytes:
    """Return what this process writes into a ``.keep`` of its own."""
    return f"uwf pid {os.getpid()} on {socket.gethostname()}\n".encode()


def is_abandoned(keep: Path) -> bool:
    """Whether the process of this host that wrote a ``.keep`` is dead.

    Raises:
        OSError: The file cannot be read.
    """
    match = _NOTE.fullmatch(keep.read_bytes())
    return (
        match is not None
        and match[2] == socket.gethostname().encode()
        and time.time() - keep.stat().st_mtime > _STALE_SECONDS
        and not _is_alive(int(match[1]))
    )


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


ObjectKind = Literal["commit", "tree", "blob"]

CODES: Final[dict[ObjectKind, int]] = {"commit": COMMIT, "tree": TREE, "blob": BLOB}
_INDEX_HEAD: Final = b"\xfftOc\x00\x00\x00\x02"
MANY_PACKS: Final = 50
"""Each is one more place for git to look into; about so many events."""
_TINY: Final = 128
"""Bytes of which compressing saves too few for what it takes."""
_MAX_BYTES: Final = 2**31 - 1
"""Offsets beyond need the index's second table, which is not written here."""


@contextmanager
def kept_until_moved(store: Store, pack: Path) -> Iterator[None]:
    """Take the ``.keep`` of a pack away after the block, whether it failed or not.

    In the block a ref is moved. Then git may repack the objects: it names them, or
    they are garbage.
    """
    try:
        yield
    finally:
        pack.with_suffix(".keep").unlink(missing_ok=True)
        if store.on_many_packs is not None and tidy_packs(store) > MANY_PACKS:
            store.on_many_packs(store)


def tidy_packs(store: Store) -> int:
    """Give up what processes that were killed kept from git; return how many packs.

    Costs the listing of one folder.
    """
    folder = f"{store.path}/objects/pack"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - after each pack that is written
    except OSError:
        return 0
    for name in names:
        if name.endswith(".keep"):
            path = Path(folder, name)
            with suppress(OSError):
                if is_abandoned(path):
                    path.unlink(missing_ok=True)
    return sum(name.endswith(".pack") for name in names)


class _Packed(NamedTuple):
    oid: bytes
    checksum: int
    offset: int


def _write_files(
    store: Store, objects: Mapping[Oid, tuple[ObjectKind, bytes]], *, fsync: bool
) -> Path:
    data, packed = _make_pack(objects)
    index = _make_index(packed, trailer=data[-20:])
    folder = Path(store.repo.path) / "objects" / "pack"
    folder.mkdir(exist_ok=True)
    # Not git's name for these objects: another process that writes the same
    # batch must not share its .keep with this one.
    name = hashlib.sha1(data[-20:] + os.urandom(16), usedforsecurity=False).hexdigest()
    path = folder / f"pack-{name}.pack"
    _write_file(path.with_suffix(".keep"), keep_note(), fsync=False)
    try:
        # Git opens a pack by its index, so the index comes last.
        _write_file(path, data, fsync=fsync)
        _write_file(path.with_suffix(".idx"), index, fsync=fsync)
    except OSError:
        for suffix in (".idx", ".pack", ".keep"):
            path.with_suffix(suffix).unlink(missing_ok=True)
        raise
    if fsync:
        sync_folder(folder)
    return path


def _make_pack(
    objects: Mapping[Oid, tuple[ObjectKind, bytes]],
) -> tuple[bytes, list[_Packed]]:
    parts = [b"PACK" + struct.pack(">II", 2, len(objects))]
    offset = len(parts[0])
    packed = []
    for oid, (kind, data) in objects.items():
        head, size = bytearray(), len(data)
        byte, size = (CODES[kind] << 4) | (size & 15), size >> 4
        while size:
            head.append(byte | 0x80)
            byte, size = size & 0x7F, size >> 7
        head.append(byte)
        entry = bytes(head) + _compress(data)
        packed.append(_Packed(bytes.fromhex(oid), zlib.crc32(entry), offset))
        parts.append(entry)
        offset += len(entry)
    if offset > _MAX_BYTES:
        raise StoreError("a batch of objects is larger than 2 GiB")
    body = b"".join(parts)
    return body + hashlib.sha1(body, usedforsecurity=False).digest(), packed


def _compress(data: bytes) -> bytes:
    size = len(data)
    if size <= _TINY:
        # One stored block (RFC 1950, 1951), in a fifth of what zlib takes for it.
        head = struct.pack("<2sBHH", b"\x78\x01", 1, size, size ^ 0xFFFF)
        return head + data + struct.pack(">I", zlib.adler32(data))
    # A window no larger than the data: setting up zlib's full one costs three
    # times as much as compressing a small node.
    window = min(max(size.bit_length(), 9), 15)
    deflate = zlib.compressobj(
        zlib.Z_DEFAULT_COMPRESSION, zlib.DEFLATED, window, window - 7
    )
    return deflate.compress(data) + deflate.flush()


def _make_index(packed: Sequence[_Packed], *, trailer: bytes) -> bytes:
    ordered = sorted(packed)
    counts = [0] * 256
    for entry in ordered:
        counts[entry.oid[0]] += 1
    total = 0
    for first, count in enumerate(counts):
        total += count
        counts[first] = total
    body = b"".join(
        (
            _INDEX_HEAD,
            struct.pack(">256I", *counts),
            *(entry.oid for entry in ordered),
            struct.pack(f">{total}I", *(entry.checksum for entry in ordered)),
            struct.pack(f">{total}I", *(entry.offset for entry in ordered)),
            trailer,
        )
    )
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _write_file(path: Path, data: bytes, *, fsync: bool) -> None:
    # git gc removes leftovers named tmp_*.
    draft = path.with_name(f"tmp_{path.name}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if fsync:
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """See to it that a folder's names are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


MANY_LOOSE: Final = 20_000
"""From here on packing them is worth a word."""
_FOLDERS: Final = 256
_SAMPLE: Final = "17"


def estimate_loose(store: Path) -> int:
    """Guess the number of loose objects by one of their folders."""
    try:
        return len(os.listdir(store / "objects" / _SAMPLE)) * _FOLDERS  # noqa: PTH208 - once a command
    except OSError:
        return 0


class Batch(Struct, kw_only=True):
    """Objects named already, and not yet written."""

    store: Store
    objects: dict[Oid, tuple[ObjectKind, bytes]] = field(default_factory=dict)

    def add(self, kind: ObjectKind, data: bytes) -> Oid:
        """Name an object and keep it for :meth:`write`.

        Raises:
            SizeError: It is a blob larger than any reader accepts.
        """
        if kind == "blob":
            require_blob(data)
        oid = name_object(CODES[kind], data)
        self.objects[oid] = (kind, data)
        return oid

    def find(self, oid: Oid) -> bytes | None:
        """Return the bytes of an object that waits here."""
        found = self.objects.get(oid)
        return found[1] if found else None

    def edit_tree(
        self,
        base: Oid | None,
        changes: Mapping[str, TreeEntry | None],
        *,
        folder: str = "",
    ) -> Oid:
        """Add ``base`` with some paths set, or removed where the value is ``None``.

        Only the trees on the way to a changed path are added, and the files whose
        content comes along; a tree left without entries disappears.

        Args:
            base: The tree as it was.
            changes: What becomes of which path.
            folder: Where it is in another: "" for the root, else with a slash at its
                end.

        Raises:
            SizeError: A folder would hold more than any reader accepts.
            CorruptError: A tree on the way cannot be read.
        """
        entries: dict[str, TreeEntry | None] = {}
        if base is not None:
            entries.update(list_tree(self.store, base))
        below: dict[str, dict[str, TreeEntry | None]] = {}
        for path, change in changes.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = change
                continue
            if change is not None and change.data is not None:
                self.objects[change.oid] = ("blob", change.data)
            entries[name] = change
        for name, inner in below.items():
            old = entries.get(name)
            known = None if old is None else old.oid
            tree = self.edit_tree(known, inner, folder=f"{folder}{name}/")
            is_empty = tree == EMPTY_TREE
            entries[name] = None if is_empty else TreeEntry(oid=tree, mode=TREE_MODE)
        left = {name: entry for name, entry in entries.items() if entry is not None}
        if folder and not left:
            return EMPTY_TREE
        return self.add("tree", encode_tree(left, folder))

    @contextmanager
    def write(self) -> Iterator[Path | None]:
        """Write all objects as one pack, which no repack takes away in the block.

        All of them, known or not: what a thread has lost, or git is about to
        prune, is there again afterwards. A ``.keep`` stands beside the pack, else a
        concurrent ``repack -ad`` would lose what no ref names yet.

        Yields:
            The pack; ``None`` when there was nothing to write.

        Raises:
            StoreError: The disk is full, not writable, or the batch exceeds 2 GiB.
        """
        if not self.objects:
            yield None
            return
        raw = self.store.raw
        with git_errors("write a pack"):
            folders = set(os.listdir(raw.folder))  # noqa: PTH208 - their names alone
            for oid, (kind, data) in self.objects.items():
                if oid[:2] not in folders:
                    continue
                # A loose file that is not whole does no harm but to fsck.
                if os.path.lexists(f"{raw.folder}/{oid[:2]}/{oid[2:]}"):
                    raw.repair(oid, CODES[kind], data)
            pack = _write_files(self.store, self.objects, fsync=self.store.fsync)
        with kept_until_moved(self.store, pack):
            yield pack

    def write_loose(self) -> None:
        """Write all objects of which no ref is to name one, for a prune to take.

        Raises:
            StoreError: The store cannot be written.
        """
        for kind, data in self.objects.values():
            write_object(self.store, CODES[kind], data)
