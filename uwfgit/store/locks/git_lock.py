"""Git's own locks, ``<file>.lock``: taken to replace a file, removed when left.

A git that writes the same file at the same time loses nothing, and a crash leaves the
old file or the new one. A lock of ours has a second name, which the kernel unlocks: so
one whose maker was killed is told from git's own, and removed.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from uwfgit.errors import LockedError
from uwfgit.shell import quote_word
from uwfgit.store.handle import Store
from uwfgit.store.locks.flock import Holder, is_let_go, pause, try_hold
from uwfgit.store.log import log_event

ANY: Final = "*"
"""Stands for every ref."""
_WAIT: Final = 2.0
_OWN: Final = ".uwf-"
_YOUNG: Final = 0.5
_SETTLE: Final = 0.1
"""How long a lock file of git's must stay the same to have no living maker."""
_SLACK_MS: Final = 2000
"""File systems' clocks are that coarse at most."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write; it takes the place of ``path`` when the block ends well.

    Until then nobody else can begin to replace it.

    Raises:
        LockedError: Another process keeps it locked.
        OSError: It cannot be written.
    """
    beside = path.with_name(f"{path.name}.lock")
    own = path.with_name(f"{path.name}{_OWN}{os.getpid()}-{secrets.token_hex(4)}.lock")
    descriptor = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _take(path, beside, own, descriptor)
            try:
                yield file
                file.flush()
                os.fsync(descriptor)
                beside.rename(path)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
    finally:
        own.unlink(missing_ok=True)


def _take(path: Path, beside: Path, own: Path, descriptor: int) -> None:
    """Name a file of ours as git names its lock, once that name is free."""
    deadline = time.monotonic() + _WAIT
    while True:
        _sweep(path, beside, own)
        if try_hold(descriptor):
            try:
                _name_too(own, beside)
            except FileExistsError as exc:
                if time.monotonic() >= deadline:
                    raise lock_stays(beside) from exc
            else:
                return
        pause()


def _sweep(path: Path, beside: Path, own: Path) -> None:
    """Remove what processes were killed at that replaced the same file."""
    for left in path.parent.glob(f"{path.name}{_OWN}*.lock"):
        with suppress(FileNotFoundError):
            # A young one may not be held yet.
            is_old = time.time() - left.stat().st_mtime > _YOUNG
            if left != own and is_old and is_let_go(left):
                if beside.exists() and beside.samefile(left):
                    beside.unlink()
                left.unlink()


def _name_too(own: Path, name: Path) -> None:
    """Name a file a second time, by a name that must be free."""
    try:
        os.link(own, name)
    except FileExistsError:
        raise
    except OSError:
        # A file system without second names: a lock that is left stays.
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        own.replace(name)


def append(path: Path, make: Callable[[], str]) -> None:
    """Add lines to the end of a file, all of them or none; its mode stays.

    Args:
        path: The file.
        make: Gives the lines when nobody else can write it any more.

    Raises:
        LockedError, OSError: As for :func:`replacing`.
    """
    with replacing(path) as file:
        text = make()
        found = path.read_bytes()
        if found and not found.endswith(b"\n"):
            found += b"\n"
        file.write(found + text.encode("utf-8", "surrogateescape"))
        os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))


def lock_stays(path: Path) -> LockedError:
    """Make the error for a lock file of git's that does not go away."""
    error = LockedError(f"'{path}'")
    error.hint = f"try again; {removal_hint(path)}"
    return error


def removal_hint(path: Path) -> str:
    """Say how a lock file of git's is removed whose maker may be gone."""
    return f"when no git is at work here: rm {quote_word(str(path))}"


def list_git_locks(path: Path) -> tuple[Path, ...]:
    """Return the lock files of git's that stand in a repository, by name."""
    return (*sorted(path.glob("*.lock")), *sorted((path / "refs").rglob("*.lock")))


def remove_leftovers(store: Store, dead: Holder, names: Iterable[str]) -> None:
    """Remove the locks of some refs that a process held when it died.

    Args:
        store: Where.
        dead: The process.
        names: The refs, or ``ANY``.
    """
    paths: list[Path] = []
    for name in names:
        own = store.path / f"{name}.lock"
        paths += list_git_locks(store.path) if name == ANY else [own]
    # After a loss of power nothing lives, and a lock's date may be lost as well.
    paths = [path for path in paths if not remove_dead(store, path)]
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


def _mark(path: Path) -> tuple[int, int] | None:
    """Tell one file of a name from the next."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
