"""A repository beside the store for what nobody has checked yet.

It borrows the store's objects and is thrown away. What is found good is packed
anew, reachable objects only, and moved into the store.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from uwfgit.errors import LockedError, StoreError
from uwfgit.ids import Oid
from uwfgit.store.git.gitcmd import run_git
from uwfgit.store.handle import Store, git_errors, make_store
from uwfgit.store.libgit2 import RepositoryOpenFlag, pygit2
from uwfgit.store.locks.flock import lock
from uwfgit.store.pack import keep_note, kept_until_moved, sync_folder

_FOLDER: Final = "scratch"
# Whoever reads it checks it, byte by byte; git's own check would refuse the
# good with the bad. Blobs beyond any bound of ours are never held in memory.
_CONFIG: Final = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = false
\tbigFileThreshold = 16m
[gc]
\tauto = 0
[maintenance]
\tauto = false
[fetch]
\tfsckObjects = false
\tunpackLimit = 1
\twriteCommitGraph = false
[transfer]
\tfsckObjects = false
\tunpackLimit = 1
"""
_PARTS: Final = (".pack", ".rev", ".idx")
"""What a pack consists of; the index last, for it makes the pack seen."""


@contextmanager
def open_scratch(store: Store, *, borrows: bool = True) -> Iterator[Store]:
    """Yield an empty repository that borrows the store's objects.

    It is gone after the block; what a killed process left is removed first.

    Args:
        store: Whose.
        borrows: Without it, whoever is fetched from does not hear what the store has.

    Raises:
        StoreError: It cannot be made.
    """
    folder = store.state_dir / _FOLDER
    for left in folder.glob("*.lock") if folder.is_dir() else ():
        with suppress(LockedError, StoreError), lock(left, command="uwf", wait=0):
            shutil.rmtree(left.with_suffix(""), ignore_errors=True)
            left.unlink(missing_ok=True)
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    guard = folder / f"{name}.lock"
    with lock(guard, command="uwf"):
        path = folder / name
        try:
            with git_errors(f"make '{path}'"):
                _make(path, borrow=store.path / "objects" if borrows else None)
                flags = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.BARE
                repo = pygit2.Repository(str(path), flags)
            yield make_store(path, repo)
        finally:
            shutil.rmtree(path, ignore_errors=True)
            guard.unlink(missing_ok=True)


def _make(path: Path, *, borrow: Path | None) -> None:
    path.mkdir(mode=0o700, parents=True)
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (path / name).mkdir(parents=True)
    if borrow is not None:
        (path / "objects" / "info" / "alternates").write_text(f"{borrow}\n")
    (path / "config").write_text(_CONFIG)
    (path / "HEAD").write_text("ref: refs/heads/none\n")


@contextmanager
def adopt_objects(
    store: Store,
    scratch: Store,
    tips: Iterable[Oid],
    *,
    known: Iterable[Oid],
    environment: Mapping[str, str],
) -> Iterator[None]:
    """Bring what is reachable from some tips into the store, in one pack.

    For the length of the block no repack takes the pack away; refs are to be
    moved in it.

    Args:
        store: Where to.
        scratch: Where from.
        tips: What to bring.
        known: Commits that refs of the store hold; what they reach stays out.
        environment: What git's starts from.

    Raises:
        StoreError: The objects cannot be packed, or not written.
    """
    name = _pack(scratch, tips, known, environment)
    if name is None:
        yield
        return
    folder = store.path / "objects" / "pack"
    keep = folder / f"pack-{name}.keep"
    with git_errors("bring objects into the store"):
        keep.write_bytes(keep_note())
        keep.chmod(0o600)
    with kept_until_moved(store, keep.with_suffix(".pack")):
        with git_errors("bring objects into the store"):
            for part in _PARTS:
                file = scratch.path / f"pack-{name}{part}"
                if file.exists():
                    file.rename(folder / file.name)
            sync_folder(folder)
        yield


def _pack(
    scratch: Store,
    tips: Iterable[Oid],
    known: Iterable[Oid],
    environment: Mapping[str, str],
) -> str | None:
    """Pack what tips reach beyond the known; ``None`` when that is nothing."""
    wanted = [*tips, *(f"^{oid}" for oid in known)]
    done = run_git(
        [
            *("pack-objects", "--revs", "--delta-base-offset", "--non-empty", "-q"),
            str(scratch.path / "pack"),
        ],
        git_dir=scratch.path,
        environment=environment,
        input="".join(f"{line}\n" for line in wanted).encode(),
    )
    if done.code:
        raise StoreError(f"cannot pack what was fetched: {done.complaint}")
    return done.text or None
