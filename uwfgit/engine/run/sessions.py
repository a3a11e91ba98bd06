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


def keep_session(
    local: Local,
    talk: Talk,
    *,
    thread: ThreadId,
    role: str,
    agent: str,
    told: Hash | None,
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
    """
    name, total = talk.last.session_id, talk.last.session_total
    if name is None:
        return
    payload = None if total is None else json.dumps(usage_payload(total))
    local.set_session(
        thread, role, agent, AgentSession(id=name, told=told, total=payload)
    )
