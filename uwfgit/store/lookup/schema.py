"""The lookup's SQLite file: its tables, opening it, throwing it away.

Nothing here is ever the truth, so whatever is wrong with the file has one mend:
a new one, or none (a database in memory).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from uwfgit.ids import Hash
from uwfgit.store.database import connect, open_private, put_aside, write
from uwfgit.store.locks.flock import lock
from uwfgit.store.lookup.fill import Found

VERSION: Final = 4

_LOCK_SECONDS: Final = 5.0
_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE ref (name TEXT PRIMARY KEY, oid BLOB, loose INTEGER) WITHOUT ROWID;
CREATE TABLE thread (ulid TEXT PRIMARY KEY, commit_oid BLOB, state TEXT,
  task TEXT, parent TEXT) WITHOUT ROWID;
CREATE TABLE node (hash TEXT, oid BLOB, type TEXT, PRIMARY KEY (hash, oid))
  WITHOUT ROWID;
CREATE TABLE step (hash TEXT, thread TEXT, commit_oid BLOB, number INTEGER,
  PRIMARY KEY (hash, thread)) WITHOUT ROWID;
CREATE INDEX ref_loose ON ref (name) WHERE loose;
CREATE INDEX thread_parent ON thread (parent) WHERE parent > '';
"""
_STEP_INDEX: Final = "CREATE INDEX step_commit ON step (commit_oid)"


def open_file(path: Path, *, step_type: Hash) -> sqlite3.Connection:
    """Open the lookup's file, made or made anew when missing or of another format.

    Raises:
        OSError: The folder or file cannot be made.
        sqlite3.Error: It cannot be opened, or is no database.
    """
    db = open_private(path)
    try:
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
    db = connect(f"{path.absolute().as_uri()}?mode=ro")
    try:
        if _is_current(db, step_type):
            return db
    except BaseException:
        db.close()
        raise
    db.close()
    return None


def open_memory(*, step_type: Hash) -> sqlite3.Connection:
    """Return an empty lookup that ends with this process."""
    db = connect(":memory:")
    _make_tables(db, step_type)
    return db


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
    for statement in (*_TABLES.split(";"), _STEP_INDEX):
        db.execute(statement)
    write_meta(db, {"step_type": step_type, "stale": "1"})
    db.execute(f"PRAGMA user_version = {VERSION}")


def read_meta(db: sqlite3.Connection) -> dict[str, str]:
    """Return what the file says of itself: format, fingerprints, ``stale``."""
    return dict(db.execute("SELECT key, value FROM meta"))


def write_meta(db: sqlite3.Connection, values: dict[str, str]) -> None:
    """Set some of what the file says of itself."""
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


def insert_found(db: sqlite3.Connection, found: Found) -> None:
    """Write the rows gathered from commits, and forget them.

    A step's row of its own branch outweighs whatever another claims.
    """
    # Sorted as the tables are: every page is written once.
    db.executemany(
        "INSERT OR IGNORE INTO node VALUES (CAST(?1 AS TEXT), ?3, CAST(?2 AS TEXT))",
        sorted(found.nodes),
    )
    db.executemany(
        "INSERT OR IGNORE INTO step VALUES (?, ?, ?, ?)",
        sorted((*key, *place) for key, place in found.other_steps.items()),
    )
    db.executemany(
        "INSERT OR REPLACE INTO step VALUES (?, ?, ?, ?)",
        sorted((*key, *place) for key, place in found.own_steps.items()),
    )
    for rows in (found.nodes, found.other_steps, found.own_steps):
        rows.clear()


@contextmanager
def without_index(db: sqlite3.Connection) -> Iterator[None]:
    """Leave the index on steps for after the block, where it is made in one go."""
    db.execute("DROP INDEX step_commit")
    yield
    db.execute(_STEP_INDEX)


def discard(path: Path, *, inode: int | None) -> None:
    """Remove a damaged file, unless another process has replaced it already.

    Args:
        inode: Of the file that was found damaged; ``None`` when unknown.

    Raises:
        UwfError: The lock for this could not be had.
        OSError: It cannot be removed.
    """
    guard = path.parent / "locks" / "lookup"
    with lock(guard, command="discard the lookup", wait=_LOCK_SECONDS):
        if inode is not None and inode != read_inode(path):
            return
        # A -wal that outlives its database would be replayed into the next.
        for suffix in ("-wal", "-shm", ""):
            file = path.with_name(path.name + suffix)
            if file.is_dir():
                put_aside(file)
            file.unlink(missing_ok=True)


def read_inode(path: Path) -> int | None:
    """Tell which file stands at a path now."""
    try:
        return path.stat().st_ino
    except OSError:
        return None
