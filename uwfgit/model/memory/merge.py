"""Memories of two machines: checked, and put side by side."""

from __future__ import annotations

from typing import Final

from uwfgit.constants import FORMAT_VERSION
from uwfgit.errors import CorruptError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.commit import committer
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.memory.memory import iter_memory, read_session
from uwfgit.model.thread.derive import format_message
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.objects import format_commit, list_tree, read_commit
from uwfgit.store.pack import Batch
from uwfgit.store.refs import is_ancestor

MAX_RUNS: Final = 20_000
_MERGED: Final = 2


def merge_memory(ledger: Ledger, thread: ThreadId, mine: Oid, theirs: Oid) -> Oid:
    """Write a commit that has both memories below it, and nothing else."""
    person, batch = committer(ledger), Batch(store=ledger.store)
    trailers = [("Uwf-Format", str(FORMAT_VERSION)), ("Uwf-Memory", str(thread))]
    data = format_commit(
        tree=batch.edit_tree(None, {}),
        parents=(mine, theirs),
        author=person,
        committer=person,
        message=format_message("memory of two machines", "", trailers),
    )
    oid = batch.add("commit", data)
    batch.write_loose()
    return oid


def check_memory(store: Store, tip: Oid, *, known: Oid | None) -> str | None:
    """Say what is wrong with what a memory has beyond a known part of it."""
    if not is_ancestor(store, GENESIS_OID, tip):
        return "it does not start at uwf's first commit"
    try:
        for count, commit in enumerate(iter_memory(store, tip, known=known)):
            if count >= MAX_RUNS:
                return f"it has more than {MAX_RUNS} runs"
            if len(commit.parents) == _MERGED:
                if list_tree(store, read_commit(store, commit.oid).tree):
                    return f"commit {commit.oid} merges and adds at once"
            elif len(commit.parents) != 1:
                return f"commit {commit.oid} has {len(commit.parents)} parents"
            else:
                read_session(store, commit.oid)
    except CorruptError as exc:
        return exc.message
    return None
