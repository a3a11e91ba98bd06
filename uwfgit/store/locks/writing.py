"""Write so that nothing gets lost beside gc, other writers and passing failures."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final, TypeVar

from uwfgit.errors import ConflictError, CorruptError, RefConflictError, StoreError
from uwfgit.store.files import only_mine
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.libgit2 import pygit2
from uwfgit.store.locks.flock import Lock, lock, pause
from uwfgit.store.locks.holding import lock_path

T = TypeVar("T")

_WAIT: Final = 60.0
"""Longer than a prune takes: what an agent said must not be lost to it."""
_PATIENCE: Final = 1.0
_PROBE: Final = bytes(1024 * 1024)


@contextmanager
def writing(store: Store) -> Iterator[None]:
    """Keep a prune of fresh objects, and others, away from what the block writes.

    What libgit2 makes is the user's alone, unless the repository is a shared one.

    Raises:
        LockedError: Such a prune runs for very long; names it.
    """
    path = lock_path(store, "store")
    with git_errors("read the store's config"):
        is_shared = "core.sharedRepository" in store.repo.config
    modes = nullcontext() if is_shared else only_mine()
    with lock(path, command="write", wait=_WAIT, shared=True, what="the store"), modes:
        yield


@contextmanager
def alone(store: Store, *, command: str, wait: float) -> Iterator[Lock]:
    """Keep all writers away, for what only a store at rest allows.

    Raises:
        LockedError: Somebody wrote all the time, or another one is alone.
    """
    path = lock_path(store, "store")
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
    deadline = time.monotonic() + _PATIENCE
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
                    f"{exc.message} (tried for {_PATIENCE:g} s)",
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
