"""How a run of steps can end; the edge turns these into exit codes."""

from __future__ import annotations

from enum import StrEnum


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
