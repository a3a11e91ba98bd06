"""A thread followed as it runs: nothing is missed, whatever cuts the line."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import Uwf
from tests.web.serving import Server, serving

pytestmark = pytest.mark.slow

SLOW = """\
#!/bin/sh
cat > /dev/null
echo 'I look at it.'
sleep 2.5
echo 'I see.'
sleep 0.5
printf -- '---\\n$status: %s\\ntext: x\\n---\\nDone.\\n' "$1"
"""


@dataclass(slots=True)
class Stream:
    """An open stream of events, read line by line."""

    line: socket.socket
    rest: bytes = b""
    seen: list[tuple[str, str | None, Any]] = field(default_factory=list)

    def until(self, event: str, *, wait: float = 60) -> Any:  # noqa: ANN401 - a JSON value
        """Read on until an event of a kind has come; give its data."""
        end = time.monotonic() + wait
        while time.monotonic() < end:
            for message in self._messages():
                self.seen.append(message)
                if message[0] == event:
                    return message[2]
        pytest.fail(f"no {event} in {wait} s; seen: {self.seen}")

    def _messages(self) -> Iterator[tuple[str, str | None, Any]]:
        while b"\n\n" not in self.rest:
            part = self.line.recv(65_536)
            if not part:
                pytest.fail(f"the stream ended; seen: {self.seen}")
            self.rest += part.replace(b"\r\n", b"\n")
        block, _, self.rest = self.rest.partition(b"\n\n")
        found = dict(
            line.split(": ", 1) for line in block.decode().splitlines() if ": " in line
        )
        if "event" in found:
            yield found["event"], found.get("id"), json.loads(found["data"])

    def ids(self, event: str) -> list[str | None]:
        return [each[1] for each in self.seen if each[0] == event]


@contextmanager
def following(
    server: Server, thread: str, *, since: str | None = None
) -> Iterator[Stream]:
    query = f"?since={since}" if since else ""
    head = (
        f"GET /api/threads/{thread}/live{query} HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
        line.sendall(head.encode())
        yield Stream(line)


@pytest.fixture
def slow(work: Path) -> str:
    path = work / "slow.sh"
    path.write_text(SLOW)
    path.chmod(0o700)
    return str(path)


def commits(uwf: Uwf, thread: str) -> list[str]:
    items = uwf("thread", "log", thread, "--json").json["items"]
    return [item["oid"] for item in items][::-1]


def test_turns_and_events_come_as_they_happen_and_the_end_ends_it(
    uwf: Uwf, thread: str, work: Path, slow: str
) -> None:
    with serving(work) as server, following(server, thread) as stream:
        stream.until("running")
        uwf("thread", "exec", thread, "--background", "--agent", f"stdio:{slow} done")
        assert stream.until("running") == {"running": True}
        first = stream.until("turns")["items"][-1]["content"]
        assert "I look at it." in first
        assert "Done" not in first
        assert stream.until("event")["event"] == "step"
        uwf("thread", "exec", thread, "--agent", f"stdio:{slow} good")
        assert stream.until("end") == {"status": "end"}
        assert stream.ids("event") == commits(uwf, thread)[1:]
        assert stream.line.recv(100) in {b"0\r\n\r\n", b""}


def test_what_came_while_the_line_was_cut_comes_first(
    uwf: Uwf, thread: str, work: Path
) -> None:
    known = commits(uwf, thread)[0]
    with serving(work) as server:
        with following(server, thread, since=known) as stream:
            stream.until("running")
        uwf("thread", "exec", thread, "--all", "--agent", "scripted:replies.yaml")
        with following(server, thread, since=known) as stream:
            stream.until("end")
            assert stream.ids("event") == commits(uwf, thread)[1:]


def test_a_restarted_server_takes_the_page_and_its_reader_up_again(
    uwf: Uwf, thread: str, work: Path, port: int
) -> None:
    known = commits(uwf, thread)[0]
    with serving(work, port=port) as server:
        first = server.ask("GET", server.url.removeprefix(server.origin))
        cookie = first.headers["set-cookie"].partition(";")[0]
    uwf("thread", "exec", thread, "--agent", "scripted:replies.yaml")
    with serving(work, port=port) as server:
        headers = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}
        again = server.ask("GET", f"/threads/{thread}", headers=headers)
        assert again.status == 200
        assert 'id="step-1"' in again.text
        with following(server, thread, since=known) as stream:
            stream.until("event")
            assert stream.ids("event") == commits(uwf, thread)[1:]


def test_a_plain_push_into_the_store_is_seen(
    uwf: Uwf, thread: str, work: Path, tmp_path: Path
) -> None:
    store = uwf("store", "path", "--json").json["store"]
    mirror = tmp_path / "mirror.git"
    uwf("thread", "exec", thread, "--agent", "scripted:replies.yaml")
    known, newest = commits(uwf, thread)
    subprocess.run(["git", "clone", "-q", "--bare", store, mirror], check=True)
    ref = f"refs/heads/thread/{thread}"
    git = ["git", f"--git-dir={store}"]
    subprocess.run([*git, "update-ref", ref, known], check=True)

    with serving(work) as server, following(server, thread, since=known) as stream:
        stream.until("running")
        push = ["git", f"--git-dir={mirror}", "push", "-q", store, ref]
        subprocess.run(push, check=True)
        stream.until("event")
        assert stream.ids("event") == [newest]


def test_a_branch_that_was_moved_aside_says_so(
    uwf: Uwf, ended: str, work: Path
) -> None:
    store = uwf("store", "path", "--json").json["store"]
    oids = commits(uwf, ended)
    ref = f"refs/heads/thread/{ended}"
    git = ["git", f"--git-dir={store}"]
    subprocess.run([*git, "update-ref", ref, oids[2]], check=True)

    with serving(work) as server, following(server, ended, since=oids[4]) as stream:
        stream.until("reset")
        assert stream.ids("reset") == [oids[2]]


def test_a_thread_that_is_not_there_ends_the_stream(uwf: Uwf, work: Path) -> None:
    uwf("init")
    with serving(work) as server:
        nothing = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
        with following(server, nothing) as stream:
            stream.until("gone")
