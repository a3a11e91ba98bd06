"""The program's own log of a store: one JSON line a happening, a file a day."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from uwfgit.ids import is_thread_id
from uwfgit.store.handle import Store

LOGS: Final = "logs"
"""The folder of a store's logs, in that of its state; it may not exist."""
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOST_BYTES: Final = 256 * 1024 * 1024


def log_event(store: Store, event: str, **facts: str | int) -> None:
    """Add a line to today's log; a log that cannot be written stops nothing."""
    now = datetime.now(tz=UTC)
    record = {"time": now.isoformat(timespec="milliseconds"), "event": event}
    line = json.dumps({**record, "pid": os.getpid(), **facts}) + "\n"
    path = store.state_dir / LOGS / f"{now:%Y-%m-%d}.jsonl"
    with suppress(OSError):
        append_private(path, line.encode())


def append_private(path: Path, data: bytes) -> None:
    """Add to the end of a file that only its owner can read.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


class LogFile(Struct, frozen=True, kw_only=True):
    """A file of logs: of a day, of a thread's worker, or of a crash."""

    path: Path
    kind: Literal["day", "worker", "crash"]
    size: int
    changed: float

    @property
    def name(self) -> str:
        """The day, the thread, or what a crash's file is called."""
        return self.path.stem


def list_logs(folder: Path) -> tuple[LogFile, ...]:
    """List the files of a log folder, the newest change first; links are none."""
    found = []
    for path in _list(folder):
        kind = _kind_of(path)
        with suppress(OSError):
            status = path.lstat()
            if kind is not None and stat.S_ISREG(status.st_mode):
                found.append(
                    LogFile(
                        path=path,
                        kind=kind,
                        size=status.st_size,
                        changed=status.st_mtime,
                    )
                )
    return tuple(sorted(found, key=lambda log: (-log.changed, log.name)))


def read_events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a day's file; a line that is none is passed over."""
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES)
    except OSError:
        return
    for line in data.splitlines():
        with suppress(ValueError, RecursionError):
            event = json.loads(line)
            if isinstance(event, dict) and isinstance(event.get("event"), str):
                yield event


def _list(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _kind_of(path: Path) -> Literal["day", "worker", "crash"] | None:
    if path.suffix == ".jsonl" and _DAY.fullmatch(path.stem):
        return "day"
    if path.suffix != ".log":
        return None
    if is_thread_id(path.stem):
        return "worker"
    return "crash" if path.stem.startswith("crash-") else None
