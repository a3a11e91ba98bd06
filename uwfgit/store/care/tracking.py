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

from uwfgit.ids import Oid, ThreadId, is_oid, is_thread_id
from uwfgit.store.handle import Store
from uwfgit.store.layout import THREAD_PREFIX
from uwfgit.store.lookup.refscan import BROKEN, read_target

REMOTES_PREFIX: Final = "refs/remotes/"
BUNDLE: Final = "bundle"
"""Stands for a remote where a bundle's diverged tips are kept."""

_HEADS: Final = "refs/heads/"
_LOG_BYTES: Final = 4096
_THREAD = re.compile(r"refs/remotes/([^/]+)/thread/([^/]+)")


def tracking_ref(remote: str, ref: str) -> str:
    """Name the ref that keeps what a remote had of one of our branches."""
    return f"{REMOTES_PREFIX}{remote}/{ref.removeprefix(_HEADS)}"


def list_folders(store: Store) -> list[Path]:
    """List the folders of what remotes had of threads, as far as refs are loose."""
    place = tracking_ref("*", THREAD_PREFIX).removeprefix(REMOTES_PREFIX)
    return sorted((store.path / REMOTES_PREFIX).glob(place))


def read_last_reason(store: Store, name: str) -> str | None:
    """Return why a ref was moved last, as its log says; ``None`` without a log."""
    try:
        with (store.path / "logs" / name).open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return None
    return lines[-1].partition(b"\t")[2].decode(errors="replace") if lines else None


def scan_refs(store: Store, prefix: str) -> dict[str, Oid]:
    """Return the refs below a prefix that ends with a slash, by name.

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
    target = read_target(path)
    return None if target == BROKEN else Oid(target.hex())


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
    """Return what each remote had of each thread at the last fetch.

    A remote that is gone from the config counts as long as its refs are here.
    """
    found: dict[ThreadId, dict[str, Oid]] = {}
    for name, oid in scan_refs(store, REMOTES_PREFIX).items():
        match = _THREAD.fullmatch(name)
        if match and is_thread_id(match[2]):
            found.setdefault(ThreadId(match[2]), {})[match[1]] = oid
    return found


def find_tracked(store: Store, thread: ThreadId) -> dict[str, Oid]:
    """Return what ``list_tracked`` gives for one thread, at the cost of that one."""
    # In this order, as all of them are read.
    loose = dict(_find_loose(store.path / REMOTES_PREFIX, thread))
    packed = dict(_find_packed(store.path / "packed-refs", thread))
    return dict(sorted({**packed, **loose}.items()))


def _find_loose(folder: Path, thread: ThreadId) -> Iterator[tuple[str, Oid]]:
    try:
        with os.scandir(folder) as entries:
            found = [each for each in entries if each.is_dir(follow_symlinks=False)]
    except OSError:
        return
    for entry in found:
        if oid := _read_loose(f"{entry.path}/thread/{thread}"):
            yield entry.name, oid


def _find_packed(path: Path, thread: ThreadId) -> Iterator[tuple[str, Oid]]:
    try:
        data = path.read_bytes()
    except OSError:
        return
    # A search for the plain text first: ten thousand lines take a regular
    # expression twenty times as long.
    start = 0
    while (found := data.find(f"/thread/{thread}\n".encode(), start)) >= 0:
        line = data.rfind(b"\n", 0, found) + 1
        start = data.find(b"\n", found)
        text = data[line:start].decode("utf-8", "surrogateescape")
        oid, _, name = text.partition(" ")
        match = _THREAD.fullmatch(name)
        if match and is_oid(oid):
            yield match[1], Oid(oid)
