"""Threads at work in one folder know of each other."""

from __future__ import annotations

from pathlib import Path

from tests.code.repo import OTHER, THREAD
from uwfgit.code.snapshots.presence import at_work, list_at_work


def test_two_at_work_at_once_know_of_each_other(tmp_path: Path) -> None:
    state, root = tmp_path / "state", tmp_path / "root"
    with at_work(state, root, THREAD) as mine:
        assert mine is not None
        assert mine.others() == ()
        with at_work(state, root, OTHER) as theirs:
            assert theirs is not None
            assert mine.others() == (OTHER,)
            assert theirs.others() == (THREAD,)
            assert list_at_work(state, root) == (THREAD, OTHER)

        # It came and went while the first was at work.
        assert mine.others() == (OTHER,)
        assert list_at_work(state, root) == (THREAD,)
    assert list_at_work(state, root) == ()


def test_one_after_the_other_share_nothing(tmp_path: Path) -> None:
    state, root = tmp_path / "state", tmp_path / "root"
    with at_work(state, root, THREAD):
        pass
    with at_work(state, root, OTHER) as theirs:
        assert theirs is not None
        assert theirs.others() == ()


def test_another_work_tree_is_another_place(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with (
        at_work(state, tmp_path / "a", THREAD) as mine,
        at_work(state, tmp_path / "b", OTHER),
    ):
        assert mine is not None
        assert mine.others() == ()


def test_a_state_that_cannot_be_written_is_no_bar(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")

    with at_work(tmp_path / "state", tmp_path / "root", THREAD) as mine:
        assert mine is None
