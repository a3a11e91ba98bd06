"""What a thread may cost: looked at before each step, and while one runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.agents.base import Agent, AgentReply, AgentRequest, TellsCost, Turn
from uwfgit.config import Limits
from uwfgit.errors import BudgetError
from uwfgit.model.ledger.prices import (
    Cost,
    add_costs,
    cost_of,
    has_prices,
    thread_cost,
)
from uwfgit.model.thread.event import STEP_EVENTS, iter_events
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import NO_USAGE, Usage, add_usage

T = TypeVar("T")
_MINUTE: Final = 60_000


def find_excess(limits: Limits, usage: Usage | None) -> str | None:
    """Return which budget a thread has used up, in one line; ``None`` for none."""
    used = usage or NO_USAGE
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


class Beside(Struct, frozen=True, kw_only=True):
    """What was spent on a run that no event of its thread tells yet.

    ``cost`` is by list prices too, and never recorded.
    """

    usage: Usage | None = None
    cost: Cost | None = None

    def with_reply(self, reply: AgentReply) -> Beside:
        """Return this and what a supervisor's answer cost."""
        if reply.usage is None:
            return self
        told = {"kind": "supervisor", "model": reply.model}
        return Beside(
            usage=add_usage(self.usage, reply.usage),
            cost=add_costs(filter(None, [self.cost, cost_of(reply.usage, told)])),
        )


NOTHING_BESIDE: Final = Beside()


def _untold_ms(record: Record) -> int:
    """Add up the time of runs, failed ones too, whose agents told nothing of it."""
    total = 0
    for event in iter_events(record.store, record.tip.commit):
        if event.node is None or event.name not in (*STEP_EVENTS, "attempt"):
            continue
        step = record.run(event.node)
        if step.usage is None:
            total += step.completed_at_ms - step.started_at_ms
    return total


def require_budget(
    limits: Limits, record: Record, agent: Agent, beside: Beside
) -> Usage | None:
    """Refuse a step of a thread that has used up a budget; else return what it used.

    Only as far as a budget asks for it: money by list prices too, and by the clock
    how long agents took that do not say so.

    Raises:
        BudgetError: It has; or money is limited, and what the agent costs is neither
            told by it nor known by list prices.
    """
    used = record.tip.state.usage
    if limits.max_minutes is not None:
        used = add_usage(used, replace(NO_USAGE, duration_ms=_untold_ms(record)))
    used, cost = add_usage(used, beside.usage), None
    if limits.max_cost_usd is not None and has_prices():
        cost = add_costs(filter(None, [thread_cost(record), beside.cost]))
    if used is not None and cost is not None:
        used = replace(used, cost_usd=cost.usd)
    excess = find_excess(limits, used)
    if excess is not None:
        raise BudgetError(excess, hint="raise it for one run with --budget")
    tells_cost = isinstance(agent, TellsCost) and agent.tells_cost
    if limits.max_cost_usd is None or tells_cost:
        return used
    if not has_prices():
        raise BudgetError(
            f"limits.maxCostUsd is set, and agent '{agent.label}' does not tell what "
            "it costs",
            hint="limit what it does tell: limits.maxTokens; or have list prices: "
            "pip install 'uwfgit[prices]'",
        )
    if cost is not None and not cost.is_whole:
        raise BudgetError(
            "limits.maxCostUsd is set, and what earlier runs of the thread cost is "
            "not known",
            hint="limit what is known: limits.maxTokens",
        )
    return used


class Meter(Struct, kw_only=True):
    """An agent whose run is ended when it uses up a budget of its thread."""

    agent: Agent
    limits: Limits
    before: Usage | None
    excess: str | None = None
    unheard: Usage | None = None
    """What calls took, as far as it is known, that no reply tells of."""
    _turns: set[int] = field(default_factory=set)
    _said: Usage | None = None
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
        """Do one call, and look at its cost as it is told, and at the clock."""
        self._turns.clear()
        self._said, self._began_ms = None, request.now_ms()
        heard, spent = request.on_turn, request.on_usage

        def on_turn(turn: Turn) -> None:
            _tell(heard, turn)
            if turn.role == "assistant":
                self._turns.add(turn.index)
            self._look(request.now_ms())

        def on_usage(usage: Usage) -> None:
            _tell(spent, usage)
            self._said = usage
            self._look(request.now_ms())

        told = replace(
            request,
            on_turn=on_turn,
            on_usage=on_usage,
            wall_seconds=self._wall(request.wall_seconds),
        )
        try:
            reply = self.agent.run(told)
        except KeyboardInterrupt:
            self._note_unheard(request.now_ms())
            raise
        if reply.failure is not None and self.excess is None:
            # One that says nothing is ended by the clock alone.
            only = Limits(max_minutes=self.limits.max_minutes)
            took = add_usage(self.before, self._took(request.now_ms()))
            self.excess = find_excess(only, took)
        if reply.usage is None:
            self._note_unheard(request.now_ms())
            return reply
        if self.excess is not None:
            # Cut short, it tells less than it took.
            took = self._took(request.now_ms(), reply.usage)
            reply = replace(reply, usage=took)
        self.before = add_usage(self.before, reply.usage)
        return reply

    def _note_unheard(self, now_ms: int) -> None:
        took = self._took(now_ms)
        self.unheard = add_usage(self.unheard, took)
        self.before = add_usage(self.before, took)

    def _wall(self, seconds: float | None) -> float | None:
        """Return how long a call may take: no longer than the budget lasts."""
        most = self.limits.max_minutes
        if most is None:
            return seconds
        used = 0 if self.before is None else self.before.duration_ms
        left = max(0.0, most * 60 - used / 1_000)
        return left if seconds is None else min(seconds, left)

    def _took(self, now_ms: int, told: Usage | None = None) -> Usage:
        """Return what the call at hand has taken so far."""
        said = told or self._said or NO_USAGE
        return replace(
            said,
            turns=max(said.turns, len(self._turns)),
            duration_ms=max(said.duration_ms, now_ms - self._began_ms),
        )

    def _look(self, now_ms: int) -> None:
        if self.excess is not None:
            return
        # The turn that reaches the limit is the last; one over it ends the run.
        most = self.limits.max_turns
        more = replace(self.limits, max_turns=None if most is None else most + 1)
        took = add_usage(self.before, self._took(now_ms))
        if find_excess(more, took) is not None:
            self.excess = find_excess(self.limits, took)
            raise KeyboardInterrupt


def _tell(told: Callable[[T], None] | None, what: T) -> None:
    if told is not None:
        told(what)
