"""The places below a store's folders of which it matters who may write them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

INNER: Final = (
    "refs/heads",
    "refs/heads/thread",
    "refs/heads/workflow",
    "refs/tags",
    "refs/uwf",
    "objects/info",
    "objects/pack",
    "hooks/pre-push",
    "hooks/pre-receive",
)
"""A few, and no walk: every command looks at them before it starts."""


def iter_inner(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Give those of a store's inner places that exist, links not followed."""
    for name in INNER:
        place = path / name
        try:
            status = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        yield place, status
