"""Blobs, trees and commits: read within bounds, written without refs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pygit2
from pygit2.enums import ObjectType

from uwfgit.constants import MAX_BLOB_BYTES, MAX_MESSAGE_BYTES, MAX_TREE_ENTRIES
from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.store.handle import Store, git_errors

MAX_TAG_BYTES: Final = 64 * 1024


def read_tag(store: Store, oid: Oid) -> bytes:
    """Read a tag object.

    Raises:
        CorruptError: It is missing, too large, or no tag object.
    """
    with git_errors("read a tag"):
        kind, size = store.repo.odb.read_header(oid)
    if kind != ObjectType.TAG or size > MAX_TAG_BYTES:
        raise CorruptError(f"object {oid} is no tag of at most {MAX_TAG_BYTES} bytes")
    with git_errors("read a tag"):
        return bytes(store.repo.odb.read(oid)[1])


FILE_MODE: Final = 0o100644
TREE_MODE: Final = 0o040000
_ENTRY: Final = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)
_FOLDER: Final = b"40000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of a tree."""

    oid: Oid
    mode: int = FILE_MODE

    @property
    def is_tree(self) -> bool:
        """Whether the entry is a folder."""
        return self.mode == TREE_MODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who and when: an author or a committer. ``offset`` is in minutes."""

    name: str
    email: str
    time: int
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit as stored."""

    oid: Oid
    tree: Oid
    parents: tuple[Oid, ...]
    author: Person
    committer: Person
    message: str


def write_blob(store: Store, data: bytes) -> Oid:
    """Write a blob; a known one only has its age refreshed."""
    with git_errors("write an object"):
        return Oid(str(store.repo.create_blob(data)))


def blob_oid(data: bytes) -> Oid:
    """Give the oid that a blob of these bytes has in any store."""
    return Oid(str(pygit2.hash(data)))


def read_blob(store: Store, oid: Oid, *, limit: int = MAX_BLOB_BYTES) -> bytes:
    """Read a blob whose size was checked first.

    Raises:
        CorruptError: It is missing, no blob, or larger than ``limit`` bytes.
    """
    odb, name = store.repo.odb, pygit2.Oid(hex=oid)
    try:
        kind, size = odb.read_header(name)
    except (KeyError, pygit2.GitError) as exc:
        raise CorruptError(f"object {oid} is missing or damaged") from exc
    if kind != pygit2.enums.ObjectType.BLOB:
        raise CorruptError(f"object {oid} is no blob")
    if size > limit:
        raise CorruptError(f"object {oid} has {size} bytes, the limit is {limit}")
    try:
        return odb.read(name)[1]
    except (KeyError, pygit2.GitError) as exc:
        raise CorruptError(f"object {oid} is missing or damaged") from exc


def list_tree(store: Store, oid: Oid) -> dict[str, Entry]:
    """Read a tree's entries by name, in git's order.

    Raises:
        CorruptError: It is missing, no tree, or too wide.
    """
    tree = _find_object(store, oid)
    if not isinstance(tree, pygit2.Tree):
        raise CorruptError(f"object {oid} is no tree")
    if len(tree) > MAX_TREE_ENTRIES:
        raise CorruptError(f"tree {oid} has more than {MAX_TREE_ENTRIES} entries")
    return {
        str(item.name): Entry(oid=Oid(str(item.id)), mode=item.filemode)
        for item in tree
    }


def _find_object(store: Store, oid: Oid) -> pygit2.Object:
    try:
        return store.repo[oid]
    except (KeyError, pygit2.GitError) as exc:
        raise CorruptError(f"object {oid} is missing or damaged") from exc


def find_entry(store: Store, tree: Oid, path: str) -> Entry | None:
    """Look up one path in a tree; ``None`` when nothing stands there.

    Raises:
        CorruptError: A tree on the way is missing.
    """
    root = _find_object(store, tree)
    try:
        item = root[path]  # type: ignore[index]  # a Tree; anything else has no such item
    except (KeyError, TypeError):
        return None
    except pygit2.GitError as exc:
        raise CorruptError(f"a tree below {tree} is missing") from exc
    return Entry(oid=Oid(str(item.id)), mode=item.filemode)


def walk_files(
    store: Store, tree: Oid, *, depth: int = 8
) -> Iterator[tuple[str, Entry]]:
    """Give every file below a tree with its path, in git's order.

    Raises:
        CorruptError: A tree is missing, too wide, or nested beyond ``depth``.
    """
    for name, entry in list_tree(store, tree).items():
        if not entry.is_tree:
            yield name, entry
        elif depth == 0:
            raise CorruptError(f"tree {tree} is nested too deep")
        else:
            for path, file in walk_files(store, entry.oid, depth=depth - 1):
                yield f"{name}/{path}", file


def iter_names(store: Store, tree: Oid, *, depth: int = 8) -> Iterator[tuple[str, Oid]]:
    """Give own name and blob of every file below a tree, wherever it stands.

    Several times as fast as :func:`walk_files`, for trees of thousands.

    Raises:
        CorruptError: As there.
    """
    entries = _ENTRY.findall(_read_tree(store, tree))
    if len(entries) > MAX_TREE_ENTRIES:
        raise CorruptError(f"tree {tree} has more than {MAX_TREE_ENTRIES} entries")
    for mode, name, raw in entries:
        if mode != _FOLDER:
            yield name.decode(errors="replace"), Oid(raw.hex())
        elif depth == 0:
            raise CorruptError(f"tree {tree} is nested too deep")
        else:
            yield from iter_names(store, Oid(raw.hex()), depth=depth - 1)


