"""What runs cost by list prices: marked as an estimate, and unknown where it is."""

from __future__ import annotations

from typing import Any

import pytest

from uwfgit.model.ledger import prices
from uwfgit.model.ledger.prices import Cost, cost_from_payload, cost_of, cost_payload
from uwfgit.model.thread.step import Usage


def used(**changes: Any) -> Usage:  # noqa: ANN401 - fields of a usage
    facts: dict[str, Any] = {
        "turns": 1,
        "input_tokens": 1000,
        "output_tokens": 100,
        "duration_ms": 9,
        "cost_usd": None,
    }
    return Usage(**{**facts, **changes})


def cost(model: str | None, **changes: Any) -> str | None:  # noqa: ANN401 - fields of a usage
    found = cost_of(used(**changes), {"kind": "codex", "model": model})
    return None if found is None else str(found)


@pytest.mark.parametrize(
    "model",
    ["claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", "claude-sonnet-4-5-20250929"],
)
def test_a_model_of_known_price_is_estimated(model: str) -> None:
    assert cost(model) == "~$0.0045"


def test_what_came_from_the_cache_costs_less() -> None:
    assert cost("claude-sonnet-4-5", cache_read_tokens=1000) == "~$0.0018"


def test_what_the_agent_told_stands_as_it_is() -> None:
    assert cost("claude-sonnet-4-5", cost_usd=0.25) == "$0.2500"


@pytest.mark.parametrize("model", [None, "", "fake-1", "x" * 5000])
def test_a_model_of_no_known_price_is_said_to_be_unknown(model: str | None) -> None:
    assert cost(model) == "cost unknown"


def test_an_agent_that_tells_no_usage_is_of_unknown_cost() -> None:
    assert cost_of(None, {"kind": "hermes", "model": None}) == Cost(
        usd=None, is_whole=False
    )


@pytest.mark.parametrize("detail", [{}, {"kind": ["scripted"], "model": 7}])
def test_a_detail_that_says_nothing_of_use_is_of_unknown_cost(
    detail: dict[str, Any],
) -> None:
    assert cost_of(used(), detail) == Cost(usd=None, is_whole=False)


def test_what_asks_no_model_costs_nothing() -> None:
    assert cost_of(None, {"kind": "scripted", "model": None}) is None
    assert cost("claude-sonnet-4-5", input_tokens=0, output_tokens=0) is None


def test_without_the_extra_nothing_is_estimated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prices, "_PACKAGE", "no_such_package")

    assert cost("claude-sonnet-4-5") == "cost unknown"


def test_costs_add_up_to_what_is_known_of_them() -> None:
    told, estimate = Cost(usd=0.5), Cost(usd=0.25, is_estimate=True)
    unknown = Cost(usd=None, is_whole=False)

    assert str(told + estimate) == "~$0.7500"
    assert str(told + unknown) == "$0.5000 and more, unknown"
    assert str(unknown + unknown) == "cost unknown"


@pytest.mark.parametrize("value", [None, Cost(usd=0.5), Cost(usd=None, is_whole=False)])
def test_a_cost_is_read_as_it_was_written(value: Cost | None) -> None:
    assert cost_from_payload(cost_payload(value)) == value
