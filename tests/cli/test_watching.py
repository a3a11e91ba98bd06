"""What is seen of an agent at work, from its own command and from another terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.agents.fake_api import Call, Drip, FakeApi, Move, Request, Say, modes
from tests.cli.calls import Uwf
from tests.cli.screens import on_terminal
from tests.program import wait_until
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.cli.live import notify, watching

GOOD = "---\n$status: stuck\n---\n\n# Nothing to write\n\nReally.\n"
LOOK = Call(name="read_file", arguments={"path": "ping.yaml"})


@pytest.fixture
def api(uwf: Uwf) -> Iterator[FakeApi]:
    """The API of the default agent."""
    with FakeApi(modes.answer(GOOD)) as server:
        uwf("config", "set", "agents.local.kind", "builtin")
        uwf("config", "set", "agents.local.url", f"{server.url}/v1")
        uwf("config", "set", "agents.local.model", "m")
        uwf("config", "set", "defaultAgent", "local")
        uwf("config", "set", "limits.corrections", "0")
        yield server


def _slowly() -> Move:
    return Drip(say=Say(text=f"Let me look.\n{GOOD}", piece_chars=8), pause_seconds=0.5)


def _with_a_tool(request: Request, *, pause: float = 0.2) -> Move:
    say = Say(text="Let me look.\n", calls=(LOOK,), piece_chars=40)
    if request.asked.is_after_tool:
        say = Say(text=GOOD, piece_chars=60)
    return Drip(say=say, pause_seconds=pause)


def test_a_terminal_shows_one_line_that_is_renewed_and_the_answer(
    api: FakeApi, thread: str
) -> None:
    # So long that a busy machine has time to draw each state.
    api.play(partial(_with_a_tool, pause=0.4))

    seen = on_terminal("thread", "exec", thread, "--color", "never")

    assert seen.code == 0, seen.out
    lines = seen.out.split("\r\x1b[K")
    assert any(
        line.startswith("step 1 writer (local) · 1 turn · 120 tokens · 0:0")
        for line in lines
    ), lines
    assert any(line.endswith("· Let me look.") for line in lines)
    assert any(line.endswith("· read_file ping.yaml") for line in lines)
    last = lines[-1].splitlines()
    assert last[0].split() == ["step", "1", "writer", "stuck", "end"]
    assert last[1].strip() == "Nothing to write"


def test_a_step_that_ctrl_c_kept_from_its_end_leaves_no_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching, "talk_width", lambda **_: 80)
    monkeypatch.setattr(watching, "_DELAY", 0)
    context = CommandContext(options=GlobalOptions(), environment={})
    shown: list[str] = []

    def has_line() -> bool:
        shown.append(capsys.readouterr().err)
        return "step 1 writer" in "".join(shown)

    with watching.watching(context) as watcher:
        assert watcher is not None
        watcher.begin(number=1, role="writer", agent="local")
        wait_until(has_line)

    assert f"{''.join(shown)}{capsys.readouterr().err}".endswith("\r\x1b[K")


def test_a_quick_step_says_nothing_besides(uwf: Uwf, api: FakeApi, thread: str) -> None:
    assert api.url

    done = uwf("thread", "exec", thread)

    assert "at work" not in done.err
    assert done.out.count("\n") == 1


@pytest.mark.slow
def test_verbose_shows_turns_as_they_come(uwf: Uwf, api: FakeApi, thread: str) -> None:
    api.play(_with_a_tool)

    done = uwf("thread", "exec", thread, "-v")

    assert "  assistant: Let me look.\n  read_file ping.yaml\n" in done.err
    assert uwf("thread", "fork", thread, "--at", "0").code == 0


@pytest.mark.slow
def test_in_a_pipe_a_long_step_has_a_line_at_both_ends(
    uwf: Uwf, api: FakeApi, thread: str
) -> None:
    api.play(modes.always(_slowly()))

    done = uwf("thread", "exec", thread)

    assert "step 1 writer (local): at work\n" in done.err
    assert "step 1 writer: ended after" in done.err


@pytest.mark.parametrize(
    "words",
    [("live",), pytest.param(("turns", "--follow"), marks=pytest.mark.slow)],
)
def test_another_terminal_follows_until_the_thread_stops(
    uwf: Uwf, api: FakeApi, thread: str, words: tuple[str, ...]
) -> None:
    api.play(_with_a_tool)
    assert uwf("thread", "exec", thread, "--background").code == 0

    if words == ("live",):
        seen = uwf("thread", "live")
    else:
        seen = uwf("step", "turns", thread, "--follow")

    assert seen.code == 0, seen.err
    assert "step 1 writer\n" in seen.out
    assert 'read_file {"path": "ping.yaml"}' in seen.out
    assert "Nothing to write" in seen.out
    assert seen.err == f"{thread} is end\nlook at it: uwf thread show {thread}\n"


@pytest.mark.slow
def test_followed_turns_are_one_object_a_line(
    uwf: Uwf, api: FakeApi, thread: str
) -> None:
    api.play(_with_a_tool)
    uwf("thread", "exec", thread, "--background")

    seen = uwf("thread", "live", thread, "--json")

    *turns, end = map(json.loads, seen.out.splitlines())
    assert end == {"threadId": thread, "status": "end", "steps": 1}
    text = "".join(turn["content"] for turn in turns)
    assert "Let me look.\n" in text
    assert GOOD in text


def test_nothing_that_runs_is_said(uwf: Uwf, thread: str) -> None:
    done = uwf("thread", "live", "--latest")

    assert (done.code, done.err.splitlines()[0]) == (1, "error: no thread is running")
    assert uwf("thread", "live", thread).code == 0


def test_the_last_words_of_a_failed_agent_stand_everywhere(
    uwf: Uwf, api: FakeApi, thread: str
) -> None:
    api.play(modes.no_frontmatter("I looked.\n\nThere is no such file.\n"))

    done = uwf("thread", "exec", thread)

    said = "There is no such file."
    assert f"it said last: {said}" in done.out
    assert f"uwf thread resume {thread}" in done.err
    shown = uwf("thread", "show", thread)
    assert said in shown.out
    assert f"uwf thread resume {thread}" in shown.err
    assert said in uwf("thread", "read", thread).out
    listed = uwf("step", "list", thread)
    assert " error " in listed.out
    assert said in listed.err
    (attempt,) = uwf("step", "list", thread, "--json").json["attempts"]
    assert (attempt["number"], attempt["saidLast"]) == (1, said)
    assert uwf("thread", "show", thread, "--json").json["attempt"] == attempt


def test_the_first_line_of_the_task_stands_in_listings(uwf: Uwf, work: object) -> None:
    assert work
    started = uwf("thread", "start", "ping.yaml", "-p", "\nFix it\nall", "--json")
    first = started.json["threadId"]
    fork = uwf("thread", "fork", first, "--at", "0", "--json").json["threadId"]

    items = uwf("thread", "list", "--json").json["items"]

    assert {item["threadId"]: item["task"] for item in items} == {
        first: "Fix it",
        fork: "Fix it",
    }
    assert uwf("thread", "list").out.count("Fix it") == 2
    for name in (first, fork):
        assert uwf("thread", "show", name, "--json").json["task"] == "Fix it"


def test_the_users_command_is_told_how_a_run_ended(
    uwf: Uwf, api: FakeApi, thread: str, work: Path
) -> None:
    assert api.url
    told = work / "told"
    uwf(
        "config", "set", "notify", f'echo "$UWF_THREAD $UWF_STATUS $UWF_MESSAGE">{told}'
    )

    done = uwf("thread", "exec", thread)
    again = uwf("thread", "exec", thread)

    assert (done.code, again.code) == (0, 0)
    assert told.read_text() == f"{thread} end Nothing to write\n"


def test_a_command_that_fails_is_a_warning(uwf: Uwf, api: FakeApi, thread: str) -> None:
    assert api.url
    uwf("config", "set", "notify", "echo no >&2; exit 3")

    done = uwf("thread", "exec", thread)

    assert done.code == 0
    assert "warning: notify: 'sh' exited with code 3: no" in done.err


@pytest.mark.parametrize(("seconds", "bells"), [(0.0, 1), (1e9, 0)])
def test_a_terminal_that_was_long_looked_away_from_rings(
    thread: str, monkeypatch: pytest.MonkeyPatch, seconds: float, bells: int
) -> None:
    monkeypatch.setattr(notify, "_LONG_SECONDS", seconds)

    words = ("thread", "exec", thread, "--all", "--agent", "scripted:replies.yaml")
    seen = on_terminal(*words)

    assert (seen.code, seen.out.count("\a")) == (0, bells), seen.out
