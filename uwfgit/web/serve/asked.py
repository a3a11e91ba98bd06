"""What a request asks for, read off its path and its query (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from starlette.requests import Request

from uwfgit.errors import NotFoundError
from uwfgit.ids import Hash, Oid, ThreadId, find_hash, find_thread_id, is_oid
from uwfgit.web.view.listing import ORDERS, Order, Question

_WORDS: Final = 200
_FAR: Final = 10_000_000
_DIGITS: Final = 7


def parse_question(asked: Mapping[str, str], *, limit: int = 50) -> Question:
    """Read what a listing is asked for; what makes no sense counts for nothing."""
    order = asked.get("sort", "")
    return Question(
        words=asked.get("q", "")[:_WORDS],
        status=asked.get("status", ""),
        workflow=asked.get("workflow", ""),
        order=cast("Order", order) if order in ORDERS else "updated",
        offset=min(_number(asked.get("from", "")) or 0, _FAR),
        limit=limit,
    )


def _number(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit()
    return int(text[: _DIGITS + 1]) if is_number else None


def thread_id(request: Request, name: str = "thread") -> ThreadId:
    """Read a thread's whole id off the path.

    Raises:
        NotFoundError: It is none.
    """
    text = request.path_params[name]
    found = find_thread_id(text)
    if found is None or found != text:
        raise NotFoundError("thread", text)
    return found


def node_hash(request: Request) -> Hash:
    """Read a node's hash off the path.

    Raises:
        NotFoundError: It is none.
    """
    return _hash(request, "node", "node")


def version_of(request: Request) -> tuple[str, Hash]:
    """Read a workflow's name and version off the path.

    Raises:
        NotFoundError: It is none.
    """
    return request.path_params["name"], _hash(request, "hash", "workflow")


def _hash(request: Request, name: str, kind: str) -> Hash:
    text = request.path_params[name]
    found = find_hash(text)
    if found is None:
        raise NotFoundError(kind, text)
    return found


def step_number(request: Request) -> int:
    """Read a step's number off the path.

    Raises:
        NotFoundError: It is none.
    """
    number = _number(request.path_params["number"])
    if number is None:
        raise NotFoundError("step", request.path_params["number"])
    return number


def first_step(request: Request) -> int | None:
    """Read which block of steps is asked for; ``None`` is the newest."""
    return _number(request.query_params.get("from", ""))


def seen_commit(request: Request) -> Oid | None:
    """Read which commit the reader of a stream knows."""
    seen = request.headers.get("last-event-id") or request.query_params.get("since")
    return Oid(seen) if seen and is_oid(seen) else None
