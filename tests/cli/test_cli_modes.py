"""What each way of a CLI comes to, for a thread: as recorded, without the program."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.agents.record import RECORDED
from tests.cli.calls import Uwf
from tests.steady import steadily
from uwfgit.store.canonical import Json

REPLAY: Final = Path(__file__).parents[1] / "agents" / "replay.sh"
WORKFLOW: Final = """\
version: 1
name: build
description: Build
roles:
  developer:
    description: Builds
    goal: You develop.
    capabilities: []
    procedure: Build.
    output: Say what you built.
    frontmatter:
      properties: {$status: {const: done}, sum: {type: string}}
      required: [$status, sum]
graph:
  $START:
    new: {role: developer, prompt: "Build it."}
    resume: {role: developer, prompt: "Go on."}
  developer: {done: {role: $END, prompt: "Over."}}
"""


# Mode → what the failure says; None: the step is done. All of them are attempts that
# are kept, of a thread that waits, with exit code 5.
_API: Final[Mapping[str, Mapping[str, str | None]]] = {
    "claude-code": {
        "400": "API Error: 400 the request is not valid",
        "401": "Invalid API key · Fix external API key; run `claude` once and log in",
        "429": "API Error: Request rejected (429) · rate limited",
        "500": "API Error: 500 internal error.",
        "529": "API Error: 529 overloaded.",
        "bad-json": "API Error: API returned an empty or malformed response (HTTP 200)",
        "cut-stream": "API Error: Connection to the API was lost (ECONNRESET).",
    },
    "codex": {
        "400": "the request is not valid",
        "401": "unexpected status 401 Unauthorized: invalid x-api-key",
        "429": "exceeded retry limit, last status: 429 Too Many Requests",
        "500": "currently experiencing high demand",
        "529": "unexpected status 529 <unknown status code>: overloaded",
        "bad-json": "stream disconnected before completion: stream closed before",
        "cut-stream": "stream disconnected before completion: Transport error",
    },
    "gemini": {
        "400": "the request is not valid",
        "401": "invalid x-api-key; set GEMINI_API_KEY, or run `gemini` once and log in",
        "429": "[API Error: rate limited] / Please wait and try again later.",
        "500": "internal error",
        "529": "overloaded",
        "bad-json": "[API Error: Expected property name or '}' in JSON",
        "cut-stream": "[API Error: terminated]",
    },
    "opencode": {
        "400": "the request is not valid",
        "401": "invalid x-api-key; run `opencode auth login`",
        "429": "rate limited",
        "500": "internal error",
        "529": "overloaded",
        "bad-json": "JSON parsing failed: Text: {'not': json,. / Error message:",
        "cut-stream": "Cannot connect to API: The socket connection was closed",
    },
    "cursor": {
        "401": "Error: Authentication required. Please run 'agent login' first",
        "cut-stream": "Error: connection lost",
    },
    "hermes": {
        "400": "HTTP 400: the request is not valid",
        "401": "HTTP 401: invalid x-api-key; run `hermes setup`",
        "429": "API call failed after 3 retries: HTTP 429: rate limited",
        "500": "HTTP 500: internal error",
        "529": "HTTP 529: overloaded",
        "bad-json": "API call failed after 3 retries: Expecting property name",
        "cut-stream": "the agent said nothing: Error: Response remained truncated",
    },
}
_LOOPS: Final = {
    "claude-code": "Reached maximum number of turns (4)",
    "gemini": "the agent said nothing",
    "hermes": "the reply has no YAML block between two '---'",
}
_TURNS_USED: Final = "4 of 3 turns are used (limits.maxTurns)"
_HUGE: Final = 50 * 1024 * 1024


@dataclass(slots=True)
class Desk:
    """A user whose agent is of one kind and says what was recorded of it."""

    uwf: Uwf
    kind: str
    replay: Path
    setenv: Callable[[str, str], None]
    newest: str = ""

    def run(self, *modes: str, **limits: int) -> tuple[str | None, str, int]:
        """Run a thread's first step; the agent's calls go as these recordings.

        Returns:
            What went wrong, the thread's status, the exit code.
        """
        self.replay.write_text("".join(f"{mode}\n" for mode in modes))
        for name, value in limits.items():
            assert self.uwf("config", "set", f"limits.{name}", str(value)).code == 0
        started = self.uwf("thread", "start", "build.yaml", "-p", "Fix it.", "--json")
        done = self.uwf("thread", "exec", started.json["threadId"], "--json")
        (step,) = done.json["steps"]
        self.newest = step["hash"]
        assert step["status"] == ("done" if step["error"] is None else "error")
        return step["error"], done.json["status"], done.code

    def phase(self) -> str:
        """Return the phase of the failure that the newest run was."""
        step = self.uwf("cas", "get", self.newest, "--json").json["payload"]
        output = self.uwf("cas", "get", step["output"], "--json").json["payload"]
        phase: str = output["phase"]
        return phase


def use_replay(
    kind: str, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, **agent: Json
) -> Path:
    """Let a CLI, as recorded, be the agent; return the file of what it says in turn."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    agents = {"a": {"kind": kind, "command": str(REPLAY), **agent}}
    settings = {"agents": agents, "defaultAgent": "a"}
    (home / "config.yaml").write_text(json.dumps(settings))
    replay = folder / "replay"
    monkeypatch.setenv("REPLAY", str(replay))
    monkeypatch.setenv("REPLAY_FROM", f"{RECORDED / kind}:{folder}")
    return replay


