"""Locks that guard refs, and what a holder that was killed leaves of git's own.

libgit2 and git lock a ref by making ``<ref>.lock``; nobody removes that file when
its maker is killed. Every move of refs is therefore announced in a file of ours
that the kernel unlocks: who finds one whose maker is dead tidies up after it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from uwfgit.errors import LockedError
from uwfgit.shell import quote_word
from uwfgit.store.handle import Store
from uwfgit.store.locks.flock import Holder, Lock, lock, pause, read_holder
from uwfgit.store.locks.moving import (
    NO_MOVES,
    Moves,
    finish_moves,
    format_move,
    parse_moves,
)
from uwfgit.store.log import log_event
from uwfgit.store.pack.pack import sync_folder

ANY: Final = "*"
"""Stands for every ref."""
_MOVES: Final = "moves"
_PATIENCE: Final = 2.0
_SETTLE: Final = 0.1
"""How long a lock file of git's must stay the same to have no living maker."""
_SLACK_MS: Final = 2000
"""File systems' clocks are that coarse at most."""


def lock_path(store: Store, name: str) -> Path:
    """Name the file of one of our locks."""
    return store.state_dir / "locks" / name


def list_git_locks(path: Path) -> tuple[Path, ...]:
    """Return the lock files of git's that stand in a repository, by name."""
    return (*sorted(path.glob("*.lock")), *sorted((path / "refs").rglob("*.lock")))


@contextmanager
def hold_refs(
    store: Store,
    name: str,
    refs: Iterable[str],
    *,
    command: str,
    what: str,
    wait: float = 0.5,
) -> Iterator[Lock]:
    """Hold the lock that guards some refs, for the length of the block.

    Args:
        name: The lock's.
        refs: What it guards; a dead holder's leftovers there are removed.
        command: What the holder does, for whoever meets the lock.
        what: Name of the locked thing in the error.
        wait: Seconds to try for.

    Raises:
        LockedError: Someone else holds it; names the holder.
        StoreError: The lock file cannot be made.
    """
    path = lock_path(store, name)
    with lock(path, command=command, what=what, wait=wait) as held:
        guarded = list(refs)
        if held.previous is not None:
            _remove_leftovers(store, held.previous, guarded)
            tidy_up(store)
        _require_free(store, guarded)
        yield held


def _require_free(store: Store, refs: Iterable[str]) -> None:
    """Wait for git's own locks of some refs: later is too late to find one held.

    Raises:
        LockedError: One stays held; names the file.
    """
    deadline = time.monotonic() + _PATIENCE
    for path in _git_locks(store, refs):
        while path.exists() and not remove_dead(store, path):
            tidy_up(store)
            if time.monotonic() > deadline:
                error = LockedError(f"'{path}'")
                error.hint = (
                    "try again; when no git is at work here: "
                    f"rm {quote_word(str(path))}"
                )
                raise error
            pause()


@contextmanager
def announce(
    store: Store, names: Iterable[str], *, command: str, moves: Moves = NO_MOVES
) -> Iterator[Lock]:
    """Let others know which of git's locks this process takes in the block.

    Args:
        store: Where.
        names: The refs, or ``ANY`` where git chooses them.
        command: What is done.
        moves: What becomes of some of them, all or none; the rest of it is done by
            others should we be killed between two.

    Yields:
        The lock that says so; git gets it when it goes on should we be killed.

    Raises:
        StoreError: The file of ours cannot be made.
    """
    folder = lock_path(store, _MOVES)
    tidy_up(store)
    path = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
    notes = [name for name in names if name not in moves]
    notes += [format_move(name, *move) for name, move in moves.items()]
    with lock(path, command=command, notes=notes) as held:
        try:
            if store.fsync and len(moves) > 1:
                # The power may go between two as well.
                os.fsync(held.descriptor)
                sync_folder(folder)
            yield held
        finally:
            path.unlink(missing_ok=True)


def has_leftovers(store: Store) -> bool:
    """Whether a process that moved refs is at work, or was killed at it."""
    folder = lock_path(store, _MOVES)
    return folder.is_dir() and any(folder.iterdir())


def tidy_up(store: Store) -> None:
    """Finish what processes were killed at while they moved refs; remove their locks.

    Costs the listing of an empty folder when there were none.
    """
    try:
        paths = list(lock_path(store, _MOVES).iterdir())
    except OSError:
        return
    for path in paths:
        # One that is held has a living maker. Shared, so that the record stays
        # should this process be killed as well.
        with (
            suppress(LockedError),
            lock(path, command="tidy up", wait=0, shared=True) as held,
        ):
            if held.previous is not None:
                notes = held.previous.notes
                if ANY in notes and any(
                    each != path and read_holder(each) is not None for each in paths
                ):
                    # Someone alive moves refs at this moment: one of the locks may be
                    # that one's; it is looked at again.
                    continue
                names = [note.partition(" ")[0] for note in notes]
                _remove_leftovers(store, held.previous, names)
                if not finish_moves(store, parse_moves(notes)):
                    continue
            path.unlink(missing_ok=True)


def _remove_leftovers(store: Store, dead: Holder, names: Iterable[str]) -> None:
    # After a loss of power nothing lives, and a lock's date may be lost as well.
    paths = [path for path in _git_locks(store, names) if not remove_dead(store, path)]
    found = {path: mark for path in paths if (mark := _mark(path))}
    since = dead.since - _SLACK_MS
    mine = {p: mark for p, mark in found.items() if mark[1] // 1_000_000 >= since}
    if mine:
        time.sleep(_SETTLE)
    for path, mark in mine.items():
        if _mark(path) == mark:
            path.unlink(missing_ok=True)
            log_event(store, "leftover-removed", file=str(path), holder=str(dead))


def remove_dead(store: Store, path: Path) -> bool:
    """Remove a lock file of git's that is older than this system's last start.

    Nothing that ran then runs any more; a loss of power may leave the file, and not
    what we had noted of it.

    Returns:
        Whether it was one.
    """
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return False
    started = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    mark = _mark(path)
    if mark is None or mark[1] >= started * 1e9 - _SLACK_MS * 1e6:
        return False
    path.unlink(missing_ok=True)
    log_event(store, "leftover-removed", file=str(path), holder="before the start")
    return True


def _git_locks(store: Store, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        if name == ANY:
            yield from list_git_locks(store.path)
        else:
            yield store.path / f"{name}.lock"


def _mark(path: Path) -> tuple[int, int] | None:
    """Tell one file of a name from the next."""
    try:
        stat = path.lstat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns
