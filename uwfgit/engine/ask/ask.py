"""Ask an agent, check what it says against the role's schema, ask again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.agents.base import (
    Agent,
    AgentReply,
    AgentRequest,
    Failure,
    Turn,
    Usage,
    add_usage,
)
from uwfgit.engine.ask.extract import Extraction, extract_reply
from uwfgit.engine.ask.live import Recorder
from uwfgit.engine.ask.prompt import (
    correction_prompt,
    correction_without_session,
    describe_problem,
)
from uwfgit.errors import Problem
from uwfgit.ids import Hash
from uwfgit.model.mask import mask_warnings
from uwfgit.model.workflow.workflow import Role
from uwfgit.store.canonical import Json


class Reply(Struct, frozen=True, kw_only=True):
    """A good end: what extract understood, or the node an adapter printed.

    ``is_read`` means that a model read the fields out of what the agent said.
    """

    found: Extraction | Hash
    is_read: bool = False


class Interrupted(Struct, frozen=True, kw_only=True):
    """A talk that a person ended; what was said until then counts."""

    message: str = "the agent was interrupted"


AskOutcome: TypeAlias = Reply | Failure | Interrupted


class Talk(Struct, frozen=True, kw_only=True):
    """All that was said in one step, and how it ended.

    ``prompt`` is what the agent was told first, without corrections; ``recorder``
    makes of what is said what may be recorded of it.
    """

    prompt: str
    outcome: AskOutcome
    recorder: Recorder
    replies: tuple[AgentReply, ...] = ()
    last: AgentReply = AgentReply(text="")
    """The newest of them; an empty one where there is none."""
    turns: tuple[Turn, ...] = ()
    usage: Usage | None = None
    remarks: tuple[str, ...] = ()
    session: Mapping[str, Json] | None = None
    """Where the agent's session is recorded, once it is."""
    began_at_ms: int | None = None
    """When the agent was first asked."""
    ended_at_ms: int | None = None
    """When it had last answered; what is made of the answer comes after."""

    @property
    def said(self) -> str:
        """Everything the agent said, in order."""
        return "\n\n".join(reply.text for reply in self.replies if reply.text)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the runs and extract remarked, each once."""
        found = [*self.remarks]
        found += [text for reply in self.replies for text in reply.warnings]
        if isinstance(self.outcome, Reply) and isinstance(
            self.outcome.found, Extraction
        ):
            found += self.outcome.found.warnings
        return tuple(dict.fromkeys((*found, *mask_warnings(self.recorder.masked))))


class Asking(Struct, frozen=True, kw_only=True):
    """What an agent's answers are held against, and how often.

    ``retell`` makes the prompt for an agent that does not know its session any
    more; it is asked only then. ``read`` asks a model for the block of a reply that
    has none, after all corrections, given the reply and the role's schema.
    """

    role: Role
    listed: bool
    corrections: int
    is_link: Callable[[str], bool]
    retell: Callable[[], str] | None = None
    read: Callable[[str, Json], AgentReply] | None = None
    recorder: Recorder = field(default_factory=Recorder)


def talk_to(agent: Agent, request: AgentRequest, asking: Asking) -> Talk:
    """Ask an agent until its answer holds, with at most so many corrections.

    Ctrl-C, at any moment, is an outcome like another: what was said until then counts.
    """
    talk = Talk(prompt=request.prompt, outcome=Interrupted(), recorder=asking.recorder)
    problems: tuple[Problem, ...] = ()
    try:
        while True:
            began = request.now_ms() if talk.began_at_ms is None else talk.began_at_ms
            said = agent.run(request)
            talk = replace(talk, began_at_ms=began, ended_at_ms=request.now_ms())
            reply = asking.recorder.reply(said)
            if reply.is_session_refused and request.session_id is not None:
                talk = _begin_again(talk, reply, asking)
                prompt = _tell_all(talk, problems, asking) if problems else talk.prompt
                request = replace(
                    request, session_id=None, session_total=None, prompt=prompt
                )
                continue
            talk = _hear(talk, reply, request)
            if reply.failure is not None or reply.node is not None:
                return replace(talk, outcome=_end(reply))
            found = extract_reply(
                reply.text,
                schema=asking.role.schema,
                listed=asking.listed,
                is_link=asking.is_link,
            )
            if isinstance(found, Extraction):
                return replace(talk, outcome=Reply(found=found))
            if request.correction >= asking.corrections:
                failure = Failure(phase="output", message=_describe(found))
                return _have_read(replace(talk, outcome=failure), asking, request)
            problems = found
            request = _correction(agent, request, talk, problems, asking)
    except KeyboardInterrupt:
        return talk


def _end(reply: AgentReply) -> AskOutcome:
    if reply.failure is None:
        assert reply.node is not None  # noqa: S101 - asked by the caller
        return Reply(found=reply.node)
    if reply.failure.phase == "interrupted":
        return Interrupted(message=reply.failure.message)
    return reply.failure


def _have_read(talk: Talk, asking: Asking, request: AgentRequest) -> Talk:
    """Have a model read the fields out of the last reply; the talk as it was if not."""
    said = talk.last.text
    if asking.read is None or not said.strip():
        return talk
    read = asking.recorder.reply(asking.read(said, asking.role.schema))
    if read.failure is not None:
        remark = f"no model could read the reply: {read.failure.message}"
        return replace(talk, remarks=(*talk.remarks, remark))
    found = extract_reply(
        f"{read.text}{said}",
        schema=asking.role.schema,
        listed=asking.listed,
        is_link=asking.is_link,
    )
    heard = _hear(talk, read, replace(request, correction=0))
    if isinstance(found, Extraction):
        remark = f"the fields were read out of the reply by model {read.model}"
        end: AskOutcome = Reply(found=found, is_read=True)
    else:
        why = _describe(found)
        remark = f"what model {read.model} read out of the reply does not fit: {why}"
        end = talk.outcome
    # Its words are no reply of the agent's.
    return replace(
        heard,
        replies=talk.replies,
        last=talk.last,
        outcome=end,
        remarks=(*talk.remarks, remark),
    )


def _describe(problems: tuple[Problem, ...]) -> str:
    return "; ".join(map(describe_problem, problems))


def _hear(talk: Talk, reply: AgentReply, request: AgentRequest) -> Talk:
    at_ms = request.now_ms()
    turns = list(reply.turns)
    if not turns and reply.text:
        turns = [Turn(index=0, role="assistant", content=reply.text, at_ms=at_ms)]
    if request.correction:
        prompt = talk.recorder.text(request.prompt)
        turns.insert(0, Turn(index=0, role="user", content=prompt, at_ms=at_ms))
    first = len(talk.turns)
    numbered = (replace(turn, index=first + n) for n, turn in enumerate(turns))
    return replace(
        talk,
        replies=(*talk.replies, reply),
        last=reply,
        turns=(*talk.turns, *numbered),
        usage=add_usage(talk.usage, reply.usage),
    )


def _begin_again(talk: Talk, refused: AgentReply, asking: Asking) -> Talk:
    why = f": {refused.failure.message}" if refused.failure else ""
    remark = f"the agent could not go on in its session and was told all again{why}"
    return replace(
        talk,
        prompt=asking.retell() if asking.retell else talk.prompt,
        usage=add_usage(talk.usage, refused.usage),
        remarks=(*talk.remarks, remark),
    )


def _tell_all(talk: Talk, problems: tuple[Problem, ...], asking: Asking) -> str:
    return correction_without_session(
        talk.prompt,
        talk.last.text,
        problems,
        schema=asking.role.schema,
        listed=asking.listed,
    )


def _correction(
    agent: Agent,
    request: AgentRequest,
    talk: Talk,
    problems: tuple[Problem, ...],
    asking: Asking,
) -> AgentRequest:
    last = talk.last
    if agent.has_sessions and last.session_id is not None:
        prompt = correction_prompt(
            problems, schema=asking.role.schema, listed=asking.listed
        )
    else:
        prompt = _tell_all(talk, problems, asking)
    return replace(
        request,
        prompt=prompt,
        correction=request.correction + 1,
        session_id=last.session_id,
        session_total=last.session_total,
    )
