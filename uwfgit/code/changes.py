"""What differs between two snapshots, by file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from uwfgit.code.worktree import WorkTree
from uwfgit.ids import Oid

SUBMODULE: Final = "160000"
ABSENT: Final = "000000"

What = Literal["added", "deleted", "modified", "renamed", "mode", "type"]


class Change(Struct, frozen=True, kw_only=True):
    """A path that differs; ``old`` and ``new`` are oids, modes as git writes them."""

    path: bytes
    old_mode: str
    new_mode: str
    old: str
    new: str


class FileChange(Struct, frozen=True, kw_only=True):
    """A file that differs, as people read it; no counts of a binary one."""

    path: bytes
    what: What
    old_path: bytes | None
    added: int | None
    deleted: int | None


def list_changes(tree: WorkTree, old: Oid, new: Oid) -> tuple[Change, ...]:
    """List every path that differs between two trees; a rename is two."""
    output = tree.ask("diff-tree", "-r", "-z", "--no-renames", old, new)
    parts = output.split(b"\0")[:-1]
    found = []
    for head, path in zip(parts[::2], parts[1::2], strict=True):
        old_mode, new_mode, old_oid, new_oid, _ = head[1:].decode().split(" ")
        found.append(
            Change(
                path=path,
                old_mode=old_mode,
                new_mode=new_mode,
                old=old_oid,
                new=new_oid,
            )
        )
    return tuple(found)


def list_files(tree: WorkTree, old: Oid, new: Oid) -> tuple[FileChange, ...]:
    """List the files that differ between two trees, renames as one."""
    output = tree.ask("diff-tree", "-r", "-z", "-M", "--raw", "--numstat", old, new)
    parts = iter(output.split(b"\0")[:-1])
    raw: dict[bytes, tuple[What, bytes | None]] = {}
    counts: dict[bytes, tuple[int | None, int | None]] = {}
    for part in parts:
        if part.startswith(b":"):
            path, what, before = _read_raw(part, parts)
            raw[path] = what, before
        else:
            added, deleted, path = part.split(b"\t", 2)
            if not path:
                next(parts)
                path = next(parts)
            counts[path] = _number(added), _number(deleted)
    return tuple(
        FileChange(
            path=path,
            what=what,
            old_path=before,
            added=counts.get(path, (None, None))[0],
            deleted=counts.get(path, (None, None))[1],
        )
        for path, (what, before) in raw.items()
    )


def _read_raw(head: bytes, parts: Iterator[bytes]) -> tuple[bytes, What, bytes | None]:
    old_mode, new_mode, old, new, status = head[1:].decode().split(" ")
    path = next(parts)
    if status.startswith(("R", "C")):
        return next(parts), "renamed", path
    if status == "A":
        return path, "added", None
    if status == "D":
        return path, "deleted", None
    if status == "T":
        return path, "type", None
    return path, "mode" if old == new and old_mode != new_mode else "modified", None


def _number(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None
