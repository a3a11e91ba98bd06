"""The scalars of YAML 1.2 core; the only place that knows what a plain word means."""

from __future__ import annotations

import math
import re
from typing import Final

from uwfgit.constants import MAX_SAFE_INTEGER

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
        raise ValueError(f"'{text[:40]}' is no !!{kind}")
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
