"""Two people, two homes, two folders: over every wire, by uwf and by plain git.

The server writes down every ref that a push asks it to change.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.seats import Seat, make_seat
from tests.sync.code import code_refs, make_code
from tests.sync.people import make_bare, refs_of
from tests.sync.serving import serve_http, serve_ssh

# Said of each transaction, before and after it; that of a push comes prepared.
_RECORD = '#!/bin/sh\n[ "$1" = prepared ] && cat >> updates\nexit 0\n'


@dataclass(frozen=True)
class Between:
    """The repository between them, how it is reached, and whether code is in it."""

    path: Path
    url: str
    is_shared: bool

    def updates(self) -> set[str]:
        """Give every ref that anybody asked to change since the start."""
        lines = (self.path / "updates").read_text().splitlines()
        # A push that makes the branch of HEAD is also told as one of HEAD.
        return {line.split(" ", 2)[2] for line in lines} - {"HEAD"}


@pytest.fixture(params=[pytest.param("dedicated", marks=pytest.mark.slow), "shared"])
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, bool]:
    folder = tmp_path / "served"
    folder.mkdir()
    is_shared = request.param == "shared"
    path = (make_code if is_shared else make_bare)(folder / "between.git")
    hook = path / "hooks" / "reference-transaction"
    hook.write_text(_RECORD)
    hook.chmod(0o755)
    return path, is_shared


@pytest.fixture(
    params=[
        "file",
        pytest.param("http", marks=pytest.mark.slow),
        pytest.param("ssh", marks=pytest.mark.slow),
    ]
)
def between(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bare: tuple[Path, bool],
) -> Iterator[Between]:
    path, is_shared = bare
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    if request.param == "file":
        yield Between(path, f"file://{path}", is_shared)
    elif request.param == "http":
        with serve_http(path.parent) as url:
            yield Between(path, f"{url}/{path.name}", is_shared)
    else:
        with serve_ssh(tmp_path / "sshd", path.parent) as (url, command):
            monkeypatch.setenv("GIT_SSH_COMMAND", command)
            yield Between(path, f"{url}/{path.name}", is_shared)


@pytest.fixture
def seats(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    between: Between,
) -> tuple[Seat, Seat]:
    """Ada and Bob, each with a store in a folder of their own."""
    code = between.path if between.is_shared else None
    ada, bob = (
        make_seat(tmp_path, name, monkeypatch, capsys, code=code)
        for name in ("Ada", "Bob")
    )
    for seat in (ada, bob):
        if code is None:
            subprocess.run(["git", "init", "--quiet", seat.folder], check=True)
        seat.do("init")
        kind = ["--shared"] if between.is_shared else []
        seat.do("remote", "add", "origin", between.url, *kind)
    return ada, bob


def plain(seat: Seat, *words: str) -> None:
    """Run plain git in somebody's store."""
    store = seat.do("store", "path").out.strip()
    bin_folder = Path(sys.executable).parent
    done = subprocess.run(
        ["git", f"--git-dir={store}", *words],
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def adopt(seat: Seat) -> None:
    """Take over what was fetched: fast-forwards only, as the guide says."""
    store = seat.do("store", "path").out.strip()
    plain(seat, "fetch", "--quiet", "origin")
    refspec = "refs/remotes/origin/thread/*:refs/heads/thread/*"
    plain(seat, "fetch", "--quiet", store, refspec)


@pytest.mark.parametrize(
    "by", ["uwf", pytest.param("plain git", marks=pytest.mark.slow)]
)
def test_a_suspended_thread_is_continued_in_the_second_clone_and_comes_back(
    seats: tuple[Seat, Seat], between: Between, by: str
) -> None:
    ada, bob = seats
    code = code_refs(between.path) if between.is_shared else {}
    thread = ada.start()

    if by == "uwf":
        ada.do("push", thread)
        bob.do("pull")
    else:
        plain(ada, "push", "--quiet", "origin")
        adopt(bob)
    answer = ("thread", "resume", thread, "-p", "x", "--agent", "scripted:asking.yaml")
    assert bob(*answer).code == 1
    place = () if between.is_shared else ("--cwd", ".")
    bob.do(*answer, "--trust", *place)
    if by == "uwf":
        bob.do("push")
        ada.do("pull")
    else:
        plain(bob, "push", "--quiet", "origin")
        adopt(ada)

    shown = ada.do("thread", "show", thread, "--json").json
    assert (shown["status"], shown["steps"], shown["shared"]) == ("end", 2, "yes")
    steps = [
        ada.do("step", "show", f"{thread}:{number}", "--json").json["cwd"]
        for number in (1, 2)
    ]
    assert steps == [str(ada.folder), str(bob.folder)]
    ada.do("verify")
    assert between.updates() == (
        {f"refs/uwf/thread/{thread}"}
        if between.is_shared
        else {"refs/heads/main", f"refs/heads/thread/{thread}"}
    )
    if between.is_shared:
        assert code_refs(between.path) == code
        assert set(refs_of(between.path)) == {*code, f"refs/uwf/thread/{thread}"}


def test_no_push_names_another_destination_than_it_may(
    seats: tuple[Seat, Seat], between: Between
) -> None:
    """All that can be sent: threads, workflows, approvals, a review."""
    ada, bob = seats
    code = code_refs(between.path) if between.is_shared else {}
    thread = ada.start()
    ada.do("workflow", "add", "ping.yaml")
    ada.do("review", "approve", thread, "--no-sign", "-m", "good")
    ada.do("cas", "put-text", "kept here")

    ada.do("push", "--all")
    ada.do("review", "open", thread)
    bob.do("pull", "--workflows")
    copy = bob.do("thread", "fork", thread, "--json").json["threadId"]
    bob.do("push", copy)
    plain(ada, "push", "--quiet", "origin")
    plain(bob, "push", "--quiet", "origin")

    (tag,) = (r for r in refs_of(_store(ada)) if r.startswith("refs/tags/approved/"))
    name = tag.removeprefix("refs/tags/approved/")
    threads = {f"thread/{thread}", f"thread/{copy}", "workflow/ping"}
    review = {f"refs/heads/uwf/{thread}"}
    assert between.updates() == (
        {f"refs/uwf/{each}" for each in threads}
        | {f"refs/uwf/approved/{name}", "refs/heads/uwf/main"}
        | review
        if between.is_shared
        else {f"refs/heads/{each}" for each in threads}
        | {f"refs/tags/approved/{name}", "refs/heads/main"}
        | review
    )
    now = refs_of(between.path)
    assert {ref: now.get(ref) for ref in code} == code


def _store(seat: Seat) -> Path:
    return Path(seat.do("store", "path").out.strip())
