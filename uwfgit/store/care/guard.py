"""What an agent must not change: a fingerprint of the store's config and hooks."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress

from uwfgit.store.handle import Store


def fingerprint(store: Store) -> dict[str, str]:
    """Return a digest of each file that steers git in this store.

    A file that cannot be read has an empty digest, so its coming and going
    shows as well.
    """
    return {name: _digest(f"{store.path}/{name}") for name in _list_files(store)}


def _list_files(store: Store) -> list[str]:
    files = ["config", "info/attributes"]
    with suppress(OSError):
        files += sorted(f"hooks/{name}" for name in os.listdir(store.path / "hooks"))  # noqa: PTH208 - twice a step
    return files


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - twice a step
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


def changed_files(before: dict[str, str], after: dict[str, str]) -> tuple[str, ...]:
    """Name the files that differ between two fingerprints."""
    names = before.keys() | after.keys()
    return tuple(sorted(n for n in names if before.get(n) != after.get(n)))
