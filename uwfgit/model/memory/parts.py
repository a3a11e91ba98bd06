"""A session's files as blobs: parts that stay equal while a file grows (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

PART_BYTES: Final = 1024 * 1024


def cut_parts(data: bytes) -> Iterator[bytes]:
    """Cut a file at line ends, each part as long as it may be.

    A file that only grows keeps all its parts but the last, so git keeps them once.
    """
    if not data:
        yield data
    start = 0
    while start < len(data):
        end = start + PART_BYTES
        if end < len(data):
            line = data.rfind(b"\n", start, end)
            end = line + 1 if line >= start else end
        yield data[start:end]
        start = end
