"""Who judges a run from outside: a model asked once, or an agent in an empty folder."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from uwfgit.agents.base import (
    Agent,
    AgentReply,
    AgentRequest,
    Failure,
    ReplyCount,
    Turn,
)
from uwfgit.agents.http.chat import ChatModel, Patience, complete
from uwfgit.agents.http.client import HttpBounds, Refusal
from uwfgit.ids import ThreadId

_BOUNDS: Final = HttpBounds(idle_seconds=60, total_seconds=120)


class ModelJudge(Struct, frozen=True, kw_only=True):
    """Asks a model once; ``label`` names it in the record."""

    model: ChatModel
    label: str
    now_ms: Callable[[], int]
    patience: Patience = field(default_factory=lambda: Patience(tries=2))

    def ask(self, prompt: str, *, thread: ThreadId) -> AgentReply:
        """Return what it says, or why it says nothing."""
        del thread
        started = time.monotonic()
        messages = [{"role": "user", "content": prompt}]
        found = complete(self.model, messages, bounds=_BOUNDS, patience=self.patience)
        if isinstance(found, Refusal):
            failure = Failure(phase="agent", message=found.message)
            return AgentReply(text="", failure=failure)
        turn = Turn(index=0, role="assistant", content=found.text, at_ms=self.now_ms())
        return AgentReply(
            text=found.text,
            turns=(turn,),
            usage=found.usage(started),
            model=found.model or self.model.name,
        )


class AgentJudge(Struct, frozen=True, kw_only=True):
    """Asks an agent in an empty folder, which is gone afterwards."""

    agent: Agent
    environment: Mapping[str, str]
    now_ms: Callable[[], int]
    idle_seconds: float

    @property
    def label(self) -> str:
        """The agent's name in the record."""
        return self.agent.label

    def ask(self, prompt: str, *, thread: ThreadId) -> AgentReply:
        """Return what it says, or why it says nothing."""
        with tempfile.TemporaryDirectory(prefix="uwf-judge-") as folder:
            return self.agent.run(
                AgentRequest(
                    thread=thread,
                    role="judge",
                    number=0,
                    prompt=prompt,
                    edge_prompt=prompt,
                    schema={},
                    cwd=Path(folder),
                    environment={**self.environment, "UWF_CWD": folder},
                    count_replies=lambda: ReplyCount(of_role=0, of_all=0),
                    idle_seconds=self.idle_seconds,
                    now_ms=self.now_ms,
                )
            )
