"""Settings of remotes with which a plain fetch or push takes recorded work away.

``git clone --mirror`` writes ``+refs/*:refs/*``: the next ``git fetch --prune`` in
a store made of it removes every thread that the remote does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from uwfgit.store.libgit2 import pygit2
from uwfgit.store.safety.config import ConfigEntry

_KEYS: Final = frozenset({"fetch", "mirror", "push"})
_TRACKING: Final = ("refs/remotes/", "refs/uwf/queues/")
_APPROVALS: Final = "refs/tags/approved/"
"""Approvals have no tracking refs; theirs are fetched as ours."""


def is_forced(entry: ConfigEntry) -> bool:
    """Whether a setting makes a fetch or a push overwrite or remove branches."""
    if entry.section != "remote" or entry.name not in _KEYS or not entry.subsection:
        return False
    if entry.name == "mirror":
        return True
    source, _, target = (entry.value or "").partition(":")
    is_kept_apart = entry.name == "fetch" and target.startswith(_TRACKING)
    if source.startswith("+"):
        return not is_kept_apart
    is_ours = target.startswith((*_TRACKING, _APPROVALS))
    return entry.name == "fetch" and bool(target) and not is_ours


def list_forced(entries: Iterable[ConfigEntry]) -> tuple[str, ...]:
    """Name the remotes with such a setting."""
    found = [entry.subsection or "" for entry in entries if is_forced(entry)]
    return tuple(dict.fromkeys(found))


def list_bare(entries: Iterable[ConfigEntry]) -> tuple[str, ...]:
    """Name the remotes that have an address and nothing to fetch or push."""
    keys: dict[str, set[str]] = {}
    for entry in entries:
        if entry.section == "remote" and entry.subsection:
            keys.setdefault(entry.subsection, set()).add(entry.name)
    return tuple(name for name, found in keys.items() if not found & _KEYS)


def drop_forced(file: Path, entries: Iterable[ConfigEntry]) -> tuple[str, ...]:
    """Remove such settings from a config; of a remote its address is left.

    Returns:
        The remotes that were changed.

    Raises:
        OSError, pygit2.GitError: The file cannot be written.
    """
    found = tuple(entries)
    names = list_forced(found)
    for entry in found:
        is_theirs = entry.section == "remote" and entry.subsection in names
        if is_theirs and entry.name in _KEYS:
            config = pygit2.Config(str(file))
            if entry.key in config:
                config.delete_multivar(entry.key, ".*")
    return names
