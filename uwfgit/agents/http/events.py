"""Server-sent events out of a stream of bytes; the only place that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024
_BOM: Final = "\ufeff"


class ServerEvent(Struct, frozen=True, kw_only=True):
    """One event; ``name`` is ``message`` where the stream gives none."""

    name: str
    data: str
    id: str | None = None


class EventReader(Struct, kw_only=True):
    """Cuts a stream into events, wherever its pieces end.

    ``is_cut`` says that an event was longer than its bound; what was beyond is lost,
    and with it the event.
    """

    is_cut: bool = False
    last_id: str | None = None
    _pending: bytearray = field(default_factory=bytearray)
    _name: str = ""
    _data: list[str] = field(default_factory=list)
    _size: int = 0
    _is_begun: bool = False

    def feed(self, chunk: bytes) -> Iterator[ServerEvent]:
        """Take the next bytes; give each event that became whole with them."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._grow(line)
            event = self._take(self._pending.decode(errors="replace"))
            self._pending.clear()
            if event is not None:
                yield event
        self._grow(rest)

    def _grow(self, part: bytes) -> None:
        room = MAX_EVENT_BYTES - len(self._pending) - self._size
        self.is_cut = self.is_cut or len(part) > room
        self._pending += part[: max(0, room)]

    def _take(self, line: str) -> ServerEvent | None:
        if not self._is_begun:
            self._is_begun = True
            line = line.removeprefix(_BOM)
        line = line.removesuffix("\r")
        if not line:
            told = ServerEvent(
                name=self._name or "message",
                data="\n".join(self._data),
                id=self.last_id,
            )
            has_data = bool(self._data)
            self._name, self._size = "", 0
            self._data.clear()
            return told if has_data else None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self.last_id = value
        return None
