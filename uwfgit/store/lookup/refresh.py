"""Bring the lookup's tables up to what the refs say.

The ref table is the snapshot: what the other tables were filled from. While
``stale`` is set only refs and threads are kept; nodes and steps are then filled
whole, by :mod:`uwfgit.store.lookup.refresh`, when someone asks for one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from uwfgit.errors import CorruptError
from uwfgit.ids import Hash, ThreadId
from uwfgit.store import layout
from uwfgit.store.database import write
from uwfgit.store.lookup import refscan
from uwfgit.store.lookup.fill import (
    Chain,
    Found,
    collect_chain,
    find_added,
    find_steps,
    read_asides,
    read_chain,
    read_commit,
)
from uwfgit.store.lookup.schema import (
    insert_found,
    read_meta,
    without_index,
    write_meta,
)
from uwfgit.store.lookup.tip_files import TipFiles
from uwfgit.store.raw import RawObjects

_FEW_LOOSE: Final = 50
_VERSION: Final = "PRAGMA data_version"
"""Another one once another process has written."""
_SELECT_REF: Final = "SELECT name, oid, loose FROM ref"


class RefreshSource(Struct, frozen=True, kw_only=True):
    """Where the rows come from."""

    path: Path
    objects: RawObjects
    step_type: Hash


class _Target(NamedTuple):
    oid: bytes
    loose: bool


class _Changes(NamedTuple):
    """How the refs differ from the snapshot; all are empty when they do not."""

    moved: Mapping[str, tuple[bytes | None, _Target]]
    """Old target, and the new one, of each ref that is new or has moved."""
    repacked: Mapping[str, _Target]
    """Refs that are only stored in another way."""
    gone: frozenset[str] = frozenset()


def sync(db: sqlite3.Connection, source: RefreshSource) -> bool:
    """Notice every ref that moved, came or went since the last time.

    Costs four ``stat`` when nothing did, for longer than the file system's
    clock needs to show it.

    Returns:
        Whether nodes and steps are filled too.
    """
    fingerprint = refscan.read_fingerprint(source.path)
    version, meta = db.execute(_VERSION).fetchone(), read_meta(db)
    changes = _find_changes(db, source, meta, fingerprint)
    if changes is None:
        return meta.get("stale") == "0"
    with write(db):
        if db.execute(_VERSION).fetchone() != version:
            # Another process was faster, maybe with the very same changes.
            changes = _find_changes(db, source, meta := read_meta(db), fingerprint)
        new = {"loose": fingerprint.loose or "", "packed": fingerprint.packed or ""}
        if changes is not None and any(changes):
            is_stale = meta.get("stale") != "0"
            if changes.gone or is_stale or not _add_rows(db, source, changes):
                new["stale"] = "1"
            _write_changes(db, source, changes)
        write_meta(db, new)
    return (meta | new).get("stale") == "0"


def is_synced(db: sqlite3.Connection, source: RefreshSource) -> bool:
    """Whether the tables are what the refs say; writes nothing."""
    meta = read_meta(db)
    fingerprint = refscan.read_fingerprint(source.path)
    is_filled = meta.get("stale") == "0"
    return is_filled and not any(_find_changes(db, source, meta, fingerprint) or ())


def _find_changes(
    db: sqlite3.Connection,
    source: RefreshSource,
    meta: Mapping[str, str],
    fingerprint: refscan.Fingerprint,
) -> _Changes | None:
    """Find how refs differ; ``None``: not at all, and finding that out was cheap."""
    noted = refscan.Fingerprint(
        loose=meta.get("loose", ""), packed=meta.get("packed", "")
    )
    if fingerprint == noted:
        return None
    loose = {
        name: _Target(oid=oid, loose=True)
        for name, oid in refscan.read_loose(source.path).items()
    }
    if fingerprint.packed == noted.packed:
        rows = db.execute(f"{_SELECT_REF} WHERE loose").fetchall()
        snapshot = {name: (oid, 1) for name, oid, _ in rows}
        if snapshot == loose and len(loose) <= _FEW_LOOSE:
            # Cheaper than to write that it was done.
            return None
        if snapshot.keys() <= loose.keys():
            # The packed refs are those of the snapshot, and none of them has
            # come to light behind a loose one that went.
            for name in loose.keys() - snapshot.keys():
                row = db.execute(f"{_SELECT_REF} WHERE name = ?", (name,)).fetchone()
                if row is not None:
                    snapshot[name] = row[1:]
            return _compare(snapshot, loose)
    packed = {
        name: _Target(oid=oid, loose=False)
        for name, oid in refscan.read_packed(source.path).items()
    }
    snapshot = {name: (oid, kind) for name, oid, kind in db.execute(_SELECT_REF)}
    gone = frozenset(snapshot.keys() - packed.keys() - loose.keys())
    return _compare(snapshot, packed | loose, gone)


def _compare(
    snapshot: Mapping[str, tuple[bytes, int]],
    refs: Mapping[str, _Target],
    gone: frozenset[str] = frozenset(),
) -> _Changes:
    moved: dict[str, tuple[bytes | None, _Target]] = {}
    repacked = {}
    for name, target in refs.items():
        old, loose = snapshot.get(name, (None, 0))
        if old != target.oid:
            moved[name] = (old, target)
        elif loose != target.loose:
            repacked[name] = target
    return _Changes(moved=moved, repacked=repacked, gone=gone)


def _write_changes(
    db: sqlite3.Connection, source: RefreshSource, changes: _Changes
) -> None:
    """Write the rows of refs and threads; not those of nodes and steps."""
    head = layout.THREAD_PREFIX
    targets = {name: target for name, (_, target) in changes.moved.items()}
    db.executemany(
        "INSERT OR REPLACE INTO ref VALUES (?, ?, ?)",
        (
            (name, target.oid, int(target.loose))
            for name, target in (targets | dict(changes.repacked)).items()
        ),
    )
    db.executemany("DELETE FROM ref WHERE name = ?", ((name,) for name in changes.gone))
    db.executemany(
        "INSERT INTO thread VALUES (?, ?, ?, ?, ?) ON CONFLICT (ulid) DO UPDATE"
        " SET commit_oid = excluded.commit_oid, state = excluded.state,"
        " task = excluded.task, parent = excluded.parent",
        (
            _read_thread(db, source.objects, ThreadId(name.removeprefix(head)), tip.oid)
            for name, tip in sorted(targets.items())
            if name.startswith(head)
        ),
    )
    db.executemany(
        "DELETE FROM thread WHERE ulid = ?",
        ((name.removeprefix(head),) for name in changes.gone),
    )


def _read_thread(
    db: sqlite3.Connection, objects: RawObjects, thread: ThreadId, tip: bytes
) -> tuple[str | bytes | None, ...]:
    """Return a thread's row; what no later event changes is read once."""
    query = "SELECT task, parent FROM thread WHERE ulid = ?"
    task, parent = db.execute(query, (thread,)).fetchone() or (None, None)
    files = TipFiles(objects, tip, thread)
    return (
        thread,
        tip,
        files.state(),
        task or files.task(),
        files.parent() if parent is None else parent,
    )


