"""Git objects as the bytes they are; the only place that reads them.

libgit2 (1.9.7) reads a loose object whose file ends too early for ever, inside C,
where no signal handler runs. So it reads packs alone, and loose objects are read
here: within bounds, whole, and compared with their names.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import stat
import zlib
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct, field

from uwfgit.constants import MAX_MESSAGE_BYTES, MAX_TREE_ENTRIES
from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.store.libgit2 import pygit2

COMMIT, TREE, BLOB, TAG = 1, 2, 3, 4
KINDS: Final = {COMMIT: "commit", TREE: "tree", BLOB: "blob", TAG: "tag"}

MAX_TREE_BYTES: Final = MAX_TREE_ENTRIES * 300
MAX_COMMIT_BYTES: Final = MAX_MESSAGE_BYTES + 64 * 1024
TREE_ENTRY: Final = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
"""Mode, name and raw oid of one entry of a tree."""

_CODES: Final = {name.encode(): code for code, name in KINDS.items()}
_HEAD: Final = re.compile(rb"(commit|tree|blob|tag) (0|[1-9][0-9]{0,15})\0")
_HEAD_BYTES: Final = 32
_CHUNK: Final = 64 * 1024
_LINKS: Final = re.compile(
    rb"tree ([0-9a-f]{40})\n((?:parent [0-9a-f]{40}\n)*)(?=author )"
)
_PARENT_LINE: Final = len("parent \n") + 40
_KEPT_TREES: Final = 512
_KEPT_BYTES: Final = 64 * 1024
"""A tree larger than this is not kept."""
_MOST_FOLDERS: Final = 16
_MAX_ALTERNATES: Final = 64 * 1024


_NOT_READ: Final = (KeyError, ValueError, OSError, pygit2.GitError)
"""What libgit2 raises for an object that is in no pack, or damaged there."""


class RawObject(NamedTuple):
    """An object; ``data`` is ``None`` when it is larger than was asked for."""

    kind: int
    size: int
    data: bytes | None


class Links(NamedTuple):
    """What a commit stands on."""

    tree: Oid
    parents: tuple[Oid, ...]


class _DamagedError(Exception):
    """A loose file that does not hold the object it is named for."""


class RawObjects(Struct, eq=False):
    """The objects of one repository, and of those it borrows from.

    Args:
        folder: Its ``objects`` folder.
    """

    folder: Path
    _folders: list[str] = field(default_factory=list)
    _packs: pygit2.Odb | None = None
    _trees: dict[str, bytes] = field(default_factory=dict)
    _is_packed: bool = True

    def borrow(self, folder: Path) -> None:
        """Also read what stands in another ``objects`` folder."""
        self._open()
        if str(folder) not in self._folders:
            self._folders.append(str(folder))
            self._packs = None

    def forget_packs(self) -> None:
        """Close the packs that were read: libgit2 keeps those open that are gone."""
        self._packs = None

    def load(self, oid: str, *, limit: int) -> RawObject:
        """Read an object of any kind.

        Args:
            oid: Its name.
            limit: The most bytes to read; of a larger one the data stay out.

        Raises:
            CorruptError: It is missing or damaged.
        """
        # Where the last one was, the next one is likely to be, and what uwf writes is
        # in packs; a look into them that finds nothing lists their folder. Twice, for
        # a repack moves objects while we look.
        first = self._is_packed
        for is_packed in (first, not first) * 2:
            find = self._find_packed if is_packed else self._find_loose
            if (found := find(oid, limit)) is not None:
                self._is_packed = is_packed
                return found
        raise CorruptError(f"object {oid} is missing or damaged") from KeyError(oid)

    def read(self, oid: str, kind: int, *, limit: int) -> bytes:
        """Read an object of one kind and of at most ``limit`` bytes.

        Raises:
            CorruptError: It is missing, damaged, larger, or of another kind.
        """
        packs = self._open() if self._packs is None else self._packs
        if self._is_packed:
            # As :meth:`load` would, and quicker: a thread has thousands of them.
            try:
                told, size = packs.read_header(oid)
                if told == kind and size <= limit:
                    return packs.read(oid)[1]
            except _NOT_READ:
                pass
        found = self.load(oid, limit=limit)
        if found.kind != kind:
            raise CorruptError(f"object {oid} is not a {KINDS[kind]}")
        if found.data is None:
            raise CorruptError(
                f"object {oid} has {found.size} bytes, the limit is {limit}"
            )
        return found.data

    def read_tree(self, oid: str) -> bytes:
        """Read a tree's bytes; the last few hundred small ones are kept.

        Raises:
            CorruptError: It is missing, damaged, not a tree, or too wide.
        """
        data = self._trees.get(oid)
        if data is None:
            data = self.read(oid, TREE, limit=MAX_TREE_BYTES)
            if len(data) <= _KEPT_BYTES:
                if len(self._trees) >= _KEPT_TREES:
                    del self._trees[next(iter(self._trees))]
                self._trees[oid] = data
        return data

    def read_links(self, oid: str) -> Links:
        """Read which tree and which parents a commit names.

        Raises:
            CorruptError: It is missing, damaged, not a commit, or malformed.
        """
        return parse_links(oid, self.read(oid, COMMIT, limit=MAX_COMMIT_BYTES))

    def descends(self, new: str, old: str) -> bool:
        """Whether a commit is another one or was made on top of it.

        One that is missing or damaged, or stands on such a one, does not.
        """
        if new == old:
            return True
        waiting, seen = deque([new]), {new}
        while waiting:
            try:
                parents = self.read_links(waiting.popleft()).parents
            except CorruptError:
                return False
            if old in parents:
                return self.exists(old)
            waiting += [oid for oid in parents if oid not in seen]
            seen.update(parents)
        return False

    def exists(self, oid: str) -> bool:
        """Whether there is something under this name, whole or not."""
        packs = self._open()
        # As in load: first where the last one was.
        if self._is_packed and packs.exists(oid):
            return True
        if any(os.path.lexists(_path(each, oid)) for each in self._folders):
            return True
        return bool(packs.exists(oid))

    def is_damaged(self, oid: str) -> bool:
        """Whether the repository's own loose file of an object is not whole."""
        try:
            _read_loose(str(self.folder), oid, limit=None)
        except _DamagedError:
            return True
        return False

    def repair(self, oid: str, kind: int, data: bytes) -> bool:
        """Replace a loose file that is not whole by the object it is named for.

        git and libgit2 take such a file for the object, so that writing it again
        changes nothing.

        Returns:
            Whether there was one.

        Raises:
            OSError: It cannot be written.
        """
        if not self.is_damaged(oid):
            return False
        path = Path(_path(str(self.folder), oid))
        draft = path.with_name(f"tmp_obj_{secrets.token_hex(8)}")
        head = f"{KINDS[kind]} {len(data)}\0".encode()
        try:
            with os.fdopen(
                os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444), "wb"
            ) as file:
                file.write(zlib.compress(head + data))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except OSError:
            draft.unlink(missing_ok=True)
            raise
        return True

    def _find_loose(self, oid: str, limit: int) -> RawObject | None:
        self._open()
        for folder in self._folders:
            with suppress(_DamagedError):
                found = _read_loose(folder, oid, limit=limit)
                if found is not None:
                    return found
        return None

    def _find_packed(self, oid: str, limit: int) -> RawObject | None:
        packs = self._open()
        try:
            kind, size = packs.read_header(oid)
            data: bytes | None = packs.read(oid)[1] if size <= limit else None
        except _NOT_READ:
            return None
        return RawObject(int(kind), size, data)

    def _open(self) -> pygit2.Odb:
        """Open the packs of the folder and of those it borrows from, as git would."""
        if self._packs is not None:
            return self._packs
        folders = [*self._folders]
        waiting = [] if folders else [str(self.folder)]
        while waiting and len(folders) < _MOST_FOLDERS:
            folder = waiting.pop(0)
            if folder in folders:
                continue
            folders.append(folder)
            with suppress(OSError), open(f"{folder}/info/alternates", "rb") as file:  # noqa: PTH123 - no Path is made for each store
                waiting += [
                    os.path.normpath(os.path.join(folder, line))  # noqa: PTH118 - as above
                    for line in os.fsdecode(file.read(_MAX_ALTERNATES)).split("\n")
                    if line and not line.startswith("#")
                ]
        packs = pygit2.Odb()
        for folder in folders:
            packs.add_backend(pygit2.OdbBackendPack(folder), 1)
        # All of it or nothing: a run that is interrupted meanwhile is still recorded.
        self._folders, self._packs = folders, packs
        return packs


