from __future__ import annotations

import pytest

from uwfgit.agents.base import Usage, add_usage


def usage(turns: int, cost: float | None) -> Usage:
    return Usage(
        turns=turns,
        input_tokens=10 * turns,
        output_tokens=2 * turns,
        duration_ms=100 * turns,
        cost_usd=cost,
    )


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        pytest.param(None, None, None, id="nothing-known"),
        pytest.param(usage(1, 0.5), None, usage(1, 0.5), id="first-only"),
        pytest.param(None, usage(1, 0.5), usage(1, 0.5), id="second-only"),
        pytest.param(usage(1, 0.5), usage(2, 0.25), usage(3, 0.75), id="both"),
        pytest.param(usage(1, None), usage(2, 0.25), usage(3, 0.25), id="cost-once"),
        pytest.param(usage(1, 0.5), usage(2, None), usage(3, 0.5), id="cost-first"),
        pytest.param(usage(1, None), usage(2, None), usage(3, None), id="no-cost"),
        pytest.param(usage(0, 0), usage(1, None), usage(1, 0), id="zero-is-known"),
    ],
)
def test_usage_adds_up(
    first: Usage | None, second: Usage | None, total: Usage | None
) -> None:
    assert add_usage(first, second) == total
