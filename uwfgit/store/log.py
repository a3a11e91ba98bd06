"""The program's own log of a store: one JSON line a happening, a file a day."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from uwfgit.store.handle import Store

LOGS: Final = "logs"


def log_folder(store: Store) -> Path:
    """Name the folder of a store's logs; it may not exist."""
    return store.state_dir / LOGS


def log_event(store: Store, event: str, **facts: str | int) -> None:
    """Add a line to today's log; a log that cannot be written stops nothing."""
    now = datetime.now(tz=UTC)
    record = {"time": now.isoformat(timespec="milliseconds"), "event": event}
    line = json.dumps({**record, "pid": os.getpid(), **facts}) + "\n"
    path = log_folder(store) / f"{now:%Y-%m-%d}.jsonl"
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
