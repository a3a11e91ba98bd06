from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders import git
from tests.sync.people import DONE, WIRE, Person
from tests.sync.serving import serve_http
from uwfgit.errors import AuthError, RejectedError, RemoteError, UsageError
from uwfgit.ids import Oid
from uwfgit.store.git.gitcmd import GitResult
from uwfgit.store.layout import thread_ref
from uwfgit.sync.exchange.transport import (
    Update,
    Wire,
    list_refs_there,
    push_refs,
    reason_of,
)


def test_progress_of_a_push_is_heard(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE)
    lines: list[str] = []

    ada.push(thread, wire=Wire(environment=os.environ, on_progress=lines.append))

    assert any("Writing objects" in line for line in lines)
    assert thread_ref(thread) in git(bare, "for-each-ref")


def test_refs_are_listed_by_their_names_there(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    git(bare, "update-ref", "refs/uwf/x", "main")

    everything = list_refs_there(WIRE, str(bare), name="o", git_dir=None)
    branches = list_refs_there(
        WIRE, str(bare), name="o", git_dir=ada.store.path, only_branches=True
    )

    assert everything.keys() == {"refs/heads/main", thread_ref(thread), "refs/uwf/x"}
    assert branches.keys() == {"refs/heads/main", thread_ref(thread)}


@pytest.mark.parametrize("url", ["-x", "ext::sh -c id", "fd::3"])
def test_an_address_that_is_more_than_one_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        list_refs_there(WIRE, url, name="o", git_dir=None)


def test_a_remote_that_is_not_there_is_told(ada: Person, tmp_path: Path) -> None:
    with pytest.raises(RemoteError) as caught:
        list_refs_there(WIRE, str(tmp_path / "x"), name="o", git_dir=ada.store.path)

    assert caught.value.remote == "o"
    assert "does not appear to be a git repository" in caught.value.message


def test_a_closed_door_is_told_from_a_dead_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    wire = Wire(environment=os.environ)

    with serve_http(tmp_path, is_open=False) as url, pytest.raises(AuthError):
        list_refs_there(wire, f"{url}/x", name="o", git_dir=None)
    with pytest.raises(RemoteError) as caught:
        list_refs_there(wire, f"{url}/x", name="o", git_dir=None)
    assert not isinstance(caught.value, AuthError)


def test_a_rejected_push_names_each_ref(ada: Person, bare: Path) -> None:
    threads = [ada.begin(DONE), ada.begin(DONE)]
    ada.push(*threads)
    main = Oid(git(bare, "rev-parse", "main").strip())
    updates = [Update(oid=main, ref=thread_ref(thread)) for thread in threads]

    with pytest.raises(RejectedError) as caught:
        push_refs(WIRE, ada.store, "origin", updates)

    assert caught.value.refs.keys() == set(map(thread_ref, threads))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("fatal: repository 'x' not found\n", "repository 'x' not found"),
        (
            (
                "git@host: Permission denied (publickey).\n"
                "fatal: Could not read from remote repository.\n\n"
                "Please make sure you have the correct access rights\n"
                "and the repository exists.\n"
            ),
            "git@host: Permission denied (publickey).",
        ),
        ("warning: x\rerror: unable to write\n", "unable to write"),
        ("something else\n", "something else"),
        ("", "git exited with 1"),
    ],
)
def test_gits_reason_is_the_line_that_says_it(said: str, reason: str) -> None:
    done = GitResult(code=1, stdout=b"", stderr=said.encode())

    assert reason_of(done) == reason


def test_a_remote_that_knows_no_all_or_none_gets_one_after_another(
    ada: Person, bare: Path
) -> None:
    git(bare, "config", "receive.advertiseAtomic", "false")
    threads = [ada.begin(DONE), ada.begin(DONE)]

    report = ada.push(*threads)

    assert {each.result for each in report.outcomes} == {"new"}
    branches = git(bare, "for-each-ref", "--format=%(refname)").split()
    assert branches == ["refs/heads/main", *sorted(map(thread_ref, threads))]


def test_without_all_or_none_one_that_is_refused_keeps_no_other_back(
    ada: Person, bare: Path
) -> None:
    git(bare, "config", "receive.advertiseAtomic", "false")
    threads = [ada.begin(DONE) for _ in range(3)]
    hook = bare / "hooks/update"
    hook.write_text(f"#!/bin/sh\ncase $1 in *{threads[1]}) exit 1;; esac\n")
    hook.chmod(0o755)

    report = ada.push(*threads)

    results = {each.thread: each.result for each in report.outcomes}
    assert results == dict(zip(threads, ["new", "rejected", "new"], strict=True))


def test_a_refusal_names_a_pull_only_when_the_remote_has_more() -> None:
    theirs = RejectedError({"a": "[rejected] (fetch first)"}, remote="o")
    rules = RejectedError({"a": "[remote rejected] (hook declined)"}, remote="o")

    assert "uwf pull" in (theirs.hint or "")
    assert "uwf pull" not in (rules.hint or "")
