"""Bisecting finds the step that broke something, and leaves the work tree alone."""

from __future__ import annotations

import subprocess

import pytest

from tests.code.repo import Repo
from tests.code.steps import Thread
from uwfgit.code.bisect import Point, Verdict, find_culprit
from uwfgit.code.scene import open_scene, set_files
from uwfgit.code.snapshots.keep import Keeper
from uwfgit.errors import StateError
from uwfgit.ids import Oid


def points(count: int) -> list[Point]:
    return [Point(number=n, tree=Oid(f"{n:040x}")) for n in range(count)]


@pytest.mark.parametrize("first_bad", range(1, 31))
def test_each_of_thirty_steps_is_found_in_a_few_tests(first_bad: int) -> None:
    def judge(point: Point) -> Verdict:
        return "bad" if point.number >= first_bad else "good"

    found = find_culprit(points(31), judge)

    assert found.steps == (first_bad,)
    assert len(found.tested) <= 7


def test_steps_that_cannot_be_tested_are_all_named() -> None:
    def judge(point: Point) -> Verdict:
        if point.number in {4, 5}:
            return "skip"
        return "bad" if point.number >= 6 else "good"

    assert find_culprit(points(10), judge).steps == (4, 5, 6)


def test_equal_trees_are_tested_once() -> None:
    tested: list[int] = []
    same = [Point(number=n, tree=Oid("a" * 40)) for n in range(1, 9)]
    ends = [
        Point(number=0, tree=Oid("b" * 40)),
        *same,
        Point(number=9, tree=Oid("c" * 40)),
    ]

    def judge(point: Point) -> Verdict:
        tested.append(point.number)
        return "bad" if point.number == 9 else "good"

    assert find_culprit(ends, judge).steps == (9,)
    assert len(tested) == 3


@pytest.mark.parametrize(("verdict", "said"), [("bad", "step 0"), ("good", "step 9")])
def test_ends_that_do_not_hold_are_told(verdict: Verdict, said: str) -> None:
    with pytest.raises(StateError, match=said):
        find_culprit(points(10), lambda _: verdict)


@pytest.mark.parametrize("begin", [0, 3])
def test_an_earlier_step_is_named_only_where_there_is_one(begin: int) -> None:
    with pytest.raises(StateError) as caught:
        find_culprit(points(10)[begin:], lambda _: "bad")

    assert ("--from" in (caught.value.hint or "")) is (begin > 0)


def test_a_scene_is_beside_the_users_work_tree(repo: Repo, keeper: Keeper) -> None:
    thread = Thread(repo=repo, keeper=keeper)
    thread.step("echo good > state && mkdir d && echo x > d/f")
    thread.step("echo bad > state && rm -r d")
    own, files = repo.own_state(), repo.files()

    seen = []
    with open_scene(repo.tree) as scene:
        for snapshot in (thread.after[0], thread.after[1], thread.after[0]):
            set_files(scene, snapshot)
            listed = subprocess.run(
                ["sh", "-c", "cat state; ls; git rev-parse HEAD"],
                cwd=scene.root,
                capture_output=True,
                check=True,
            )
            seen.append(listed.stdout.decode().split())
        folder = scene.root

    head = repo.git("rev-parse", "HEAD").strip()
    assert seen == [
        ["good", "a.txt", "d", "src", "state", head],
        ["bad", "a.txt", "src", "state", head],
        ["good", "a.txt", "d", "src", "state", head],
    ]
    assert not folder.exists()
    assert repo.files() == files
    assert repo.own_state() == own
    assert len(repo.git("worktree", "list").splitlines()) == 1
