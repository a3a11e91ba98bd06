from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from tests.builders import TEXT, make_role, reply, variant
from uwfgit.agents.base import (
    AgentReply,
    AgentRequest,
    Failure,
    ReplyCount,
    ToolCall,
    Turn,
    Usage,
)
from uwfgit.engine.ask.ask import Asking, Interrupted, Reply, Talk, talk_to
from uwfgit.engine.ask.extract import Extraction
from uwfgit.ids import Hash, ThreadId

ROLE: Final = make_role(variant("done", ["plan"], plan=TEXT))
GOOD: Final = reply(plan="x")
BAD: Final = reply("lost")


@dataclass(slots=True)
class Listener:
    """An agent that gives these replies and keeps what it was asked."""

    replies: list[AgentReply]
    has_sessions: bool = False
    kind: str = "listener"
    label: str = "listener"
    asked: list[AgentRequest] = field(default_factory=list)

    def run(self, request: AgentRequest) -> AgentReply:
        self.asked.append(request)
        return self.replies[min(len(self.asked), len(self.replies)) - 1]


def _request() -> AgentRequest:
    times = itertools.count(1000)
    return AgentRequest(
        thread=ThreadId("01JZZZZZZZZZZZZZZZZZZZZZZZ"),
        role="worker",
        number=1,
        prompt="The prompt.",
        edge_prompt="Go.",
        cwd=Path("/"),
        environment={},
        count_replies=lambda: ReplyCount(of_role=0, of_all=0),
        idle_seconds=1,
        now_ms=lambda: next(times),
    )


def _talk(agent: Listener, *, corrections: int = 2) -> Talk:
    asking = Asking(
        role=ROLE, listed=False, corrections=corrections, is_link=lambda _: False
    )
    return talk_to(agent, _request(), asking)


def _output(talk: Talk) -> object:
    assert isinstance(talk.outcome, Reply)
    assert isinstance(talk.outcome.found, Extraction)
    return talk.outcome.found.output


def _says(*texts: str) -> list[AgentReply]:
    return [AgentReply(text=text) for text in texts]


def test_a_good_answer_is_asked_for_once() -> None:
    agent = Listener(_says(GOOD))

    talk = _talk(agent)

    assert len(agent.asked) == 1
    assert _output(talk) == {"$status": "done", "plan": "x"}
    assert talk.said == GOOD
    assert talk.prompt == "The prompt."


def test_a_bad_answer_is_asked_for_again_naming_the_problems() -> None:
    agent = Listener(_says(BAD, GOOD))

    talk = _talk(agent)

    first, second = agent.asked
    assert (first.correction, second.correction) == (0, 1)
    assert isinstance(talk.outcome, Reply)
    assert "The prompt." in second.prompt
    assert "lost" in second.prompt
    assert talk.prompt == "The prompt."


def test_times_are_taken_right_around_the_agent() -> None:
    """The clock of the request counts how often it is looked at."""
    heard: list[int] = []

    @dataclass(slots=True)
    class Looking(Listener):
        def run(self, request: AgentRequest) -> AgentReply:
            heard.append(request.now_ms())
            return Listener.run(self, request)

    talk = _talk(Looking(_says(BAD, GOOD)))

    assert talk.began_at_ms == heard[0] - 1
    assert talk.ended_at_ms == heard[-1] + 1


@pytest.mark.parametrize("corrections", [0, 1, 2])
def test_an_answer_that_never_holds_is_a_failure_after_the_corrections(
    corrections: int,
) -> None:
    agent = Listener(_says(BAD))

    talk = _talk(agent, corrections=corrections)

    assert len(agent.asked) == corrections + 1
    assert isinstance(talk.outcome, Failure)
    assert talk.outcome.phase == "output"
    assert "lost" in talk.outcome.message
    assert talk.said == "\n\n".join([BAD] * (corrections + 1))


