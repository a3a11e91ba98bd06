"""The files people read: fixed bytes derived from nodes (pure).

The only place that writes ``output.md``, ``prompt.md``, ``TASK.md`` and
``links/``; verify calls the same functions to compare.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from uwfgit.constants import STATUS
from uwfgit.ids import HASH_SHAPE, Hash
from uwfgit.store.canonical import Json

_PLAIN_KEY = re.compile(r"[$A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_LINK_FIELD = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
# YAML 1.2 readers may refuse these raw, and terminals act on the C1 range.
_CONTROL = re.compile("[\x7f-\x9f]")
_UNPRINTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WORD = re.compile(rf"(?<![0-9A-Za-z_]){HASH_SHAPE}(?![0-9A-Za-z_])", re.ASCII)
_WHOLE: Final = re.compile(HASH_SHAPE, re.ASCII)


def one_newline(text: str) -> str:
    """End a text in exactly one newline."""
    return text.rstrip("\n") + "\n"


def output_file(output: Mapping[str, Json], body: str) -> bytes:
    """Write ``output.md``: one line a field, then the body."""
    keys = sorted(output, key=lambda key: (key != STATUS, key))
    lines = ["---"]
    for key in keys:
        name = key if _PLAIN_KEY.fullmatch(key) else _compact(key)
        lines.append(f"{name}: {_compact(output[key])}")
    lines.append("---")
    return one_newline("\n".join(lines) + "\n\n" + body).encode()


def _compact(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def prompt_file(edge_prompt: str, note: str | None) -> bytes:
    """Write ``prompt.md``: the edge prompt, and a person's note below a rule."""
    text = edge_prompt if note is None else f"{edge_prompt}\n\n---\n\n{note}"
    return one_newline(text).encode()


def task_file(prompt: str) -> bytes:
    """Write ``TASK.md``."""
    return one_newline(prompt).encode()


def summary_file(text: str) -> bytes:
    """Write ``SUMMARY.md``: without blanks around it, NUL or other controls."""
    return one_newline(_UNPRINTED.sub("\ufffd", text.strip())).encode()


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
