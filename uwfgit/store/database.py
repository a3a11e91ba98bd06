"""Open SQLite files of this user's own; the only place that says how.

They are in WAL mode, so that readers and one writer do not wait for each
other, and private. A second writer waits for five seconds.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import ClassVar, Final, Self

from msgspec import Struct

from uwfgit.store.handle import Store

_BUSY_SECONDS: Final = 5.0
_PAUSE: Final = 0.02
_PRIMARY_CODE: Final = 0xFF
_REFUSALS: Final = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_INTERRUPT,
    }
)


def connect(place: str) -> sqlite3.Connection:
    """Open a file, a ``file:`` URI or ``:memory:``, without transactions of its own."""
    return sqlite3.connect(
        place,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        uri=place.startswith("file:"),
    )


def open_private(path: Path) -> sqlite3.Connection:
    """Open the file at ``path``, made with its folder when missing.

    Raises:
        OSError: The folder or file cannot be made.
        sqlite3.Error: It cannot be opened, or is no database.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # SQLite would make it readable for others; its -wal and -shm copy the mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = connect(str(path))
    try:
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as exc:
                # The first switch to WAL does not wait for another's switch.
                if _code(exc) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)
        # What is deleted may be a secret; not every build of SQLite blanks it itself.
        db.execute("PRAGMA secure_delete = ON")
    except BaseException:
        db.close()
        raise
    return db


class StateFile(Struct, eq=False):
    """A file of a store's state, opened by the first question to it."""

    store: Store
    _db: sqlite3.Connection | None = None

    name: ClassVar[str]
    """The file's own."""

    @property
    def _file(self) -> Path:
        return self.store.state_dir / self.name

    def __del__(self) -> None:
        # One that was dropped unclosed lost nothing. SQLite refuses other threads.
        with suppress(sqlite3.Error):
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go; the next question opens it again."""
        db, self._db = self._db, None
        if db is not None:
            self._let_go(db)

    def _let_go(self, db: sqlite3.Connection) -> None:
        db.close()


@contextmanager
def write(db: sqlite3.Connection, *, is_synced: bool = False) -> Iterator[None]:
    """Hold the one write transaction: all of the block's changes, or none.

    With ``is_synced`` they, and all before them, are on disk after the block.
    """
    # In WAL mode NORMAL waits only where the log is copied, FULL at each commit.
    db.execute(f"PRAGMA synchronous = {'FULL' if is_synced else 'NORMAL'}")
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise


def is_refusal(error: Exception) -> bool:
    """Whether a file is locked, read-only or the like, and not damaged."""
    if isinstance(error, OSError):
        # A folder in its place would stay there for ever.
        return not isinstance(error, IsADirectoryError)
    return _code(error) in _REFUSALS


def put_aside(path: Path) -> None:
    """Move what stands at a path beside it, to a name that is free.

    Raises:
        OSError: It cannot be moved.
    """
    beside = (
        path.with_name(f"{path.name}.damaged{end}") for end in chain([""], count(2))
    )
    path.rename(next(each for each in beside if not each.exists()))


def _code(error: Exception) -> int:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return int(code) & _PRIMARY_CODE
