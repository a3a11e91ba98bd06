"""Blobs, trees and commits: read within bounds, written without refs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from uwfgit.constants import MAX_BLOB_BYTES, MAX_MESSAGE_BYTES, MAX_TREE_ENTRIES
from uwfgit.errors import CorruptError, SizeError
from uwfgit.ids import Oid
from uwfgit.store import raw
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.libgit2 import pygit2
from uwfgit.store.raw import TAG

MAX_TAG_BYTES: Final = 64 * 1024


def read_tag(store: Store, oid: Oid) -> bytes:
    """Read a tag object.

    Raises:
        CorruptError: It is missing, too large, or not a tag object.
    """
    return store.raw.read(oid, TAG, limit=MAX_TAG_BYTES)


EMPTY_TREE: Final = Oid("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
FILE_MODE: Final = 0o100644
TREE_MODE: Final = 0o040000
_FOLDER: Final = b"40000"
_DEPTH: Final = 8
"""How many folders deep a file may stand."""
_ODD: Final = "surrogateescape"
"""A name that is not UTF-8 is written again as it was."""
_PERSON: Final = {
    role: re.compile(
        rb"\n%b ([^<>\n]*) <([^<>\n]*)> "
        rb"([0-9]{1,18}) ([+-])([0-9]{2})([0-9]{2})(?:\n|$)" % role
    )
    for role in (b"author", b"committer")
}


class TreeEntry(Struct, frozen=True, kw_only=True):
    """One entry of a tree.

    ``data`` is the content of a file that the store may not have yet, as
    :func:`new_file` names it; whoever writes the tree writes it along. The oid says
    what it is, so two entries are compared without.
    """

    oid: Oid
    mode: int = FILE_MODE
    data: bytes | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeEntry):
            return NotImplemented
        return (self.oid, self.mode) == (other.oid, other.mode)

    def __hash__(self) -> int:
        return hash((self.oid, self.mode))

    def __repr__(self) -> str:
        return f"TreeEntry(oid={self.oid!r}, mode={self.mode:#o})"


def new_file(data: bytes) -> TreeEntry:
    """Return the entry of a file that is still to be written: the one place for it.

    Raises:
        SizeError: It is larger than any reader accepts.
    """
    require_blob(data)
    return TreeEntry(oid=raw.name_object(raw.BLOB, data), data=data)


class Person(Struct, frozen=True, kw_only=True):
    """Who and when: an author or a committer. ``offset`` is in minutes."""

    name: str
    email: str
    time: int
    offset: int = 0

    @property
    def who(self) -> str:
        """``Name <mail>``."""
        return f"{self.name} <{self.email}>"


class Commit(Struct, frozen=True, kw_only=True):
    """A commit as stored."""

    oid: Oid
    tree: Oid
    parents: tuple[Oid, ...]
    author: Person
    committer: Person
    message: str


def write_blob(store: Store, data: bytes) -> Oid:
    """Write a blob; a known one only has its age refreshed.

    Raises:
        SizeError: It is larger than any reader accepts.
    """
    require_blob(data)
    return write_object(store, raw.BLOB, data)


def write_object(store: Store, kind: int, data: bytes) -> Oid:
    """Write an object; a known one that is whole only has its age refreshed.

    Raises:
        StoreError: It cannot be written; nothing says then that it is there.
    """
    oid = raw.name_object(kind, data)
    with git_errors(f"write a {raw.KINDS[kind]}"):
        store.raw.repair(oid, kind, data)
        store.repo.odb.write(kind, data)
    return oid


def require_blob(data: bytes) -> None:
    """Refuse a blob that is larger than any reader accepts.

    Raises:
        SizeError: It is.
    """
    if len(data) > MAX_BLOB_BYTES:
        raise SizeError("a single value", found=len(data), limit=MAX_BLOB_BYTES)


def read_blob(store: Store, oid: Oid, *, limit: int = MAX_BLOB_BYTES) -> bytes:
    """Read a blob whose size was checked first.

    Raises:
        CorruptError: It is missing, not a blob, or larger than ``limit`` bytes.
    """
    return store.raw.read(oid, raw.BLOB, limit=limit)


def list_tree(store: Store, oid: Oid) -> dict[str, TreeEntry]:
    """Read a tree's entries by name, in git's order.

    Raises:
        CorruptError: It is missing, not a tree, or too wide.
    """
    return {
        name.decode(errors=_ODD): TreeEntry(oid=Oid(entry.hex()), mode=int(mode, 8))
        for mode, name, entry in _parse_entries(oid, store.raw.read_tree(oid))
    }


def _parse_entries(oid: Oid, data: bytes) -> list[tuple[bytes, bytes, bytes]]:
    entries = raw.TREE_ENTRY.findall(data)
    if len(entries) > MAX_TREE_ENTRIES:
        raise CorruptError(f"tree {oid} has more than {MAX_TREE_ENTRIES} entries")
    return entries


def find_entry(store: Store, tree: Oid, path: str) -> TreeEntry | None:
    """Look up one path in a tree; ``None`` when there is nothing.

    Raises:
        CorruptError: A tree on the way is missing.
    """
    entry = TreeEntry(oid=tree, mode=TREE_MODE)
    for wanted in path.encode().split(b"/"):
        if entry.mode != TREE_MODE:
            return None
        for mode, name, oid in _parse_entries(
            entry.oid, store.raw.read_tree(entry.oid)
        ):
            if name == wanted:
                entry = TreeEntry(oid=Oid(oid.hex()), mode=int(mode, 8))
                break
        else:
            return None
    return entry


def walk_files(
    store: Store, tree: Oid, *, depth: int = _DEPTH
) -> Iterator[tuple[str, TreeEntry]]:
    """Yield every file below a tree with its path, in git's order.

    Raises:
        CorruptError: A tree is missing, too wide, or nested beyond ``depth``.
    """
    for name, entry in list_tree(store, tree).items():
        if entry.mode != TREE_MODE:
            yield name, entry
        elif depth == 0:
            raise CorruptError(f"tree {tree} is nested too deep")
        else:
            for path, file in walk_files(store, entry.oid, depth=depth - 1):
                yield f"{name}/{path}", file


def list_names(store: Store, tree: Oid) -> list[tuple[str, Oid]]:
    """Return own name and blob of every file below a tree, wherever it is.

    Several times as fast as :func:`walk_files`, for trees of thousands: it reads
    the folders of one depth after those of another. One that stands at a depth more
    than once is read once, or a few small trees could name a billion files.

    Raises:
        CorruptError: As there.
    """
    found: list[tuple[str, Oid]] = []
    level = [tree]
    for _ in range(_DEPTH + 1):
        below: dict[Oid, None] = {}
        for folder in level:
            data = store.raw.read(folder, raw.TREE, limit=raw.MAX_TREE_BYTES)
            for mode, name, oid in _parse_entries(folder, data):
                if mode == _FOLDER:
                    below[Oid(oid.hex())] = None
                else:
                    found.append((name.decode(errors="replace"), Oid(oid.hex())))
        if not below:
            return found
        level = list(below)
    raise CorruptError(f"tree {tree} is nested too deep")


def encode_tree(entries: Mapping[str, TreeEntry], path: str = "") -> bytes:
    """Return the bytes of a tree object.

    Args:
        entries: What it holds.
        path: Where it is; "" for the root, else with a slash at its end.

    Raises:
        SizeError: It holds more than any reader accepts.
    """
    if len(entries) > MAX_TREE_ENTRIES:
        where = f"folder '{path}'" if path else "the tree"
        raise SizeError(
            where, found=len(entries), limit=MAX_TREE_ENTRIES, unit="entries"
        )
    # git sorts a folder as if its name ended in a slash.
    named = {
        (f"{name}/" if entry.mode == TREE_MODE else name).encode(errors=_ODD): (
            name,
            entry,
        )
        for name, entry in entries.items()
    }
    return b"".join(
        f"{entry.mode:o} {name}\0".encode(errors=_ODD) + bytes.fromhex(entry.oid)
        for _, (name, entry) in sorted(named.items())
    )


def write_commit(
    store: Store,
    *,
    tree: Oid,
    parents: tuple[Oid, ...],
    author: Person,
    committer: Person,
    message: str,
) -> Oid:
    """Write a commit that no ref names yet.

    Raises:
        StoreError: It cannot be written; nothing says then that it is there.
    """
    data = format_commit(
        tree=tree,
        parents=parents,
        author=author,
        committer=committer,
        message=message,
    )
    return write_object(store, raw.COMMIT, data)


def format_commit(
    *,
    tree: Oid,
    parents: tuple[Oid, ...],
    author: Person,
    committer: Person,
    message: str,
) -> bytes:
    """Return the bytes that ``write_commit`` would write.

    Neither the tree nor the parents need to be there yet.
    """
    if "\0" in message:
        # git would cut the message there without a word.
        raise ValueError("NUL in a commit message")
    lines = (
        f"tree {tree}",
        *(f"parent {parent}" for parent in parents),
        f"author {format_person(author)}",
        f"committer {format_person(committer)}",
    )
    return "\n".join([*lines, "", message]).encode()


def format_person(person: Person) -> str:
    """Return a person as a commit or a reflog names one.

    Raises:
        StoreError: git would refuse the name.
    """
    with git_errors("write a commit"):
        # libgit2 leaves out what git would from both ends, and refuses brackets.
        signed = pygit2.Signature(
            person.name, person.email, person.time, person.offset, "utf-8"
        )
    hours, minutes = divmod(abs(person.offset), 60)
    sign = "-" if person.offset < 0 else "+"
    who = f"{signed.name} <{signed.email}>"
    return f"{who} {signed.time} {sign}{hours:02}{minutes:02}"


def read_commit(store: Store, oid: Oid) -> Commit:
    """Read a commit.

    Raises:
        CorruptError: It is missing, not a commit, or its message is too long.
    """
    data = store.raw.read(oid, raw.COMMIT, limit=raw.MAX_COMMIT_BYTES)
    links = raw.parse_links(oid, data)
    head, _, message = data.partition(b"\n\n")
    if len(message) > MAX_MESSAGE_BYTES:
        raise CorruptError(f"commit {oid} has a message of {len(message)} bytes")
    return Commit(
        oid=oid,
        tree=links.tree,
        parents=links.parents,
        author=_find_person(oid, head, b"author"),
        committer=_find_person(oid, head, b"committer"),
        message=message.decode(errors="replace"),
    )


def _find_person(oid: Oid, head: bytes, role: bytes) -> Person:
    found = _PERSON[role].search(head)
    if found is None:
        raise CorruptError(f"commit {oid} does not say who and when")
    name, email, time, sign, hours, minutes = found.groups()
    offset = int(hours) * 60 + int(minutes)
    return Person(
        name=name.decode(errors="replace"),
        email=email.decode(errors="replace"),
        time=int(time),
        offset=-offset if sign == b"-" else offset,
    )
