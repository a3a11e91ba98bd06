"""A thread as it goes on: its events as a stream whose ids are commits.

A stream says what happened since the commit that the reader has seen, so nothing is
missed by a connection that was cut, a machine that slept or a server that restarted.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace
from starlette.responses import StreamingResponse

from uwfgit.engine.ask.live import live_path, read_live
from uwfgit.errors import NotFoundError, UwfError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.standing import is_running
from uwfgit.model.thread.event import Event, iter_events
from uwfgit.model.thread.tip import read_tip
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref
from uwfgit.web.serve.shelf import Shelf

_POLL: Final = 0.4
_LISTING_POLL: Final = 1.0
_QUIET: Final = 15.0
"""Seconds after which a comment shows that the line is still there."""
_ENDED: Final = ("end", "cancelled")
STREAM: Final = "text/event-stream"
"""The kind of an answer that goes on."""
What = Literal[
    "event", "running", "turns", "end", "gone", "problem", "reset", "changed"
]
"""What a message can be."""

Turns = list[dict[str, Any]]


class Message(Struct, frozen=True, kw_only=True):
    """One message of a stream; ``oid`` is the commit that the reader knows with it."""

    event: What
    data: Any
    oid: Oid | None = None


Messages = AsyncIterator[Message | None]
"""What happens as it comes; ``None`` whenever nothing did."""


class _Look(Struct, frozen=True, kw_only=True):
    """What one look at a thread saw."""

    tip: Oid
    events: tuple[Event, ...]
    running: bool
    status: str
    turns: Turns | None
    """``None`` when nothing was added since the last look."""
    live_mark: tuple[int, int]
    is_known: bool
    """Whether the commit that was seen last is part of the thread."""


def _look(
    thread: ThreadId, seen: Oid | None, mark: tuple[int, int], ledger: Ledger
) -> _Look:
    tip = find_ref(ledger.store, thread_ref(thread))
    if tip is None:
        raise NotFoundError("thread", thread)
    running = is_running(ledger.store, thread)
    found: list[Event] = []
    is_known = seen is None or tip == seen
    if not is_known:
        for event in iter_events(ledger.store, tip):
            if event.commit.oid == seen:
                is_known = True
                break
            found.append(event)
    live_mark = _mark(ledger, thread) if running else (0, 0)
    return _Look(
        tip=tip,
        events=tuple(reversed(found)),
        running=running,
        status=read_tip(ledger.store, thread, tip).state.status,
        turns=read_live(ledger.store, thread)
        if running and live_mark != mark
        else None,
        live_mark=live_mark,
        is_known=is_known,
    )


def _mark(ledger: Ledger, thread: ThreadId) -> tuple[int, int]:
    try:
        found = live_path(ledger.store, thread).stat()
    except OSError:
        return (0, 0)
    return (found.st_size, found.st_mtime_ns)


async def thread_messages(shelf: Shelf, thread: ThreadId, seen: Oid | None) -> Messages:
    """Yield a thread's events from a commit on, until it ends.

    Args:
        shelf: The store.
        thread: Which thread.
        seen: The newest commit that the reader knows; ``None``: only what comes.
    """
    mark, was_running = (-1, -1), None
    while True:
        try:
            look = await shelf.ask(partial(_look, thread, seen, mark))
        except NotFoundError:
            yield Message(event="gone", data={})
            return
        except UwfError as exc:
            yield Message(event="problem", data={"message": exc.message})
            return
        if not look.is_known:
            # Its branch was moved aside: what the page shows is not of this thread.
            yield Message(event="reset", data={}, oid=look.tip)
        else:
            for event in look.events:
                yield Message(event="event", data=_event(event), oid=event.commit.oid)
        if look.running is not was_running:
            running = {"running": look.running}
            yield Message(event="running", data=running, oid=look.tip)
        if look.turns is not None:
            yield Message(event="turns", data={"items": look.turns})
        seen, mark, was_running = look.tip, look.live_mark, look.running
        if look.status in _ENDED and not look.running:
            yield Message(event="end", data={"status": look.status}, oid=look.tip)
            return
        yield None
        await asyncio.sleep(_POLL)


def _event(event: Event) -> dict[str, Any]:
    return {
        "oid": event.commit.oid,
        "event": event.name,
        "node": event.node,
        "role": event.role,
        "status": event.status,
        "next": event.next,
    }


async def listing_messages(shelf: Shelf) -> Messages:
    """Yield a word whenever any thread of the store has changed."""
    known = await shelf.mark()
    while True:
        mark = await shelf.mark()
        if mark != known:
            known = mark
            yield Message(event="changed", data={})
        yield None
        await asyncio.sleep(_LISTING_POLL)


def stream(
    messages: Messages, show: Callable[[Turns], Any] | None = None
) -> StreamingResponse:
    """Send messages as they come.

    Args:
        messages: The messages.
        show: Makes of the turns of a running step what is sent of them.
    """
    return StreamingResponse(_written(messages, show), media_type=STREAM)


async def _written(
    messages: Messages, show: Callable[[Turns], Any] | None
) -> AsyncIterator[bytes]:
    """Write messages; where there are none, say now and then that the line is there."""
    loop = asyncio.get_running_loop()
    said = loop.time()
    yield b"retry: 1000\n\n"
    async for message in messages:
        if message is not None:
            said = loop.time()
            if show is not None and message.event == "turns":
                message = replace(message, data=show(message.data["items"]))  # noqa: PLW2901 - as it is shown
            head = f"id: {message.oid}\n" if message.oid else ""
            data = json.dumps(message.data)
            yield f"{head}event: {message.event}\ndata: {data}\n\n".encode()
        elif loop.time() - said > _QUIET:
            said = loop.time()
            yield b": still here\n\n"
