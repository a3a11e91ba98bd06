"""What a run cost: the only place that adds usages up (pure)."""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

from msgspec import Meta
from msgspec.structs import astuple

from uwfgit.model.schema.typed import Payload
from uwfgit.store.canonical import Omittable

Count = Annotated[int, Meta(ge=0)]
Number = TypeVar("Number", int, float)


class Usage(Payload, frozen=True, kw_only=True):
    """What one run cost; always a delta, never a session's running total."""

    turns: Count
    input_tokens: Count
    output_tokens: Count
    duration_ms: Count
    cost_usd: int | float | None
    cache_read_tokens: Omittable[Count] = None
    cache_write_tokens: Omittable[Count] = None


NO_USAGE: Final = Usage(
    turns=0, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=None
)
"""A run that is not known to have used anything yet."""


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Add up two deltas; an unknown one adds nothing, and so does an unknown cost."""
    if first is None or second is None:
        return first or second
    return Usage(
        turns=first.turns + second.turns,
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        duration_ms=first.duration_ms + second.duration_ms,
        cost_usd=_add_known(first.cost_usd, second.cost_usd),
        cache_read_tokens=_add_known(first.cache_read_tokens, second.cache_read_tokens),
        cache_write_tokens=_add_known(
            first.cache_write_tokens, second.cache_write_tokens
        ),
    )


def is_grown(before: Usage | None, after: Usage | None) -> bool:
    """Whether one usage may be another and more."""
    if before is None or after is None:
        return before is None
    return all(
        (old or 0) <= (new or 0) and (old is None or new is not None)
        for old, new in zip(astuple(before), astuple(after), strict=True)
    )


def usage_since(before: Usage | None, after: Usage | None) -> Usage | None:
    """Return what one usage is more than another that it grew from."""
    if before is None or after is None or before == after:
        return None if before == after else after
    return Usage(
        turns=after.turns - before.turns,
        input_tokens=after.input_tokens - before.input_tokens,
        output_tokens=after.output_tokens - before.output_tokens,
        duration_ms=after.duration_ms - before.duration_ms,
        cost_usd=_known_since(before.cost_usd, after.cost_usd),
        cache_read_tokens=_known_since(
            before.cache_read_tokens, after.cache_read_tokens
        ),
        cache_write_tokens=_known_since(
            before.cache_write_tokens, after.cache_write_tokens
        ),
    )


def _known_since(before: Number | None, after: Number | None) -> Number | None:
    return after if before is None or after is None else after - before


def _add_known(first: Number | None, second: Number | None) -> Number | None:
    if first is None or second is None:
        return first if second is None else second
    return first + second
