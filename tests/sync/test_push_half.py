"""Pushes of which a part fails: each thread is told, and the rest goes again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import git, reply
from tests.sync.people import (
    DONE,
    GOOD,
    Person,
    make_bare,
    make_person,
    refs_of,
    results,
)
from uwfgit.errors import RemoteError
from uwfgit.store.layout import thread_ref


def hook(bare: Path, name: str, script: str) -> Path:
    path = bare / "hooks" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_connection_that_ends_half_way_loses_no_word_of_what_was_sent(
    ada: Person, bare: Path
) -> None:
    threads = [ada.begin(DONE) for _ in range(4)]
    away = bare.with_name("away.git")
    refuse = hook(bare, "pre-receive", f"! grep -q {threads[3]}")
    leave = hook(bare, "post-receive", f"mv {bare} {away}")

    report = ada.push(*threads)

    assert results(report.outcomes) == {
        **dict.fromkeys(threads[:1], "new"),
        **dict.fromkeys(threads[1:], "rejected"),
    }
    assert not report.ok
    reasons = {o.message for o in report.outcomes if o.result == "rejected"}
    assert len(reasons) == 1
    assert "does not appear to be a git repository" in str(reasons)
    away.rename(bare)
    refuse.unlink()
    leave.unlink()
    again = ada.push(*threads)
    assert results(again.outcomes) == dict.fromkeys(threads[1:], "new")
    assert ada.push(*threads).outcomes == ()
    assert {thread_ref(each) for each in threads} < set(refs_of(bare))


def test_a_remote_that_was_never_reached_is_an_error(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE)
    bare.rename(bare.with_name("away.git"))

    with pytest.raises(RemoteError):
        ada.push(thread)


def test_a_thread_too_large_for_the_server_keeps_no_other_back(
    ada: Person, bare: Path
) -> None:
    good = [ada.begin(DONE) for _ in range(3)]
    bad = ada.begin(reply(plan="".join(f"{n * 7919**3:x}" for n in range(9000))))
    git(bare, "config", "receive.maxInputSize", "20k")

    report = ada.push(*good, bad)

    assert results(report.outcomes) == {**dict.fromkeys(good, "new"), bad: "rejected"}
    (refused,) = (each for each in report.outcomes if each.result == "rejected")
    assert "unpacker error" in (refused.message or "")
    git(bare, "config", "receive.maxInputSize", "0")
    assert results(ada.push(bad).outcomes) == {bad: "new"}


def test_a_name_that_the_server_hides_is_told_and_the_code_is_left_alone(
    tmp_path: Path,
) -> None:
    bare = make_bare(tmp_path / "bare.git")
    ada = make_person(tmp_path, "ada")
    ada.join(bare, kind="shared")
    threads = [ada.begin(DONE), ada.begin(DONE, GOOD)]
    git(bare, "config", "receive.hideRefs", f"refs/uwf/thread/{threads[0]}")

    report = ada.push(send_all=True)

    assert results(report.outcomes) == {threads[0]: "rejected", threads[1]: "new"}
    assert set(refs_of(bare)) == {f"refs/uwf/thread/{threads[1]}"}
