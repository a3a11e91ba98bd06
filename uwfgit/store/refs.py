"""Refs: resolve, list, and move by compare-and-swap."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from uwfgit.errors import CorruptError, LockedError
from uwfgit.ids import Oid
from uwfgit.shell import quote_word
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.libgit2 import pygit2
from uwfgit.store.locks.flock import pause
from uwfgit.store.locks.holding import (
    NO_MOVES,
    PACKED,
    Moves,
    announce,
    compare,
    move_together,
    remove_dead,
    require_plain,
)
from uwfgit.store.objects import Person, format_person
from uwfgit.store.pack import sync_folder

_LOCK_WAIT: Final = 2.0
_FAILURE_WAIT: Final = 0.1
_NO_OID: Final = "0" * 40


def find_ref(store: Store, name: str) -> Oid | None:
    """Return what a ref points at; ``None`` when there is no such ref.

    What cannot be the name of a ref is none.

    Raises:
        CorruptError: Its file is damaged, or names another ref.
    """
    # libgit2 would take a name for what stands before a NUL.
    if "\0" in name or not pygit2.reference_is_valid_name(name):
        return None
    with git_errors(f"read ref '{name}'"):
        try:
            target = store.repo.lookup_reference(name).target
        except KeyError:
            return None
        except pygit2.GitError as exc:
            raise _damaged(name) from exc
    if not isinstance(target, pygit2.Oid):
        raise _damaged(name)
    return Oid(str(target))


def _damaged(name: str) -> CorruptError:
    return CorruptError(
        f"ref '{name}' is damaged", hint="uwf doctor says what it pointed at"
    )


def list_refs(store: Store, prefix: str) -> dict[str, Oid]:
    """Return the refs below a prefix, sorted by name."""
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
        LockedError: git's own lock of the ref stayed held. Nothing changed.
    """
    move_refs(store, {name: (old, new)}, reason=reason)


def replace_ref(
    store: Store, name: str, *, old: Oid | None, new: Oid, person: Person, reason: str
) -> None:
    """Move one ref as :func:`move_ref` does, at half the waits for the disk.

    The ref is on disk afterwards; the line in its log, which nothing rests on, gets
    there whenever it does.

    Raises:
        RefConflictError, LockedError: As there.
    """

    def replace(*, is_first: bool) -> None:
        path = store.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # git's own lock of the ref, which becomes the ref, as in git.
        lock = path.with_name(f"{path.name}.lock")
        descriptor = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                compare(store, name, old=old, new=new, is_first=is_first)
                file.write(f"{new}\n".encode())
                if store.fsync:
                    file.flush()
                    os.fsync(file.fileno())
            log = store.path / "logs" / name
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("ab") as lines:
                lines.write(f"{old or _NO_OID} {new} {line}".encode())
            lock.replace(path)
        except BaseException:
            lock.unlink(missing_ok=True)
            raise
        if store.fsync:
            sync_folder(path.parent)

    line = f"{format_person(person)}\t{reason}\n"
    _move_patiently(store, [name], replace, reason=reason)


def move_refs(store: Store, moves: Moves, *, reason: str) -> None:
    """Move several refs under their locks: all expectations hold, or none moves.

    After a kill between the renames, whoever opens the store next, or moves any ref
    of it, moves the rest.

    Args:
        moves: Ref → what it must point at, and what it shall; as in `move_ref`.
        reason: One line for the reflogs.

    Raises:
        RefConflictError: One did not point at what was expected.
        LockedError: git's own lock of one stayed held; names the file.
    """
    require_plain(store, moves)
    names = [*moves]
    if any(new is None for _, new in moves.values()):
        names.append(PACKED)

    def move(*, is_first: bool) -> None:
        move_together(store, moves, reason=reason, is_first=is_first)

    _move_patiently(store, names, move, reason=reason, moves=moves)


class _Move(Protocol):
    def __call__(self, *, is_first: bool) -> None: ...


def _move_patiently(
    store: Store,
    names: Sequence[str],
    move: _Move,
    *,
    reason: str,
    moves: Moves = NO_MOVES,
) -> None:
    told = announce(store, names, command=reason, moves=moves)
    with git_errors("move a ref"), told:
        began, is_first = time.monotonic(), True
        while True:
            try:
                move(is_first=is_first)
            except (pygit2.GitError, ValueError, OSError) as exc:
                # libgit2 reads refs anew: it drops a packed one before it fails to.
                store.repo.set_refdb(pygit2.Refdb.open(store.repo))
                _require_patience(store, names, time.monotonic() - began, exc)
                is_first = False
                pause()
            else:
                return


def _require_patience(
    store: Store, names: Iterable[str], waited: float, exc: Exception
) -> None:
    """Let a failed move be tried again for a while.

    A lock that is held is told from other failures by its file: libgit2 says it
    in the message only, and in several ways. The file may just have gone.

    Raises:
        LockedError: A lock file has been there for too long.
    """
    files = [store.path / f"{name}.lock" for name in names]
    held = next((file for file in files if file.exists()), None)
    if held is None and waited >= _FAILURE_WAIT:
        raise exc
    if held is not None and waited >= _LOCK_WAIT and not remove_dead(store, held):
        what = held.relative_to(store.path).as_posix().removesuffix(".lock")
        error = LockedError(f"ref '{what}'", holder=f"'{held}'")
        error.hint = (
            f"try again; when no git is at work here: rm {quote_word(str(held))}"
        )
        raise error from exc
