"""Files of local state that are the user's alone, whatever the umask is."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o077


_guard: Final = threading.Lock()
_before: Final[list[int]] = []
"""The umask at the start of each block that is not over, the process's own first."""


@contextmanager
def only_mine() -> Iterator[None]:
    """Let nobody else read or write what the block makes; afterwards all is as before.

    For what libgit2 writes, which knows no other way. The umask is the whole
    process's: no agent may be started in the block.
    """
    with _guard:
        _before.append(os.umask(_PRIVATE))
    try:
        yield
    finally:
        with _guard:
            before = _before.pop()
            if not _before:
                os.umask(before)


def write_private(path: Path, text: str) -> None:
    """Write a text file with mode 0600, in place of what stood there.

    Raises:
        OSError: It cannot be written.
    """
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor, for its mode
        stream.write(text)
