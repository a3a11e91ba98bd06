"""The frames between a hub and its clients: JSON, checked as it comes (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

from msgspec import Meta, MsgspecError, Struct, field
from msgspec.json import Decoder
from msgspec.structs import replace

from uwfgit.errors import InvalidError
from uwfgit.web.serve.gate import MAX_BODY, MAX_FRAME

T = TypeVar("T")

MAX_ASK: Final = 7_000_000
"""Bytes of one frame of a question: its body, however it is escaped."""
PIECE: Final = 200_000
"""Characters of an answer in one frame; however they are escaped, they fit."""
_LONGEST: Final = 2_000

_Id = Annotated[int, Meta(ge=0, lt=2**53)]
_Text = Annotated[str, Meta(max_length=_LONGEST)]
_Headers = Annotated[Mapping[_Text, _Text], Meta(max_length=16)]
_Status = Annotated[int, Meta(ge=200, lt=600)]
_Texts = Annotated[tuple[_Text, ...], Meta(max_length=_LONGEST)]


class Ask(Struct, frozen=True, kw_only=True):
    """What a hub asks of a client; with ``ends``, that an answer is not wanted more."""

    id: _Id
    method: _Text = "GET"
    path: _Text = ""
    headers: _Headers = field(default_factory=dict)
    body: Annotated[str, Meta(max_length=MAX_BODY)] = ""
    ends: bool = field(default=False, name="end")


class Reply(Struct, frozen=True, kw_only=True):
    """A piece of a client's answer; the first one says what kind of answer it is."""

    id: _Id
    status: _Status | None = None
    headers: _Headers = field(default_factory=dict)
    body: Annotated[str, Meta(max_length=MAX_FRAME)] = ""
    more: bool = False


class Hello(Struct, frozen=True, kw_only=True):
    """What a client says first: what may be done in its store, and by which agents."""

    acts: Annotated[frozenset[_Text], Meta(max_length=_LONGEST)] = frozenset()
    agents: _Texts = ()


_ASK: Final = Decoder(Ask)
_REPLY: Final = Decoder(Reply)
_HELLO: Final = Decoder(Hello)


def write_ask(ask: Ask) -> str:
    """Write what a hub asks."""
    if ask.ends:
        return _write({"id": ask.id, "end": True})
    return _write(
        {
            "id": ask.id,
            "method": ask.method,
            "path": ask.path,
            "headers": dict(ask.headers),
            "body": ask.body,
        }
    )


def read_ask(text: str | bytes) -> Ask:
    """Read what a hub asks.

    Raises:
        InvalidError: It is not a frame.
    """
    ask = _read(_ASK, text)
    return replace(ask, headers=_lower(ask.headers))


def write_reply(reply: Reply) -> str:
    """Write a piece of an answer."""
    head = (
        {"status": reply.status, "headers": dict(reply.headers)}
        if reply.status is not None
        else {}
    )
    return _write({"id": reply.id, **head, "body": reply.body, "more": reply.more})


def read_reply(text: str | bytes) -> Reply:
    """Read a piece of an answer.

    Raises:
        InvalidError: It is not a frame.
    """
    reply = _read(_REPLY, text)
    return replace(reply, headers=_lower(reply.headers))


def write_hello(hello: Hello) -> str:
    """Write what a client says first."""
    return _write({"acts": sorted(hello.acts), "agents": list(hello.agents)})


def read_hello(text: str | bytes) -> Hello:
    """Read what a client says first.

    Raises:
        InvalidError: It is not that.
    """
    return _read(_HELLO, text)


def _write(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read(decoder: Decoder[T], text: str | bytes) -> T:
    if isinstance(text, bytes):
        raise InvalidError("a frame is not text")
    try:
        return decoder.decode(text)
    except (MsgspecError, ValueError, RecursionError) as exc:
        raise InvalidError(f"a frame is not one: {exc}") from exc


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
