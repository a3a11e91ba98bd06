"""Lines of a stream of bytes, for a listener; the only place that cuts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

MAX_LINE_BYTES: Final = 8 * 1024 * 1024
"""What a listener is given of one line; the text itself is kept whole."""
MAX_LINES: Final = 1_000_000
"""Each costs its listener something, however short it is."""


class Lines(Struct, kw_only=True):
    """Tells a listener each line, without its end, as soon as it is whole.

    A line beyond the bound is told cut, and ``is_cut`` says that it happened; of too
    many lines the rest is not told, and ``is_endless`` says so. Lines that came
    together are told together where they are ``joined``.
    """

    on_line: Callable[[str], None] | None
    joined: bool = False
    is_cut: bool = False
    is_endless: bool = False
    _room: int = MAX_LINES
    _pending: bytearray = field(default_factory=bytearray)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, wherever they were cut."""
        if self.on_line is None or self.is_endless:
            return
        self._room -= chunk.count(b"\n")
        self.is_endless = self._room < 0
        if self.joined:
            head, end, chunk = chunk.rpartition(b"\n")
            if end:
                self._grow(head)
                self._tell()
            self._grow(chunk)
            return
        *ends, rest = chunk.split(b"\n")
        for part in ends:
            self._grow(part)
            self._tell()
        self._grow(rest)

    def finish(self) -> None:
        """Tell the last line, if it had no end."""
        if self._pending:
            self._tell()

    def _grow(self, part: bytes) -> None:
        room = MAX_LINE_BYTES - len(self._pending)
        self.is_cut = self.is_cut or len(part) > room
        self._pending += part[:room]

    def _tell(self) -> None:
        line = self._pending.decode(errors="replace").removesuffix("\r")
        if self.joined:
            line = line.replace("\r\n", "\n")
        self._pending.clear()
        if self.on_line is not None:
            self.on_line(line)
