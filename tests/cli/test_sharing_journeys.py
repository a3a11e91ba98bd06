"""Two people, two homes, one repository between them: whole stories."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import git
from tests.cli.seats import Seat, make_seat
from tests.sync.code import code_refs, make_code
from tests.sync.people import make_bare, refs_of
from tests.sync.serving import serve_http

Seats = tuple[Seat, Seat]


@pytest.fixture
def seats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Seats:
    """Ada and Bob, without code."""
    ada = make_seat(tmp_path, "Ada", monkeypatch, capsys)
    bob = make_seat(tmp_path, "Bob", monkeypatch, capsys)
    return ada, bob


@pytest.fixture
def address(tmp_path: Path) -> str:
    """Where the repository between them is reached."""
    return f"file://{make_bare(tmp_path / 'threads.git')}"


def test_a_suspended_thread_is_continued_in_the_second_clone(
    seats: Seats, address: str
) -> None:
    ada, bob = seats
    thread = ada.start()
    ada.do("remote", "add", "origin", address)
    assert ada.do("thread", "show", thread, "--json").json["shared"] == "never"

    assert ada.do("push", "--json").json["notShared"] == [thread]
    assert _result(ada.do("push", thread, "--json").json) == {thread: "new"}
    bob.do("init", "--user")
    bob.do("remote", "add", "origin", address)
    assert _result(bob.do("pull", "--json").json) == {thread: "new"}
    shown = bob.do("thread", "show", thread, "--json").json
    assert (shown["status"], shown["shared"]) == ("suspended", "yes")
    bob.do(
        *("thread", "resume", thread, "-p", "The second"),
        *("--agent", "scripted:asking.yaml", *bob.trust()),
    )
    assert bob.do("thread", "show", thread, "--json").json["shared"] == "behind"
    bob.do("push")

    assert _result(ada.do("pull", "--json").json) == {thread: "updated"}
    ended = ada.do("thread", "show", thread, "--json").json
    assert (ended["status"], ended["steps"]) == ("end", 2)
    step = ada.do("step", "show", f"{thread}:2", "--json").json
    assert step["cwd"] == str(bob.folder)
    ada.do("verify")
    assert ada.do("pull", "--json").json["upToDate"] == 1


def test_a_pull_in_a_fresh_clone_makes_the_store_and_brings_the_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = make_code(tmp_path / "code.git")
    ada, bob, cleo = (
        make_seat(tmp_path, name, monkeypatch, capsys, code=code)
        for name in ("Ada", "Bob", "Cleo")
    )
    early = bob("pull", "--json")
    thread = ada.start()
    ada.do("remote", "add")
    ada.do("push", thread)
    cleo.do("init")

    brought = bob.do("pull", thread, "--json")

    assert (early.code, early.error["code"]) == (1, "not-found")
    assert "uwf init" in early.error["hint"]
    assert _result(brought.json) == {thread: "new"}
    assert "set up remote origin" in brought.err
    bob.do("push")
    assert _result(cleo.do("pull", "origin", "--json").json) == {thread: "new"}
    (remote,) = bob.do("remote", "list", "--json").json["items"]
    assert (remote["name"], remote["kind"]) == ("origin", "shared")


def test_a_pull_makes_no_store_where_none_may_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = make_code(tmp_path / "code.git")
    ada, bob = (
        make_seat(tmp_path, name, monkeypatch, capsys, code=code)
        for name in ("Ada", "Bob")
    )
    thread = ada.start()
    ada.do("remote", "add")
    ada.do("push", thread)

    named = bob("--store", "elsewhere", "pull")
    git(bob.folder / ".git", "config", "uwf.autoInit", "false")
    off = bob("pull")

    assert (named.code, off.code) == (1, 1)
    assert not (bob.folder / ".git" / "uwf").exists()
    assert not (bob.folder / "elsewhere").exists()


def _result(report: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {item["threadId"]: item["result"] for item in report["items"]}


def test_a_clone_is_a_trusted_store_with_all_threads_or_one(
    seats: Seats, tmp_path: Path
) -> None:
    ada, bob = seats
    address = str(make_bare(tmp_path / "threads.git"))
    threads = [ada.start(), ada.start()]
    ada.do("remote", "add", "origin", address)
    ada.do("push", "--all")

    bob.do("clone", address, "all")
    bob.do("clone", address, "one", "--thread", threads[0][-6:])

    listed = bob.do("thread", "list", "--store", "all", "--json").json["items"]
    assert {item["threadId"] for item in listed} == set(threads)
    listed = bob.do("thread", "list", "--store", "one", "--json").json["items"]
    assert [item["threadId"] for item in listed] == [threads[0]]
    assert bob.do("pull", "--store", "all", "--json").json["upToDate"] == 2


def test_threads_are_shared_through_the_repository_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = make_code(tmp_path / "code.git")
    code = code_refs(url)
    ada = make_seat(tmp_path, "Ada", monkeypatch, capsys, code=url)
    bob = make_seat(tmp_path, "Bob", monkeypatch, capsys, code=url)
    for seat in (ada, bob):
        (seat.folder / ".uwf.yaml").write_text("share: origin\n")
    thread = ada.start()

    refused = ada("push")
    assert "uwf remote add origin" in refused.err
    added = ada.do("remote", "add", "--json")
    assert added.json == {"name": "origin", "url": str(url), "kind": "shared"}
    assert "can fetch the threads" in ada.do("remote", "add").err
    ada.do("push", thread)
    bob.do("remote", "add")
    bob.do("pull")
    bob.do(
        *("thread", "resume", thread, "-p", "x", "--agent", "scripted:asking.yaml"),
        *bob.trust(),
    )
    bob.do("push")
    ada.do("pull")

    assert ada.do("thread", "show", thread, "--json").json["status"] == "end"
    assert code_refs(url) == code
    assert set(refs_of(url)) - set(code) == {f"refs/uwf/thread/{thread}"}
    eve = make_seat(tmp_path, "Eve", monkeypatch, capsys)
    eve.do("clone", str(url), "theirs")
    kinds = eve.do("remote", "list", "--store", "theirs", "--json").json["items"]
    assert kinds[0]["kind"] == "shared"
    eve.do("thread", "show", thread, "--store", "theirs")


@pytest.fixture
def diverged(seats: Seats, tmp_path: Path) -> tuple[Seat, Seat, str]:
    """A thread that both went on with; Ada pushed first, Bob has pulled."""
    ada, bob = seats
    url = make_bare(tmp_path / "between.git")
    thread = ada.start()
    ada.do("remote", "add", "origin", str(url))
    ada.do("push", thread)
    bob.do("init", "--user")
    bob.do("remote", "add", "origin", str(url))
    bob.do("pull")
    for seat in (ada, bob):
        seat.do(
            *("thread", "resume", thread, "-p", seat.name),
            *("--agent", "scripted:asking.yaml", *seat.trust()),
        )
    ada.do("push")
    told = bob.do("pull", code=1)
    assert f"uwf thread resolve {thread}" in told.out + told.err
    return ada, bob, thread


def test_a_diverged_thread_is_shown_refused_and_resolved(
    diverged: tuple[Seat, Seat, str],
) -> None:
    ada, bob, thread = diverged

    shown = bob.do("thread", "show", thread, "--json").json
    assert (shown["status"], shown["shared"]) == ("diverged", "behind")
    listed = bob.do("thread", "list", "--status", "diverged", "--json").json["items"]
    assert [item["status"] for item in listed] == ["diverged"]
    assert "Status: diverged" in bob.do("thread", "read", thread).out
    for command, *words in (("exec",), ("resume",), ("poke", "-p", "x")):
        refused = bob("thread", command, thread, *words, *bob.trust(), "--json")
        assert refused.code == 1
        assert f"uwf thread resolve {thread}" in refused.error["hint"]
    assert bob("push", thread).code == 1
    _check_sides(bob, thread)

    done = bob.do("thread", "resolve", thread, "--keep-mine", "--json").json
    bob.do("push")
    ada.do("pull")

    assert (done["resolved"], done["newThreadId"]) == (True, None)
    # Her step, which his choice set aside, is a fork of hers; nobody else has it.
    items = ada.do("thread", "list", "--all", "--json").json["items"]
    (kept,) = [item for item in items if item["threadId"] != thread]
    assert kept["shared"] == "never"
    ada.do("thread", "rm", kept["threadId"])
    _check_same(ada, bob)


def _check_sides(bob: Seat, thread: str) -> None:
    told = bob.do("thread", "resolve", thread, "--json").json
    assert told["resolved"] is False
    assert [e["by"] for e in told["mine"]["events"]] == ["Bob <bob@example.org>"]
    assert [e["by"] for e in told["theirs"]["events"]] == ["Ada <ada@example.org>"]
    assert len(told["ways"]) == 3
    text = bob.do("thread", "resolve", thread).out
    assert "YOURS" in text
    assert "--keep-theirs" in text
    assert bob("thread", "resolve", thread, "--keep-mine", "--keep-both").code == 2


def _check_same(ada: Seat, bob: Seat) -> None:
    listed = [seat.do("thread", "list", "--all", "--json").json for seat in (ada, bob)]
    assert listed[0] == listed[1]
    assert {item["shared"] for item in listed[0]["items"]} == {"yes"}
    assert "diverged" not in str(listed)
    ada.do("verify")


@pytest.mark.slow
def test_both_sides_of_a_diverged_thread_can_be_kept(
    diverged: tuple[Seat, Seat, str],
) -> None:
    ada, bob, thread = diverged

    done = bob.do("thread", "resolve", thread, "--keep-both", "--json").json
    bob.do("push", done["newThreadId"])
    ada.do("pull")

    _check_same(ada, bob)


def test_threads_go_by_a_file(seats: Seats) -> None:
    ada, bob = seats
    thread = ada.start()
    ada.do("bundle", "create", "../x.bundle", thread)

    done = bob.do("bundle", "open", str(ada.folder.parent / "x.bundle"), "--json").json

    assert _result(done) == {thread: "new"}
    bob.do("verify", thread)


def test_a_remote_that_lets_nobody_in_is_told_as_such(
    seats: Seats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, _ = seats
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    thread = ada.start()
    with serve_http(tmp_path, is_open=False) as url:
        ada.do("remote", "add", "origin", f"{url}/x.git")

        done = ada("push", thread, "--json")

    assert done.code == 1
    assert done.error["code"] == "auth"


def test_a_clone_that_fails_is_none(seats: Seats, tmp_path: Path) -> None:
    _, bob = seats

    done = bob("clone", str(tmp_path / "nowhere"), "x", "--json")

    assert done.code == 1
    assert done.error["code"] == "remote"
    assert not (bob.folder / "x").exists()
    assert bob("clone", str(tmp_path), ".").code == 1


def test_hostile_text_of_a_remote_reaches_no_terminal(
    seats: Seats, tmp_path: Path
) -> None:
    ada, _ = seats
    url = make_bare(tmp_path / "between.git")
    hook = url / "hooks" / "pre-receive"
    hook.write_text(
        "#!/bin/sh\nprintf '\\033[2J\\033]0;owned\\007 no\\n' >&2\nexit 1\n"
    )
    hook.chmod(0o755)
    thread = ada.start()
    ada.do("remote", "add", "origin", str(url))

    done = ada.do("push", thread, code=1)

    assert "\x1b" not in done.out + done.err
    assert "owned" in done.out


def test_remotes_are_listed_without_passwords_and_removed(seats: Seats) -> None:
    ada, _ = seats
    ada.do("init", "--user")
    added = ada.do("remote", "add", "there", "https://me:hunter22@example.com/x")

    listed = ada.do("remote", "list")
    assert "hunter22" not in added.out + added.err + listed.out
    assert "there" in listed.out
    ada.do("remote", "rm", "there")
    assert ada.do("remote", "list", "--json").json == {"items": []}
    assert ada("remote", "rm", "there").code == 1
    assert ada("remote", "add", "x").code == 2
    assert ada("remote", "add", "x", "ext::sh -c id").code == 2


@pytest.mark.parametrize("words", [("push",), ("pull",)])
def test_without_a_remote_the_way_to_one_is_named(
    seats: Seats, words: tuple[str, ...]
) -> None:
    ada, _ = seats
    ada.do("init", "--user")

    done = ada(*words, "--json")

    assert done.code == 1
    assert "uwf remote add" in done.error["hint"]
