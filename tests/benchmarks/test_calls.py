"""Reading a node stays a short way through few modules, and a step grows no longer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.benchmarks.calls import Call, count_exec, count_get

GET = (120, 28)
STEP = (400, 70)
"""Functions and modules, at most."""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Give an empty folder; where we are and what surrounds us is put back."""
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    empty = tmp_path / "counted"
    empty.mkdir()
    yield empty
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize("is_new", [False, True], ids=["known", "new"])
@pytest.mark.parametrize("in_tree", [False, True], ids=["outside", "in a work tree"])
def test_a_node_is_read_by_few_functions(
    folder: Path, *, in_tree: bool, is_new: bool
) -> None:
    calls = count_get(folder, in_tree=in_tree, is_new=is_new)

    assert "get" in {call.name for call in calls}
    assert is_within(calls, GET)


def test_a_step_runs_through_no_more_than_it_did(folder: Path) -> None:
    calls = count_exec(folder)

    assert "run_cycle" in {call.name for call in calls}
    assert is_within(calls, STEP)


def is_within(calls: Sequence[Call], most: tuple[int, int]) -> bool:
    found = (len(calls), len({call.module for call in calls}))
    return found[0] <= most[0] and found[1] <= most[1]
