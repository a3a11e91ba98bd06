"""Fill the lookup's nodes and steps anew, all at once.

The newest tree of a thread holds all its nodes, so trees of older commits are
not read: which commit added a step is what its trailer says, and only a step
that no trailer names costs the comparison of every commit's tree.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from uwfgit.errors import CorruptError
from uwfgit.ids import ThreadId
from uwfgit.store import layout
from uwfgit.store.database import write
from uwfgit.store.lookup_db import (
    insert_found,
    read_meta,
    without_index,
    write_meta,
)
from uwfgit.store.lookup_fill import (
    Chain,
    Found,
    collect_chain,
    find_added,
    find_steps,
    read_chain,
)
from uwfgit.store.lookup_sync import Source

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


def fill(db: sqlite3.Connection, source: Source) -> None:
    """Fill nodes and steps from the refs of the snapshot, if they are stale.

    Each commit and each tree is read once, however many threads share it.
    """
    if read_meta(db).get("stale") == "0":
        return
    db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    with write(db):
        if read_meta(db).get("stale") != "0":
            db.execute("DELETE FROM node")
            db.execute("DELETE FROM step")
            with without_index(db):
                _fill_rows(db, source)
            write_meta(db, {"stale": "0"})


def _fill_rows(db: sqlite3.Connection, source: Source) -> None:
    found = Found()
    commits: set[bytes] = set()
    trees: set[bytes] = set()
    # By name: an original thread before its forks, as ids start with a time.
    refs = db.execute("SELECT name, oid FROM ref ORDER BY name").fetchall()
    for name, oid in refs:
        chain = read_chain(source.reader, oid, commits.__contains__)
        commits.update(commit.oid for commit in chain.commits)
        thread = layout.find_ref_thread(name)
        if thread is None:
            _collect(source, found, chain, branch=None)
        else:
            _collect_tip(source, found, oid, chain, branch=thread, trees=trees)
        if len(found.nodes) >= _BATCH:
            insert_found(db, found)
    insert_found(db, found)


def _collect(
    source: Source, found: Found, chain: Chain, *, branch: ThreadId | None
) -> None:
    collect_chain(
        source.reader, chain, found, branch=branch, step_type=source.step_type
    )


def _collect_tip(
    source: Source,
    found: Found,
    tip: bytes,
    chain: Chain,
    *,
    branch: ThreadId,
    trees: set[bytes],
) -> None:
    try:
        tree = source.reader.read_commit(tip).tree
    except CorruptError:
        return
    named = {commit.node: commit.oid for commit in reversed(chain.commits)}
    is_whole = True
    for path, rows in find_added(source.reader, None, tree, seen=trees):
        found.nodes.update(rows)
        for key, number in find_steps(path, rows, source.step_type):
            if key[0] in named:
                found.add_step(key, named[key[0]], number, branch=branch)
            else:
                is_whole = False
    if not is_whole:
        whole = read_chain(source.reader, tip, _never)
        _collect(source, found, whole, branch=branch)


def _never(_: bytes) -> bool:
    return False
