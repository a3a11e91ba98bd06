"""How a cycle and a run of steps can end; the edge turns these into exit codes."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from uwfgit.ids import Hash


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
    warnings: tuple[str, ...] = ()
    code: str | None = None
    """The stable word of why a cycle did not begin."""
    below: int = 0
    """How many steps children took for it."""
