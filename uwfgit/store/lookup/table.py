"""Where is this hash, which threads are there: the derived table, never the truth.

Rows say where something stood when the refs were last read, never whether it is
reachable or whole; whoever reads a hit checks it. Whatever is wrong with the
file, the answers are the same: it is made anew, or bypassed by one in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from itertools import starmap
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from uwfgit.errors import UwfError
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.store.database import StateFile, is_refusal
from uwfgit.store.layout import THREAD_PREFIX
from uwfgit.store.lookup import fill, refresh, schema

_MANY: Final = 500
"""Names in one question; SQLite allows 999 in its oldest versions."""
_LEAN_KIB: Final = 256
_SELECT_NODE: Final = "SELECT hash, lower(hex(oid)), type FROM node"
_AFTER_ALL: Final = "~"
"""No thread's id comes after it."""

_T = TypeVar("_T")
_Row: TypeAlias = tuple[Any, ...]


class NodeRow(Struct, frozen=True):
    """A node's blob; two rows of one hash are two contents."""

    hash: Hash
    oid: Oid
    type: Hash


class StepRow(Struct, frozen=True, kw_only=True):
    """A step: the thread whose folder holds it, and the commit that added it."""

    hash: Hash
    thread: ThreadId
    commit: Oid
    number: int


class ThreadTipRow(Struct, frozen=True, kw_only=True):
    """A thread's newest commit and the text of its ``thread.json``."""

    thread: ThreadId
    commit: Oid
    """Forty zeros when the ref's file holds no oid."""
    state_json: str | None
    """``None`` when it could not be read from git."""
    task: str | None = None
    """The first line of its task."""
    parent: tuple[ThreadId, Hash] | None = None
    """The thread a step of which it was started for, and that one's head then."""


class RebuildReport(Struct, frozen=True, kw_only=True):
    """What a rebuild found in git."""

    refs: int
    threads: int
    nodes: int
    steps: int


