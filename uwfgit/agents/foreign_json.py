"""JSON as agents, their servers and models say it; the only place that reads it.

Whatever they say is met here: a line that is no object is noise, a part that is
missing or of another type is empty, and what no node could hold (lone surrogates,
huge integers, endless depth) is made harmless.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from uwfgit.store.canonical import Json

MAX_DEPTH: Final = 50
_SAFE: Final = 2**53 - 1
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Event(Struct, frozen=True):
    """A JSON object that was read with care."""

    value: Mapping[str, Any]

    def raw(self, *path: str) -> Any:  # noqa: ANN401 - the border of foreign JSON
        """Return what stands at a path; ``None`` where nothing does."""
        value: Any = self.value
        for key in path:
            if not isinstance(value, Mapping):
                return None
            value = value.get(key)
        return value

    def text(self, *path: str) -> str:
        """Return the text at a path; empty for anything else."""
        value = self.raw(*path)
        return clean_text(value) if isinstance(value, str) else ""

    def number(self, *path: str) -> int:
        """Return the number at a path, rounded down; 0 for anything else."""
        return max(0, int(self.amount(*path) or 0))

    def amount(self, *path: str) -> float | None:
        """Return the number at a path as it is."""
        value = self.raw(*path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if -_SAFE <= value <= _SAFE else None

    def flag(self, *path: str) -> bool:
        """Whether ``true`` stands at a path."""
        return self.raw(*path) is True

    def part(self, *path: str) -> Event:
        """Return the object at a path; an empty one for anything else."""
        value = self.raw(*path)
        return Event(value if isinstance(value, Mapping) else {})

    def parts(self, *path: str) -> Iterator[Event]:
        """Yield the objects of the list at a path."""
        value = self.raw(*path)
        for item in value if isinstance(value, list) else ():
            if isinstance(item, Mapping):
                yield Event(item)


def read_event(line: str) -> Event | None:
    """Read one line; ``None`` for one that is no JSON object."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return Event(value) if isinstance(value, dict) else None


def read_api_error(text: str) -> tuple[str, int]:
    """Read an API's answer that a program put into its own words as it came.

    Returns:
        The message in it, else the text itself; its code, else 0.
    """
    start, end = text.find("{"), text.rfind("}")
    event = read_event(text[start : end + 1]) if 0 <= start < end else None
    if event is None:
        return text, 0
    return event.text("error", "message") or text, event.number("error", "code")


def clean_text(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    return _SURROGATE.sub("\ufffd", text)


def clean_value(value: Any, *, depth: int = 0) -> Json:  # noqa: ANN401 - the border of foreign JSON
    """Return a JSON value that a node can hold."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return value if -_SAFE <= value <= _SAFE else str(value)
    if depth >= MAX_DEPTH:
        return "[deeper than is kept]"
    if isinstance(value, Mapping):
        return {
            clean_text(str(key)): clean_value(item, depth=depth + 1)
            for key, item in value.items()
        }
    return [clean_value(item, depth=depth + 1) for item in value]


def flatten(content: object) -> str:
    """Return the text of a message's content: text, or blocks that hold some."""
    if isinstance(content, str):
        return clean_text(content)
    if isinstance(content, list):
        return "\n".join(text for item in content if (text := flatten(item)))
    if isinstance(content, Mapping):
        kind = content.get("type")
        if isinstance(content.get("text"), str):
            return clean_text(content["text"])
        return f"[{clean_text(kind)}]" if isinstance(kind, str) else ""
    return ""
