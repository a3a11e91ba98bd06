"""Files of local state that are the user's alone, whatever the umask is."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o077


class _Umask:
    """The process's umask while at least one block wants all to be private."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._blocks = 0
        self._before = 0

    def enter(self) -> None:
        with self._guard:
            if self._blocks == 0:
                self._before = os.umask(_PRIVATE)
            self._blocks += 1

    def leave(self) -> None:
        with self._guard:
            self._blocks -= 1
            if self._blocks == 0:
                os.umask(self._before)


_umask: Final = _Umask()


@contextmanager
def only_mine() -> Iterator[None]:
    """Let nobody else read or write what the block makes; afterwards all is as before.

    For what libgit2 writes, which knows no other way. The umask is the whole
    process's: no agent may be started in the block.
    """
    _umask.enter()
    try:
        yield
    finally:
        _umask.leave()


def write_private(path: Path, text: str) -> None:
    """Write a text file with mode 0600, in place of what stood there.

    Raises:
        OSError: It cannot be written.
    """
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as stream:  # noqa: PTH123 - a descriptor, for its mode
        stream.write(text)