def _add_rows(db: sqlite3.Connection, source: RefreshSource, changes: _Changes) -> bool:
    """Add what moved refs hold beyond before; return whether that was all."""
    found = Found()
    for name, (old, target) in sorted(changes.moved.items()):
        before = None if old == refscan.BROKEN else old
        if name == layout.KEEP_REF:
            if not _collect_keep(source, found, old=before, new=target.oid):
                return False
            continue
        chain = read_chain(source.objects, target.oid, _stop_at(db, before))
        # A tip that does not stand on the old one was rewound or rewritten.
        if before is not None and chain.base != before:
            return False
        branch = layout.find_ref_thread(name)
        _collect(source, found, chain, branch=branch)
        for aside in read_asides(source.objects, chain, _stop_at(db, None)):
            _collect(source, found, aside, branch=branch)
    insert_found(db, found)
    return True


def _stop_at(db: sqlite3.Connection, old: bytes | None) -> Callable[[bytes], bool]:
    if old is not None:
        return old.__eq__
    # A new ref: of a commit that added a known step, all below is known.
    query = "SELECT 1 FROM step WHERE commit_oid = ? LIMIT 1"
    return lambda oid: db.execute(query, (oid,)).fetchone() is not None


def _collect_keep(
    source: RefreshSource, found: Found, *, old: bytes | None, new: bytes
) -> bool:
    """Compare two commits of keep, which is replaced and has no chain."""
    objects = source.objects
    try:
        after = read_commit(objects, new).tree
        before = None if old is None else read_commit(objects, old).tree
        for _, rows in find_added(objects, before, after):
            found.nodes.update(rows)
        # Dropped nodes may stand elsewhere too; only a fill can tell.
        return before is None or not any(find_added(objects, after, before))
    except CorruptError:
        return False


