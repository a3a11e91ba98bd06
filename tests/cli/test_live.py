"""``step turns --live``: what a running agent has said so far."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import reply
from tests.cli.calls import Uwf
from tests.program import Program, is_alive, make_program, wait, wait_until
from uwfgit.store.locks.flock import lock

LINES = "".join(
    json.dumps(
        {
            "step": 2,
            "of": "checker",
            "index": index,
            "role": role,
            "content": content,
            "toolCalls": None,
            "reasoning": None,
            "atMs": 5,
        }
    )
    + "\n"
    for index, role, content in (
        (0, "assistant", "One\n"),
        (0, "assistant", "two.\n"),
        (1, "user", "Again."),
    )
)


@pytest.fixture
def state(home: Path) -> Path:
    """The folder of the store's local state."""
    return home / "store" / "uwf"


@pytest.fixture
def held(state: Path, thread: str) -> Iterator[str]:
    """A thread that somebody runs."""
    with lock(state / "locks" / thread, command="uwf thread exec"):
        yield thread


def _write(state: Path, thread: str) -> None:
    (state / "live").mkdir(exist_ok=True)
    (state / "live" / f"{thread}.jsonl").write_text(LINES)


def test_the_turns_of_a_running_step_are_shown(
    uwf: Uwf, state: Path, held: str
) -> None:
    _write(state, held)

    data = uwf("step", "turns", held, "--live", "--json").json
    text = uwf("step", "turns", held, "--live")

    assert list(data) == ["threadId", "running", "items"]
    assert (data["threadId"], data["running"]) == (held, True)
    assert data["items"][0] == {
        "number": 1,
        "step": 2,
        "of": "checker",
        "index": 0,
        "role": "assistant",
        "content": "One\ntwo.\n",
        "toolCalls": None,
        "reasoning": None,
        "atMs": 5,
    }
    assert [item["number"] for item in data["items"]] == [1, 2]
    assert (text.code, text.err) == (0, "")
    assert text.out == (
        f"# Turns of thread {held}\n\n## Step 2: checker (2 turns)\n\n"
        "**1. assistant**\n\n```data\nOne\ntwo.\n```\n\n"
        "**2. user**\n\n```data\nAgain.\n```\n"
    )


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        pytest.param(("--role", "checker"), [1, 2], id="role"),
        pytest.param(("--role", "writer"), [], id="another-role"),
        pytest.param(("--offset", "1"), [2], id="offset"),
        pytest.param(("--limit", "1"), [1], id="limit"),
    ],
)
def test_live_turns_are_chosen_like_others(
    uwf: Uwf, state: Path, held: str, words: tuple[str, ...], numbers: list[int]
) -> None:
    _write(state, held)

    items = uwf("step", "turns", held, "--live", *words, "--json").json["items"]

    assert [item["number"] for item in items] == numbers


def test_a_step_that_has_said_nothing_yet_says_so(uwf: Uwf, held: str) -> None:
    done = uwf("step", "turns", held, "--live")

    assert (done.code, done.err) == (0, "")
    assert done.out == f"# Turns of thread {held}\n\nno turns so far\n"


def test_where_no_step_runs_it_says_so_whatever_a_killed_one_left(
    uwf: Uwf, state: Path, thread: str
) -> None:
    _write(state, thread)

    done = uwf("step", "turns", thread, "--live")
    data = uwf("step", "turns", thread, "--live", "--json").json

    assert (done.code, done.err) == (0, "")
    assert done.out == f"# Turns of thread {thread}\n\nno step is running\n"
    assert data == {"threadId": thread, "running": False, "items": []}


# --- with real agents ---


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A folder whose agents do not outlive the test."""
    made = make_program(tmp_path / "user")
    yield made
    for pid in made.pids("agents"):
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def _talking_agent(program: Program) -> str:
    """Give an agent that says two lines, waits to be let go, and answers."""
    path = program.folder / "talking"
    path.write_text(
        "#!/bin/sh\ncat > /dev/null\n"
        'echo $$ >> "$UWF_CWD/agents"\n'
        "echo 'Looking at it.'\necho \"My key is $DEMO_TOKEN.\"\n"
        'while [ ! -e "$UWF_CWD/go" ]; do sleep 0.05; done\n'
        'cat "$UWF_CWD/reply"\n'
    )
    path.chmod(0o700)
    (program.folder / "reply").write_text(reply(plan="p"))
    return f"stdio:{shlex.quote(str(path))}"


@pytest.mark.slow
def test_what_an_agent_prints_is_shown_while_it_runs(program: Program) -> None:
    thread = program.start()
    value = "dT0k-9f8e7d6c5b4a3f2e1d"
    child = program.spawn(
        *("thread", "exec", thread, "--agent", _talking_agent(program)),
        DEMO_TOKEN=value,
    )
    live = program.store / "uwf" / "live" / f"{thread}.jsonl"
    wait_until(lambda: live.exists() and "My key is" in live.read_text())

    seen = program.json("step", "turns", thread, "--live")
    raw = live.read_text()
    program.let_go()
    ended = wait(child)

    (turn,) = seen["items"]
    assert seen["running"]
    assert (turn["step"], turn["of"], turn["role"]) == (1, "worker", "assistant")
    assert turn["content"] == "Looking at it.\nMy key is [redacted:DEMO_TOKEN].\n"
    assert value not in raw
    assert ended.code == 0, ended
    assert not live.exists()
    recorded = program.json("step", "turns", thread)["items"][0]
    assert recorded["content"].startswith(turn["content"])


@pytest.mark.slow
def test_the_next_run_clears_what_a_killed_one_left(program: Program) -> None:
    thread = program.start()
    child = program.spawn("thread", "exec", thread, "--agent", _talking_agent(program))
    live = program.store / "uwf" / "live" / f"{thread}.jsonl"
    wait_until(live.exists)
    child.kill()
    wait(child)
    left = live.exists()

    shown = program.json("step", "turns", thread, "--live")
    program.let_go()
    script = program.script({"worker": [reply(plan="p")]})
    ended = program.run("thread", "exec", thread, "--agent", script)

    assert left
    assert shown == {"threadId": thread, "running": False, "items": []}
    assert ended.code == 0, ended
    assert not live.exists()
