"""What a damaged thread's errors say that mends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uwfgit.errors import CorruptError
from uwfgit.ids import ThreadId


@contextmanager
def naming_mend(thread: ThreadId) -> Iterator[None]:
    """Let what is corrupt of a thread say where more is told; it goes on."""
    try:
        yield
    except CorruptError as exc:
        exc.hint = exc.hint or (
            f"uwf verify {thread} says more; uwf doctor names what may mend it"
        )
        raise
