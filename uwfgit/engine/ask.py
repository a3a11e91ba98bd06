"""Ask an agent, check what it says against the role's schema, ask again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from uwfgit.agents.base import (
    Agent,
    AgentReply,
    AgentRequest,
    Failure,
    Turn,
    Usage,
    add_usage,
)
from uwfgit.engine.extract import (
    Extraction,
    correction_prompt,
    correction_without_session,
    extract_reply,
)
from uwfgit.engine.recorded import Recorder
from uwfgit.errors import Problem
from uwfgit.ids import Hash
from uwfgit.model.workflow import Role


@dataclass(slots=True, kw_only=True)
class Talk:
    """All that was said in one step, however it ended.

    ``result`` is what extract understood, ``failure`` why there is none;
    ``node`` is the hash an adapter printed, with which both are ``None``.
    ``prompt`` is the assembled one, without corrections; ``recorder`` makes of what
    is said what may be recorded of it.
    """

    prompt: str
    recorder: Recorder = field(default_factory=Recorder)
    replies: list[AgentReply] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    usage: Usage | None = None
    result: Extraction | None = None
    failure: Failure | None = None
    node: Hash | None = None

    @property
    def last(self) -> AgentReply:
        """The newest reply."""
        return self.replies[-1]

    @property
    def said(self) -> str:
        """Everything the agent said, in order."""
        return "\n\n".join(reply.text for reply in self.replies if reply.text)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the runs and extract remarked, each once."""
        found = [text for reply in self.replies for text in reply.warnings]
        if self.result is not None:
            found += self.result.warnings
        return tuple(dict.fromkeys((*found, *self.recorder.warnings)))


def talk_to(
    agent: Agent,
    request: AgentRequest,
    *,
    role: Role,
    listed: bool,
    corrections: int,
    is_link: Callable[[str], bool],
    recorder: Recorder | None = None,
) -> Talk:
    """Ask an agent until its answer holds, at most ``corrections`` times more.

    Ctrl-C, at any moment, is a failure like another.
    """
    talk = Talk(prompt=request.prompt, recorder=recorder or Recorder())
    try:
        _talk(talk, agent, request, role, listed, corrections, is_link)
    except KeyboardInterrupt:
        _interrupt(talk)
    return talk


def _talk(
    talk: Talk,
    agent: Agent,
    request: AgentRequest,
    role: Role,
    listed: bool,  # noqa: FBT001 - handed on by the one caller
    corrections: int,
    is_link: Callable[[str], bool],
) -> None:
    while True:
        _hear(talk, agent.run(request), request)
        if talk.failure is not None or talk.node is not None:
            return
        found = extract_reply(
            talk.last.text, schema=role.schema, listed=listed, is_link=is_link
        )
        if isinstance(found, Extraction):
            talk.result = found
            return
        if request.correction >= corrections:
            talk.failure = Failure(phase="extract", message=_summary(found))
            return
        request = _correction(agent, request, talk, found, role=role, listed=listed)


def _interrupt(talk: Talk) -> None:
    talk.failure = Failure(phase="interrupted", message="the agent was interrupted")
    talk.result = talk.node = None
    if not talk.replies:
        talk.replies.append(AgentReply(text="", failure=talk.failure))


def _hear(talk: Talk, reply: AgentReply, request: AgentRequest) -> None:
    at_ms = request.now_ms()
    reply = talk.recorder.reply(reply)
    if request.correction:
        prompt = talk.recorder.text(request.prompt)
        _add_turn(talk, Turn(index=0, role="user", content=prompt, at_ms=at_ms))
    turns = reply.turns
    if not turns and reply.text:
        turns = (Turn(index=0, role="assistant", content=reply.text, at_ms=at_ms),)
    for turn in turns:
        _add_turn(talk, turn)
    talk.replies.append(reply)
    talk.usage = add_usage(talk.usage, reply.usage)
    talk.failure = reply.failure
    talk.node = reply.node


def _add_turn(talk: Talk, turn: Turn) -> None:
    talk.turns.append(replace(turn, index=len(talk.turns)))


def _summary(problems: tuple[Problem, ...]) -> str:
    return "; ".join(str(problem) for problem in problems)


def _correction(
    agent: Agent,
    request: AgentRequest,
    talk: Talk,
    problems: tuple[Problem, ...],
    *,
    role: Role,
    listed: bool,
) -> AgentRequest:
    if agent.has_sessions and talk.last.session_id is not None:
        prompt = correction_prompt(problems, schema=role.schema, listed=listed)
    else:
        prompt = correction_without_session(
            talk.prompt, talk.last.text, problems, schema=role.schema, listed=listed
        )
    return replace(
        request,
        prompt=prompt,
        correction=request.correction + 1,
        session_id=talk.last.session_id,
    )
