"""Servers of git on loopback: smart HTTP by git's own backend, and ssh."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from tests.ports import held_port

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")
_SECONDS = 60.0


class _Backend(BaseHTTPRequestHandler):
    """Hands each request to ``git http-backend``, as a web server's CGI does."""

    root: Path
    is_open: bool = True
    login: str | None = None

    def do_GET(self) -> None:
        self._run(b"")

    def do_POST(self) -> None:
        body = self._read_body()
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self._run(body)

    def log_message(self, *_: object) -> None:
        return

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().strip(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        return b"".join(parts)

    def _run(self, body: bytes) -> None:
        given = self.headers.get("Authorization")
        if not self.is_open or (self.login and given != f"Basic {self.login}"):
            self._answer(b"Status: 401 Unauthorized\r\nWWW-Authenticate: Basic\r\n\r\n")
            return
        url = urlsplit(self.path)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_USER": "somebody",
            "REMOTE_ADDR": self.client_address[0],
        }
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            env=environment,
            capture_output=True,
            check=False,
        )
        self._answer(done.stdout)

    def _answer(self, output: bytes) -> None:
        head, _, content = output.partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode().split("\r\n") if line]
        status = next((value for name, value in headers if name == "Status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in headers:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serve_http(
    root: Path, *, is_open: bool = True, login: str | None = None
) -> Iterator[str]:
    """Serve the repositories in a folder to everyone, one login, or nobody."""
    facts = {"root": root, "is_open": is_open, "login": login}
    handler = type("Backend", (_Backend,), facts)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _make_key(path: Path) -> Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True
    )
    return path


def _await_port(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.skip("sshd does not run here")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.skip("sshd does not listen here")


@contextmanager
def serve_ssh(folder: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Serve a folder by an sshd of our own.

    Gives the start of its addresses, and the ssh command that gets in.
    """
    if SSHD is None:
        pytest.skip("there is no sshd")
    folder.mkdir()
    with held_port() as port:
        yield from _serve_ssh(SSHD, folder, root, port)


def _serve_ssh(
    program: str, folder: Path, root: Path, port: int
) -> Iterator[tuple[str, str]]:
    key = _make_key(folder / "key")
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\n"
        f"HostKey {_make_key(folder / 'host')}\n"
        f"AuthorizedKeysFile {key}.pub\n"
        f"PidFile {folder / 'pid'}\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nPermitRootLogin yes\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    server = subprocess.Popen(
        [program, "-D", "-f", str(folder / "config")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _await_port(port, server)
        command = (
            f"ssh -F none -i {key} -o IdentitiesOnly=yes -o BatchMode=yes "
            "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
            "-o LogLevel=ERROR"
        )
        yield f"ssh://127.0.0.1:{port}{root}", command
    finally:
        server.terminate()
        server.wait()
