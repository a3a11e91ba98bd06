"""Values to YAML text; the only place that writes YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from uwfgit.model.yaml.scalar import read_plain
from uwfgit.store.canonical import Json

_PLAIN = re.compile(r"[A-Za-z0-9_/$.][A-Za-z0-9_/$.()+-]*( [A-Za-z0-9_/$.()+-]+)*")
_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
_WORDS_OF_1_1: Final = frozenset(["y", "n", "yes", "no", "on", "off"])
_MAX_PLAIN: Final = 200
_MAX_KEY: Final = 500
"""The parser reads a simple key of at most 1,024 bytes."""


def dump_yaml(value: Json, *, escape: re.Pattern[str] | None = None) -> str:
    """Write a JSON value in block style that reads back to the same value.

    Keys keep their order, nothing is shared by aliases, and text that YAML 1.1
    readers take for something else is quoted.

    Args:
        escape: A character that is written as an escape, beside those that YAML
            itself wants so.

    Raises:
        TypeError: The value is none JSON has.
    """
    unsafe = _UNSAFE
    if escape is not None:
        unsafe = re.compile(f"{_UNSAFE.pattern}|{escape.pattern}")
    if isinstance(value, str):
        # A block needs something to be indented under.
        return f"{value if _is_plain(value) else _quoted(value, unsafe)}\n"
    return "\n".join(_lines(value, unsafe)) + "\n"


def _lines(value: Json, unsafe: re.Pattern[str]) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [
            line for key, item in value.items() for line in _pair(key, item, unsafe)
        ]
    if isinstance(value, (list, tuple)) and value:
        return [line for item in value for line in _behind("- ", _lines(item, unsafe))]
    if isinstance(value, str):
        return _text(value, unsafe)
    return [_scalar(value)]


def _behind(lead: str, lines: list[str]) -> list[str]:
    """Put lines behind a lead; the others are indented by two."""
    rest = [f"  {line}" if line else "" for line in lines[1:]]
    return [f"{lead}{lines[0]}", *rest]


def _pair(key: Json, value: Json, unsafe: re.Pattern[str]) -> list[str]:
    if not isinstance(key, str):
        raise TypeError(f"key {key!r} is not a string")
    lines = _lines(value, unsafe)
    shown = key if _is_plain(key) else _quoted(key, unsafe)
    if len(shown) > _MAX_KEY:
        return [*_behind("? ", [shown]), *_behind(": ", lines)]
    is_open = isinstance(value, (Mapping, list, tuple)) and len(value) > 0
    if is_open:
        return [f"{shown}:", *_behind("  ", lines)]
    return _behind(f"{shown}: ", lines)


def _scalar(value: Json) -> str:
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, (list, tuple)):
        return "[]"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value, allow_nan=False)
    raise TypeError(f"a {type(value).__name__} is not a JSON value")


def _text(text: str, unsafe: re.Pattern[str]) -> list[str]:
    if _is_plain(text):
        return [text]
    if not _is_literal(text, unsafe):
        return [_quoted(text, unsafe)]
    ending = len(text) - len(text.rstrip("\n"))
    chomp = "-" if ending == 0 else "" if ending == 1 else "+"
    lines = text.removesuffix("\n").split("\n")
    return [f"|{chomp}", *lines]


def _is_plain(text: str) -> bool:
    if len(text) > _MAX_PLAIN or not _PLAIN.fullmatch(text):
        return False
    if text.lower() in _WORDS_OF_1_1 or text[0].isdigit() or text[0] == ".":
        return False
    return isinstance(read_plain(text), str)


def _is_literal(text: str, unsafe: re.Pattern[str]) -> bool:
    if "\n" not in text or unsafe.search(text.replace("\t", " ")):
        return False
    start = text.lstrip("\n")
    if not start or start[0] in " \t":
        return False
    return all(not line or not line.isspace() for line in text.split("\n"))


def _quoted(text: str, unsafe: re.Pattern[str]) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return unsafe.sub(_escape, quoted)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the basic plane's end
