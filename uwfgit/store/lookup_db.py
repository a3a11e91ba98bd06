"""The lookup's SQLite file: its tables, opening it, throwing it away.

Nothing here is ever the truth, so whatever is wrong with the file has one mend:
a new one, or none (a database in memory).
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from uwfgit.ids import Hash, ThreadId
from uwfgit.store.locks import lock
from uwfgit.store.lookup_fill import NodeKey, StepKey

VERSION: Final = 1

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
    }
)
"""The file may be whole, this process just cannot use it."""

_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE ref (name TEXT PRIMARY KEY, oid BLOB, loose INTEGER) WITHOUT ROWID;
CREATE TABLE thread (ulid TEXT PRIMARY KEY, commit_oid BLOB, state TEXT)
  WITHOUT ROWID;
CREATE TABLE node (hash TEXT, oid BLOB, type TEXT, PRIMARY KEY (hash, oid))
  WITHOUT ROWID;
CREATE TABLE step (hash TEXT, thread TEXT, commit_oid BLOB, number INTEGER,
  PRIMARY KEY (hash, thread)) WITHOUT ROWID;
CREATE INDEX ref_loose ON ref (name) WHERE loose;
CREATE INDEX step_commit ON step (commit_oid);
"""


def open_file(path: Path, *, step_type: Hash) -> sqlite3.Connection:
    """Open the lookup's file, made or made anew when missing or of another format.

    Raises:
        OSError: The folder or file cannot be made.
        sqlite3.Error: It cannot be opened, or is no database.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # SQLite would make it readable for others; its -wal and -shm copy the mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    db = _connect(str(path))
    try:
        _use_wal(db)
        if not _is_current(db, step_type):
            with write(db):
                if not _is_current(db, step_type):
                    _make_tables(db, step_type)
    except BaseException:
        db.close()
        raise
    return db


def open_existing(path: Path, *, step_type: Hash) -> sqlite3.Connection | None:
    """Open the file for reading only; ``None`` unless it is one of this format.

    Raises:
        sqlite3.Error: It cannot be opened, or is no database.
    """
    if not path.is_file():
        return None
    db = _connect(f"{path.absolute().as_uri()}?mode=ro")
    try:
        if _is_current(db, step_type):
            return db
    except BaseException:
        db.close()
        raise
    db.close()
    return None


def open_memory(*, step_type: Hash) -> sqlite3.Connection:
    """Give an empty lookup that ends with this process."""
    db = _connect(":memory:")
    _make_tables(db, step_type)
    return db


def _connect(place: str) -> sqlite3.Connection:
    return sqlite3.connect(
        place,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        uri=place.startswith("file:"),
    )


def _use_wal(db: sqlite3.Connection) -> None:
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
    db.execute("PRAGMA synchronous = NORMAL")


def _is_current(db: sqlite3.Connection, step_type: Hash) -> bool:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return version == VERSION and read_meta(db).get("step_type") == step_type


def _make_tables(db: sqlite3.Connection, step_type: Hash) -> None:
    found = db.execute(
        "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view')"
        " AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    ).fetchall()
    for kind, name in found:
        quoted = str(name).replace('"', '""')
        db.execute(f'DROP {kind} "{quoted}"')
    # Not executescript(): that would commit the transaction first.
    for statement in _TABLES.split(";"):
        db.execute(statement)
    write_meta(db, {"step_type": step_type, "stale": "1"})
    db.execute(f"PRAGMA user_version = {VERSION}")


def read_meta(db: sqlite3.Connection) -> dict[str, str]:
    """Give what the file says of itself: format, fingerprints, ``stale``."""
    return dict(db.execute("SELECT key, value FROM meta"))


def write_meta(db: sqlite3.Connection, values: dict[str, str]) -> None:
    """Set some of what the file says of itself."""
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


@contextmanager
def write(db: sqlite3.Connection) -> Iterator[None]:
    """Hold the one write transaction: all of the block's changes, or none."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def insert_nodes(db: sqlite3.Connection, nodes: Iterable[NodeKey]) -> None:
    """Add nodes; known ones are left as they are."""
    db.executemany(
        "INSERT OR IGNORE INTO node VALUES (CAST(?1 AS TEXT), ?3, CAST(?2 AS TEXT))",
        # In the table's own order: every page is written once.
        sorted(nodes),
    )


def insert_steps(
    db: sqlite3.Connection,
    steps: Mapping[StepKey, tuple[bytes, int]],
    *,
    owner: ThreadId | None,
) -> None:
    """Add what one branch holds; a thread's own outweighs any other's claim."""
    rows = [
        (step, thread, commit, number)
        for (step, thread), (commit, number) in steps.items()
    ]
    db.executemany(
        "INSERT OR IGNORE INTO step VALUES (?, ?, ?, ?)",
        (row for row in rows if row[1] != owner),
    )
    db.executemany(
        "INSERT OR REPLACE INTO step VALUES (?, ?, ?, ?)",
        (row for row in rows if row[1] == owner),
    )


def is_refusal(error: Exception) -> bool:
    """Tell whether the file is locked, read-only or the like, not damaged."""
    return isinstance(error, OSError) or _code(error) in _REFUSALS


def _code(error: Exception) -> int:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return int(code) & _PRIMARY_CODE


def discard(path: Path, *, inode: int | None) -> None:
    """Remove a damaged file, unless another process has replaced it already.

    Args:
        inode: Of the file that was found damaged; ``None`` when unknown.

    Raises:
        UwfError: The lock for this could not be had.
        OSError: It cannot be removed.
    """
    guard = path.parent / "locks" / "lookup"
    with lock(guard, command="discard the lookup", wait=_BUSY_SECONDS):
        if inode is not None and inode != read_inode(path):
            return
        # A -wal that outlives its database would be replayed into the next.
        for suffix in ("-wal", "-shm", ""):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def read_inode(path: Path) -> int | None:
    """Tell which file stands at a path now."""
    try:
        return path.stat().st_ino
    except OSError:
        return None
