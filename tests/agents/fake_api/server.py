"""The server: hears requests, records them, and makes the script's move."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self, cast
from urllib.parse import urlsplit

from tests.agents.fake_api import anthropic, chat, gemini, responses
from tests.agents.fake_api.moves import (
    BadJson,
    Cut,
    Drip,
    Fail,
    Hang,
    Move,
    Say,
    Script,
)
from tests.agents.fake_api.wire import Asked, Request, Wire

WIRES: Final[tuple[Wire, ...]] = cast(
    "tuple[Wire, ...]", (anthropic, responses, chat, gemini)
)
_SIDE: Final = Say(text="ok")
_NOTHING: Final = Asked(
    model="", streams=False, said=(), tools=(), results=(), is_after_tool=False
)


class FakeApi:
    """A server on a free port of 127.0.0.1; a context manager.

    Args:
        script: What it does with each request.
        is_side: Which requests are not the agent's conversation (a title, a probe):
            they are answered "ok", recorded, and not counted. ``tools_only`` takes
            every request that offers no tools for one.
        port: 0 for a free one.
    """

    def __init__(
        self,
        script: Script,
        *,
        is_side: Callable[[Asked], bool] | None = None,
        port: int = 0,
    ) -> None:
        self._script = script
        self._is_side = is_side or (lambda _: False)
        self._lock = threading.Lock()
        self._heard: list[Request] = []
        self._count = 0
        self.gone = threading.Event()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.api = self
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.02},
            daemon=True,
        )

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Its address, without a path: what a vendor's base URL variable takes."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[Request]:
        """The requests of the conversation, in order."""
        with self._lock:
            return [item for item in self._heard if not item.is_side]

    @property
    def side_requests(self) -> list[Request]:
        """All other requests: probes, titles, what no protocol here knows."""
        with self._lock:
            return [item for item in self._heard if item.is_side]

    def play(self, script: Script) -> None:
        """Go on with another script; it counts from 0."""
        with self._lock:
            self._script = script
            self._count = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.gone.set()
        self._server.shutdown()
        self._server.server_close()

    def decide(self, request: Request) -> Move:
        """Record a request and choose the move."""
        with self._lock:
            is_side = request.is_side or self._is_side(request.asked)
            request = replace(request, index=self._count, is_side=is_side)
            self._heard.append(request)
            if is_side:
                return _SIDE
            self._count += 1
            script = self._script
        return script(request)


def tools_only(asked: Asked) -> bool:
    """Take requests without tools for side ones, as real agents' titles are."""
    return not asked.tools


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: FakeApi

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
        """Print nothing."""

    def do_HEAD(self) -> None:
        """Answer a probe."""
        self._send(200, b"")

    def do_GET(self) -> None:
        """Answer a probe or a list of models."""
        self._record("", {}, _NOTHING)
        self._send_json(200, {"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        """Answer a request."""
        path = urlsplit(self.path).path
        body = self._read_body()
        wire = next((wire for wire in WIRES if wire.matches(path)), None)
        if wire is None:
            self._record("", body, _NOTHING)
            self._send_json(200, {"input_tokens": 1, "totalTokens": 1})
            return
        asked = wire.read(path, body)
        self._make(self._record(wire.NAME, body, asked), wire, asked)

    def _record(self, protocol: str, body: dict[str, Any], asked: Asked) -> Move:
        return self.server.api.decide(
            Request(
                protocol=protocol,
                method=self.command,
                path=self.path,
                headers={name.lower(): text for name, text in self.headers.items()},
                body=body,
                asked=asked,
                index=0,
                is_side=not protocol,
            )
        )

    def _make(self, move: Move, wire: Wire, asked: Asked) -> None:
        match move:
            case Say() if asked.streams:
                self._send_events(wire.stream(move, asked))
            case Say():
                self._send_json(200, wire.complete(move, asked))
            case Fail():
                body = wire.refuse(move.status, move.message)
                self._send_json(move.status, body, headers=move.headers)
            case Hang():
                self.server.api.gone.wait()
                self.close_connection = True
            case Drip():
                self._drip(wire, move, asked)
            case Cut():
                self._cut(wire, move, asked)
            case BadJson():
                self._send_bad(streams=asked.streams)

    def _drip(self, wire: Wire, move: Drip, asked: Asked) -> None:
        if not asked.streams:
            self._pause(move.pause_seconds)
            self._send_json(200, wire.complete(move.say, asked))
            return
        self._send_events(wire.stream(move.say, asked), pause=move.pause_seconds)

    def _cut(self, wire: Wire, move: Cut, asked: Asked) -> None:
        self.close_connection = True
        if not asked.streams:
            body = json.dumps(wire.complete(move.say, asked)).encode()
            self._send_head(200, length=len(body))
            self.wfile.write(body[: len(body) // 2])
            return
        events = list(wire.stream(move.say, asked))
        self._send_events(events[: len(events) // 2], is_whole=False)

    def _send_bad(self, *, streams: bool) -> None:
        if streams:
            self._send_events([b"data: {'not': json,\n\n"])
        else:
            self._send(200, b"{'not': json,", kind="application/json")

    def _send_events(
        self, events: Iterable[bytes], *, pause: float = 0, is_whole: bool = True
    ) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for item in events:
            self._pause(pause)
            self.wfile.write(f"{len(item):x}\r\n".encode() + item + b"\r\n")
            self.wfile.flush()
        if is_whole:
            self.wfile.write(b"0\r\n\r\n")

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        if seconds and self.server.api.gone.wait(max(0, end - time.monotonic())):
            raise ConnectionAbortedError

    def _send_json(
        self,
        status: int,
        body: object,
        *,
        headers: Any = None,  # noqa: ANN401 - a mapping or none
    ) -> None:
        data = json.dumps(body).encode()
        self._send(status, data, kind="application/json", headers=headers)

    def _send(
        self,
        status: int,
        data: bytes,
        *,
        kind: str = "text/plain",
        headers: Any = None,  # noqa: ANN401 - a mapping or none
    ) -> None:
        self._send_head(status, length=len(data), kind=kind, headers=headers)
        self.wfile.write(data)

    def _send_head(
        self,
        status: int,
        *,
        length: int,
        kind: str = "application/json",
        headers: Any = None,  # noqa: ANN401 - a mapping or none
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()

    def _read_body(self) -> dict[str, Any]:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            data = gzip.decompress(data)
        try:
            body = json.loads(data)
        except ValueError:
            return {"raw": data.decode(errors="replace")}
        return body if isinstance(body, dict) else {"raw": body}
