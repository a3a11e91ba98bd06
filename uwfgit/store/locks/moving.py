"""Several refs moved as one: what libgit2 does of it, and what a kill left undone.

No ref is renamed together with another, so a kill may fall between two. Whoever
moves several notes before what moves whereto; the rest is moved from the notes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from uwfgit.errors import RefConflictError, UntrustedError
from uwfgit.ids import Oid
from uwfgit.store.handle import Store
from uwfgit.store.libgit2 import pygit2
from uwfgit.store.log import log_event
from uwfgit.store.pack.pack import sync_folder

PACKED: Final = "packed-refs"
_NONE: Final = "-"

Moves: TypeAlias = Mapping[str, tuple[Oid | None, Oid | None]]
"""Ref → what it must point at, and what it shall; ``None`` for no ref."""
NO_MOVES: Final[Moves] = MappingProxyType({})


def format_move(name: str, old: Oid | None, new: Oid | None) -> str:
    """Write down one move of a ref; its name, which has no blank, stands first."""
    return f"{name} {old or _NONE} {new or _NONE}"


def parse_moves(notes: Iterable[str]) -> Moves:
    """Read the moves among some notes; others are names alone."""
    moves = {}
    for note in notes:
        match note.split(" "):
            case [name, old, new]:
                moves[name] = (_oid(old), _oid(new))
            case _:
                pass
    return moves


def _oid(text: str) -> Oid | None:
    return None if text == _NONE else Oid(text)


def finish_moves(store: Store, moves: Moves) -> bool:
    """Move the refs that a process killed at it had not moved yet.

    When it had moved none, none moves. When somebody else moved one since, or
    pruned what one shall point at, all stay as they are.

    Returns:
        Whether nothing is left to do; not while somebody holds a lock of git's.

    Raises:
        UntrustedError: A ref is a symbolic link.
    """
    moves = {name: move for name, move in moves.items() if move[0] != move[1]}
    require_plain(store, moves)
    try:
        left = _find_left(store, moves)
        if left:
            reason = "finish what was killed"
            move_together(store, left, reason=reason, is_first=False)
    except (pygit2.GitError, ValueError, KeyError, OSError, RefConflictError):
        return False
    if left:
        log_event(store, "moves-finished", refs=" ".join(left))
    return True


def _find_left(store: Store, moves: Moves) -> Moves:
    """Return the moves to make: of a move that began, and that nobody went on from."""
    now = {name: read_target(store, name) for name in moves}
    left = {name: move for name, move in moves.items() if now[name] == move[0]}
    done = [name for name, move in moves.items() if now[name] == move[1]]
    is_ours = done and len(left) + len(done) == len(moves)
    is_whole = all(new is None or new in store.repo for _, new in left.values())
    return left if is_ours and is_whole else {}


def require_plain(store: Store, names: Iterable[str]) -> None:
    """Make sure that no ref or reflog is written through a link.

    libgit2 follows one, and appends to its target what others made up.

    Raises:
        UntrustedError: One is there.
    """
    seen: set[str] = set()
    for name in names:
        for place in (name, f"logs/{name}"):
            parts = place.split("/")
            paths = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
            for path in paths:
                if path not in seen and os.path.islink(f"{store.path}/{path}"):  # noqa: PTH114 - no Path is made for each
                    raise UntrustedError(
                        f"'{store.path / path}' is a symbolic link",
                        hint="a store holds none; remove it",
                    )
            seen.update(paths)


def move_together(store: Store, moves: Moves, *, reason: str, is_first: bool) -> None:
    """Move refs if all are where they are expected; those that go, go last.

    Args:
        store: Where.
        moves: Which.
        reason: One line for the reflogs.
        is_first: No try came before, which might have moved some.

    Raises:
        RefConflictError: One is elsewhere; nothing has moved.
    """
    set_ = {name: new for name, (_, new) in moves.items() if new is not None}
    removed = [name for name, (_, new) in moves.items() if new is None]
    # Two transactions, because one commits its refs in no order of ours: what
    # keeps something alive has to be there before another ref goes.
    with store.repo.transaction() as removing:
        for name in removed:
            removing.lock_ref(name)
        with store.repo.transaction() as setting:
            for name in set_:
                setting.lock_ref(name)
            for name, (old, new) in moves.items():
                compare(store, name, old=old, new=new, is_first=is_first)
            for name, new in set_.items():
                setting.set_target(name, pygit2.Oid(hex=new), message=reason)
        for name in removed:
            if read_target(store, name) is not None:
                removing.remove(name)
    if store.fsync:
        # libgit2 waits for what it writes, and not for what it removes.
        for folder in {(store.path / name).parent for name in removed}:
            if folder.is_dir():
                sync_folder(folder)


def compare(
    store: Store, name: str, *, old: Oid | None, new: Oid | None, is_first: bool
) -> None:
    """Require that a ref, whose lock is held, is where it is expected.

    Raises:
        RefConflictError: It is elsewhere.
    """
    # Compare under the lock: libgit2 reports a lost race as a plain GitError,
    # told apart from a full disk only by its message text.
    actual = read_target(store, name)
    # A try before this one may have moved some and failed at another.
    if actual != old and (is_first or actual != new):
        raise RefConflictError(name, expected=old, actual=actual)


def read_target(store: Store, name: str) -> Oid | None:
    """Return what a ref points at; ``None`` when there is none."""
    try:
        return Oid(str(store.repo.lookup_reference(name).target))
    except KeyError:
        return None
