"""Listening: the socket, the printed address, who else listens, and the end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import uvicorn
from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from uwfgit.errors import StoreError
from uwfgit.store.locks.flock import lock, read_holder
from uwfgit.web.serve.gate import HEARTBEAT_SECONDS, MAX_FRAME, Hosts, is_loopback
from uwfgit.web.serve.keys import keys_folder

PORT: Final = 8642
_BACKLOG: Final = 128
_LINE: Final = 16 * 1024
_GRACE: Final = 2
_NOTES: Final = 3
_ANY: Final = ("0.0.0.0", "::")  # noqa: S104 - what --host may say


class Listening(Struct, frozen=True, kw_only=True):
    """A socket that takes connections already."""

    host: str
    port: int
    socket: socket.socket
    public: str | None = None
    """The name at which a proxy with TLS stands in front."""

    @property
    def origin(self) -> str:
        """How a browser names it."""
        if self.public:
            return f"https://{self.public}"
        host = socket.gethostname() if self.host in _ANY else self.host
        return f"http://{_written(host)}:{self.port}"

    @property
    def hosts(self) -> Hosts:
        """The values of ``Host`` by which this server is meant."""
        names = {self.host}
        if is_loopback(self.host) or self.host in _ANY:
            names |= {"127.0.0.1", "localhost"}
        if self.host in _ANY:
            names.add(socket.gethostname())
        return Hosts(
            names=frozenset(f"{_written(name)}:{self.port}".lower() for name in names),
            port=self.port,
            is_wide=self.host in _ANY,
            public=self.public,
        )


def _written(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def listen(host: str, port: int | None) -> Listening:
    """Take a port: the one that is named, else the usual one, else any.

    Raises:
        StoreError: It is in use, or the host is none of this machine's.
    """
    wanted = (PORT, 0) if port is None else (port,)
    for number, each in enumerate(wanted):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, each))
            found.listen(_BACKLOG)
        except OSError as exc:
            found.close()
            if number + 1 < len(wanted):
                continue
            reason = exc.strerror or str(exc)
            raise StoreError(
                f"cannot listen on {host}:{each}: {reason}",
                hint="choose another --port",
            ) from exc
        return Listening(host=host, port=found.getsockname()[1], socket=found)
    raise AssertionError("one of the ports was tried last")


class Running(Struct, frozen=True, kw_only=True):
    """A server of this user's that runs: where it is opened, and what it serves."""

    port: int
    origin: str
    store: str


@contextmanager
def announced(listening: Listening, *, home: Path, store: Path) -> Iterator[None]:
    """Let :func:`list_running` know of a server for the length of the block.

    Raises:
        LockedError, StoreError: The file that says so cannot be held.
    """
    # By host too: a port of another address of this machine is another server's.
    name = f"{listening.host}-{listening.port}.running"
    notes = (str(listening.port), listening.origin, str(store))
    with lock(keys_folder(home) / name, command="uwf web", notes=notes):
        yield


def list_running(home: Path) -> list[Running]:
    """List the servers of this user's that run."""
    found = []
    for path in sorted(keys_folder(home).glob("*.running")):
        holder = read_holder(path)
        if holder is not None and len(holder.notes) == _NOTES:
            port, origin, store = holder.notes
            found.append(Running(port=int(port), origin=origin, store=store))
    return found


def serve(
    app: ASGIApp,
    listening: Listening,
    *,
    on_ready: Callable[[], None],
    takes_lines: bool,
) -> None:
    """Serve until interrupted; ``takes_lines`` from clients only as a hub."""
    closing = asyncio.Event()
    config = uvicorn.Config(
        _Closed(app, closing),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="websockets-sansio" if takes_lines else "none",
        ws_max_size=MAX_FRAME,
        ws_ping_interval=HEARTBEAT_SECONDS,
        ws_per_message_deflate=False,
        lifespan="on",
        timeout_keep_alive=20,
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=_LINE,
        http="h11",
    )
    on_ready()
    _Server(config, closing).run(sockets=[listening.socket])


class _Server(uvicorn.Server):
    """A server that says when it begins to end."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self.closing = closing

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let what goes on end, then wait for it."""
        self.closing.set()
        await super().shutdown(sockets)


class _Closed:
    """Ends a stream with its server: one that was cut off would be told as an error."""

    def __init__(self, app: ASGIApp, closing: asyncio.Event) -> None:
        self.app = app
        self.closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; when the server ends, as if the reader had hung up."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        goes_on = False

        async def told(message: Message) -> None:
            nonlocal goes_on
            is_start = message["type"] == "http.response.start"
            goes_on = is_start or bool(message.get("more_body"))
            await send(message)

        async def heard() -> Message:
            asked = asyncio.ensure_future(receive())
            closed = asyncio.ensure_future(self.closing.wait())
            both = (asked, closed)
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                return asked.result() if asked.done() else {"type": "http.disconnect"}
            finally:
                for each in both:
                    each.cancel()

        await self.app(scope, heard, told)
        if goes_on:
            await send({"type": "http.response.body", "body": b""})
