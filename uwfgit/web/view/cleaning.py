"""What is left out of a page that others will see: the only place that decides it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

T = TypeVar("T")

LEFT_OUT: Final = "[left out of this export]"
KINDS: Final = (
    "tool results",
    "reasoning",
    "code diffs",
    "mail addresses",
    "host names",
)
"""What an export leaves out unless it is asked for."""

_MAIL: Final = r"[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z][\w-]*(?:\.[\w-]+)*"
_OWNER: Final = re.compile(rf" ?<(?:{_MAIL})?>")
_ADDRESS: Final = re.compile(_MAIL)
_HOMES: Final = re.compile(
    r"(?<![\w/.~-])(?:/home/|/Users/|[A-Z]:\\Users\\)[\w.@+-]+|(?<![\w/.~-])/root\b"
)
_LEAST: Final = 4
"""A shorter host name is as likely a word."""


class Cleaner(Struct, frozen=True, kw_only=True):
    """Shows homes as ``~``; and unless ``full``, leaves the rest of it out."""

    full: bool
    home: str = ""
    hosts: tuple[str, ...] = ()

    def text(self, value: str) -> str:
        """Clean a text."""
        if len(self.home) > 1:
            value = re.sub(rf"{re.escape(self.home)}(?![\w.-])", "~", value)
        value = _HOMES.sub("~", value)
        if self.full:
            return value
        value = (
            _ADDRESS.sub("[address]", _OWNER.sub("", value))
            if "@" in value or "<" in value
            else value
        )
        for host in self.hosts:
            if len(host) >= _LEAST:
                value = re.sub(
                    rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "[host]", value
                )
        return value

    def clean(self, value: T) -> T:
        """Clean all text in a value, however deep; hashes and oids stay."""
        return cast("T", self._any(value))

    def _any(self, value: Any) -> Any:  # noqa: ANN401 - any value of a page
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, tuple):
            return tuple(self._any(each) for each in value)
        if isinstance(value, list):
            return [self._any(each) for each in value]
        if isinstance(value, Mapping):
            turns = value.get("turns")
            if not self.full and isinstance(turns, list):
                value = {**value, "turns": [_without_talk(turn) for turn in turns]}
            return {self._any(key): self._any(each) for key, each in value.items()}
        if isinstance(value, Struct):
            return replace(
                value,
                **{
                    name: self._any(getattr(value, name))
                    for name in value.__struct_fields__
                },
            )
        return value


def _without_talk(turn: Any) -> Any:  # noqa: ANN401 - a turn, if it is well formed
    if not isinstance(turn, Mapping):
        return turn
    calls = turn.get("toolCalls")
    kept = (
        [{**call, "result": LEFT_OUT} for call in calls]
        if isinstance(calls, list)
        else calls
    )
    return {**turn, "reasoning": None, "toolCalls": kept}
