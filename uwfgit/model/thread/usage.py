"""What a run cost: the only place that adds usages up and writes them (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from uwfgit.store.canonical import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one run cost; always a delta, never a session's running total."""

    turns: int
    input_tokens: int
    output_tokens: int
    duration_ms: int
    cost_usd: float | None = None


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Add up two deltas; an unknown one adds nothing, and so does an unknown cost."""
    if first is None or second is None:
        return first or second
    return Usage(
        turns=first.turns + second.turns,
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        duration_ms=first.duration_ms + second.duration_ms,
        cost_usd=_add_cost(first.cost_usd, second.cost_usd),
    )


def _add_cost(first: float | None, second: float | None) -> float | None:
    if first is None or second is None:
        return first if second is None else second
    return first + second


def usage_payload(usage: Usage | None) -> Json:
    """Write a usage as its JSON form."""
    if usage is None:
        return None
    return {
        "turns": usage.turns,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "durationMs": usage.duration_ms,
        "costUsd": usage.cost_usd,
    }


def usage_from_payload(payload: Json) -> Usage | None:
    """Read a usage from JSON that was checked against its schema."""
    if payload is None:
        return None
    return Usage(
        turns=payload["turns"],
        input_tokens=payload["inputTokens"],
        output_tokens=payload["outputTokens"],
        duration_ms=payload["durationMs"],
        cost_usd=payload["costUsd"],
    )