_QUICK: Final = ("claude-code", "gemini", "opencode")
KINDS: Final = tuple(
    pytest.param(kind, marks=() if kind in _QUICK else pytest.mark.slow)
    for kind in _API
)


@pytest.fixture(params=KINDS)
def desk(
    request: pytest.FixtureRequest,
    uwf: Uwf,
    home: Path,
    work: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    (work / "build.yaml").write_text(WORKFLOW)
    replay = use_replay(request.param, home, tmp_path, monkeypatch, maxTurns=4)
    return Desk(uwf=uwf, kind=request.param, replay=replay, setenv=monkeypatch.setenv)


DONE: Final = (None, "end", 0)


def failed(desk: Desk, told: str, *modes: str, **limits: int) -> None:
    error, status, code = desk.run(*modes, **limits)

    assert (status, code) == ("suspended", 5)
    assert error is not None
    assert told in error
    assert "\n" not in error


def test_an_answer_is_a_step_with_tools_and_after_corrections_too(desk: Desk) -> None:
    assert desk.run("answer") == DONE
    assert desk.run("tool-call") == DONE
    assert desk.run("prose", "prose", "answer") == DONE
    shown = desk.uwf("step", "show", "@last:1", "--json").json
    assert (shown["extractedBy"], shown["output"]["sum"]) == ("correction", "first")
    heard = Path(f"{desk.replay}.heard").read_text()
    assert heard.count("has no YAML block") == 2


def test_prose_is_a_failure_after_two_corrections(desk: Desk) -> None:
    failed(desk, "the reply has no YAML block between two '---'", "prose")


def test_what_the_api_does_wrong_is_told_in_one_line(desk: Desk) -> None:
    for mode, told in _API[desk.kind].items():
        failed(desk, told or "", mode)
        is_limit = mode == "429"
        assert desk.phase() == ("limit" if is_limit else "agent")


def test_an_endless_use_of_tools_is_ended(desk: Desk) -> None:
    told = _LOOPS.get(desk.kind)
    if told is not None:
        failed(desk, told, "tool-loop")
    else:
        failed(desk, _TURNS_USED, "tool-loop", maxTurns=3)


@pytest.mark.slow
def test_silence_is_ended_and_the_next_try_is_as_good_as_any(desk: Desk) -> None:
    failed(desk, "(see limits.idleSeconds)", "hang", idleSeconds=1)

    desk.replay.write_text("answer\n")
    assert desk.uwf("thread", "resume", "@last").code == 0


@pytest.mark.slow
def test_a_slow_answer_is_waited_for(desk: Desk) -> None:
    desk.setenv("REPLAY_PAUSE", "0.8")

    found = steadily(lambda: desk.run("answer", idleSeconds=2), within=0.6)
    assert found == DONE


@pytest.mark.slow
def test_a_huge_answer_is_kept_in_its_bounds(desk: Desk) -> None:
    folder = desk.replay.parent
    for suffix in ("out", "err", "code"):
        text = (RECORDED / desk.kind / f"answer.{suffix}").read_text()
        (folder / f"huge.{suffix}").write_text(text.replace("Built.", "x" * _HUGE))

    told = (
        "a single value has 52,429,"
        if desk.kind == "hermes"
        else "an event of more than 8 MiB was not read"
    )
    failed(desk, told, "huge")
    assert desk.phase() == "size"
