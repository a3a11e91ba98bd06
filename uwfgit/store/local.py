"""What this machine knows of a store and git does not; the only place for it.

Not derived: when the file is lost, threads are foreign and unverified again.
That is all the harm there is, so a file that cannot be read is empty, and one
that cannot be written fails no step.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from uwfgit.ids import Hash, Oid, ThreadId, is_oid
from uwfgit.store.database import (
    StateFile,
    connect,
    is_refusal,
    open_private,
    put_aside,
    write,
)
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.objects import read_commit

_VERSION: Final = 1
_FOREIGN: Final = "foreign"
_TABLES: Final = """
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE made (oid BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE verified (oid BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE put (step TEXT, hash TEXT, PRIMARY KEY (step, hash)) WITHOUT ROWID;
CREATE TABLE session (thread TEXT, role TEXT, agent TEXT, session TEXT, told TEXT,
  total TEXT, size INTEGER, digest TEXT,
  PRIMARY KEY (thread, role, agent)) WITHOUT ROWID;
CREATE TABLE thread (ulid TEXT PRIMARY KEY, folder TEXT, trusted INTEGER)
  WITHOUT ROWID;
"""


class AgentSession(Struct, frozen=True, kw_only=True):
    """A session that an agent keeps on this machine.

    Attributes:
        id: The agent's own name for it.
        told: The newest step it was told of; ``None`` when there was none.
        total: What it has cost so far, as JSON, where the agent counts that.
        size: The bytes of its file when it was last recorded or restored.
        digest: Their SHA-256.
    """

    id: str
    told: Hash | None = None
    total: str | None = None
    size: int | None = None
    digest: str | None = None


class Agreed(Struct, frozen=True, kw_only=True):
    """What of a thread the user agreed to run: its workflow, and all up to a tip."""

    workflow: Oid
    tip: Oid


class Local(StateFile, eq=False):
    """The open file of a store. It is made by the first write, never by reading.

    Every method that writes returns whether it could.
    """

    name = "local.sqlite3"
    on_missed: Callable[[], None] | None = None
    """Called once when a commit made here cannot be kept as such."""
    _is_whole: bool = True

    def _let_go(self, db: sqlite3.Connection) -> None:
        """Close the file and leave its log as it is, for the next to read.

        SQLite copies the log into the file when the last connection closes, and waits
        for the disk twice, or four times for the next log; one that may only read
        cannot, so it goes last. The log is copied when it has grown.
        """
        try:
            place = f"{self._file.absolute().as_uri()}?mode=ro"
            with closing(connect(place)) as last:
                last.execute("PRAGMA user_version").fetchone()
                db.close()
        except sqlite3.Error:
            db.close()

    def record_commit(self, commit: Oid) -> bool:
        """Keep that this machine made a commit, through a loss of power as well.

        A ref that came through and is not known to be made here would pass for
        somebody else's.
        """
        statement = "INSERT OR IGNORE INTO made VALUES (?)"
        is_kept = self._write(statement, (bytes.fromhex(commit),), is_synced=True)
        if not is_kept and self.on_missed is not None:
            on_missed, self.on_missed = self.on_missed, None
            on_missed()
        return is_kept

    def is_made_here(self, commit: Oid) -> bool:
        """Whether this machine made a commit."""
        key = (bytes.fromhex(commit),)
        return bool(self._read("SELECT 1 FROM made WHERE oid = ?", key))

    def record_verified(self, commit: Oid) -> bool:
        """Keep that a commit, and all below it, was verified here."""
        key = (bytes.fromhex(commit),)
        return self._write("INSERT OR IGNORE INTO verified VALUES (?)", key)

    def is_verified_here(self, commit: Oid) -> bool:
        """Whether a commit was verified here."""
        key = (bytes.fromhex(commit),)
        return bool(self._read("SELECT 1 FROM verified WHERE oid = ?", key))

    def record_put(self, step: str, nodes: Iterable[Hash]) -> bool:
        """Keep which nodes were put during a run, named as in ``UWF_STEP``."""
        rows = [(step, node) for node in nodes]
        return self._write("INSERT OR IGNORE INTO put VALUES (?, ?)", *rows)

    def puts_of(self, step: str) -> tuple[Hash, ...]:
        """Return the nodes that were put during a run, sorted."""
        rows = self._read("SELECT hash FROM put WHERE step = ? ORDER BY hash", (step,))
        return tuple(Hash(node) for (node,) in rows)

    def set_last(self, thread: ThreadId) -> bool:
        """Keep the thread this user worked on last: ``@last``."""
        return self._set_fact("last", thread)

    def last(self) -> ThreadId | None:
        """Return the thread this user worked on last."""
        value = self._find_fact("last")
        return None if value is None else ThreadId(value)

    def set_session(
        self, thread: ThreadId, role: str, agent: str, session: AgentSession | None
    ) -> bool:
        """Keep an agent's own session, or forget it."""
        key = (thread, role, agent)
        if session is None:
            return self._write(
                "DELETE FROM session WHERE thread = ? AND role = ? AND agent = ?", key
            )
        row = (session.id, session.told, session.total, session.size, session.digest)
        return self._write(
            "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*key, *row),
        )

    def forget_sessions(self, thread: ThreadId) -> bool:
        """Forget every session of a thread."""
        return self._write("DELETE FROM session WHERE thread = ?", (thread,))

    def find_session(
        self, thread: ThreadId, role: str, agent: str
    ) -> AgentSession | None:
        """Return an agent's own session."""
        rows = self._read(
            "SELECT session, told, total, size, digest FROM session"
            " WHERE thread = ? AND role = ? AND agent = ?",
            (thread, role, agent),
        )
        if not rows:
            return None
        name, told, total, size, digest = rows[0]
        return AgentSession(
            id=str(name),
            told=None if told is None else Hash(told),
            total=total,
            size=size,
            digest=digest,
        )

    def set_folder(self, thread: ThreadId, folder: Path) -> bool:
        """Keep where a thread's agents work on this machine."""
        return self._write(
            "INSERT INTO thread (ulid, folder) VALUES (?, ?)"
            " ON CONFLICT (ulid) DO UPDATE SET folder = excluded.folder",
            (thread, str(folder)),
        )

    def find_folder(self, thread: ThreadId) -> Path | None:
        """Return where a thread's agents work on this machine."""
        rows = self._read("SELECT folder FROM thread WHERE ulid = ?", (thread,))
        return Path(rows[0][0]) if rows and rows[0][0] is not None else None

    def let_follow(self, thread: ThreadId, copy: ThreadId) -> None:
        """Let what came of a thread work where, and be kept as, that one is here."""
        folder = self.find_folder(thread)
        if folder is not None:
            self.set_folder(copy, folder)
        if self.is_without_code(thread):
            self.set_without_code(copy)
        if self.is_without_memory(thread):
            self.set_without_memory(copy)

    def set_trusted(self, thread: ThreadId, agreed: Agreed | None) -> bool:
        """Keep to what of a foreign thread the user agreed; ``None`` takes it back."""
        told = None if agreed is None else f"{agreed.workflow} {agreed.tip}"
        return self._set_fact(f"trusted {thread}", told)

    def find_trusted(self, thread: ThreadId) -> Agreed | None:
        """Return what of a thread the user agreed to."""
        workflow, _, tip = (self._find_fact(f"trusted {thread}") or "").partition(" ")
        return Agreed(workflow=Oid(workflow), tip=Oid(tip)) if is_oid(tip) else None

    def set_without_code(self, thread: ThreadId) -> bool:
        """Keep that no code is to be kept of a thread's steps here."""
        return self._set_fact(f"without code {thread}", "yes")

    def is_without_code(self, thread: ThreadId) -> bool:
        """Whether no code is to be kept of a thread's steps here."""
        return self._find_fact(f"without code {thread}") is not None

    def set_without_memory(self, thread: ThreadId) -> bool:
        """Keep that no session of a thread's agents is to be kept here."""
        return self._set_fact(f"without memory {thread}", "yes")

    def is_without_memory(self, thread: ThreadId) -> bool:
        """Whether no session of a thread's agents is to be kept here."""
        return self._find_fact(f"without memory {thread}") is not None

    def set_note(self, thread: ThreadId, note: str | None) -> bool:
        """Keep what a thread's next run is to be told; ``None`` takes it back."""
        return self._set_fact(f"note {thread}", note)

    def find_note(self, thread: ThreadId) -> str | None:
        """Return what a thread's next run is to be told."""
        return self._find_fact(f"note {thread}")

    def is_foreign(self, thread: ThreadId, tip: Oid) -> bool:
        """Whether any event of a thread was made on another machine.

        Costs one look for a thread that this machine alone moved, and one more for
        each event since it was asked last.

        Raises:
            CorruptError: A commit on the way cannot be read.
        """
        known = self._find_fact(f"own {thread}")
        if known in (tip, _FOREIGN):
            return known == _FOREIGN
        oid = tip
        while oid not in (GENESIS_OID, known):
            if not self.is_made_here(oid):
                self.set_foreign(thread)
                return True
            oid = read_commit(self.store, oid).parents[0]
        self._set_fact(f"own {thread}", tip)
        return False

    def set_foreign(self, thread: ThreadId) -> bool:
        """Keep that some of a thread was made elsewhere; no later event changes that.

        It is not kept when this file could not be read to its end.
        """
        return self._is_whole and self._set_fact(f"own {thread}", _FOREIGN)

    def is_known_foreign(self, thread: ThreadId) -> bool:
        """Whether some of a thread was found to be made elsewhere."""
        return self._find_fact(f"own {thread}") == _FOREIGN

    def set_child(self, step: str, child: ThreadId) -> bool:
        """Keep which thread does a step, from before a record names it."""
        return self._set_fact(f"child {step}", child)

    def find_child(self, step: str) -> ThreadId | None:
        """Return the thread that was kept as the one that does a step."""
        value = self._find_fact(f"child {step}")
        return None if value is None else ThreadId(value)

    def set_batch(self, name: str, facts: str) -> bool:
        """Keep that a batch of threads has begun, and what their ids are made of."""
        return self._set_fact(f"batch {name}", facts)

    def find_batch(self, name: str) -> str | None:
        """Return what was kept of a batch."""
        return self._find_fact(f"batch {name}")

    def is_first(self, what: str) -> bool:
        """Whether this is asked of a thing for the first time, and note it."""
        name = f"first {what}"
        return self._find_fact(name) is None and self._set_fact(name, "seen")

    def set_seen(self, thread: ThreadId, upto: Oid) -> bool:
        """Keep how far the user has looked at a thread."""
        return self._set_fact(f"looked {thread}", upto)

    def find_seen(self, thread: ThreadId) -> Oid | None:
        """Give how far the user has looked at a thread."""
        value = self._find_fact(f"looked {thread}")
        return Oid(value) if value is not None else None

    def _set_fact(self, name: str, value: str | None) -> bool:
        if value is None:
            return self._write("DELETE FROM fact WHERE name = ?", (name,))
        return self._write("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))

    def _find_fact(self, name: str) -> str | None:
        rows = self._read("SELECT value FROM fact WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def _read(
        self, query: str, values: tuple[str | bytes, ...] = ()
    ) -> list[tuple[Any, ...]]:
        try:
            if self._db is None and not self._file.is_file():
                return []
            return self._open().execute(query, values).fetchall()
        except (sqlite3.Error, OSError):
            self.close()
            return self._read_settled(query, values)

    def _read_settled(
        self, query: str, values: tuple[str | bytes, ...]
    ) -> list[tuple[Any, ...]]:
        """Read what may not be written, or the file alone.

        On a full disk SQLite cannot make the files beside it. What was written
        last, by a process that lives or was killed, may stand in one of those only.
        """
        place = f"{self._file.absolute().as_uri()}?mode=ro"
        for whole in (True, False):
            self._is_whole = self._is_whole and whole
            with (
                suppress(sqlite3.Error, OSError),
                closing(connect(place if whole else f"{place}&immutable=1")) as db,
            ):
                _read_version(db)
                return db.execute(query, values).fetchall()
        return []

    def _write(
        self,
        statement: str,
        *rows: tuple[str | bytes | int | None, ...],
        is_synced: bool = False,
    ) -> bool:
        for _ in range(2):
            try:
                db = self._open()
                with write(db, is_synced=is_synced and self.store.fsync):
                    db.executemany(statement, rows)
            except (sqlite3.Error, OSError) as exc:
                self.close()
                if is_refusal(exc) or not self._put_aside():
                    return False
            else:
                return True
        return False

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            db = open_private(self._file)
            try:
                if _read_version(db) == 0:
                    with write(db):
                        if _read_version(db) == 0:
                            # Not executescript(): that would commit before.
                            for statement in _TABLES.split(";"):
                                db.execute(statement)
                            db.execute(f"PRAGMA user_version = {_VERSION}")
            except BaseException:
                db.close()
                raise
            self._db = db
        return self._db

    def _put_aside(self) -> bool:
        """Move a damaged file out of the way; it may still be mended by hand."""
        try:
            for suffix in ("-wal", "-shm"):
                self._file.with_name(f"{self.name}{suffix}").unlink(missing_ok=True)
            put_aside(self._file)
        except OSError:
            return False
        return True


def _read_version(db: sqlite3.Connection) -> int:
    """Return the format of the file; 0 for one that holds nothing yet.

    Raises:
        PermissionError: A newer uwf made it; its facts are not for this one to change.
    """
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if found not in (0, _VERSION):
        raise PermissionError(f"format {found} is not {_VERSION}")
    return found