def test_a_correction_without_a_session_tells_everything_again() -> None:
    agent = Listener(_says("ALPHA", "BETA", GOOD))

    _talk(agent)

    third = agent.asked[2].prompt
    assert "The prompt." in third
    assert "BETA" in third
    assert "ALPHA" not in third


def test_a_correction_goes_on_in_the_session_of_the_answer() -> None:
    bad = AgentReply(text=BAD, session_id="s-1")
    agent = Listener([bad, AgentReply(text=GOOD)], has_sessions=True)

    _talk(agent)

    assert agent.asked[1].session_id == "s-1"
    assert "The prompt." not in agent.asked[1].prompt


def test_a_kind_with_sessions_that_named_none_is_told_everything_again() -> None:
    agent = Listener(_says(BAD, GOOD), has_sessions=True)

    _talk(agent)

    assert agent.asked[1].session_id is None
    assert "The prompt." in agent.asked[1].prompt


def test_an_agent_that_fails_is_not_corrected() -> None:
    failed = AgentReply(text=BAD, failure=Failure(phase="agent", message="too slow"))
    agent = Listener([failed])

    talk = _talk(agent)

    assert len(agent.asked) == 1
    assert talk.outcome == failed.failure
    assert talk.said == BAD


def test_a_failure_in_a_correction_keeps_what_was_said_before() -> None:
    broken = AgentReply(text="", failure=Failure(phase="agent", message="crashed"))
    agent = Listener([*_says(BAD), broken])

    talk = _talk(agent)

    assert talk.outcome == broken.failure
    assert talk.said == BAD


def test_a_printed_node_ends_the_talk() -> None:
    node = Hash("0123456789ABC")
    agent = Listener([AgentReply(text="log", node=node)])

    talk = _talk(agent)

    assert len(agent.asked) == 1
    assert talk.outcome == Reply(found=node)


def test_usage_adds_up_and_turns_are_numbered_through() -> None:
    usage = Usage(turns=1, input_tokens=2, output_tokens=3, duration_ms=4, cost_usd=0.5)
    call = ToolCall(name="ls", arguments={})
    turns = (
        Turn(index=0, role="assistant", content="a", tool_calls=(call,), at_ms=1),
        Turn(index=1, role="assistant", content="b", reasoning="hm", at_ms=2),
    )
    agent = Listener(
        [
            AgentReply(text=BAD, turns=turns, usage=usage),
            AgentReply(text=GOOD, turns=turns, usage=usage),
        ]
    )

    talk = _talk(agent)

    assert talk.usage == Usage(
        turns=2, input_tokens=4, output_tokens=6, duration_ms=8, cost_usd=1.0
    )
    assert [(t.index, t.role) for t in talk.turns] == [
        (0, "assistant"),
        (1, "assistant"),
        (2, "user"),
        (3, "assistant"),
        (4, "assistant"),
    ]
    assert talk.turns[2].content == agent.asked[1].prompt
    assert talk.turns[3].tool_calls == (call,)
    assert talk.turns[4].reasoning == "hm"


def test_a_reply_without_turns_is_one_turn() -> None:
    talk = _talk(Listener(_says(GOOD)))

    assert [(t.role, t.content) for t in talk.turns] == [("assistant", GOOD)]


def test_silence_is_no_turn() -> None:
    silent = AgentReply(text="", failure=Failure(phase="agent", message="silent"))

    assert _talk(Listener([silent])).turns == ()


def test_warnings_are_given_once() -> None:
    warned = AgentReply(text=BAD, warnings=("cut", "slow"))
    fenced = AgentReply(text=f"```\n{GOOD}```\n", warnings=("cut",))

    talk = _talk(Listener([warned, fenced]))

    assert talk.warnings[:2] == ("cut", "slow")
    assert len(talk.warnings) == 3


def _refused() -> AgentReply:
    failure = Failure(phase="agent", message="no such session")
    return AgentReply(text="", is_session_refused=True, failure=failure)


