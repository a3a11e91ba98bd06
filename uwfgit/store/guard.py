"""What an agent must not change: a fingerprint of the store's config and hooks."""

from __future__ import annotations

import hashlib
from pathlib import Path

from uwfgit.store.repository import Store


def fingerprint(store: Store) -> dict[str, str]:
    """Give a digest of each file that steers git in this store.

    A file that cannot be read has an empty digest, so its coming and going
    shows as well.
    """
    files = [store.path / "config", store.path / "info" / "attributes"]
    hooks = store.path / "hooks"
    if hooks.is_dir():
        files += sorted(hooks.iterdir())
    return {str(path.relative_to(store.path)): _digest(path) for path in files}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def changed_files(before: dict[str, str], after: dict[str, str]) -> tuple[str, ...]:
    """Name the files that differ between two fingerprints."""
    names = before.keys() | after.keys()
    return tuple(sorted(n for n in names if before.get(n) != after.get(n)))
