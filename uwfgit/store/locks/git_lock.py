"""Replace a file of git's by git's own protocol: ``<file>.lock``, then rename.

A git that writes it at the same time loses nothing, and a crash leaves the old
file or the new one.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from uwfgit.errors import LockedError
from uwfgit.store.locks.flock import pause

_WAIT: Final = 2.0


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write; it takes the place of ``path`` when the block ends well.

    Until then nobody else can begin to replace it.

    Raises:
        LockedError: Another process keeps it locked.
        OSError: It cannot be written.
    """
    beside = path.with_name(f"{path.name}.lock")
    descriptor = _take(beside)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _take(path: Path) -> int:
    deadline = time.monotonic() + _WAIT
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError as exc:
            if time.monotonic() >= deadline:
                raise LockedError(f"'{path}'") from exc
        pause()


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
