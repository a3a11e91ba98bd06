"""A real server on a port of its own, and a client that sends what it is told."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.ports import held_port

_UWF: Final = (sys.executable, "-P", "-m", "uwfgit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back: the status, the headers in lower case, the body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:  # noqa: ANN401 - a JSON value
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running ``uwf web``, and what opens it."""

    port: int
    url: str
    token: str
    process: subprocess.Popen[Any]
    folder: Path

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def line(self, *, wait: float = 60) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=wait)

    def raw(self, data: bytes, *, wait: float = 20) -> bytes:
        """Send bytes, and give all that comes until the other side hangs up."""
        with self.line(wait=wait) as line:
            parts = []
            # Whoever is not listened to any more is hung up on.
            with suppress(ConnectionResetError, BrokenPipeError):
                line.sendall(data)
            with suppress(ConnectionResetError):
                while part := line.recv(65_536):
                    parts.append(part)
        return b"".join(parts)

    def ask(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        host: str | None = None,
    ) -> Answer:
        """Send one request, exactly as it is given."""
        lines = [f"{method} {path} HTTP/1.1"]
        given = {"Host": host if host is not None else f"127.0.0.1:{self.port}"}
        given |= {"Connection": "close", **(headers or {})}
        if body or method == "POST":
            given.setdefault("Content-Length", str(len(body)))
        lines += [f"{name}: {value}" for name, value in given.items() if value]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        return parse(self.raw(head + body))

    def get(self, path: str, **headers: str) -> Answer:
        """Ask as a script does: with the token."""
        return self.ask("GET", path, headers={**self.bearer, **headers})

    def post(self, path: str, value: Any) -> Answer:  # noqa: ANN401 - a JSON value
        """Send JSON as a script does."""
        kind = {"Content-Type": "application/json"}
        return self.ask(
            "POST",
            path,
            headers={**self.bearer, **kind},
            body=json.dumps(value).encode(),
        )

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


def parse(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    headers = {name.lower(): value for name, value in headers.items()}
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join(_chunks(body))
    return Answer(status=int(first.split(" ")[1]), headers=headers, body=body)


def _chunks(body: bytes) -> Iterator[bytes]:
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size or b"0", 16)
        yield body[:length]
        body = body[length + 2 :]


@contextmanager
def serving(folder: Path, *words: str, port: int | None = None) -> Iterator[Server]:
    """Run ``uwf web`` in a folder, as a user would; at a port that is held, or one."""
    with ExitStack() as held:
        number = port or held.enter_context(held_port())
        with _run(folder, words, number) as server:
            yield server


@contextmanager
def _run(folder: Path, words: tuple[str, ...], port: int) -> Iterator[Server]:
    process, line = _start(folder, words, port)
    try:
        found = re.search(r"https?://[\w.:-]+/\S+", line)
        assert found, f"printed {line!r}, ended with {process.poll()}"
        token = subprocess.run(
            [*_UWF, "web", "token"], capture_output=True, text=True, check=True
        ).stdout.strip()
        yield Server(
            port=port,
            url=found[0],
            token=token,
            process=process,
            folder=folder,
        )
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _start(
    folder: Path, words: tuple[str, ...], port: int
) -> tuple[subprocess.Popen[str], str]:
    """Start a server; give its first line, which is empty when it has ended."""
    process = subprocess.Popen(
        [*_UWF, "web", "--port", str(port), *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ},
    )
    assert process.stdout is not None
    return process, process.stdout.readline()
