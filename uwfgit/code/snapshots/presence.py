"""Which threads are at work in a work tree, as far as one store's locks can tell."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from uwfgit.errors import LockedError, StoreError
from uwfgit.ids import ThreadId, find_thread_id
from uwfgit.store.locks.flock import lock, read_holder


class Presence(Struct, frozen=True, kw_only=True):
    """A thread at work in a work tree, since a time in nanoseconds."""

    folder: Path
    thread: ThreadId
    since: int

    def others(self) -> tuple[ThreadId, ...]:
        """List the threads that were at work here too, at any time since."""
        found = set()
        for thread, path in _iter_files(self.folder):
            if thread == self.thread:
                continue
            # Its file is written when a thread comes, and when it goes.
            with suppress(OSError, StoreError):
                is_here = read_holder(path) is not None
                if is_here or path.stat().st_mtime_ns > self.since:
                    found.add(thread)
        return tuple(sorted(found))


@contextmanager
def at_work(state: Path, root: Path, thread: ThreadId) -> Iterator[Presence | None]:
    """Let others know, for the length of the block, that a thread works here.

    Args:
        state: Where the store keeps such things.
        root: The top of the work tree.

    Yields:
        What knows of the others; ``None`` when that cannot be told.
    """
    folder = presence_folder(state, root)
    path, begun = folder / thread, time.time_ns()
    held = ExitStack()
    try:
        held.enter_context(lock(path, command=f"uwf thread {thread}", wait=0))
    except (LockedError, StoreError, OSError):
        yield None
        return
    try:
        with held:
            yield Presence(folder=folder, thread=thread, since=begun)
    finally:
        # A file system's own clock is coarser than two threads may be apart.
        with suppress(OSError):
            now = time.time_ns()
            os.utime(path, ns=(now, now))


def presence_folder(state: Path, root: Path) -> Path:
    """Return the folder with a lock for each thread that worked in a work tree."""
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    return state / "code" / "at" / name


def list_at_work(state: Path, root: Path) -> tuple[ThreadId, ...]:
    """List the threads that are at work in a work tree right now.

    Raises:
        StoreError: This platform cannot tell.
    """
    files = _iter_files(presence_folder(state, root))
    return tuple(sorted(t for t, path in files if read_holder(path) is not None))


def _iter_files(folder: Path) -> Iterator[tuple[ThreadId, Path]]:
    try:
        files = list(folder.iterdir())
    except OSError:
        return
    for path in files:
        thread = find_thread_id(path.name)
        if thread is not None:
            yield thread, path
