"""How many objects a store has that are in no pack; a guess that costs nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

MANY_LOOSE: Final = 20_000
"""From here on packing them is worth a word."""
_FOLDERS: Final = 256
_SAMPLE: Final = "17"


def estimate_loose(store: Path) -> int:
    """Guess the number of loose objects by one of their folders."""
    try:
        return len(os.listdir(store / "objects" / _SAMPLE)) * _FOLDERS  # noqa: PTH208 - once a command
    except OSError:
        return 0
