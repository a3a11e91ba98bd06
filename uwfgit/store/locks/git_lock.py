"""Replace a file of git's by git's own protocol: ``<file>.lock``, then rename.

A git that writes it at the same time loses nothing, and a crash leaves the old
file or the new one. The lock has a second name of ours, which the kernel unlocks: so
one whose maker was killed is told from git's own, and removed.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from uwfgit.errors import LockedError
from uwfgit.shell import quote_word
from uwfgit.store.locks.flock import is_let_go, pause, try_hold

_WAIT: Final = 2.0
_OWN: Final = ".uwf-"
_YOUNG: Final = 0.5


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
                    error = LockedError(f"'{beside}'")
                    error.hint = (
                        "try again; when no git is at work here: "
                        f"rm {quote_word(str(beside))}"
                    )
                    raise error from exc
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
