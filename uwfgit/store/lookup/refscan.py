"""The refs that hold nodes, read off git's own files; the only place that does.

Ten thousand refs through libgit2 take a quarter of a second, their two kinds of
files a few milliseconds; and the files' times tell that nothing has changed.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import StoreError
from uwfgit.store import layout

BROKEN: Final = bytes(20)
"""Stands for the target of a ref whose file holds none."""

_PACKED: Final = "packed-refs"
_FOLDERS: Final = (layout.THREAD_PREFIX, layout.WORKFLOW_PREFIX, "refs/uwf/")
_SYMBOLIC: Final = b"ref: "
_RACY_NS: Final = 2_000_000_000
_TARGET = re.compile(rb"([0-9a-f]{40})\s*")
_LINE = re.compile(
    rb"^([0-9a-f]{40}) (refs/(?:heads/(?:thread|workflow)/[^/\n]+|uwf/keep))$",
    re.MULTILINE,
)


class Fingerprint(Struct, frozen=True, kw_only=True):
    """What tells unchanged ref files; ``None`` for files changed just now.

    Two changes within one tick of the file system's clock leave equal times, so
    a time must have passed for a while before it proves anything.
    """

    loose: str | None
    packed: str | None


def read_fingerprint(path: Path) -> Fingerprint:
    """Return the fingerprint of a repository's refs; take it before reading them."""
    horizon = time.time_ns() - _RACY_NS
    marks: list[str | None] = []
    for name in (*_FOLDERS, _PACKED):
        try:
            found = (path / name).stat()
        except OSError:
            marks.append("-")
            continue
        changed = (found.st_mtime_ns, found.st_ctime_ns)
        parts = (found.st_ino, found.st_size, *changed)
        marks.append(None if max(changed) >= horizon else ":".join(map(str, parts)))
    *loose, packed = marks
    return Fingerprint(
        loose=None if None in loose else " ".join(map(str, loose)), packed=packed
    )


def read_loose(path: Path) -> dict[str, bytes]:
    """Return the loose refs that hold nodes, with their raw targets.

    Read them before the packed ones: ``git pack-refs`` writes those first.
    """
    return {
        folder + name: read_target(path / folder / name)
        for folder in _FOLDERS
        for name in _list_files(path / folder)
        if layout.NODE_REF.fullmatch(folder + name)
    }


def list_broken(path: Path, prefix: str) -> tuple[str, ...]:
    """Name the loose refs right below a prefix whose files hold no target."""
    return tuple(
        prefix + name
        for name in _list_files(path / prefix)
        if not name.endswith(".lock") and _is_broken(path / prefix / name)
    )


def _is_broken(path: Path) -> bool:
    if read_target(path) != BROKEN:
        return False
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        return not os.read(descriptor, 4096).startswith(_SYMBOLIC)
    except OSError:
        return True
    finally:
        os.close(descriptor)


def _list_files(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry.name
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as exc:
        # Else the threads in it would seem not to be there.
        raise StoreError(f"cannot read '{folder}': {exc.strerror}") from exc


def read_target(path: Path | str) -> bytes:
    """Return the raw oid in the file of a loose ref, or ``BROKEN``."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return BROKEN
    try:
        match = _TARGET.fullmatch(os.read(descriptor, 64))
    except OSError:
        return BROKEN
    finally:
        os.close(descriptor)
    return bytes.fromhex(match[1].decode()) if match else BROKEN


def read_packed(path: Path) -> dict[str, bytes]:
    """Return the packed refs that hold nodes, with their raw targets."""
    try:
        data = (path / _PACKED).read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as exc:
        raise StoreError(f"cannot read '{path / _PACKED}': {exc.strerror}") from exc
    return {
        name: bytes.fromhex(target.decode())
        for target, raw in _LINE.findall(data)
        if layout.NODE_REF.fullmatch(name := raw.decode(errors="replace"))
    }
