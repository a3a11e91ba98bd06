"""The texts people read: files derived from nodes, messages of commits (pure).

The only place that writes ``output.md``, ``prompt.md``, ``TASK.md`` and
``links/``; verify calls the same functions to compare. Each file ends in exactly one
newline. A message is a subject, a quoted body and trailers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from uwfgit.constants import (
    MAX_MESSAGE_BYTES,
    QUOTE_CHARS,
    QUOTE_LINES,
    STATUS,
    SUBJECT_CHARS,
)
from uwfgit.ids import HASH_SHAPE, Hash
from uwfgit.store.canonical import Json
from uwfgit.store.layout import OUTPUT_FILE, PROMPT_FILE

_PLAIN_KEY = re.compile(r"[$A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_COMPACT: Final = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":")
)
_LINK_FIELD = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
# YAML 1.2 readers may refuse these raw, and terminals act on the C1 range.
_CONTROL = re.compile("[\x7f-\x9f]")
_UNPRINTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WORD = re.compile(rf"(?<![0-9A-Za-z_]){HASH_SHAPE}(?![0-9A-Za-z_])", re.ASCII)
_WHOLE: Final = re.compile(HASH_SHAPE, re.ASCII)


def output_file(output: Mapping[str, Json], body: str) -> bytes:
    """Write ``output.md``: one line a field, then the body."""
    keys = sorted(output, key=lambda key: (key != STATUS, key))
    lines = ["---"]
    for key in keys:
        name = key if _PLAIN_KEY.fullmatch(key) else _COMPACT.encode(key)
        line = f"{name}: {_COMPACT.encode(output[key])}"
        lines.append(_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", line))
    text = "\n".join([*lines, "---", "", body])
    return (text.rstrip("\n") + "\n").encode()


def run_files(
    output: Mapping[str, Json], body: str, *, edge_prompt: str, note: str | None
) -> dict[str, bytes]:
    """Write the files of a run: ``output.md`` and ``prompt.md``.

    The prompt is that of the edge, and a person's note below a rule.
    """
    told = edge_prompt if note is None else f"{edge_prompt}\n\n---\n\n{note}"
    return {
        OUTPUT_FILE: output_file(output, body),
        PROMPT_FILE: (told.rstrip("\n") + "\n").encode(),
    }


def task_file(prompt: str) -> bytes:
    """Write ``TASK.md``."""
    return (prompt.rstrip("\n") + "\n").encode()


def summary_file(text: str) -> bytes:
    """Write ``SUMMARY.md``: without blanks around it, NUL or other controls."""
    return (_UNPRINTED.sub("\ufffd", text.strip()) + "\n").encode()


def link_field(key: str) -> str | None:
    """Name the file in ``links/`` for an output's field; ``None`` for an odd key."""
    return f"{key}.md" if _LINK_FIELD.fullmatch(key) else None


def find_hash_strings(value: Json) -> tuple[Hash, ...]:
    """Return the strings of a value that have the shape of a hash, in order, once."""
    found: dict[Hash, None] = {}
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if _WHOLE.fullmatch(item):
                found[Hash(item)] = None
        elif isinstance(item, dict):
            stack.extend(reversed([item[key] for key in sorted(item)]))
        elif isinstance(item, list):
            stack.extend(reversed(item))
    return tuple(found)


def find_hash_words(texts: Iterable[str]) -> tuple[Hash, ...]:
    """Return the 13-character words of texts that have the shape of a hash, once."""
    found: dict[Hash, None] = {}
    for text in texts:
        for match in _WORD.finditer(text):
            found[Hash(match[0])] = None
    return tuple(found)


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
