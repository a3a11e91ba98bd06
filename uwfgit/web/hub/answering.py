"""A client's side: frames come in, are checked, and are answered by its own store."""

from __future__ import annotations

import asyncio
import json
from codecs import getincrementaldecoder
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct, field
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Scope

from uwfgit.errors import InvalidError, UwfError
from uwfgit.web.hub.allowed import find_refusal, kept_headers
from uwfgit.web.hub.frames import PIECE, Ask, Reply, read_ask, write_reply
from uwfgit.web.hub.views import Views
from uwfgit.web.serve.api import Api
from uwfgit.web.serve.gate import Refusal, replay
from uwfgit.web.serve.site import Served, Shapes
from uwfgit.web.serve.told import answer_error

MOST_AT_ONCE: Final = 32
_BUSY: Final = Refusal(status=503, code="busy", message="too much is asked at once")

Send = Callable[[str], Awaitable[None]]


def make_answers(served: Served, shapes: Shapes) -> ASGIApp:
    """Return what answers in a client: its API, and the views of its pages."""
    return Starlette(
        routes=[
            Mount("/api", routes=Api(shapes, served).routes()),
            Mount("/view", routes=Views(served.place.reading).routes()),
        ],
        exception_handlers={UwfError: answer_error, HTTPException: answer_error},
    )


class Answering(Struct, kw_only=True, dict=True):
    """Answers a hub's frames, many at once."""

    app: ASGIApp
    acts: frozenset[str]
    send: Send
    on_bug: Callable[[Exception], str]
    _tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    async def take(self, text: str | bytes) -> None:
        """Begin to answer a frame, or end an answer that is not wanted any more.

        Raises:
            InvalidError: It is not a frame; the line is of no use.
        """
        ask = read_ask(text)
        running = self._tasks.get(ask.id)
        if ask.ends:
            if running is not None:
                running.cancel()
            return
        if running is not None:
            raise InvalidError("two frames have one id")
        refusal = find_refusal(ask, self.acts)
        if refusal is None and len(self._tasks) >= MOST_AT_ONCE:
            refusal = _BUSY
        if refusal is not None:
            await self.send(_refused(ask.id, refusal))
            return
        task = asyncio.create_task(self._answer(ask))
        self._tasks[ask.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(ask.id, None))

    async def close(self) -> None:
        """End all answers."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, ask: Ask) -> None:
        written = _Written(id=ask.id, send=self.send)
        try:
            await self.app(_scope(ask), replay(ask.body.encode(), _wait), written)
        except Exception as exc:  # noqa: BLE001 - one question's bug ends no client
            bug = Refusal(status=500, code="bug", message=self.on_bug(exc))
            if written.has_begun:
                await self.send(write_reply(Reply(id=ask.id)))
            else:
                await self.send(_refused(ask.id, bug))


class _Written(Struct, kw_only=True):
    """Sends what an application answers, in pieces that fit into frames."""

    id: int
    send: Send
    has_begun: bool = False
    _head: dict[str, Any] = field(default_factory=dict)
    _decoder: Any = field(default_factory=getincrementaldecoder("utf-8"))

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in message.get("headers", [])
            }
            self._head = {"status": message["status"], "headers": headers}
            return
        more = bool(message.get("more_body"))
        text = self._decoder.decode(message.get("body", b""), final=not more)
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)] or [""]
        for number, piece in enumerate(pieces, start=1):
            goes_on = more or number < len(pieces)
            reply = Reply(id=self.id, body=piece, more=goes_on, **self._head)
            self._head, self.has_begun = {}, True
            await self.send(write_reply(reply))


def _refused(number: int, refusal: Refusal) -> str:
    reply = Reply(
        id=number,
        status=refusal.status,
        headers={"content-type": "application/json"},
        body=json.dumps(refusal.payload),
    )
    return write_reply(reply)


def _scope(ask: Ask) -> Scope:
    path, _, query = ask.path.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": ask.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [
            (name.encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in kept_headers(ask.headers).items()
        ],
        "client": None,
        "server": None,
    }


async def _wait() -> Message:
    # A response that streams waits here for its reader to leave: that ends the whole
    # task.
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")
