"""Advisory locks on files; the only place that calls flock.

The kernel frees a lock when its holder dies, so there are no stale markers and
no recycled pids. The file stays; while an exclusive holder lives its record
stands inside. A child process holds a lock on only when it is handed the
descriptor.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from uwfgit.errors import LockedError, StoreError

if sys.platform != "win32":
    import fcntl

_PAUSE: Final = 0.01
_RECORD_BYTES: Final = 64 * 1024 * 1024
"""A record names each ref that is moved, and a pull may move 100,000."""


class Holder(Struct, frozen=True, kw_only=True):
    """Who holds a lock: process, machine, command, and since when (ms).

    ``notes`` are for whoever takes the lock after this holder died.
    """

    pid: int
    host: str
    command: str
    since: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host} ({self.command})"


class Lock(Struct, frozen=True, kw_only=True):
    """A lock that is held; ``previous`` is a holder that died holding it.

    ``holder`` is ourselves, as others read it; a shared holder has no record,
    and leaves the dead one's to the next. A child that is handed ``descriptor``
    keeps the lock until it ends, should we die before.
    """

    path: Path
    descriptor: int
    previous: Holder | None = None
    holder: Holder | None = None


@contextmanager
def lock(
    path: Path,
    *,
    command: str,
    wait: float = 0.5,
    shared: bool = False,
    what: str | None = None,
    notes: Sequence[str] = (),
) -> Iterator[Lock]:
    """Hold the lock at ``path`` for the length of the block.

    The file and its folder are made when missing. Shared holders exclude only
    exclusive ones, and leave no record. A lock is not re-entrant.

    Args:
        command: What the holder does, for whoever meets the lock.
        wait: Seconds to try for; 0 tries once. A reader that probes at that
            instant may make a single try fail.
        what: Name of the locked thing in the error; the file's by default.
        notes: What the next taker should know if this process dies.

    Raises:
        LockedError: Someone else held it all the time; names the holder.
        StoreError: The platform has no flock, or the file cannot be made.
    """
    name = what or f"lock '{path.name}'"
    descriptor = _acquire(path, shared=shared, wait=wait, name=name)
    try:
        previous = _read_record(descriptor)
        try:
            holder = None if shared else _write_record(descriptor, path, command, notes)
            yield Lock(
                path=path, descriptor=descriptor, previous=previous, holder=holder
            )
        finally:
            # Emptied before it is let go: a record found by the next taker
            # means that its writer died.
            if not shared:
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def read_holder(path: Path) -> Holder | None:
    """Tell who holds the lock at ``path`` exclusively; ``None`` for nobody.

    Costs one ``stat`` for a lock that is free; never waits, never writes.

    Raises:
        StoreError: The platform has no flock.
    """
    return _read_record_of(path, alive=True)


def read_dead_holder(path: Path) -> Holder | None:
    """Tell who died holding the lock at ``path``; ``None`` if it was let go.

    The next holder takes the record away. Costs what :func:`read_holder` does.

    Raises:
        StoreError: The platform has no flock.
    """
    return _read_record_of(path, alive=False)


def _read_record_of(path: Path, *, alive: bool) -> Holder | None:
    try:
        if path.stat().st_size == 0:
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        is_held = not _try_lock(descriptor, shared=True)
        return _read_record(descriptor) if is_held == alive else None
    finally:
        os.close(descriptor)


def try_hold(descriptor: int) -> bool:
    """Lock an open file, without a record, until it is closed; return whether so."""
    return _try_lock(descriptor, shared=False)


def is_let_go(path: Path) -> bool:
    """Whether a file is there that nobody holds by :func:`try_hold`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return _try_lock(descriptor, shared=False)
    finally:
        os.close(descriptor)


def pause() -> None:
    """Wait a moment, each time another, so that two who wait fall out of step."""
    time.sleep(_PAUSE * (0.5 + secrets.randbelow(1000) / 1000))


def _acquire(path: Path, *, shared: bool, wait: float, name: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    deadline = time.monotonic() + wait
    while True:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, flags, 0o600)
        except OSError as exc:
            reason = exc.strerror or str(exc)
            raise StoreError(f"cannot open lock file '{path}': {reason}") from exc
        try:
            taken = _try_lock(descriptor, shared=shared)
            # Someone may have removed the file between open and flock; a lock on a
            # file without a name excludes nobody.
            with suppress(FileNotFoundError):
                if taken and os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        holder = None if taken else _read_record(descriptor)
        os.close(descriptor)
        if not taken and time.monotonic() >= deadline:
            raise LockedError(name, holder=str(holder) if holder else None)
        pause()


def _try_lock(descriptor: int, *, shared: bool) -> bool:
    if sys.platform == "win32":
        raise StoreError(
            "file locks (flock) are not available here",
            hint="uwf runs on Linux and macOS",
        )
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except OSError as exc:
        if exc.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise StoreError(
            f"this file system has no locks: {exc.strerror}",
            hint="keep the store on a local disk",
        ) from exc
    return True


def _read_record(descriptor: int) -> Holder | None:
    size = min(os.fstat(descriptor).st_size, _RECORD_BYTES)
    data = os.pread(descriptor, size, 0)
    if not data:
        return None
    try:
        record = json.loads(data)
        return Holder(
            pid=int(record["pid"]),
            host=str(record["host"]),
            command=str(record["command"]),
            since=int(record["since"]),
            notes=tuple(str(note) for note in record.get("notes", ())),
        )
    except (ValueError, TypeError, KeyError):
        # A holder killed while it wrote still counts as one.
        return Holder(pid=0, host="unknown", command="unknown", since=0)


def _write_record(
    descriptor: int, path: Path, command: str, notes: Sequence[str]
) -> Holder:
    holder = Holder(
        pid=os.getpid(),
        host=socket.gethostname(),
        command=command[:500],
        since=time.time_ns() // 1_000_000,
        notes=tuple(notes),
    )
    record = {name: value for name, value in asdict(holder).items() if value != ()}
    data = json.dumps(record).encode("ascii", "replace")
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, data, 0)
    except OSError as exc:
        reason = exc.strerror
        raise StoreError(f"cannot write lock file '{path}': {reason}") from exc
    return holder
