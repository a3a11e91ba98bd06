"""What a thread may cost: looked at before each step, and while one runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from uwfgit.agents.base import Agent, AgentReply, AgentRequest, Turn
from uwfgit.config import Limits
from uwfgit.errors import BudgetError
from uwfgit.model.thread.usage import Usage, add_usage

T = TypeVar("T")
_MINUTE: Final = 60_000
_TELLS_MONEY: Final = frozenset({"claude-code", "opencode", "scripted", "workflow"})
"""Kinds that say what they cost, or cost nothing themselves."""


def find_excess(limits: Limits, usage: Usage | None) -> str | None:
    """Return which budget a thread has used up, in one line; ``None`` for none."""
    used = usage or Usage(turns=0, input_tokens=0, output_tokens=0, duration_ms=0)
    tokens = used.input_tokens + used.output_tokens
    minutes = used.duration_ms / _MINUTE
    spent: tuple[tuple[str, float, float | None, str], ...] = (
        ("USD", used.cost_usd or 0, limits.max_cost_usd, "maxCostUsd"),
        ("tokens", tokens, limits.max_tokens, "maxTokens"),
        ("turns", used.turns, limits.max_turns, "maxTurns"),
        ("minutes", minutes, limits.max_minutes, "maxMinutes"),
    )
    for unit, found, most, name in spent:
        if most is not None and found >= most:
            return f"{found:,.6g} of {most:,.6g} {unit} are used (limits.{name})"
    return None


def require_budget(limits: Limits, usage: Usage | None, agent: Agent) -> None:
    """Refuse a step of a thread that has used up a budget.

    Raises:
        BudgetError: It has; or money is limited, and the agent tells of none.
    """
    excess = find_excess(limits, usage)
    if excess is not None:
        raise BudgetError(excess, hint="raise it for one run with --budget")
    if limits.max_cost_usd is not None and agent.kind not in _TELLS_MONEY:
        raise BudgetError(
            f"limits.maxCostUsd is set, and agent '{agent.label}' does not tell what "
            "it costs",
            hint="limit what it does tell: limits.maxTokens",
        )


@dataclass(slots=True, kw_only=True)
class Meter:
    """An agent whose run is ended when it uses up a budget of its thread."""

    agent: Agent
    limits: Limits
    before: Usage | None
    excess: str | None = None
    _turns: set[tuple[int, int]] = field(default_factory=set)
    _said: Usage | None = None
    _call: int = 0
    _began_ms: int = 0

    @property
    def kind(self) -> str:
        """The kind's name."""
        return self.agent.kind

    @property
    def label(self) -> str:
        """The agent's name in the record."""
        return self.agent.label

    @property
    def has_sessions(self) -> bool:
        """Whether a correction can go on in the session of the call before."""
        return self.agent.has_sessions

    def run(self, request: AgentRequest) -> AgentReply:
        """Do one call, and look at its cost as it is told."""
        self._call += 1
        self._began_ms = self._began_ms or request.now_ms()
        heard, spent = request.on_turn, request.on_usage

        def on_turn(turn: Turn) -> None:
            _tell(heard, turn)
            if turn.role == "assistant":
                self._turns.add((self._call, turn.index))
            self._look(request.now_ms())

        def on_usage(usage: Usage) -> None:
            _tell(spent, usage)
            self._said = usage
            self._look(request.now_ms())

        reply = self.agent.run(replace(request, on_turn=on_turn, on_usage=on_usage))
        self.before = add_usage(self.before, reply.usage)
        self._said = None
        return reply

    def _look(self, now_ms: int) -> None:
        if self.excess is not None:
            return
        took = self._said or Usage(
            turns=0, input_tokens=0, output_tokens=0, duration_ms=0
        )
        took = replace(
            took,
            turns=max(took.turns, len(self._turns)),
            duration_ms=max(took.duration_ms, now_ms - self._began_ms),
        )
        # The turn that reaches the limit is the last; one over it ends the run.
        self.excess = find_excess(_one_more(self.limits), add_usage(self.before, took))
        if self.excess is not None:
            raise KeyboardInterrupt


def _one_more(limits: Limits) -> Limits:
    turns = limits.max_turns
    return replace(limits, max_turns=None if turns is None else turns + 1)


def _tell(told: Callable[[T], None] | None, what: T) -> None:
    if told is not None:
        told(what)
