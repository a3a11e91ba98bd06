"""Agents that act inside the test's own process, and engines that use them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.builders import make_engine, record_of, reply
from uwfgit.agents.base import AgentReply, AgentRequest, Failure, Phase
from uwfgit.engine.run.executor import (
    Engine,
    RunReport,
    exec_thread,
    poke_thread,
    resume_thread,
)
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.keep import put_nodes
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import Node
from uwfgit.model.thread.state import ThreadState
from uwfgit.model.thread.step import Step

DONE: Final = reply(plan="x")
GOOD: Final = reply("good", "Fine.")
BAD: Final = reply("bad", "Not fine.", reason="slow")
NO_BLOCK: Final = "I did it, but I forgot the block."

Act = Callable[[AgentRequest], str | AgentReply]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingAgent:
    """An agent that is a function of the request."""

    act: Act
    label: str = "acting"
    kind: str = "acting"
    has_sessions: bool = False
    tells_cost: bool = False

    def run(self, request: AgentRequest) -> AgentReply:
        said = self.act(request)
        return said if isinstance(said, AgentReply) else AgentReply(text=said)


def acting(
    ledger: Ledger,
    act: Act,
    *,
    label: str = "acting",
    **changes: Any,  # noqa: ANN401 - whatever an Engine has
) -> Engine:
    """Make an engine whose only agent is a function."""
    agent = ActingAgent(act=act, label=label)
    return make_engine(ledger, choose=lambda *_: agent, **changes)


def saying(*replies: str | AgentReply) -> Act:
    """Say these, one a cycle; a correction is answered with the same again."""
    ahead = iter(replies)
    said: list[str | AgentReply] = []

    def act(request: AgentRequest) -> str | AgentReply:
        if not request.correction:
            said.append(next(ahead))
        return said[-1]

    return act


def failure(
    message: str = "it broke", *, text: str = "", phase: Phase = "agent"
) -> AgentReply:
    return AgentReply(text=text, failure=Failure(phase=phase, message=message))


def go(ledger: Ledger, thread: ThreadId, *replies: str | AgentReply) -> RunReport:
    """Run as many cycles as there are replies."""
    engine = acting(ledger, saying(*replies))
    return exec_thread(engine, thread, count=len(replies))


def put(ledger: Ledger, request: AgentRequest, *nodes: Node) -> None:
    """Put nodes as ``uwf cas put`` does for a running agent."""
    put_nodes(ledger, nodes)
    step = request.environment["UWF_STEP"]
    ledger.local.record_put(step, [node.hash for node in nodes])


def suspend(reason: str = "Which one?", body: str = "I need to know.") -> str:
    shown = json.dumps(reason, ensure_ascii=False)
    return f"---\n$status: $SUSPEND\nreason: {shown}\n---\n\n{body}\n"


def steps_of(ledger: Ledger, thread: ThreadId) -> tuple[Step, ...]:
    return record_of(ledger, thread).steps()


def resume(
    ledger: Ledger, thread: ThreadId, said: str | AgentReply, note: str | None = None
) -> RunReport:
    return resume_thread(acting(ledger, saying(said)), thread, note=note)


def poke(
    ledger: Ledger, thread: ThreadId, said: str | AgentReply, note: str = "Again."
) -> RunReport:
    return poke_thread(acting(ledger, saying(said)), thread, note=note)


def waits(state: ThreadState) -> tuple[str, str | None, str | None]:
    return state.status, state.suspended_role, state.suspend_message
