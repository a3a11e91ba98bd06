"""An open store, and the seam where pygit2's errors become uwf's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import (
    CorruptError,
    StoreError,
)
from uwfgit.store.libgit2 import pygit2
from uwfgit.store.raw import RawObjects

STATE_DIR = "uwf"
_WINDOW: Final = 64 * 1024
_MAPPED: Final = 1024 * 1024


class Store(Struct, frozen=True, kw_only=True):
    """A store that passed every check, and the open handle on it.

    ``fsync`` says whether what is written here is to be on disk at once.
    """

    path: Path
    state_dir: Path
    """The folder of local state: never in git, never pushed."""
    locks: Path
    """The folder of the files that our own locks are held on, a file each."""
    repo: pygit2.Repository
    fsync: bool = True
    raw: RawObjects
    """Its objects; ``repo`` reads none, for libgit2 may not come back from one."""
    on_many_packs: Callable[[Store], object] | None = None
    """Called after a pack was written here that makes them many; merges them."""


def make_store(
    path: Path,
    repo: pygit2.Repository,
    *,
    fsync: bool = True,
    on_many_packs: Callable[[Store], object] | None = None,
) -> Store:
    """Return the store of a handle, whose objects are read where the handle would."""
    raw = RawObjects(Path(repo.path) / "objects")
    return Store(
        path=path,
        state_dir=path / STATE_DIR,
        locks=path / STATE_DIR / "locks",
        repo=repo,
        fsync=fsync,
        raw=raw,
        on_many_packs=on_many_packs,
    )


@contextmanager
def git_errors(what: str) -> Iterator[None]:
    """Turn what pygit2 and the file system raise into errors of uwf's tree.

    A missing object or ref is a ``CorruptError``, everything else a
    ``StoreError``. libgit2 reports a lost race as a plain ``GitError``: who
    moves a ref tells that apart himself, under the ref's lock.

    Args:
        what: What was to be done: ``write a tree``; the message says that it
            cannot.
    """
    try:
        yield
    except KeyError as exc:
        missing = exc.args[0] if exc.args else "object"
        raise CorruptError(f"cannot {what}: {missing} is missing") from exc
    except OSError as exc:
        raise StoreError(f"cannot {what}: {exc.strerror or exc}") from exc
    except (pygit2.GitError, pygit2.Passthrough, ValueError) as exc:
        raise StoreError(f"cannot {what}: {exc}") from exc


def map_little() -> None:
    """Have little of the packs in memory at once, from now on in this process.

    libgit2 maps a GiB of a pack at a time and lets go of none below 8 GiB. That is for
    who reads many objects, which takes a half longer here; who waits for an agent for
    hours has read a few of each step.
    """
    pygit2.settings.mwindow_size = _WINDOW
    pygit2.settings.mwindow_mapped_limit = _MAPPED
