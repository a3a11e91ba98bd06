"""A hub's line to one client: questions out, pieces of answers in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Final

from msgspec import Struct, field
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from uwfgit.errors import InvalidError, UwfError
from uwfgit.web.hub.frames import Ask, Hello, Reply, read_reply, write_ask
from uwfgit.web.serve.live import STREAM

_MOST_WAITING: Final = 32_000_000
"""Characters of an answer that may lie here unread."""
_MOST: Final = 64_000_000
"""Characters of an answer that is read as a whole."""
_QUIET_SECONDS: Final = 60.0
"""A stream says oftener that it is there."""
_LEAVING_SECONDS: Final = 5.0
_BROKE_RULES: Final = 1008


class GoneError(UwfError):
    """A client is not connected, or went while it was asked."""

    code = "client-gone"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"client '{name}' is not connected",
            hint="its pages are back as soon as `uwf connect` runs there",
        )


class SlowError(UwfError):
    """A client did not answer in time."""

    code = "client-timeout"

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"client '{name}' did not answer within {seconds:g} seconds")


class OddError(UwfError):
    """A client answered something that cannot be shown."""

    code = "client-answer"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(
            f"client '{name}' answered what this uwf cannot read: {why}",
            hint="run the same version of uwf on both machines",
        )


class Answer(Struct, frozen=True, kw_only=True):
    """How an answer begins, and the rest of it."""

    status: int
    headers: Mapping[str, str]
    pieces: AsyncIterator[str]


class _Waiting(Struct):
    """Pieces that came and were not read yet; ``None`` when no more can come."""

    pieces: asyncio.Queue[Reply | None] = field(default_factory=asyncio.Queue)
    size: int = 0
    is_over: bool = False


class Line:
    """One connected client."""

    def __init__(
        self, socket: WebSocket, name: str, hello: Hello, *, patience_s: float
    ) -> None:
        self.name = name
        self.hello = hello
        self._socket = socket
        self._patience_s = patience_s
        self._numbers = count(1)
        self._waiting: dict[int, _Waiting] = {}

    async def listen(self) -> None:
        """Take in what the client says, until it goes or breaks the rules."""
        try:
            while True:
                message = await self._socket.receive()
                if message["type"] != "websocket.receive":
                    return
                self._take(read_reply(message.get("text") or b""))
        except (InvalidError, WebSocketDisconnect):
            await self.close()
        finally:
            for each in self._waiting.values():
                each.pieces.put_nowait(None)

    def _take(self, reply: Reply) -> None:
        waiting = self._waiting.get(reply.id)
        if waiting is None:
            return
        waiting.size += len(reply.body)
        if waiting.size > _MOST_WAITING:
            waiting.pieces.put_nowait(None)
        else:
            waiting.pieces.put_nowait(reply)

    async def close(self) -> None:
        """Let the client go."""
        if self._socket.application_state is WebSocketState.CONNECTED:
            with suppress(RuntimeError, WebSocketDisconnect):
                await self._socket.close(_BROKE_RULES)

    async def read(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: str = "",
    ) -> tuple[int, str]:
        """Return the status and the whole text of an answer.

        Raises:
            GoneError, SlowError, OddError: There is none.
        """
        ask = Ask(id=0, method=method, path=path, headers=headers or {}, body=body)
        async with self.asked(ask) as answer:
            parts, size = [], 0
            async for piece in answer.pieces:
                parts.append(piece)
                size += len(piece)
                if size > _MOST:
                    raise OddError(self.name, "it is too long")
            return answer.status, "".join(parts)

    @asynccontextmanager
    async def asked(self, ask: Ask) -> AsyncIterator[Answer]:
        """Ask, and yield the answer as it comes; its number is made here.

        Raises:
            GoneError, SlowError, OddError: It does not begin, or does not go on.
        """
        number = next(self._numbers)
        waiting = self._waiting[number] = _Waiting()
        try:
            first = await self._begin(
                Ask(
                    id=number,
                    method=ask.method,
                    path=ask.path,
                    headers=ask.headers,
                    body=ask.body,
                ),
                waiting,
            )
            if first.status is None:
                raise OddError(self.name, "it begins without a status")
            yield Answer(
                status=first.status,
                headers=first.headers,
                pieces=self._pieces(first, waiting),
            )
        finally:
            del self._waiting[number]
            if not waiting.is_over:
                # The rest is not wanted.
                with suppress(GoneError, TimeoutError):
                    async with asyncio.timeout(_LEAVING_SECONDS):
                        await self._send(Ask(id=number, ends=True))

    async def _begin(self, ask: Ask, waiting: _Waiting) -> Reply:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._send(ask)
                first = await waiting.pieces.get()
        except TimeoutError as exc:
            raise SlowError(self.name, self._patience_s) from exc
        if first is None:
            raise GoneError(self.name)
        return first

    async def _pieces(self, first: Reply, waiting: _Waiting) -> AsyncIterator[str]:
        reply: Reply | None = first
        is_stream = first.headers.get("content-type", "").startswith(STREAM)
        patience = _QUIET_SECONDS if is_stream else self._patience_s
        while reply is not None:
            waiting.size -= len(reply.body)
            waiting.is_over = not reply.more
            yield reply.body
            if waiting.is_over:
                return
            try:
                async with asyncio.timeout(patience):
                    reply = await waiting.pieces.get()
            except TimeoutError as exc:
                raise SlowError(self.name, patience) from exc
        waiting.is_over = True
        raise GoneError(self.name)

    async def _send(self, ask: Ask) -> None:
        try:
            await self._socket.send_text(write_ask(ask))
        except (RuntimeError, WebSocketDisconnect, OSError) as exc:
            raise GoneError(self.name) from exc
