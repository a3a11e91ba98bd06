"""The user's ``.env`` file; the only place that knows its form (pure)."""

from __future__ import annotations

import re

_LINE = re.compile(
    r"""(?m)^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*"""
    r"""(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)'|(?P<plain>[^\n#]*?))"""
    r"""[ \t]*(?:[ \t]\#[^\n]*)?\r?$""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_BARE = re.compile(r"[A-Za-z0-9_./+=:@%,-]+")
_QUOTED = re.compile(r"[^'\r\n]*")
_ESCAPED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def parse_dotenv(text: str) -> dict[str, str]:
    r"""Read ``NAME=VALUE`` lines; of a name given twice the last counts.

    Values may stand in quotes and then span lines; in double ones ``\n`` is a
    line break. What is no such line is passed over.
    """
    return {match["name"]: _value(match) for match in _LINE.finditer(text)}


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), match["double"])
    return match["single"] if match["single"] is not None else match["plain"]


def is_variable_name(name: str) -> bool:
    """Tell whether a line may set a variable of this name."""
    return _NAME.fullmatch(name) is not None


def add_variable(text: str, name: str, value: str) -> str | None:
    """Add a line that sets a variable; all that stands there stays as it is.

    Returns:
        The new text; ``None`` when no added line would be read as it should, since
        a quote before it is never closed.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lead = newline if text and not text.endswith("\n") else ""
    added = f"{text}{lead}{name}={_quote(value)}{newline}"
    wanted = {**parse_dotenv(text), name: value}
    return added if parse_dotenv(added) == wanted else None


def _quote(value: str) -> str:
    """Write a value as shells and other readers of such files take it too."""
    if _BARE.fullmatch(value):
        return value
    if _QUOTED.fullmatch(value):
        return f"'{value}'"
    escaped = re.sub(r'[\\"$`]', r"\\\g<0>", value)
    return '"' + re.sub(r"[\n\r\t]", lambda m: _ESCAPED[m[0]], escaped) + '"'
