"""Open a repository that is no store, only to read its objects.

Nothing of it is run, written or believed: whoever reads checks every byte.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from uwfgit.errors import CorruptError, NotFoundError, UntrustedError, first_of
from uwfgit.ids import Oid, is_oid
from uwfgit.store.git.enclosing import find_enclosing
from uwfgit.store.handle import Store, git_errors, make_store
from uwfgit.store.libgit2 import RepositoryOpenFlag, pygit2
from uwfgit.store.raw import COMMIT, TAG, RawObjects
from uwfgit.store.safety.trust import check_history

_MOST_BYTES: Final = 128 * 1024
"""More than a commit or a tag that verifies may have."""
_MOST_TAGS: Final = 16
_TAGGED: Final = re.compile(rb"object ([0-9a-f]{40})\n")
_PARENT: Final = re.compile(rb"^parent ([0-9a-f]{40})$", re.MULTILINE)


def find_repository(folder: Path) -> Path:
    """Return the folder that holds a clone's objects and refs, bare or not.

    Raises:
        NotFoundError: There is no repository right there.
    """
    path = Path(os.path.realpath(folder))
    if os.path.lexists(path / ".git"):
        enclosing = find_enclosing(path)
        if enclosing is not None and enclosing.root == path:
            return enclosing.common_dir
    if (path / "HEAD").is_file() and (path / "objects").is_dir():
        return path
    raise NotFoundError("repository", str(folder), hint="give a full clone")


def open_reading(path: Path, *, quarantine: Path | None = None) -> Store:
    """Open a repository for reading; its owner is for libgit2 to judge.

    Args:
        path: Its own folder, as ``find_repository`` gives it.
        quarantine: Where a receiving git keeps the objects it was sent.

    Raises:
        StoreError: libgit2 does not open it.
    """
    flags = RepositoryOpenFlag.NO_SEARCH
    with git_errors(f"open repository '{path}'"):
        repo = pygit2.Repository(str(path), flags)
        if quarantine is not None:
            repo.odb.add_disk_alternate(str(quarantine))
    store = make_store(path, repo)
    if quarantine is not None:
        store.raw.borrow(quarantine)
    return store


def limit_mapping(size: int) -> None:
    """Bound how much of packs this process maps into memory at once."""
    pygit2.settings.mwindow_size = size // 8
    pygit2.settings.mwindow_mapped_limit = size


def require_whole(path: Path) -> None:
    """Make sure a repository shows the history it has.

    Raises:
        UntrustedError: Replace refs, grafts, or objects or refs that are elsewhere.
        StoreError: It cannot be read.
    """
    with git_errors(f"read repository '{path}'"):
        problems = check_history(path)
    if problems:
        refused = f"repository refused: {first_of(problems)}"
        raise UntrustedError(refused, hint=problems[0].hint)


def copy_history(store: Store, tips: Iterable[Oid], *, folder: Path) -> Store:
    """Make a repository of some commits and tags, with all commits before them.

    For git to look at: of what a stranger's repository says in its config, its
    packs' indexes or its commit graph nothing comes along, and each object is
    what its name says. What is missing, damaged or too large stays out.

    Args:
        store: Where they are.
        tips: Commits and tag objects.
        folder: An empty folder; whoever calls takes it away.

    Raises:
        StoreError: The folder cannot be written.
    """
    with git_errors("copy commits to look at"):
        repo = pygit2.init_repository(str(folder), bare=True)
        waiting, seen = [*tips], set[Oid]()
        while waiting:
            oid = waiting.pop()
            if oid not in seen:
                seen.add(oid)
                waiting += _copy_object(store.raw, repo.odb, oid)
    return make_store(folder, repo)


def _copy_object(theirs: RawObjects, ours: pygit2.Odb, oid: Oid) -> list[Oid]:
    """Copy a commit or a tag; return a commit's parents."""
    try:
        kind, _, data = theirs.load(oid, limit=_MOST_BYTES)
    except CorruptError:
        return []
    if kind not in (COMMIT, TAG) or data is None:
        return []
    if str(ours.write(kind, data)) != oid or kind == TAG:
        return []
    return [Oid(each.decode()) for each in _PARENT.findall(data.partition(b"\n\n")[0])]


def resolve_commit(store: Store, name: str) -> tuple[str, Oid] | None:
    """Find the commit that a ref's name or an oid stands for, as git would.

    Returns:
        The whole name of the ref, or the oid again, and the commit.
    """
    try:
        if is_oid(name):
            return name, _peel(store, Oid(name))
        ref = store.repo.lookup_reference_dwim(name).resolve()
        return str(ref.name), _peel(store, Oid(str(ref.target)))
    except (CorruptError, KeyError, ValueError, OSError, pygit2.GitError):
        return None


def _peel(store: Store, oid: Oid) -> Oid:
    """Follow tags to the commit they name.

    Raises:
        CorruptError: They name none.
    """
    for _ in range(_MOST_TAGS):
        kind, _, data = store.raw.load(oid, limit=_MOST_BYTES)
        if kind == COMMIT:
            return oid
        named = _TAGGED.match(data or b"") if kind == TAG else None
        if named is None:
            break
        oid = Oid(named[1].decode())
    raise CorruptError(f"object {oid} is not a commit, nor a tag of one")
