"""Reading a node stays a short way through few modules."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks.calls import count_get

MOST_FUNCTIONS = 120
MOST_MODULES = 30


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
    assert len(calls) <= MOST_FUNCTIONS
    assert len({call.module for call in calls}) <= MOST_MODULES
