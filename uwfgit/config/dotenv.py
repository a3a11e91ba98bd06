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
