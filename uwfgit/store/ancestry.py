"""How commits stand to one another; only commits are read."""

from __future__ import annotations

from collections.abc import Iterator

from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.objects import Commit, read_commit


def has_object(store: Store, oid: Oid) -> bool:
    """Whether the store, or what it borrows from, has an object."""
    return store.raw.exists(oid)


def is_ancestor(store: Store, old: Oid, new: Oid) -> bool:
    """Whether ``new`` is ``old`` or was made on top of it.

    Commits that are not there are nobody's ancestors.
    """
    return store.raw.descends(new, old)


def iter_first_parents(store: Store, tip: Oid) -> Iterator[Oid]:
    """Yield a commit and its first parents, newest first.

    Raises:
        CorruptError: One is missing.
    """
    oid: Oid | None = tip
    while oid is not None:
        yield oid
        parents = read_commit(store, oid).parents
        oid = parents[0] if parents else None


def iter_commits(store: Store, tip: Oid) -> Iterator[Commit]:
    """Yield a branch's commits, newest first, along first parents to genesis.

    Raises:
        CorruptError: One is missing, or the branch starts elsewhere.
    """
    oid = tip
    while oid != GENESIS_OID:
        commit = read_commit(store, oid)
        yield commit
        if not commit.parents:
            raise CorruptError(
                f"commit {oid} has no parent; a branch starts at genesis"
            )
        oid = commit.parents[0]
