"""Two threads side by side, from the step at which they part (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct

from uwfgit.model.thread.step import Step, Usage, add_usage


class Pair(Struct, frozen=True, kw_only=True):
    """What the two threads hold at one number; ``None`` for a shorter one.

    ``differs`` names what is not equal: ``role``, ``status``, ``agent``,
    ``body`` and fields as ``output.NAME``.
    """

    number: int
    a: Step | None
    b: Step | None
    differs: tuple[str, ...]


class Sum(Struct, frozen=True, kw_only=True):
    """What the steps behind the fork point come to."""

    steps: int
    duration_ms: int
    usage: Usage | None


class Comparison(Struct, frozen=True, kw_only=True):
    """The newest step both share, if there is one, and the steps behind it."""

    fork_point: Step | None
    pairs: tuple[Pair, ...]
    sum_a: Sum
    sum_b: Sum


def compare_chains(a: Sequence[Step], b: Sequence[Step]) -> Comparison:
    """Compare two logical chains, oldest step first in each."""
    shared = 0
    for one, other in zip(a, b, strict=False):
        if one.hash != other.hash:
            break
        shared += 1
    rest_a, rest_b = a[shared:], b[shared:]
    return Comparison(
        fork_point=a[shared - 1] if shared else None,
        pairs=tuple(
            Pair(
                number=number,
                a=one,
                b=other,
                differs=tuple(_differences(one, other)) if one and other else (),
            )
            for number, (one, other) in enumerate(
                zip_longest(rest_a, rest_b), start=shared + 1
            )
        ),
        sum_a=_sum(rest_a),
        sum_b=_sum(rest_b),
    )


def _differences(a: Step, b: Step) -> Iterator[str]:
    if a.role != b.role:
        yield "role"
    if a.status != b.status:
        yield "status"
    if a.agent != b.agent:
        yield "agent"
    for name in list_fields(a, b):
        # 1 and true are equal to Python, not to anybody else.
        one, other = a.output.get(name), b.output.get(name)
        if (name in a.output) != (name in b.output) or repr(one) != repr(other):
            yield f"output.{name}"
    if a.body != b.body:
        yield "body"


def list_fields(a: Step | None, b: Step | None) -> list[str]:
    """Name the output fields of one step or the other, but for ``$status``."""
    names = [name for step in (a, b) if step is not None for name in step.output]
    return [name for name in dict.fromkeys(names) if name != "$status"]


def _sum(steps: Sequence[Step]) -> Sum:
    usage: Usage | None = None
    for step in steps:
        usage = add_usage(usage, step.usage)
    return Sum(
        steps=len(steps),
        duration_ms=sum(step_duration(step) for step in steps),
        usage=usage,
    )


def step_duration(step: Step) -> int:
    """Return how long a step took, in ms."""
    return max(0, step.completed_at_ms - step.started_at_ms)
