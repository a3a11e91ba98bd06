"""How a number of bytes reads."""

from __future__ import annotations

from typing import Final

_UNIT: Final = 1024
_UNITS: Final = ("KiB", "MiB", "GiB", "TiB")


def format_size(size: int) -> str:
    """Write a number of bytes as people read it: ``12 bytes``, ``3.4 MiB``."""
    if size < _UNIT:
        return f"{size} bytes"
    power = min((size.bit_length() - 1) // 10, len(_UNITS))
    return f"{size / _UNIT**power:.1f} {_UNITS[power - 1]}"
