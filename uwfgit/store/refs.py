"""Refs: resolve, list, and move by compare-and-swap."""

from __future__ import annotations

from collections.abc import Mapping

import pygit2

from uwfgit.errors import RefConflictError
from uwfgit.ids import Oid
from uwfgit.store.repository import Store, git_errors


def find_ref(store: Store, name: str) -> Oid | None:
    """Give what a ref points at; ``None`` when there is no such ref."""
    with git_errors(f"read ref '{name}'"):
        try:
            target = store.repo.lookup_reference(name).target
        except KeyError:
            return None
    return Oid(str(target))


def list_refs(store: Store, prefix: str) -> dict[str, Oid]:
    """Give the refs below a prefix, sorted by name."""
    with git_errors("list refs"):
        iterator = store.repo.references.iterator()
        found = {
            str(ref.name): Oid(str(ref.target))
            for ref in iterator
            if ref.name.startswith(prefix)
        }
    return dict(sorted(found.items()))


def move_ref(
    store: Store, name: str, *, old: Oid | None, new: Oid | None, reason: str
) -> None:
    """Point ``name`` at ``new`` if, and only if, it still points at ``old``.

    Args:
        old: Expected target; ``None`` means the ref must not exist yet.
        new: The target; ``None`` removes the ref.
        reason: One line for the reflog.

    Raises:
        RefConflictError: Another writer moved the ref first. Nothing changed.
    """
    move_refs(store, {name: (old, new)}, reason=reason)


def move_refs(
    store: Store, moves: Mapping[str, tuple[Oid | None, Oid | None]], *, reason: str
) -> None:
    """Move several refs under their locks: all expectations hold, or none moves.

    A crash between the renames may leave some moved; put the ref that keeps
    something alive first.

    Raises:
        RefConflictError: One did not point at what was expected.
    """
    with git_errors("move a ref"), store.repo.transaction() as transaction:
        for name in moves:
            transaction.lock_ref(name)
        for name, (old, new) in moves.items():
            # Compare under the lock: libgit2 reports a lost race as a plain
            # GitError, told apart from a full disk only by its message text.
            actual = _read_target(store, name)
            if actual != old:
                raise RefConflictError(name, expected=old, actual=actual)
            if new is None:
                transaction.remove(name)
            else:
                transaction.set_target(name, pygit2.Oid(hex=new), message=reason)


def _read_target(store: Store, name: str) -> Oid | None:
    try:
        return Oid(str(store.repo.lookup_reference(name).target))
    except KeyError:
        return None
