"""A request as the fake API heard it, and the shape every protocol module has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

Body: TypeAlias = Mapping[str, Any]
Event: TypeAlias = bytes
"""One server-sent event, with its blank line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request asks, out of its protocol's clothes.

    ``said`` are the messages as (role, text); the system prompt comes first.
    ``results`` are the texts of all tool results the conversation holds, and
    ``is_after_tool`` tells whether the newest message is one.
    """

    model: str
    streams: bool
    said: tuple[tuple[str, str], ...]
    tools: tuple[str, ...]
    results: tuple[str, ...]
    is_after_tool: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One recorded request.

    ``index`` counts the requests that the script was asked about; ``is_side`` marks
    those it was not (titles, token counts, probes).
    """

    protocol: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: Body
    asked: Asked
    index: int
    is_side: bool = False

    @property
    def text(self) -> str:
        """All that the request's messages say."""
        return "\n".join(text for _, text in self.asked.said)

    @property
    def last_text(self) -> str:
        """What its newest message says."""
        return self.asked.said[-1][1] if self.asked.said else ""


class Wire(Protocol):
    """One protocol; its modules have these functions."""

    NAME: str

    def matches(self, path: str) -> bool:
        """Tell whether a path (without query) asks for an answer."""

    def read(self, path: str, body: Body) -> Asked:
        """Read a request's body."""

    def complete(self, say: Any, asked: Asked) -> Body:  # noqa: ANN401 - Say, which imports this module
        """Give the whole answer as one body."""

    def stream(self, say: Any, asked: Asked) -> Iterable[Event]:  # noqa: ANN401 - Say, which imports this module
        """Give the answer as events."""

    def refuse(self, status: int, message: str) -> Body:
        """Give the body of an error."""


def event(data: Body, *, name: str | None = None) -> Event:
    """Give one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def pieces(text: str, size: int) -> list[str]:
    """Cut a text as a model streams it; an empty one has no pieces."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def flatten(content: object) -> str:
    """Give the text of a message's content: text, or blocks that hold some."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, (flatten(item) for item in content)))
    if isinstance(content, Mapping):
        for key in ("text", "content", "output"):
            if key in content:
                return flatten(content[key])
    return ""