class Lookup(StateFile, kw_only=True, eq=False):
    """The open table. Nothing is opened before the first question.

    The first question notices all refs that moved; later ones answer from that
    until :meth:`refresh`. One process and thread each.

    Args:
        store: Whose.
        step_type: The type whose nodes are steps.
        read_only: Leave the file as it is: use it when it is up to date, else
            fill a lookup in memory.
    """

    name = "lookup.sqlite3"

    step_type: Hash
    read_only: bool = False
    _inode: int | None = None
    _in_memory: bool = False
    _is_synced: bool = False
    _is_filled: bool = False
    _looked_again: bool = False
    _is_lean: bool = False

    @property
    def _source(self) -> refresh.RefreshSource:
        store = self.store
        return refresh.RefreshSource(
            path=store.path, objects=store.raw, step_type=self.step_type
        )

    def keep_little(self) -> None:
        """Keep little of the file in memory: for who has it open for days."""
        self.close()
        self._is_lean = True

    def refresh(self) -> None:
        """Notice refs that others moved since the last look."""
        self._is_synced = self._is_filled = False
        # Opening alone does the work.
        self._run(lambda _: None)

    @property
    def is_in_memory(self) -> bool:
        """Whether its file is bypassed, since it can be neither used nor made."""
        return self._in_memory

    def rebuild(self) -> RebuildReport:
        """Forget everything and fill all tables from git."""
        return self._run(self._rebuild, sync=False)

    def find_nodes(self, node: Hash) -> tuple[NodeRow, ...]:
        """Return every content known under a hash whose blob is in the store."""
        rows = self._find_live(f"{_SELECT_NODE} WHERE hash = ? ORDER BY oid", node)
        return tuple(starmap(NodeRow, rows))

    def find_many(self, nodes: Sequence[Hash]) -> dict[Hash, tuple[NodeRow, ...]]:
        """Return the same for many hashes; one without a content is left out."""
        found: dict[Hash, tuple[NodeRow, ...]] = {}
        for start in range(0, len(nodes), _MANY):
            names = nodes[start : start + _MANY]
            marks = ",".join("?" * len(names))
            query = f"{_SELECT_NODE} WHERE hash IN ({marks})"
            for row in starmap(NodeRow, self._find_live(query, *names)):
                found[row.hash] = (*found.get(row.hash, ()), row)
        return found

    def find_hashes(self, prefix: str) -> tuple[Hash, ...]:
        """Return the hashes of nodes that start so, sorted."""
        query = (
            "SELECT DISTINCT hash FROM node WHERE hash BETWEEN ? AND ? ORDER BY hash"
        )
        rows = self._ask(query, (prefix, f"{prefix}~"))
        return tuple(Hash(name) for (name,) in rows)

    def list_nodes(self, node_type: Hash | None = None) -> tuple[NodeRow, ...]:
        """Return all nodes, or those of a type, by hash; rows are not checked."""
        where = "" if node_type is None else " WHERE type = ?"
        values = () if node_type is None else (node_type,)
        rows = self._ask(f"{_SELECT_NODE}{where} ORDER BY hash, oid", values)
        return tuple(starmap(NodeRow, rows))

    def list_collisions(self) -> tuple[NodeRow, ...]:
        """Return all contents of each hash that names more than one, by hash."""
        rows = self._ask(
            f"{_SELECT_NODE} WHERE hash IN"  # noqa: S608 - a constant
            " (SELECT hash FROM node GROUP BY hash HAVING COUNT(*) > 1)"
            " ORDER BY hash, oid",
            (),
        )
        return tuple(starmap(NodeRow, rows))

    def find_steps(self, step: Hash) -> tuple[StepRow, ...]:
        """Return where a step was added, by thread; a fork has its origin's row."""
        rows = self._find_live(
            "SELECT hash, lower(hex(commit_oid)), thread, number FROM step"
            " WHERE hash = ? ORDER BY thread",
            step,
        )
        return tuple(
            StepRow(
                hash=Hash(name),
                thread=ThreadId(thread),
                commit=Oid(commit),
                number=number,
            )
            for name, commit, thread, number in rows
        )

    def list_threads(self) -> tuple[ThreadTipRow, ...]:
        """Return the tips of all threads, newest id first."""
        return tuple(self.iter_threads())

    def iter_threads(self) -> Iterator[ThreadTipRow]:
        """Yield the same, without holding all of their texts at once."""
        query = (
            "SELECT ulid, commit_oid, state, task, parent FROM thread WHERE ulid < ? "
            "ORDER BY ulid DESC LIMIT ?"
        )

        def select(db: sqlite3.Connection) -> list[_Row]:
            return db.execute(query, (last, _MANY)).fetchall()

        last = _AFTER_ALL
        while rows := self._run(select):
            for thread, commit, state, task, parent in rows:
                started, _, step = (parent or "").partition(" ")
                yield ThreadTipRow(
                    thread=ThreadId(thread),
                    commit=Oid(commit.hex()),
                    state_json=state,
                    task=task,
                    parent=(ThreadId(started), Hash(step)) if started else None,
                )
            last = rows[-1][0]

    def find_threads(
        self, *, prefix: str = "", suffix: str = ""
    ) -> tuple[ThreadId, ...]:
        """Return the threads whose id starts and ends so, oldest first."""
        # Off the refs: the rows of threads are wide.
        query = f"SELECT name FROM ref WHERE name GLOB '{THREAD_PREFIX}*'"  # noqa: S608 - a constant
        names = self._run(lambda db: db.execute(query).fetchall())
        found = (ThreadId(name.removeprefix(THREAD_PREFIX)) for (name,) in names)
        return tuple(
            name for name in found if name.startswith(prefix) and name.endswith(suffix)
        )

    def find_children(self, thread: ThreadId) -> tuple[ThreadId, ...]:
        """Return the threads that say they were started for a step of one."""
        query = (
            "SELECT ulid FROM thread WHERE parent > '' AND parent BETWEEN ? AND ?"
            " ORDER BY ulid"
        )
        values = (f"{thread} ", f"{thread} ~")
        rows = self._run(lambda db: db.execute(query, values).fetchall())
        return tuple(ThreadId(name) for (name,) in rows)

    def threads_with_node(self, node: Hash, oid: Oid) -> tuple[ThreadId, ...]:
        """Return the threads whose newest tree holds a node with this content.

        Looks into the trees of every thread: for naming the sides of a
        collision, not for finding things.
        """
        wanted = (node.encode(), bytes.fromhex(oid))
        return tuple(
            row.thread
            for row in self.iter_threads()
            if fill.holds_node(self._source.objects, bytes.fromhex(row.commit), wanted)
        )

    def _find_live(self, query: str, *names: str) -> list[_Row]:
        """Return the rows whose second column, an oid, is in the store."""
        while True:
            rows = self._ask(query, names)
            live = [row for row in rows if self.store.raw.exists(row[1])]
            if len(live) == len(rows) or self._looked_again:
                return live
            self._looked_again = True
            self._run(self._rebuild, sync=False)

    def _ask(self, query: str, values: tuple[str, ...]) -> list[_Row]:
        return self._run(lambda db: db.execute(query, values).fetchall(), filled=True)

    def _rebuild(self, db: sqlite3.Connection) -> RebuildReport:
        refresh.forget(db)
        refresh.sync(db, self._source)
        refresh.fill(db, self._source)
        self._is_synced = True
        return RebuildReport(**refresh.count_rows(db))

    def _run(
        self,
        work: Callable[[sqlite3.Connection], _T],
        *,
        sync: bool = True,
        filled: bool = False,
    ) -> _T:
        """Do work on the file; on a mended file; else in memory."""
        for is_first in (True, False):
            try:
                return work(self._open(sync=sync, filled=filled))
            except (sqlite3.Error, OSError) as exc:
                self.close()
                if not is_first or self.read_only or is_refusal(exc):
                    self._in_memory = True
                    continue
            try:
                schema.discard(self._file, inode=self._inode)
            except (UwfError, OSError):
                self._in_memory = True
        return work(self._open(sync=sync, filled=filled))

    def _open(self, *, sync: bool, filled: bool) -> sqlite3.Connection:
        if self._db is None:
            self._is_synced = self._is_filled = False
            step_type = self.step_type
            if self.read_only and not self._in_memory:
                db = schema.open_existing(self._file, step_type=step_type)
                if db is not None:
                    if refresh.is_synced(db, self._source):
                        self._db, self._is_synced = db, True
                        return db
                    db.close()
                self._in_memory = True
            if self._in_memory:
                self._db = schema.open_memory(step_type=step_type)
            else:
                self._db = schema.open_file(self._file, step_type=step_type)
                self._inode = schema.read_inode(self._file)
            if self._is_lean:
                self._db.execute(f"PRAGMA cache_size = -{_LEAN_KIB}")
        if sync and not self._is_synced:
            self._is_filled = refresh.sync(self._db, self._source)
            self._is_synced = True
        if filled and not self._is_filled:
            refresh.fill(self._db, self._source)
            self._is_filled = True
        return self._db
