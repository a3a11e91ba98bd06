"""Text of others inside a prompt: the only place that sets it apart (pure)."""

from __future__ import annotations

import re

_TICKS = re.compile("`+")


def fence(text: str) -> str:
    """Put text in a fence named ``data`` that nothing inside it can close."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    marker = "`" * max(3, longest + 1)
    return f"{marker}data\n{text.rstrip()}\n{marker}"
