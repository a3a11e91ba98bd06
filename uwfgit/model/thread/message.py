"""Commit messages of events: subject, quoted body, trailers (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from uwfgit.constants import (
    MAX_MESSAGE_BYTES,
    QUOTE_CHARS,
    QUOTE_LINES,
    SUBJECT_CHARS,
)

NONE: Final = "-"
_STATUS_CHARS: Final = 64
_TRAILER = re.compile(r"(?P<key>[A-Z][A-Za-z-]*): (?P<value>[\x20-\x7e]*)")
# Controls, line and paragraph separators, bidirectional marks and overrides:
# none may reach a terminal or a review page through a subject or a quote.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)


def has_unsafe(text: str) -> bool:
    """Whether a text holds control or bidirectional characters."""
    return _UNSAFE.search(text) is not None


def format_subject(text: str) -> str:
    """Make a one-line subject of any text, at most ``SUBJECT_CHARS`` long."""
    line = " ".join(_UNSAFE.sub(" ", text).split())
    if len(line) <= SUBJECT_CHARS:
        return line
    return line[: SUBJECT_CHARS - 1].rstrip() + "…"


def format_message(subject: str, body: str, trailers: Iterable[tuple[str, str]]) -> str:
    """Write a message whose last paragraph holds the trailers and nothing else.

    Every quoted line starts with ``> ``, so no agent's text can be a trailer.
    Lines that would make the message longer than any reader accepts are left out.
    """
    head = format_subject(subject)
    quote = [
        f"> {_UNSAFE.sub('', line)[:QUOTE_CHARS]}".rstrip()
        for line in body.strip().splitlines()[:QUOTE_LINES]
    ]
    tail = "\n".join(f"{key}: {value}" for key, value in trailers)
    while True:
        paragraphs = [head, "\n".join(quote), tail] if quote else [head, tail]
        message = "\n\n".join(paragraphs) + "\n"
        if not quote or len(message.encode()) <= MAX_MESSAGE_BYTES:
            return message
        quote.pop()


def parse_trailers(message: str) -> dict[str, str]:
    """Read the trailers of a message's last paragraph; empty when it is none."""
    paragraph = message.rstrip("\n").rpartition("\n\n")[2]
    found: dict[str, str] = {}
    for line in paragraph.split("\n"):
        match = _TRAILER.fullmatch(line)
        if match is None or match["key"] in found:
            return {}
        found[match["key"]] = match["value"]
    return found


def read_quote(message: str) -> str:
    """Read the text a message quotes, as far as it does; empty without one."""
    lines = [line for line in message.split("\n") if line[:1] == ">"]
    return "\n".join(line[1:].removeprefix(" ") for line in lines)


def format_status(status: str | None) -> str:
    """Write a ``$status`` as a trailer's value: JSON unless it is plain ASCII.

    One longer than an edge's can be is cut; the whole stands in the output.
    """
    if status is None:
        return NONE
    if len(status) > _STATUS_CHARS:
        status = status[: _STATUS_CHARS - 1] + "…"
    if (
        status.isascii()
        and status.isprintable()
        and status != NONE
        and status[:1] != '"'
    ):
        return status
    return json.dumps(status)
