"""The agents' own sessions: which one a run goes on with, and what is kept of it."""

from __future__ import annotations

import json

from uwfgit.engine.ask.ask import Talk
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.thread.usage import Usage, usage_from_payload, usage_payload
from uwfgit.store.local import AgentSession, Local


def read_total(session: AgentSession | None) -> Usage | None:
    """Read what a session had cost, as it was kept."""
    if session is None or session.total is None:
        return None
    return usage_from_payload(json.loads(session.total))


def total_of(talk: Talk) -> str | None:
    """Write what the session of a talk has cost so far, as far as the agent says."""
    total = talk.last.session_total
    return None if total is None else json.dumps(usage_payload(total))


def keep_session(
    local: Local,
    talk: Talk,
    *,
    thread: ThreadId,
    role: str,
    agent: str,
    told: Hash | None,
    size: int | None,
    digest: str | None,
) -> None:
    """Keep the session of a talk for the next run of the same role and agent.

    An agent that named none leaves the one before as it is.

    Args:
        local: Where to.
        talk: What was said in it.
        thread: Whose thread.
        role: In which role.
        agent: The agent's label.
        told: The newest step that the session knows of now.
        size: The bytes of its file as it was recorded.
        digest: Their SHA-256.
    """
    name = talk.last.session_id
    if name is None:
        return
    session = AgentSession(
        id=name, told=told, total=total_of(talk), size=size, digest=digest
    )
    local.set_session(thread, role, agent, session)
