"""A gateway on loopback, whose behaviour a test scripts event by event."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Event = tuple[str, Any]
"""A name and a value; ``("wait", seconds)``, ``("raw", text)`` and ``("cut", None)``
are acts of the server itself."""


@dataclass(kw_only=True)
class Gateway:
    """What the server does with each message, and what it has heard."""

    url: str = ""
    answers: list[Sequence[Event]] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    heard: list[tuple[str, dict[str, Any], str | None]] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)

    def forget(self) -> None:
        """Lose every session."""
        self.sessions.clear()


def turn(index: int, content: str, role: str = "assistant", **more: Any) -> Event:  # noqa: ANN401 - JSON
    """Give a turn's event."""
    return "turn", {"index": index, "role": role, "content": content, **more}


DONE: Event = (
    "done",
    {"turnCount": 2, "tokens": {"in": 11, "out": 7}, "durationMs": 1234},
)


@contextmanager
def serve(*answers: Sequence[Event]) -> Iterator[Gateway]:
    """Serve a gateway ``dev``; each message takes the next answer."""
    gateway = Gateway(answers=list(answers))

    class Handler(_Handler):
        pass

    Handler.gateway = gateway
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    gateway.url = f"http://127.0.0.1:{server.server_address[1]}//"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield gateway
    finally:
        gateway.gone.set()
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    gateway: Gateway

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
        """Print nothing."""

    def do_POST(self) -> None:
        """Make a session, or answer a message."""
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"{}")
        after = self.headers.get("Last-Event-ID")
        self.gateway.heard.append((self.path, body, after))
        parts = self.path.strip("/").split("/")
        if parts[:2] != ["gateways", "dev"]:
            self._send(404, {"error": "gateway_not_found", "message": "no such"})
        elif len(parts) == 3:
            name = f"s-{len(self.gateway.heard)}"
            self.gateway.sessions.append(name)
            self._send(201, {"id": name}, kind="@sumeru/session")
        elif parts[3] not in self.gateway.sessions:
            self._send(404, {"error": "session_not_found", "message": "no such"})
        else:
            self._stream(self.gateway.answers.pop(0))

    def _send(self, status: int, value: object, kind: str = "@sumeru/error") -> None:
        data = json.dumps({"type": kind, "value": value}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Sequence[Event]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for number, (name, value) in enumerate(events, 1):
            if name == "wait":
                self.gateway.gone.wait(value)
                continue
            if name == "raw":
                self.wfile.write(value.encode())
                continue
            data = json.dumps({"type": f"@sumeru/{name}", "value": value})
            self.wfile.write(f"id: {number}\nevent: {name}\ndata: {data}\n\n".encode())
            self.wfile.flush()
