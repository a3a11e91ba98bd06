"""The frames between a hub and its clients: JSON, checked as it comes (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from uwfgit.errors import InvalidError

MAX_FRAME: Final = 2_000_000
"""Bytes of one frame of an answer."""
MAX_ASK: Final = 7_000_000
"""Bytes of one frame of a question: its body, however it is escaped."""
MAX_BODY: Final = 1_000_000
"""Characters of a request's body."""
PIECE: Final = 200_000
"""Characters of an answer in one frame; however they are escaped, they fit."""
_MOST_IDS: Final = 2**53
_HEADERS: Final = 16
_LONGEST: Final = 2_000
_STATUSES: Final = range(200, 600)


class Ask(Struct, frozen=True, kw_only=True):
    """What a hub asks of a client; with ``ends``, that an answer is not wanted more."""

    id: int
    method: str = "GET"
    path: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    ends: bool = False


class Reply(Struct, frozen=True, kw_only=True):
    """A piece of a client's answer; the first one says what kind of answer it is."""

    id: int
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    more: bool = False


class Hello(Struct, frozen=True, kw_only=True):
    """What a client says first: what may be done in its store, and by which agents."""

    acts: frozenset[str]
    agents: tuple[str, ...]


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
    value = _read(text)
    if value.get("end") is True:
        return Ask(id=_id(value), ends=True)
    body = _text(value, "body", limit=MAX_BODY)
    return Ask(
        id=_id(value),
        method=_text(value, "method"),
        path=_text(value, "path"),
        headers=_headers(value),
        body=body,
    )


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
    value = _read(text)
    status = value.get("status")
    if status is not None and (type(status) is not int or status not in _STATUSES):
        raise InvalidError("a frame's status is not one")
    return Reply(
        id=_id(value),
        status=status,
        headers=_headers(value),
        body=_text(value, "body", limit=MAX_FRAME),
        more=value.get("more") is True,
    )


def write_hello(hello: Hello) -> str:
    """Write what a client says first."""
    return _write({"acts": sorted(hello.acts), "agents": list(hello.agents)})


def read_hello(text: str | bytes) -> Hello:
    """Read what a client says first.

    Raises:
        InvalidError: It is not that.
    """
    value = _read(text)
    return Hello(
        acts=frozenset(_texts(value, "acts")), agents=tuple(_texts(value, "agents"))
    )


def _write(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read(text: str | bytes) -> dict[str, Any]:
    if isinstance(text, bytes):
        raise InvalidError("a frame is not text")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InvalidError("a frame is not JSON") from exc
    if not isinstance(value, dict):
        raise InvalidError("a frame is not a JSON object")
    return value


def _id(value: Mapping[str, Any]) -> int:
    found = value.get("id")
    if type(found) is not int or not 0 <= found < _MOST_IDS:
        raise InvalidError("a frame's id is not a number")
    return found


def _text(value: Mapping[str, Any], name: str, *, limit: int = _LONGEST) -> str:
    found = value.get(name, "")
    if not isinstance(found, str) or len(found) > limit:
        raise InvalidError(f"a frame's {name} is not a text of {limit:,} characters")
    try:
        found.encode()
    except UnicodeEncodeError as exc:
        raise InvalidError(f"a frame's {name} holds half a character") from exc
    return found


def _texts(value: Mapping[str, Any], name: str) -> list[str]:
    found = value.get(name, [])
    if not isinstance(found, list) or len(found) > _LONGEST:
        raise InvalidError(f"a frame's {name} are not a list")
    return [_text({name: each}, name) for each in found]


def _headers(value: Mapping[str, Any]) -> dict[str, str]:
    found = value.get("headers", {})
    if not isinstance(found, dict) or len(found) > _HEADERS:
        raise InvalidError("a frame's headers are not an object")
    return {name.lower(): _text(found, name) for name in found}