def test_an_agent_that_lost_its_session_is_told_everything_in_a_fresh_one() -> None:
    agent = Listener([_refused(), AgentReply(text=GOOD)], has_sessions=True)
    asking = Asking(
        role=ROLE,
        listed=False,
        corrections=0,
        is_link=lambda _: False,
        retell=lambda: "All of it.",
    )

    talk = talk_to(agent, replace(_request(), session_id="s-1"), asking)

    assert [(each.session_id, each.prompt) for each in agent.asked] == [
        ("s-1", "The prompt."),
        (None, "All of it."),
    ]
    assert (talk.prompt, talk.said) == ("All of it.", GOOD)
    (warning,) = talk.warnings
    assert warning.endswith("was told all again: no such session")


def test_a_refusal_without_a_session_is_a_failure() -> None:
    agent = Listener([_refused()], has_sessions=True)

    talk = _talk(agent)

    assert len(agent.asked) == 1
    assert talk.outcome == Failure(phase="agent", message="no such session")


def test_a_correction_that_lost_its_session_holds_prompt_and_reply() -> None:
    bad = AgentReply(text=BAD, session_id="s-1")
    agent = Listener([bad, _refused(), AgentReply(text=GOOD)], has_sessions=True)

    talk = _talk(agent)

    third = agent.asked[2]
    assert (third.session_id, third.correction) == (None, 1)
    assert "The prompt." in third.prompt
    assert "lost" in third.prompt
    assert isinstance(talk.outcome, Reply)


def test_ctrl_c_keeps_what_was_said_before() -> None:
    @dataclass(slots=True)
    class Stopped(Listener):
        def run(self, request: AgentRequest) -> AgentReply:
            if self.asked:
                raise KeyboardInterrupt
            return super(Stopped, self).run(request)

    talk = _talk(Stopped(_says(BAD)))

    assert isinstance(talk.outcome, Interrupted)
    assert talk.said == BAD


def test_ctrl_c_while_a_model_reads_keeps_what_it_was_to_read() -> None:
    def stopped(_said: str, _schema: object) -> AgentReply:
        raise KeyboardInterrupt

    talk = talk_to(Listener(_says(BAD)), _request(), replace(_read(""), read=stopped))

    assert isinstance(talk.outcome, Interrupted)
    assert talk.said == BAD


USAGE: Final = Usage(
    turns=1, input_tokens=5, output_tokens=2, duration_ms=1, cost_usd=None
)


def _read(text: str, failure: Failure | None = None) -> Asking:
    reply = AgentReply(text=text, model="small", usage=USAGE, failure=failure)
    return Asking(
        role=ROLE,
        listed=False,
        corrections=0,
        is_link=lambda _: False,
        read=lambda said, _: reply if said == BAD else AgentReply(text=""),
    )


def test_a_model_reads_the_fields_when_no_correction_brought_them() -> None:
    block = '---\n$status: done\nplan: "x"\n---\n\n'

    talk = talk_to(Listener(_says(BAD)), _request(), _read(block))

    assert isinstance(talk.outcome, Reply)
    assert talk.outcome.is_read
    assert isinstance(talk.outcome.found, Extraction)
    assert talk.outcome.found.output == {"$status": "done", "plan": "x"}
    assert BAD.strip() in talk.outcome.found.body
    assert talk.said == BAD
    assert talk.usage == USAGE
    assert "the fields were read out of the reply by model small" in talk.warnings


@pytest.mark.parametrize(
    ("asking", "told"),
    [
        (_read("---\n$status: done\n---\n"), "model small read out of the reply does"),
        (
            _read("", Failure(phase="output", message="no key")),
            "no model could read the reply: no key",
        ),
    ],
)
def test_what_a_model_cannot_read_stays_a_failure(asking: Asking, told: str) -> None:
    talk = talk_to(Listener(_says(BAD)), _request(), asking)

    assert isinstance(talk.outcome, Failure)
    assert "lost" in talk.outcome.message
    assert any(told in each for each in talk.warnings)