def _read_tree(store: Store, oid: Oid) -> bytes:
    try:
        kind, data = store.repo.odb.read(pygit2.Oid(hex=oid))
    except (KeyError, pygit2.GitError) as exc:
        raise CorruptError(f"object {oid} is missing or damaged") from exc
    if kind != pygit2.enums.ObjectType.TREE:
        raise CorruptError(f"object {oid} is no tree")
    return data


def edit_tree(
    store: Store, base: Oid | None, changes: Mapping[str, Entry | None]
) -> Oid:
    """Write ``base`` with some paths set, or removed where the value is ``None``.

    Only the trees on the way to a changed path are written; a tree left
    without entries disappears.

    Raises:
        CorruptError: An entry's object is missing or damaged.
    """
    with git_errors("write a tree"):
        return _edit(store, base, _nest(changes)) or _empty_tree(store)


_Nested = dict[str, "Entry | _Nested | None"]


def _nest(changes: Mapping[str, Entry | None]) -> _Nested:
    root: _Nested = {}
    for path, entry in changes.items():
        *folders, name = path.split("/")
        level = root
        for folder in folders:
            below = level.setdefault(folder, {})
            if not isinstance(below, dict):
                # The folder itself was set as one entry; edits below need it read.
                raise TypeError(f"path {path} lies below a path set in one piece")
            level = below
        level[name] = entry
    return root


def _edit(store: Store, base: Oid | None, changes: _Nested) -> Oid | None:
    builder = _open_builder(store, base)
    for name, change in changes.items():
        # None for a name that is not there, whatever pygit2's stub says.
        old: object = builder.get(name)
        if isinstance(change, dict):
            below = Oid(str(old.id)) if isinstance(old, pygit2.Object) else None
            written = _edit(store, below, change)
            change = Entry(oid=written, mode=TREE_MODE) if written else None  # noqa: PLW2901 - the folder as one entry
        if change is not None:
            _insert(builder, name, change)
        elif old is not None:
            builder.remove(name)
    return Oid(str(builder.write())) if len(builder) else None


def _insert(builder: pygit2.TreeBuilder, name: str, entry: Entry) -> None:
    try:
        builder.insert(name, pygit2.Oid(hex=entry.oid), entry.mode)
    except pygit2.GitError as exc:
        # Writing equal content again does not replace an object that is damaged.
        raise CorruptError(
            f"object {entry.oid} ('{name}') is missing or damaged",
            hint="uwf doctor says how to mend the store",
        ) from exc


def _open_builder(store: Store, base: Oid | None) -> pygit2.TreeBuilder:
    if base is None:
        return store.repo.TreeBuilder()
    tree: object = _find_object(store, base)
    if not isinstance(tree, pygit2.Tree):
        raise CorruptError(f"object {base} is no tree")
    return store.repo.TreeBuilder(tree)


def _empty_tree(store: Store) -> Oid:
    return Oid(str(store.repo.TreeBuilder().write()))


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
    # Not repo.create_commit(): on a full disk that gives an oid and writes nothing.
    data = format_commit(
        store,
        tree=tree,
        parents=parents,
        author=author,
        committer=committer,
        message=message,
    )
    return write_formatted(store, data)


def format_commit(
    store: Store,
    *,
    tree: Oid,
    parents: tuple[Oid, ...],
    author: Person,
    committer: Person,
    message: str,
) -> bytes:
    """Give the bytes that ``write_commit`` would write."""
    _require_whole(message)
    with git_errors("write a commit"):
        text = store.repo.create_commit_string(
            _signature(author), _signature(committer), message, tree, list(parents)
        )
    # pygit2's stub takes it for an oid.
    return str(text).encode()


def write_formatted(store: Store, data: bytes) -> Oid:
    """Write the bytes of a commit."""
    with git_errors("write a commit"):
        oid = store.repo.odb.write(pygit2.enums.ObjectType.COMMIT, data)
    return Oid(str(oid))


def _require_whole(message: str) -> None:
    if "\0" in message:
        # libgit2 would cut the message there without a word.
        raise ValueError("NUL in a commit message")


def _signature(person: Person) -> pygit2.Signature:
    return pygit2.Signature(
        person.name, person.email, person.time, person.offset, "utf-8"
    )


def read_commit(store: Store, oid: Oid) -> Commit:
    """Read a commit.

    Raises:
        CorruptError: It is missing, no commit, or its message is too long.
    """
    commit: object = _find_object(store, oid)
    if not isinstance(commit, pygit2.Commit):
        raise CorruptError(f"object {oid} is no commit")
    raw = commit.raw_message
    if len(raw) > MAX_MESSAGE_BYTES:
        raise CorruptError(f"commit {oid} has a message of {len(raw)} bytes")
    return Commit(
        oid=Oid(str(commit.id)),
        tree=Oid(str(commit.tree_id)),
        parents=tuple(Oid(str(parent)) for parent in commit.parent_ids),
        author=_person(commit.author),
        committer=_person(commit.committer),
        message=raw.decode(errors="replace"),
    )


def _person(signature: pygit2.Signature) -> Person:
    return Person(
        name=signature.raw_name.decode(errors="replace"),
        email=signature.raw_email.decode(errors="replace"),
        time=signature.time,
        offset=signature.offset,
    )
