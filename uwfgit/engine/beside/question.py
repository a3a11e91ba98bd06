"""A question to the agent of an old step: asked, answered, and nothing recorded."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.agents.base import AgentReply, AgentRequest, SessionFilesError
from uwfgit.engine.ask.prompt import QuestionParts, question_prompt
from uwfgit.engine.decide.moderator import Routed
from uwfgit.engine.run.engine import Cycle, Engine
from uwfgit.engine.run.memory import files_of, restore_copy
from uwfgit.engine.run.run import Run
from uwfgit.engine.run.telling import with_notes
from uwfgit.errors import ConfigError, CorruptError
from uwfgit.ids import ThreadId
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.step import Step


class Asked(Struct, frozen=True, kw_only=True):
    """What came of a question; ``remembers``: whether the agent had its session."""

    step: Step
    agent: str
    reply: AgentReply
    remembers: bool


def ask_step(
    engine: Engine,
    thread: ThreadId,
    number: int,
    question: str,
    *,
    agent: str | None,
    cwd: Path | None,
) -> Asked:
    """Ask the agent of a step something, in a copy of the session it had then.

    Where there is none, it is told all that had happened until then.

    Raises:
        NotFoundError: There is no such step.
        UntrustedError: Others made the thread, and the user has not agreed.
        ConfigError: Its agent cannot be had here.
    """
    store = engine.ledger.store
    record = open_record(store, thread)
    step = record.step_at(number)
    chosen = agent or _known(engine, record, step)
    ground = engine.admit(record, step.role, chosen, cwd)
    routed = Routed(role=step.role, prompt=step.edge_prompt, location=None)
    cycle = Cycle(event="step", routed=routed, agent=chosen, cwd=cwd, ground=ground)
    run = Run.prepare(engine, record, cycle)
    session = _copy_session(run, step)
    reply = run.agent.run(_request(run, step, question, session))
    if reply.is_session_refused and session is not None:
        session = None
        reply = run.agent.run(_request(run, step, question, None))
    reply = run.recorder.reply(reply)
    return Asked(
        step=step, agent=run.agent.label, reply=reply, remembers=session is not None
    )


def _known(engine: Engine, record: Record, step: Step) -> str | None:
    """Return the step's own agent, where the user has one of that name."""
    with suppress(ConfigError):
        engine.choose(step.agent, record.workflow.name, step.role)
        return step.agent
    return None


def _copy_session(run: Run, step: Step) -> str | None:
    files = files_of(run.agent)
    if files is None or run.engine.recall == "none":
        return None
    with suppress(SessionFilesError, CorruptError):
        return restore_copy(run, files, step)
    return None


def _request(run: Run, step: Step, question: str, session: str | None) -> AgentRequest:
    steps = (each for each in run.record.iter_steps() if each.number <= step.number)
    parts = QuestionParts(
        thread=run.thread,
        number=step.number,
        role_name=step.role,
        role=run.role,
        task=run.record.start.prompt,
        past=with_notes(run.record, steps),
        context_chars=run.engine.settings.limits.context_chars,
        live_session=session is not None,
        question=question,
    )
    prompt = run.recorder.text(question_prompt(parts))
    return replace(run.make_request(prompt), session_id=session)
