from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.agents.children import ENVIRONMENT, make_request
from tests.steady import steadily
from uwfgit.agents.base import AgentReply, Failure, Turn
from uwfgit.agents.stdio import StdioAgent


def make_agent(code: str, *, timeout: float | None = None, **env: str) -> StdioAgent:
    return StdioAgent(
        label="coder",
        argv=(sys.executable, "-c", code),
        env=env,
        timeout_seconds=timeout,
    )


def test_the_reply_is_all_the_command_prints(tmp_path: Path) -> None:
    agent = make_agent("import sys; print('You said: ' + sys.stdin.read())")

    reply = agent.run(make_request(cwd=tmp_path, prompt="Go."))

    text = "You said: Go.\n"
    turn = Turn(index=0, role="assistant", content=text, at_ms=1_700_000_000_000)
    assert reply == AgentReply(text=text, turns=(turn,), exit_code=0)


def test_a_good_end_without_a_word_is_a_failure(tmp_path: Path) -> None:
    reply = make_agent("print()").run(make_request(cwd=tmp_path))

    assert reply.failure == Failure(phase="agent", message="the agent said nothing")


def test_what_a_silent_command_wrote_on_stderr_is_in_the_failure(
    tmp_path: Path,
) -> None:
    agent = make_agent("import sys; sys.stderr.write('not logged in\\n')")

    reply = agent.run(make_request(cwd=tmp_path))

    assert reply.failure is not None
    assert reply.failure.message == "the agent said nothing: not logged in"


def test_a_crash_keeps_what_was_said(tmp_path: Path) -> None:
    agent = make_agent("import sys; print('half', flush=True); sys.exit(7)")

    reply = agent.run(make_request(cwd=tmp_path))

    assert (reply.text, reply.exit_code) == ("half\n", 7)
    assert reply.failure is not None


def test_the_agents_variables_win_but_for_those_of_uwf(tmp_path: Path) -> None:
    agent = make_agent(
        "import os; print(os.environ['MODE'], os.environ['UWF_ROLE'])",
        MODE="mine",
        UWF_ROLE="mine",
    )
    environment = {**ENVIRONMENT, "MODE": "given", "UWF_ROLE": "developer"}

    reply = agent.run(make_request(cwd=tmp_path, environment=environment))

    assert reply.text == "mine developer\n"


def test_the_agents_path_stands_behind_this_uwf(tmp_path: Path) -> None:
    agent = make_agent("import os; print(os.environ['PATH'])", PATH="/opt/agent/bin")
    environment = {"PATH": "/venv/bin:/usr/bin"}

    reply = agent.run(make_request(cwd=tmp_path, environment=environment))

    assert reply.text == "/venv/bin:/opt/agent/bin\n"


def test_an_agents_timeout_allows_a_longer_silence(tmp_path: Path) -> None:
    agent = make_agent("import time; time.sleep(.4); print('done')", timeout=20)

    reply = agent.run(make_request(cwd=tmp_path, idle=0.1))

    assert (reply.text, reply.failure) == ("done\n", None)


@pytest.mark.parametrize(
    ("own", "wall"),
    [pytest.param(0.3, 20.0, id="its-own"), pytest.param(20.0, 0.3, id="the-general")],
)
def test_the_nearer_limit_ends_a_run(own: float, wall: float, tmp_path: Path) -> None:
    agent = make_agent(
        "import time\nwhile True: print('.', flush=True); time.sleep(.02)", timeout=own
    )

    reply = agent.run(make_request(cwd=tmp_path, wall=wall))

    assert reply.failure is not None
    assert reply.failure.phase == "agent"


# --- what is told while it runs ---


def _told(tmp_path: Path, code: str) -> list[str]:
    turns: list[Turn] = []
    reply = make_agent(code).run(make_request(cwd=tmp_path, on_turn=turns.append))

    assert {(turn.index, turn.role) for turn in turns} <= {(0, "assistant")}
    assert "".join(turn.content for turn in turns).rstrip() == reply.text.rstrip()
    return [turn.content for turn in turns]


def test_a_line_is_told_while_the_command_still_runs(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    code = (
        "import pathlib, time\n"
        "print('first', flush=True)\n"
        "while not pathlib.Path('seen').exists(): time.sleep(.01)\n"
        "print('second')\n"
    )

    def on_turn(turn: Turn) -> None:
        if turn.content == "first\n":
            seen.touch()

    request = make_request(cwd=tmp_path, on_turn=on_turn)
    reply = make_agent(code).run(request)

    assert reply.text == "first\nsecond\n"


def test_words_that_may_go_on_are_told_with_the_next_line(tmp_path: Path) -> None:
    key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"

    slow = "import functools, time; say = functools.partial(print, flush=True)\n"
    told = _told(
        tmp_path, slow + f"say('{key}'); time.sleep(.2); say('b'); print('c', end='')"
    )

    assert told == [f"{key}\nb\n", "c\n"]


def test_long_words_without_an_end_are_told_in_bounded_parts(tmp_path: Path) -> None:
    told = _told(tmp_path, "for _ in range(3000): print('x' * 64)")

    # What is held back, and a chunk.
    assert max(map(len, told)) < 140_000
    assert len(told) > 1


def test_what_a_stopped_command_said_was_told(tmp_path: Path) -> None:
    agent = StdioAgent(
        label="coder",
        argv=("sh", "-c", f"echo {'x' * 20}; exec sleep 60"),
        timeout_seconds=1,
    )

    def run() -> tuple[bool, list[str]]:
        turns: list[Turn] = []
        reply = agent.run(make_request(cwd=tmp_path, on_turn=turns.append))
        return reply.failure is None, [turn.content for turn in turns]

    assert steadily(run, within=0.5) == (False, ["x" * 20 + "\n"])


def test_short_lines_without_end_are_stopped_and_told_together(tmp_path: Path) -> None:
    agent = make_agent("while True: print('y\\n' * 30_000)")
    told: list[Turn] = []

    reply = agent.run(make_request(cwd=tmp_path, on_turn=told.append))

    assert reply.failure is not None
    assert "said more than 1,000,000 lines" in reply.failure.message
    assert len(told) < 1_000
