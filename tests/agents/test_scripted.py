from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents.children import make_request
from uwfgit.agents.base import AgentReply, Failure, ReplyCount, Turn, Usage
from uwfgit.agents.scripted import ScriptedAgent, read_script
from uwfgit.errors import ConfigError, InvalidError

BY_ROLE = """\
replies:
  planner:
    - first plan
    - [no good, better, best]
  developer:
    - |
      ---
      $status: done
      ---
      Built.
"""
IN_ORDER = """\
steps:
  - { role: planner, output: plan }
  - { role: developer, output: [bad code, good code] }
"""


def make_agent(folder: Path, text: str) -> ScriptedAgent:
    file = folder / "replies.yaml"
    file.write_text(text)
    return ScriptedAgent(label="scripted", script=read_script(file))


def ask(agent: ScriptedAgent, role: str, *, count: int, correction: int = 0) -> str:
    counted = ReplyCount(of_role=count, of_all=count)
    request = make_request(
        cwd=Path("/"), role=role, count=counted, correction=correction
    )
    return agent.run(request).text


def test_a_reply_is_a_turn_that_costs_nothing(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, BY_ROLE)

    reply = agent.run(make_request(cwd=tmp_path, role="developer"))

    text = "---\n$status: done\n---\nBuilt.\n"
    assert reply == AgentReply(
        text=text,
        turns=(Turn(index=0, role="assistant", content=text, at_ms=1_700_000_000_000),),
        usage=Usage(
            turns=1, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=None
        ),
    )


@pytest.mark.parametrize(
    ("role", "count", "correction", "expected"),
    [
        pytest.param("planner", 0, 0, "first plan", id="first"),
        pytest.param("planner", 0, 2, "first plan", id="text-repeats"),
        pytest.param("planner", 1, 0, "no good", id="second"),
        pytest.param("planner", 1, 1, "better", id="correction"),
        pytest.param("planner", 1, 2, "best", id="second-correction"),
        pytest.param("planner", 1, 5, "best", id="last-repeats"),
    ],
)
def test_replies_of_a_role_come_by_number_and_correction(
    role: str, count: int, correction: int, expected: str, tmp_path: Path
) -> None:
    agent = make_agent(tmp_path, BY_ROLE)

    assert ask(agent, role, count=count, correction=correction) == expected


def test_replies_of_a_role_count_that_role_alone(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, BY_ROLE)
    counted = ReplyCount(of_role=1, of_all=7)

    reply = agent.run(make_request(cwd=tmp_path, role="planner", count=counted))

    assert reply.text == "no good"


def test_steps_count_all_replies(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, IN_ORDER)
    counted = ReplyCount(of_role=0, of_all=1)

    reply = agent.run(make_request(cwd=tmp_path, count=counted, correction=1))

    assert reply.text == "good code"


@pytest.mark.parametrize(
    ("text", "role", "count", "message"),
    [
        pytest.param(
            BY_ROLE,
            "tester",
            0,
            "has no replies of role 'tester' (planner, developer)",
            id="no-role",
        ),
        pytest.param(
            BY_ROLE,
            "planner",
            2,
            "ends at number 2 of role 'planner', asked for number 3",
            id="replies-run-out",
        ),
        pytest.param(
            IN_ORDER,
            "tester",
            1,
            "has role 'developer' there, asked for number 2, of role 'tester'",
            id="wrong-role",
        ),
        pytest.param(
            IN_ORDER,
            "tester",
            2,
            "ends at number 2, asked for number 3, of role 'tester'",
            id="steps-run-out",
        ),
    ],
)
def test_a_script_that_does_not_fit_is_a_failure_that_names_both(
    text: str, role: str, count: int, message: str, tmp_path: Path
) -> None:
    agent = make_agent(tmp_path, text)
    counted = ReplyCount(of_role=count, of_all=count)

    reply = agent.run(make_request(cwd=tmp_path, role=role, count=counted))

    expected = Failure(phase="agent", message=f"script 'replies.yaml' {message}")
    assert reply == AgentReply(text="", failure=expected)


def test_keys_for_the_reader_are_left_alone(tmp_path: Path) -> None:
    agent = make_agent(tmp_path, "x-about: the happy path\n" + IN_ORDER)

    assert ask(agent, "planner", count=0) == "plan"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        pytest.param("- a\n", None, id="no-mapping"),
        pytest.param("{}", None, id="empty"),
        pytest.param("replys: {}", None, id="unknown-key"),
        pytest.param("replies: {}\nsteps: []", None, id="both"),
        pytest.param("replies: []", None, id="replies-as-list"),
        pytest.param("replies: {planner: text}", "replies.planner", id="no-list"),
        pytest.param("replies: {planner: [1]}", "replies.planner[0]", id="number"),
        pytest.param("replies: {planner: [[]]}", "replies.planner[0]", id="no-text"),
        pytest.param(
            "replies: {planner: [a, [b, 2]]}", "replies.planner[1]", id="mixed"
        ),
        pytest.param("steps: {}", "steps", id="steps-as-mapping"),
        pytest.param("steps: [text]", "steps[0]", id="step-as-text"),
        pytest.param("steps: [{role: a}]", "steps[0]", id="no-output"),
        pytest.param(
            "steps: [{role: 1, output: b}]", "steps[0].role", id="role-as-number"
        ),
        pytest.param(
            "steps: [{role: a, output: 1}]", "steps[0].output", id="output-as-number"
        ),
    ],
)
def test_a_misshapen_script_is_refused_with_its_place(
    text: str, key: str | None, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_agent(tmp_path, text)

    assert caught.value.source == tmp_path / "replies.yaml"
    assert caught.value.key == key


def test_a_script_that_is_not_there_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read_script(tmp_path / "missing.yaml")

    assert caught.value.source == tmp_path / "missing.yaml"


def test_a_script_that_is_not_yaml_is_refused_with_line_and_column(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidError) as caught:
        make_agent(tmp_path, "replies:\n  planner: [a\n")

    assert caught.value.problems[0].line is not None
