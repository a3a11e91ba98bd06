"""The repository a person works in; read, never written.

It is not the store: its objects are not ours, it may be of any format, and
nothing in it is trusted.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from uwfgit.errors import CorruptError, StoreError
from uwfgit.store.files import read_start, write_private
from uwfgit.store.git.enclosing import find_common_dir, find_git_dir
from uwfgit.store.git.gitcmd import find_git, run_git
from uwfgit.store.libgit2 import RepositoryOpenFlag, pygit2
from uwfgit.store.raw import RawObjects

_GIT_SECONDS: Final = 30.0
_WALK_SECONDS: Final = 120.0
"""For a whole history, which is walked once."""
_NEAR: Final = 1000
_OID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NO_ENVIRONMENT: Final[Mapping[str, str]] = {}


def read_head(
    root: Path, *, environment: Mapping[str, str] = _NO_ENVIRONMENT
) -> str | None:
    """Return the oid HEAD of the work tree at ``root`` stands at.

    ``None`` without a repository or a commit. A repository that libgit2 does
    not open (sha256, reftable, another owner) is asked through git, if
    ``environment`` has one; git refuses strangers' repositories itself.
    """
    git_dir = find_git_dir(root / ".git")
    if git_dir is None:
        return None
    try:
        repo = _open_once(git_dir)
        return None if repo.head_is_unborn else str(repo.head.target)
    except (pygit2.GitError, KeyError, OSError, ValueError):
        options = ("--verify", "--quiet")
        return _ask_git(root, "rev-parse", *options, "HEAD", environment=environment)


def root_commit(
    root: Path,
    *,
    environment: Mapping[str, str] = _NO_ENVIRONMENT,
    memory: Path | None = None,
) -> str | None:
    """Return the oid of the first commit of the work tree's repository.

    Found along first parents, so it is one. ``None`` without a commit, and in
    a shallow clone, which does not have it.

    Args:
        root: The top of the work tree.
        environment: Finds git.
        memory: The user's own folder, where it is remembered: a history of half a
            million commits takes seconds to walk.
    """
    git_dir = find_git_dir(root / ".git")
    if git_dir is None or (find_common_dir(git_dir) / "shallow").exists():
        return None
    if find_git(environment) is None:
        return _walk_to_root(git_dir)
    head = read_head(root, environment=environment) if memory is not None else None
    if memory is None or head is None:
        return _ask_root(root, environment)
    file = _memory_of(memory, find_common_dir(git_dir))
    known = _recall(file)
    if known is not None and _goes_on(root, known[0], head, environment):
        found: str | None = known[1]
    else:
        found = _ask_root(root, environment)
    if found is not None and known != (head, found):
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(file, f"{head} {found}\n")
    return found


def _ask_root(root: Path, environment: Mapping[str, str]) -> str | None:
    options = ("--first-parent", "--max-parents=0")
    return _ask_git(
        root,
        "rev-list",
        *options,
        "HEAD",
        environment=environment,
        timeout=_WALK_SECONDS,
    )


def _memory_of(memory: Path, common_dir: Path) -> Path:
    name = hashlib.sha256(os.fsencode(common_dir)).hexdigest()[:32]
    return memory / "roots" / name


def _recall(file: Path) -> tuple[str, str] | None:
    try:
        words = read_start(file, most=256).decode("ascii", "replace").split()
    except OSError:
        return None
    if len(words) != 2 or not all(map(_OID.fullmatch, words)):  # noqa: PLR2004 - head and root
        return None
    return words[0], words[1]


def _goes_on(root: Path, known: str, head: str, environment: Mapping[str, str]) -> bool:
    """Whether one commit is on the chain of first parents of another, and near it."""
    if known == head:
        return True
    words = ("--first-parent", "--parents", f"--max-count={_NEAR}", head, f"^{known}")
    try:
        done = run_git(
            ["rev-list", *words, "--"],
            git_dir=None,
            cwd=root,
            environment=environment,
            timeout=_GIT_SECONDS,
        )
    except StoreError:
        return False
    last = done.text.rpartition("\n")[2].split()
    # Its first parent is the first commit of the chain that the other reaches.
    return done.code == 0 and last[1:2] == [known]


def _open(git_dir: Path) -> pygit2.Repository:
    return pygit2.Repository(str(git_dir), RepositoryOpenFlag.NO_SEARCH)


@lru_cache(maxsize=8)
def _open_once(git_dir: Path) -> pygit2.Repository:
    # Asked twice a step. Refs are read anew each time; config would not be.
    return _open(git_dir)


def _ask_git(
    root: Path,
    *args: str,
    environment: Mapping[str, str],
    timeout: float = _GIT_SECONDS,
) -> str | None:
    if find_git(environment) is None:
        return None
    try:
        result = run_git(
            args, git_dir=None, cwd=root, environment=environment, timeout=timeout
        )
    except StoreError:
        return None
    return result.text if result.code == 0 and _OID.fullmatch(result.text) else None


def _walk_to_root(git_dir: Path) -> str | None:
    objects = RawObjects(find_common_dir(git_dir) / "objects")
    try:
        oid = str(_open(git_dir).head.target)
        while parents := objects.read_links(oid).parents:
            oid = parents[0]
    except (CorruptError, pygit2.GitError, KeyError, OSError, ValueError):
        return None
    return oid
