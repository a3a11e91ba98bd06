"""What a remote says reaches a terminal shown, not obeyed, whatever it speaks over."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.builders import git
from tests.cli.calls import Uwf
from tests.cli.hostile import TRICKS
from tests.cli.screens import Seen, in_pipes, list_unsafe, on_terminal, write_program

pytestmark = pytest.mark.slow

SPOKEN = TRICKS.replace("\n", "").replace("\r", "")
LINE = f"x{SPOKEN}\rall is well {SPOKEN}\r\n"
COMMANDS = {
    "push": ("push", "origin", "--all"),
    "pull": ("pull", "origin"),
    "clone": ("clone", "{url}", "clone.git"),
    "review": ("review", "open", "@last"),
    "git-fetch": ("git", "fetch", "origin"),
    "git-push": ("git", "push", "--no-verify", "origin", "--all"),
    "git-ls-remote": ("git", "ls-remote", "origin"),
    "git-verbose": ("git", "fetch", "-v", "origin", "+refs/*:refs/x/*"),
}
EACH = pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)


class _Hostile(BaseHTTPRequestHandler):
    """Refuses in words, and leads elsewhere."""

    def do_GET(self) -> None:
        body = LINE.encode() * 10
        self.send_response(403, "\x1b[2Jno")
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Evil", "\x1b[2J")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def _serve() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/x.git"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def store(uwf: Uwf, thread: str) -> Path:
    """A store with a thread to send."""
    assert thread
    return Path(uwf("store", "path").out.strip())


@pytest.fixture
def words_file(tmp_path: Path) -> Path:
    """What the remote says; it is too strange for a shell's quotes."""
    path = tmp_path / "words"
    path.write_bytes(LINE.encode())
    return path


def point(store: Path, url: str) -> None:
    assert store.exists()
    assert in_pipes("remote", "add", "origin", url, "--dedicated").code == 0


def ask(words: tuple[str, ...], url: str) -> tuple[Seen, Seen]:
    spoken = [word.replace("{url}", url) for word in words]
    shown = on_terminal(*spoken)
    return shown, in_pipes(*spoken)


def check(words: tuple[str, ...], url: str) -> str:
    """Ask the remote; give what a terminal shows of it."""
    shown, piped = ask(words, url)

    assert list_unsafe(shown.out, own=True) == set()
    assert "\x1b[31mOWNED" not in shown.out
    if words[0] != "git":
        assert list_unsafe(piped.out + piped.err) == set()
    assert {shown.code, piped.code} <= {0, 1, 2, 128}
    return shown.out


@pytest.fixture
def ssh(words_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ssh:
    def make(script: str) -> None:
        text = f"#!/bin/sh\nW={shlex.quote(str(words_file))}\n{script}\n"
        program = write_program(tmp_path / "ssh", text)
        monkeypatch.setenv("GIT_SSH_COMMAND", program)
        monkeypatch.setenv("GIT_SSH_VARIANT", "ssh")

    return make


Ssh = Callable[[str], None]


@EACH
@pytest.mark.parametrize(
    "script",
    [
        pytest.param('cat "$W" >&2; exit 255', id="a-banner"),
        pytest.param('cat "$W"', id="no-protocol"),
        pytest.param('cat "$W" >&2; printf "0009ERR \\033"', id="an-error-packet"),
        pytest.param(
            'yes "$(tr -d \'\\n\' < "$W")" | head -c 3000000 >&2', id="a-flood"
        ),
    ],
)
def test_over_ssh(store: Path, ssh: Ssh, words: tuple[str, ...], script: str) -> None:
    ssh(script)
    url = "evil@host:x.git"
    point(store, url)

    assert check(words, url) or words[0] == "git"


@EACH
def test_over_ssh_that_works_and_talks(
    store: Path, ssh: Ssh, words: tuple[str, ...], tmp_path: Path
) -> None:
    bare = make_talkative(tmp_path, store)
    ssh(f'cat "$W" >&2; cd {bare.parent}; shift $(($# - 1)); eval "$1"')
    url = f"evil@host:{bare.name}"
    point(store, url)

    check(words, url)


def make_talkative(folder: Path, store: Path) -> Path:
    """Make a repository whose hook talks, with names that are tricks."""
    bare = folder / "talk.git"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    text = f"#!/bin/sh\ncat {shlex.quote(str(folder / 'words'))} >&2\nexit 1\n"
    write_program(bare / "hooks" / "pre-receive", text)
    names = [
        "\u202eevil\u2066",
        "\u009b31mred",
        "thread/\u200b\ufeff",
        "workflow/\u202e",
    ]
    for name in names:
        git(bare, "fetch", "-q", str(store), f"main:refs/heads/{name}")
    return bare


@EACH
def test_over_a_path_with_a_hook_that_talks(
    store: Path, words: tuple[str, ...], words_file: Path
) -> None:
    bare = make_talkative(words_file.parent, store)
    point(store, str(bare))

    shown = check(words, str(bare))

    if "push" in words:
        assert "all is well" in shown
        assert "remote: x" in shown or words[0] == "push"


@EACH
def test_over_http(
    store: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with _serve() as url:
        point(store, url)

        assert check(words, url)


def test_only_progress_is_drawn_over(
    store: Path, words_file: Path, tmp_path: Path
) -> None:
    bare = make_talkative(tmp_path, store)
    words_file.write_bytes(b"the truth\rCounting objects:  50% (1/2)\ra lie\n")

    shown = on_terminal("git", "push", "--no-verify", str(bare), "main:refs/heads/x")

    assert "remote: the truth\x1b[K\n" in shown.out
    assert "remote: Counting objects:  50% (1/2)\x1b[K\r" in shown.out
    assert "remote: a lie\x1b[K\n" in shown.out
