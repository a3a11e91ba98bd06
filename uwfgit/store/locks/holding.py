"""A store's own locks: of refs, of whoever writes, and what a kill leaves undone.

libgit2 and git lock a ref by making ``<ref>.lock``; nobody removes that file when
its maker is killed. Every move of refs is therefore announced in a file of ours
that the kernel unlocks: who finds one whose maker is dead tidies up after it. No ref is
renamed together with another, so a kill may fall between two. Whoever moves several
notes before what moves whereto; the rest is moved from the notes.

Who writes holds the store's lock as well, shared: so that nothing gets lost beside gc,
other writers and passing failures.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

from uwfgit.errors import (
    ConflictError,
    CorruptError,
    LockedError,
    RefConflictError,
    StoreError,
    UntrustedError,
)
from uwfgit.ids import Oid
from uwfgit.store.files import only_mine
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.libgit2 import pygit2
from uwfgit.store.locks.flock import Lock, lock, pause, read_holder
from uwfgit.store.locks.git_lock import ANY, lock_stays, remove_dead, remove_leftovers
from uwfgit.store.log import log_event
from uwfgit.store.pack import sync_folder

PACKED: Final = "packed-refs"
_NONE: Final = "-"

Moves: TypeAlias = Mapping[str, tuple[Oid | None, Oid | None]]
"""Ref → what it must point at, and what it shall; ``None`` for no ref."""
NO_MOVES: Final[Moves] = MappingProxyType({})
_MOVES: Final = "moves"
_PATIENCE: Final = 2.0
"""How long git's own locks are waited for."""
_WRITER_WAIT: Final = 60.0
"""Longer than a prune takes: what an agent said must not be lost to it."""
_RETRY_SECONDS: Final = 1.0
_PROBE: Final = bytes(1024 * 1024)
T = TypeVar("T")


@contextmanager
def hold_refs(
    store: Store,
    name: str,
    refs: Iterable[str],
    *,
    command: str,
    what: str,
    wait: float = 0.5,
) -> Iterator[Lock]:
    """Hold the lock that guards some refs, for the length of the block.

    Args:
        name: The lock's.
        refs: What it guards; a dead holder's leftovers there are removed.
        command: What the holder does, for whoever meets the lock.
        what: Name of the locked thing in the error.
        wait: Seconds to try for.

    Raises:
        LockedError: Someone else holds it; names the holder.
        StoreError: The lock file cannot be made.
    """
    path = store.locks / name
    with lock(path, command=command, what=what, wait=wait) as held:
        guarded = list(refs)
        if held.previous is not None:
            remove_leftovers(store, held.previous, guarded)
            tidy_up(store)
        _require_free(store, guarded)
        yield held


def _require_free(store: Store, refs: Iterable[str]) -> None:
    """Wait for git's own locks of some refs: later is too late to find one held.

    Raises:
        LockedError: One stays held; names the file.
    """
    deadline = time.monotonic() + _PATIENCE
    for name in refs:
        path = store.path / f"{name}.lock"
        while path.exists() and not remove_dead(store, path):
            tidy_up(store)
            if time.monotonic() > deadline:
                raise lock_stays(path)
            pause()


@contextmanager
def announce(
    store: Store, names: Iterable[str], *, command: str, moves: Moves = NO_MOVES
) -> Iterator[Lock]:
    """Let others know which of git's locks this process takes in the block.

    Args:
        store: Where.
        names: The refs, or ``ANY`` where git chooses them.
        command: What is done.
        moves: What becomes of some of them, all or none; the rest of it is done by
            others should we be killed between two.

    Yields:
        The lock that says so; git gets it when it goes on should we be killed.

    Raises:
        StoreError: The file of ours cannot be made.
    """
    folder = store.locks / _MOVES
    tidy_up(store)
    path = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
    notes = [name for name in names if name not in moves]
    notes += [
        f"{name} {old or _NONE} {new or _NONE}" for name, (old, new) in moves.items()
    ]
    with lock(path, command=command, notes=notes) as held:
        try:
            if store.fsync and len(moves) > 1:
                # The power may go between two as well.
                os.fsync(held.descriptor)
                sync_folder(folder)
            yield held
        finally:
            path.unlink(missing_ok=True)


