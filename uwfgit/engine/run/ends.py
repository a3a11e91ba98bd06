"""How a cycle and a run of steps can end; the edge turns these into exit codes."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from uwfgit.ids import Hash, ThreadId
from uwfgit.store.handle import Store
from uwfgit.store.log import log_event

_LOGGED_CHARS: Final = 300


class RunEnd(StrEnum):
    """How the last thing that a run did ended."""

    DONE = "done"
    """The thread is idle or at its end."""
    REFUSED = "refused"
    """An expected failure: a routing error, a step limit, a state that forbids it."""
    WAITING = "waiting"
    """The thread waits for a person."""
    HELD = "held"
    """Someone else holds the thread, or won a race."""
    AGENT_FAILED = "agent-failed"
    """An agent failed; what it said is kept."""
    INTERRUPTED = "interrupted"
    """Stopped by Ctrl-C."""


class CycleEnd(Struct, frozen=True, kw_only=True):
    """What came of a cycle; ``step`` is the recorded node, an attempt's too."""

    number: int
    role: str
    step: Hash | None
    status: str | None
    error: str | None
    end: RunEnd
    said: str | None = None
    """One line of the answer; of a failed try the last."""
    code: str | None = None
    """The stable word of why a cycle did not begin."""
    below: int = 0
    """How many steps children took for it."""


def count_steps(ends: Iterable[CycleEnd]) -> int:
    """Count the steps that cycles took, children's with them."""
    return sum(1 + end.below for end in ends)


class CycleLog(Struct, frozen=True, kw_only=True):
    """The lines of one cycle in the program's own log."""

    store: Store
    thread: ThreadId
    number: int
    role: str
    agent: str

    def begin(self, *, kind: str) -> None:
        """Note that the agent is asked."""
        self._add("step-begun", kind=kind)

    def end(self, end: CycleEnd, taken_ms: int) -> None:
        """Note what came of it.

        An agent's own words stay in the thread, where ``redact`` finds them.
        """
        facts = {"end": end.end.value}
        if end.error is not None and end.end is not RunEnd.AGENT_FAILED:
            facts["error"] = end.error[:_LOGGED_CHARS]
        self._add("step-ended", status=end.status or "-", ms=taken_ms, **facts)

    def _add(self, event: str, **facts: str | int) -> None:
        log_event(
            self.store,
            event,
            thread=self.thread,
            number=self.number,
            role=self.role,
            agent=self.agent,
            **facts,
        )
