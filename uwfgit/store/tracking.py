"""What remotes had at the last fetch: ``refs/remotes``, and its only reader.

Read off git's own files: ten thousand refs through libgit2 take a quarter of a
second, and a listing wants them all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from uwfgit.errors import InvalidError
from uwfgit.ids import Oid, ThreadId, is_thread_id
from uwfgit.store.configfile import read_config
from uwfgit.store.refs import find_ref
from uwfgit.store.repository import Store

REMOTES_PREFIX: Final = "refs/remotes/"
BUNDLE: Final = "bundle"
"""Stands for a remote where a bundle's diverged tips are kept."""

_HEADS: Final = "refs/heads/"
_TARGET = re.compile(rb"([0-9a-f]{40})\s*")
_THREAD = re.compile(r"refs/remotes/([^/]+)/thread/([^/]+)")


def tracking_ref(remote: str, ref: str) -> str:
    """Name the ref that keeps what a remote had of one of our branches."""
    return f"{REMOTES_PREFIX}{remote}/{ref.removeprefix(_HEADS)}"


def scan_refs(store: Store, prefix: str) -> dict[str, Oid]:
    """Give the refs below a prefix that ends with a slash, by name.

    A ref whose file holds no oid is left out.
    """
    # Loose ones first: git pack-refs writes the packed ones before it takes
    # those away.
    loose = dict(_iter_loose(store.path / prefix, prefix))
    return {**_read_packed(store.path / "packed-refs", prefix), **loose}


def _iter_loose(folder: Path, prefix: str) -> Iterator[tuple[str, Oid]]:
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except OSError:
        return
    for entry in found:
        name = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _iter_loose(folder / entry.name, f"{name}/")
        elif entry.is_file(follow_symlinks=False) and (oid := _read_loose(entry.path)):
            yield name, oid


def _read_loose(path: str) -> Oid | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        match = _TARGET.fullmatch(os.read(descriptor, 64))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return Oid(match[1].decode()) if match else None


def _read_packed(path: Path, prefix: str) -> dict[str, Oid]:
    try:
        data = path.read_bytes()
    except OSError:
        return {}
    wanted = f" {prefix}".encode()
    if wanted not in data:
        return {}
    line = re.compile(
        rb"^([0-9a-f]{40}) (" + re.escape(prefix).encode() + rb"[^\n]+)$", re.MULTILINE
    )
    return {
        name.decode("utf-8", "surrogateescape"): Oid(oid.decode())
        for oid, name in line.findall(data)
    }


def list_tracked(store: Store) -> dict[ThreadId, dict[str, Oid]]:
    """Give what each remote had of each thread at the last fetch."""
    found: dict[ThreadId, dict[str, Oid]] = {}
    for name, oid in scan_refs(store, REMOTES_PREFIX).items():
        match = _THREAD.fullmatch(name)
        if match and is_thread_id(match[2]):
            found.setdefault(ThreadId(match[2]), {})[match[1]] = oid
    return found


def find_tracked(store: Store, thread: ThreadId) -> dict[str, Oid]:
    """Give what each remote had of one thread; reads no other ref."""
    found = {}
    for remote in (*remote_names(store), BUNDLE):
        oid = find_ref(store, f"{REMOTES_PREFIX}{remote}/thread/{thread}")
        if oid is not None:
            found[remote] = oid
    return found


def remote_names(store: Store) -> tuple[str, ...]:
    """Name the remotes in the store's config, in its order."""
    try:
        entries = read_config(store.path / "config")
    except (InvalidError, OSError):
        return ()
    names = (
        entry.subsection
        for entry in entries
        if entry.section == "remote" and entry.subsection
    )
    return tuple(dict.fromkeys(names))