def has_leftovers(store: Store) -> bool:
    """Whether a process that moved refs is at work, or was killed at it."""
    folder = store.locks / _MOVES
    return folder.is_dir() and any(folder.iterdir())


def tidy_up(store: Store) -> None:
    """Finish what processes were killed at while they moved refs; remove their locks.

    Costs the listing of an empty folder when there were none.
    """
    try:
        paths = list((store.locks / _MOVES).iterdir())
    except OSError:
        return
    for path in paths:
        # One that is held has a living maker. Shared, so that the record stays
        # should this process be killed as well.
        with (
            suppress(LockedError),
            lock(path, command="tidy up", wait=0, shared=True) as held,
        ):
            if held.previous is not None:
                notes = held.previous.notes
                if ANY in notes and any(
                    each != path and read_holder(each) is not None for each in paths
                ):
                    # Someone alive moves refs at this moment: one of the locks may be
                    # that one's; it is looked at again.
                    continue
                names = [note.partition(" ")[0] for note in notes]
                remove_leftovers(store, held.previous, names)
                if not finish_moves(store, parse_moves(notes)):
                    continue
            path.unlink(missing_ok=True)


def parse_moves(notes: Iterable[str]) -> Moves:
    """Read the moves among some notes: ref, old and new; others are names alone.

    No ref's name has a blank.
    """
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


@contextmanager
def writing(store: Store) -> Iterator[None]:
    """Keep a prune of fresh objects, and others, away from what the block writes.

    What libgit2 makes is the user's alone, unless the repository is a shared one.

    Raises:
        LockedError: Such a prune runs for very long; names it.
    """
    path = store.locks / "store"
    with git_errors("read the store's config"):
        is_shared = "core.sharedRepository" in store.repo.config
    modes = nullcontext() if is_shared else only_mine()
    with (
        lock(path, command="write", wait=_WRITER_WAIT, shared=True, what="the store"),
        modes,
    ):
        yield


@contextmanager
def alone(store: Store, *, command: str, wait: float) -> Iterator[Lock]:
    """Keep all writers away, for what only a store at rest allows.

    Raises:
        LockedError: Somebody wrote all the time, or another one is alone.
    """
    path = store.locks / "store"
    with lock(path, command=command, wait=wait, what="the store") as held:
        yield held


def write_whole(
    store: Store, write: Callable[[], T], *, decides_anew: bool = False
) -> T:
    """Run what writes objects and moves a ref; all again when that passes.

    A folder of objects that git removes while it is empty, or a ref that it
    packs, make a write fail that succeeds a moment later. It starts from its
    first object then: one written before may be gone as well.

    Args:
        store: Where to.
        write: Writes all of it; called as often as needed for a second.
        decides_anew: ``write`` also reads what its decision rests on, so that
            after a lost race it can simply run again.

    Raises:
        StoreError: The store cannot be written; says why.
        ConflictError: Others stood in the way all the time.
    """
    deadline = time.monotonic() + _RETRY_SECONDS
    while True:
        is_last = time.monotonic() >= deadline
        try:
            with writing(store):
                return write()
        except RefConflictError:
            if is_last or not decides_anew:
                raise
        except CorruptError as exc:
            # Read while it moved from pack to pack, or really missing.
            if is_last or not _is_foreign(exc):
                raise
        except StoreError as exc:
            if not _is_foreign(exc):
                raise
            _require_writable(store)
            if is_last:
                raise ConflictError(
                    f"{exc.message} (tried for {_RETRY_SECONDS:g} s)",
                    hint="another process may be in the way; try again",
                ) from exc
        pause()


def _is_foreign(error: StoreError | CorruptError) -> bool:
    """Whether git or the system failed, rather than a check of ours."""
    return isinstance(error.__cause__, OSError | KeyError | pygit2.GitError)


def _require_writable(store: Store) -> None:
    """Find out why the store cannot be written, if it cannot.

    libgit2 says it in its message only.
    """
    path = store.path / "objects" / f"tmp_uwf_{secrets.token_hex(8)}"
    try:
        try:
            path.write_bytes(_PROBE)
        finally:
            path.unlink(missing_ok=True)
    except OSError as exc:
        raise StoreError(
            f"cannot write to store '{store.path}': {exc.strerror}",
            hint="nothing was changed; make room, or see to its permissions",
        ) from exc
