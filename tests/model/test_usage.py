from __future__ import annotations

import pytest
from msgspec import convert, to_builtins
from msgspec.structs import replace

from uwfgit.model.thread.step import Usage, add_usage, usage_since

ONE = Usage(turns=1, input_tokens=2, output_tokens=3, duration_ms=4, cost_usd=0.5)
FREE = Usage(turns=1, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=None)


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        pytest.param(None, None, None, id="both-unknown"),
        pytest.param(ONE, None, ONE, id="second-unknown"),
        pytest.param(None, ONE, ONE, id="first-unknown"),
        pytest.param(
            ONE,
            ONE,
            Usage(
                turns=2, input_tokens=4, output_tokens=6, duration_ms=8, cost_usd=1.0
            ),
            id="both-known",
        ),
        pytest.param(
            ONE,
            FREE,
            Usage(
                turns=2, input_tokens=2, output_tokens=3, duration_ms=4, cost_usd=0.5
            ),
            id="one-cost-unknown",
        ),
    ],
)
def test_usages_add_up(
    first: Usage | None, second: Usage | None, total: Usage | None
) -> None:
    assert add_usage(first, second) == total
    assert add_usage(second, first) == total


@pytest.mark.parametrize("more", [ONE, FREE])
def test_what_was_added_is_what_a_usage_is_more(more: Usage) -> None:
    assert usage_since(ONE, add_usage(ONE, more)) == replace(
        more, cost_usd=more.cost_usd or 0
    )


def test_a_cost_of_nothing_is_not_an_unknown_one() -> None:
    free = Usage(turns=0, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=0)

    total = add_usage(free, FREE)

    assert total is not None
    assert total.cost_usd == 0


@pytest.mark.parametrize("usage", [None, ONE, FREE])
def test_a_usage_is_read_back(usage: Usage | None) -> None:
    assert convert(to_builtins(usage), Usage | None) == usage


def test_all_keys_of_a_usage_are_written() -> None:
    assert to_builtins(FREE) == {
        "turns": 1,
        "inputTokens": 0,
        "outputTokens": 0,
        "durationMs": 0,
        "costUsd": None,
    }
