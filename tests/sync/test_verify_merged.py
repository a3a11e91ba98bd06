"""Threads stay verifiable in the branch they were merged into."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import git
from tests.sync.people import DONE, GOOD, Person
from uwfgit.cli.frame.app import main
from uwfgit.ids import ThreadId
from uwfgit.store.layout import thread_ref

WHO = ("-c", "user.name=Forge", "-c", "user.email=forge@example.org")


def _merge(bare: Path, thread: ThreadId, *, tree: str | None = None) -> None:
    """Merge a thread's branch into main as a forge does."""
    ref = thread_ref(thread)
    merged = tree or git(bare, "merge-tree", "--write-tree", "main", ref).strip()
    parents = ("-p", "main", "-p", ref)
    words = ("commit-tree", *parents, "-m", f"Merge {thread}", merged)
    git(bare, "update-ref", "refs/heads/main", git(bare, *WHO, *words).strip())


def _verify(bare: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["verify", "--repo", str(bare), "main"])
    return code, capsys.readouterr().out


def test_threads_merged_into_a_branch_are_verified(
    ada: Person, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = ada.begin(DONE), ada.begin(DONE, GOOD)
    ada.push(one, two)
    _merge(bare, one)
    _merge(bare, two)
    ada.go(one, GOOD)
    ada.push()
    _merge(bare, one)

    code, out = _verify(bare, capsys)

    assert code == 0
    assert f"{one}: consistent; 2 steps" in out
    assert f"{two}: consistent; 2 steps" in out


def test_a_merge_that_changed_a_thread_is_told(
    ada: Person, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = ada.begin(DONE), ada.begin(DONE)
    ada.push(one, two)
    _merge(bare, one)
    _merge(bare, two, tree="main^{tree}")

    code, out = _verify(bare, capsys)

    assert code == 1
    assert f"{two}" in out
    assert "other files" in out


def test_a_branch_without_a_merged_thread_is_refused_as_before(
    ada: Person, bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ada.push(ada.begin(DONE))

    code, out = _verify(bare, capsys)

    assert code == 1
    assert "does not end at an event" in out
