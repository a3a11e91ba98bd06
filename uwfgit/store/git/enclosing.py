"""The repository whose work tree a folder is in, found as git finds it, without git.

Many commands ask for no more of a repository, so this loads no engine.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import ConfigError, InvalidError
from uwfgit.store.files import read_start
from uwfgit.store.safety.config import read_config

_POINTER_BYTES: Final = 64 * 1024


class Enclosing(Struct, frozen=True, kw_only=True):
    """A repository with a work tree around a folder.

    ``common_dir`` is the same for all worktrees of one repository; ``git_dir``
    is this one's own.
    """

    root: Path
    git_dir: Path
    common_dir: Path


def find_enclosing(cwd: Path) -> Enclosing | None:
    """Find the repository whose work tree ``cwd`` is in, by its ``.git`` only.

    A bare repository met on the way up is passed by: it may have come with
    the files around it. The walk ends at the file system's border, as git's.
    """
    folder = Path(os.path.realpath(cwd))
    try:
        device = folder.stat().st_dev
    except OSError:
        return None
    for root in (folder, *folder.parents):
        if root.stat().st_dev != device:
            return None
        marker = root / ".git"
        if not os.path.lexists(marker):
            continue
        git_dir = find_git_dir(marker)
        if git_dir is not None:
            return Enclosing(
                root=root, git_dir=git_dir, common_dir=find_common_dir(git_dir)
            )
        if marker.is_file():
            # git stops at a pointer that leads nowhere too; what lies further
            # up is another repository.
            return None
    return None


def find_lost_pointer(cwd: Path) -> Path | None:
    """Return the ``.git`` file that keeps a folder from its repository, if one does.

    Such a file points to what is not there: a work tree was moved, or its
    repository.
    """
    folder = Path(os.path.realpath(cwd))
    near = (each / ".git" for each in (folder, *folder.parents))
    found = next((each for each in near if each.is_file()), None)
    return None if found is None or find_git_dir(found) is not None else found


def find_git_dir(marker: Path) -> Path | None:
    """Return the repository a ``.git`` is, or points to, if there is one."""
    git_dir = marker if marker.is_dir() else _read_pointer(marker, prefix="gitdir: ")
    if git_dir is None or not os.path.lexists(git_dir / "HEAD"):
        return None
    common_dir = find_common_dir(git_dir)
    is_whole = (common_dir / "objects").is_dir() and (common_dir / "refs").is_dir()
    return git_dir if is_whole else None


def find_common_dir(git_dir: Path) -> Path:
    """Return the folder that all work trees of a repository share."""
    return _read_pointer(git_dir / "commondir", prefix="") or git_dir


def _read_pointer(file: Path, *, prefix: str) -> Path | None:
    """Read a path that a file holds, relative to the file's folder."""
    try:
        text = os.fsdecode(read_start(file, most=_POINTER_BYTES)).rstrip("\r\n")
    except OSError:
        return None
    target = text.removeprefix(prefix)
    if not target or "\0" in target or not text.startswith(prefix):
        return None
    return Path(os.path.realpath(file.parent / target))


def enclosing_setting(enclosing: Enclosing, key: str) -> str | None:
    """Read a setting of the repository's own config file, not the user's.

    Args:
        enclosing: The repository.
        key: The setting's, in lower case.

    Raises:
        ConfigError: The file does not parse.
    """
    path = enclosing.common_dir / "config"
    try:
        return read_config(path).values.get(key)
    except InvalidError:
        return _read_with_libgit2(path, key)
    except OSError:
        return None


def _read_with_libgit2(path: Path, key: str) -> str | None:
    from uwfgit.store.libgit2 import pygit2  # noqa: PLC0415 - few configs need it

    try:
        return pygit2.Config(str(path))[key]
    except KeyError:
        return None
    except (pygit2.GitError, OSError, ValueError) as exc:
        raise ConfigError(
            "git's config does not parse", source=path, hint=str(exc)
        ) from exc
