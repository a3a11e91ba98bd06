"""What the fake API does with one request, whatever the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.agents.fake_api.wire import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool the model wants used."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """A whole answer: text, then tool calls.

    ``finish`` is the protocol's own word when it is not the usual one. The text is
    streamed in pieces of ``piece_chars``.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    input_tokens: int = 100
    cached_tokens: int = 0
    output_tokens: int = 20
    finish: str | None = None
    piece_chars: int = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """A refusal with a status and the protocol's error body."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """Nothing at all, until the client or the server goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drip:
    """An answer whose events come one by one with a pause before each."""

    say: Say
    pause_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """An answer whose connection ends in the middle."""

    say: Say


@dataclass(frozen=True, slots=True, kw_only=True)
class BadJson:
    """A good status with something that is not JSON in it."""


Move: TypeAlias = Say | Fail | Hang | Drip | Cut | BadJson
Script: TypeAlias = Callable[[Request], Move]
