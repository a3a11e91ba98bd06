"""Many refs moved at once, by git: all of them, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uwfgit.errors import LockedError, RefConflictError, StoreError
from uwfgit.store.git.gitcmd import run_git
from uwfgit.store.handle import Store
from uwfgit.store.locks.holding import PACKED, Moves, announce
from uwfgit.store.refs import find_ref, move_refs

_NONE: Final = "0" * 40
_FEW: Final = 16
"""Up to so many are moved faster without starting git."""


def move_many(
    store: Store, moves: Moves, *, reason: str, environment: Mapping[str, str]
) -> bool:
    """Move refs that nobody else should be moving; return whether all moved.

    When one did not hold what was expected of it, none has moved.

    Args:
        store: Where.
        moves: Ref → what it must point at, and what it shall.
        reason: One line for the reflogs.
        environment: What git's starts from.

    Raises:
        StoreError: The store cannot be written.
    """
    if len(moves) <= _FEW:
        try:
            move_refs(store, moves, reason=reason)
        except (RefConflictError, LockedError):
            return False
        return True
    lines = [
        f"update {ref} {new or _NONE} {old or _NONE}\n"
        for ref, (old, new) in moves.items()
    ]
    with announce(store, [PACKED], command=reason, moves=moves) as told:
        done = run_git(
            ["update-ref", "--stdin", "-m", reason],
            git_dir=store.path,
            environment=environment,
            input="".join(lines).encode(),
            held=[told],
        )
    if done.code and all(_holds(store, moves)):
        raise StoreError(f"cannot move refs: {done.complaint}")
    return done.code == 0


def _holds(store: Store, moves: Moves) -> list[bool]:
    return [find_ref(store, ref) == old for ref, (old, _) in moves.items()]


def pack_refs(store: Store, *, environment: Mapping[str, str]) -> None:
    """Put all refs into one file, which is read many times faster than many.

    For a store that nobody else writes to at the time.
    """
    run_git(["pack-refs", "--all"], git_dir=store.path, environment=environment)