def parse_links(oid: str, data: bytes) -> Links:
    """Read tree and parents off a commit's bytes.

    Raises:
        CorruptError: They are not those of a commit.
    """
    found = _LINKS.match(data)
    if found is None:
        raise CorruptError(f"object {oid} is not a commit")
    tree, lines = found.groups()
    return Links(
        Oid(tree.decode()),
        tuple(
            Oid(lines[place + 7 : place + 47].decode())
            for place in range(0, len(lines), _PARENT_LINE)
        ),
    )


def name_object(kind: int, data: bytes) -> Oid:
    """Return the oid that an object of these bytes has in any store."""
    head = f"{KINDS[kind]} {len(data)}\0".encode()
    digest = hashlib.sha1(head, usedforsecurity=False)
    digest.update(data)
    return Oid(digest.hexdigest())


def _path(folder: str, oid: str) -> str:
    return f"{folder}/{oid[:2]}/{oid[2:]}"


def _read_loose(folder: str, oid: str, *, limit: int | None) -> RawObject | None:
    """Read a loose object; ``None`` when there is no such file.

    Raises:
        _DamagedError: The file is not the whole object of this name.
    """
    try:
        # Not to wait for a pipe that somebody put there.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        descriptor = os.open(_path(folder, oid), flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise _DamagedError from exc
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _DamagedError
        return _inflate(descriptor, oid, limit=limit)
    except (OSError, zlib.error) as exc:
        raise _DamagedError from exc
    finally:
        os.close(descriptor)


def _inflate(descriptor: int, oid: str, *, limit: int | None) -> RawObject:
    stream = zlib.decompressobj()
    packed = os.read(descriptor, _CHUNK)
    start = stream.decompress(packed, _HEAD_BYTES)
    head = _HEAD.match(start)
    if head is None:
        raise _DamagedError
    kind, size = _CODES[head[1]], int(head[2])
    if limit is not None and size > limit:
        return RawObject(kind, size, None)
    parts, length = [start[head.end() :]], len(start) - head.end()
    while not stream.eof and length <= size:
        packed = stream.unconsumed_tail or os.read(descriptor, _CHUNK)
        part = stream.decompress(packed, size - length + 1)
        if not packed and not part:
            raise _DamagedError
        parts.append(part)
        length += len(part)
    data = b"".join(parts)
    if length != size or not stream.eof or stream.unused_data:
        raise _DamagedError
    if name_object(kind, data) != oid:
        raise _DamagedError
    return RawObject(kind, size, data)
