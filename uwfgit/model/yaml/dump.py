"""Values to YAML text and plain words to values; the only place that writes YAML.

It alone knows what a plain word means in YAML 1.2 core.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final

from uwfgit.constants import MAX_SAFE_INTEGER
from uwfgit.store.canonical import Json

Scalar = str | int | float | bool | None

TAG_PREFIX: Final = "tag:yaml.org,2002:"

_WORDS: Final[dict[str, bool | None]] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMBER_START = frozenset("0123456789+-.")
_MAX_DIGITS: Final = 40
"""Longer digits are beyond 2^53-1 unless padded; Python's int() has a limit too."""


_TAGGED: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    f"{TAG_PREFIX}null": ("null", (type(None),)),
    f"{TAG_PREFIX}bool": ("bool", (bool,)),
    f"{TAG_PREFIX}int": ("int", (int,)),
    f"{TAG_PREFIX}float": ("float", (int, float)),
}


def read_plain(text: str) -> Scalar:
    """Return the value a plain (unquoted) scalar has.

    Raises:
        ValueError: A number that uwf cannot store: beyond 2^53-1 or not finite.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_START:
        return text
    if _INTEGER.fullmatch(text):
        return _read_integer(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if not math.isfinite(value):
            raise ValueError(f"number {text[:_MAX_DIGITS]} is not finite")
        return value
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(f"number {text} is not finite")
    return text


def read_tagged(text: str, tag: str) -> Scalar:
    """Return the value of a scalar under one of the core tags.

    Raises:
        KeyError: The tag is none of the core's scalars.
        ValueError: The text is no such scalar, or a number beyond storing.
    """
    if tag in ("!", f"{TAG_PREFIX}str"):
        return text
    kind, allowed = _TAGGED[tag]
    value = read_plain(text)
    # bool is an int to isinstance, never to YAML.
    if not isinstance(value, allowed) or (isinstance(value, bool) != (kind == "bool")):
        raise ValueError(f"'{text[:40]}' is not a !!{kind}")
    return float(value) if kind == "float" and value is not None else value


def _read_integer(text: str) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    digits = text[2:] if base != 10 else text  # noqa: PLR2004 - decimal
    stripped = digits.lstrip("+-0") or "0"
    value = int(stripped[:_MAX_DIGITS], base)
    if value > MAX_SAFE_INTEGER:
        shown = text if len(text) <= _MAX_DIGITS else f"{text[:_MAX_DIGITS]}…"
        raise ValueError(f"integer {shown} is beyond 2^53-1")
    return -value if text[0] == "-" else value


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
    if not isinstance(value, str):
        return [_scalar(value)]
    if _is_plain(value):
        return [value]
    is_literal = _is_literal(value, unsafe)
    return _literal(value) if is_literal else [_quoted(value, unsafe)]


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


def _literal(text: str) -> list[str]:
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