_BATCH: Final = 50_000
_CACHE_KIB: Final = 65_536
_FILLED: Final = ("ref", "thread", "node", "step")


def count_rows(db: sqlite3.Connection) -> dict[str, int]:
    """Tell how many refs, threads, nodes and steps the tables hold."""
    return {
        f"{table}s": db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - a fixed list
        for table in _FILLED
    }


def forget(db: sqlite3.Connection) -> None:
    """Empty every table; the next sync sees all refs as new."""
    with write(db):
        for table in _FILLED:
            db.execute(f"DELETE FROM {table}")  # noqa: S608 - a fixed list
        write_meta(db, {"stale": "1", "loose": "", "packed": ""})


def fill(db: sqlite3.Connection, source: RefreshSource) -> None:
    """Fill nodes and steps from the refs of the snapshot, if they are stale.

    Each commit and each tree is read once, however many threads share it.
    """
    if read_meta(db).get("stale") == "0":
        return
    (before,) = db.execute("PRAGMA cache_size").fetchone()
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    try:
        with write(db):
            if read_meta(db).get("stale") != "0":
                db.execute("DELETE FROM node")
                db.execute("DELETE FROM step")
                with without_index(db):
                    _fill_rows(db, source)
                write_meta(db, {"stale": "0"})
    finally:
        db.execute(f"PRAGMA cache_size = {before}")


def _fill_rows(db: sqlite3.Connection, source: RefreshSource) -> None:
    found = Found()
    commits: set[bytes] = set()
    trees: set[bytes] = set()
    # By name: an original thread before its forks, as ids start with a time.
    refs = db.execute("SELECT name, oid FROM ref ORDER BY name").fetchall()
    for name, oid in refs:
        chain = read_chain(source.objects, oid, commits.__contains__)
        commits.update(commit.oid for commit in chain.commits)
        thread = layout.find_ref_thread(name)
        if thread is None:
            _collect(source, found, chain, branch=None)
        else:
            _collect_tip(source, found, oid, chain, branch=thread, trees=trees)
        for aside in read_asides(source.objects, chain, commits.__contains__):
            commits.update(commit.oid for commit in aside.commits)
            _collect(source, found, aside, branch=thread)
        if len(found.nodes) >= _BATCH:
            insert_found(db, found)
    insert_found(db, found)


def _collect(
    source: RefreshSource, found: Found, chain: Chain, *, branch: ThreadId | None
) -> None:
    collect_chain(
        source.objects, chain, found, branch=branch, step_type=source.step_type
    )


def _collect_tip(
    source: RefreshSource,
    found: Found,
    tip: bytes,
    chain: Chain,
    *,
    branch: ThreadId,
    trees: set[bytes],
) -> None:
    try:
        tree = read_commit(source.objects, tip).tree
    except CorruptError:
        return
    named = {commit.node: commit.oid for commit in reversed(chain.commits)}
    is_whole = True
    for path, rows in find_added(source.objects, None, tree, seen=trees):
        found.nodes.update(rows)
        for key, number in find_steps(path, rows, source.step_type):
            if key[0] in named:
                found.add_step(key, named[key[0]], number, branch=branch)
            else:
                is_whole = False
    if not is_whole:
        whole = read_chain(source.objects, tip, lambda _: False)
        _collect(source, found, whole, branch=branch)
