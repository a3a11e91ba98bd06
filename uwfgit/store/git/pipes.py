"""What a child process is told and says while it runs, by threads of their own.

A thread's pipe is its own to close, so whoever gives one away forgets it. Closed
by another, its number may be that of another file when it is read next; and who
closes a pipe that is being written to waits for the reader.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final, TypeAlias

_CHUNK: Final = 65_536
_LINE_END: Final = re.compile(rb"(\r?\n|\r)")

Hear: TypeAlias = Callable[[bytes, bytes], None]
"""Told a line and what ended it."""


def feed(pipe: IO[bytes] | None, data: bytes) -> Callable[[], None]:
    """Write all of the data and close the pipe; the reader need not want it.

    Returns:
        What waits for that.
    """
    return _begin(_write, pipe, data).join


@contextmanager
def listening(
    pipe: IO[bytes] | None, hear: Hear | None
) -> Iterator[Callable[[], None]]:
    """Tell each line of a pipe, if there is one, for the length of the block.

    The block gets what waits for the pipe's end. What a process that outlives
    the child says after the block is not heard.
    """
    is_over = threading.Event()
    try:
        yield _begin(_read, pipe, hear, is_over).join
    finally:
        is_over.set()


def _begin(function: Callable[..., None], *args: object) -> threading.Thread:
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread


def _write(pipe: IO[bytes] | None, data: bytes) -> None:
    if pipe is not None:
        with suppress(OSError), pipe:
            pipe.write(data)


def _read(pipe: IO[bytes] | None, hear: Hear | None, is_over: threading.Event) -> None:
    if pipe is None or hear is None:
        return
    with pipe:
        for line, end in _iter_lines(pipe):
            if is_over.is_set():
                return
            hear(line, end)


def _iter_lines(pipe: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield lines, and what ends each: a line feed, a return, or nothing.

    A line that is too long to be one comes in several, and the end of a piece
    is then nothing.
    """
    rest, had_return = b"", False
    while data := os.read(pipe.fileno(), _CHUNK):
        if had_return and data.startswith(b"\n"):
            # The two of a pair came apart; the line was given already.
            data = data[1:]
        *pieces, rest = _LINE_END.split(rest + data)
        yield from zip(pieces[::2], pieces[1::2], strict=True)
        had_return = data.endswith(b"\r")
        if len(rest) > _CHUNK:
            yield rest, b""
            rest = b""
    if rest:
        yield rest, b""
