"""The first step of a thread whose code makes a command fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from uwfgit.errors import StateError
from uwfgit.ids import Oid

Verdict = Literal["good", "bad", "skip"]


class Point(Struct, frozen=True, kw_only=True):
    """A step and the tree of its code afterwards; 0 is the code it all began with."""

    number: int
    tree: Oid


class Culprit(Struct, frozen=True, kw_only=True):
    """The first bad step; several when those between could not be tested."""

    steps: tuple[int, ...]
    tested: tuple[tuple[int, Verdict], ...]


def find_culprit(points: Sequence[Point], judge: Callable[[Point], Verdict]) -> Culprit:
    """Find the first step that is bad, testing as few as possible.

    Args:
        points: The steps in order: the first should be good, the last bad.
        judge: Tests one; asked once of equal trees.

    Raises:
        StateError: The first is bad already, or the last is not.
    """
    known: dict[Oid, Verdict] = {}
    tested: list[tuple[int, Verdict]] = []

    def test(point: Point) -> Verdict:
        if point.tree not in known:
            known[point.tree] = judge(point)
            tested.append((point.number, known[point.tree]))
        return known[point.tree]

    first, last = points[0], points[-1]
    if test(first) != "good":
        raise StateError(
            f"the command does not pass at step {first.number} already",
            hint="choose an earlier one with --from N"
            if first.number
            else "so none of the thread's steps broke it",
        )
    if test(last) != "bad":
        raise StateError(
            f"the command does not fail at step {last.number}",
            hint="choose another one with --to N",
        )
    good, bad = 0, len(points) - 1
    while (middle := _choose(points, known, good, bad)) is not None:
        verdict = test(points[middle])
        if verdict == "good":
            good = middle
        elif verdict == "bad":
            bad = middle
    steps = tuple(point.number for point in points[good + 1 : bad + 1])
    return Culprit(steps=steps, tested=tuple(tested))


def _choose(
    points: Sequence[Point], known: dict[Oid, Verdict], good: int, bad: int
) -> int | None:
    """Choose the step to test next: the nearest to the middle that can be tested."""
    middle = (good + bad) // 2
    open_ = [
        place
        for place in range(good + 1, bad)
        if known.get(points[place].tree) != "skip"
    ]
    return min(open_, key=lambda place: abs(place - middle), default=None)
