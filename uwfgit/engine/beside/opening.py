"""An agent's own session, made ready for a person to go on with by hand."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from uwfgit.agents.base import Opens
from uwfgit.engine.decide.moderator import Routed, next_prompt
from uwfgit.engine.run.engine import Cycle, Engine
from uwfgit.engine.run.memory import find_session
from uwfgit.engine.run.run import Run
from uwfgit.errors import StateError
from uwfgit.ids import ThreadId
from uwfgit.model.thread.record import Record, open_record


class Opened(Struct, frozen=True, kw_only=True):
    """The command of an interactive session, and where it is to run."""

    role: str
    agent: str
    command: tuple[str, ...]
    cwd: Path
    session: str | None
    warning: str | None


def open_session(
    engine: Engine,
    thread: ThreadId,
    *,
    role: str | None,
    agent: str | None,
    cwd: Path | None,
) -> Opened:
    """Put the session of a thread's role back, and say how to go on in it.

    Raises:
        StateError: The thread has no role to open, or its agent has no sessions.
        UntrustedError: Others made the thread, and the user has not agreed.
        ConfigError: The agent cannot be had here.
    """
    store = engine.ledger.store
    record = open_record(store, thread)
    name = role or _newest_role(record)
    routed = Routed(role=name, prompt="", location=None, missing=())
    ground = engine.admit(record, name, agent, cwd)
    cycle = Cycle(event="step", routed=routed, agent=agent, cwd=cwd, ground=ground)
    run = Run.prepare(engine, record, cycle)
    if not isinstance(run.agent, Opens):
        raise StateError(
            f"agent '{run.agent.label}' is of kind {run.agent.kind}, "
            "which has no interactive session",
            hint="choose another with --agent",
        )
    found = find_session(run)
    session = found.session.id if found.session else None
    return Opened(
        role=name,
        agent=run.agent.label,
        command=run.agent.open_command(session),
        cwd=run.cwd,
        session=session,
        warning=found.warning,
    )


def _newest_role(record: Record) -> str:
    """Return the role that spoke last, else the one that is next."""
    state = record.tip.state
    if state.steps:
        return record.step(state.head, state.steps).role
    routed = next_prompt(record)
    if isinstance(routed, Routed):
        return routed.role
    raise StateError(f"thread {state.thread} has no role to open")
