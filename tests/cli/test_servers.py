"""Threads done by agents that are servers: a gateway, and one of ACP."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.agents.gateway_server import DONE, serve, turn
from tests.cli.calls import Uwf

SERVER = Path(__file__).parent.parent / "agents" / "acp_server.py"
SOLO = """\
version: 1
name: solo
description: One role
roles:
  writer:
    description: Writes
    goal: You write.
    capabilities: []
    procedure: Write.
    output: The text.
    frontmatter:
      properties: { $status: { const: done } }
      required: [$status]
graph:
  $START:
    new: { role: writer, prompt: "Write it." }
    resume: { role: writer, prompt: "Write it again." }
  writer:
    done: { role: $END, prompt: "Done." }
"""
FIRST = turn(0, "---\n$status: done\ntext: one\n---\nFirst.")
BAD = turn(0, "---\n$status: bad\nwhy: too short\n---\n")
LAST = turn(0, "---\n$status: stuck\n---\n")


def test_a_gateway_keeps_a_session_for_each_role(uwf: Uwf, thread: str) -> None:
    with serve([FIRST, DONE], [BAD, DONE], [LAST, DONE]) as gateway:
        agent = ("--agent", f"{gateway.url} dev")
        done = uwf("thread", "exec", thread, "--all", *agent, "--json")

    assert done.json["status"] == "end", done.out
    assert len(gateway.sessions) == 2
    paths = [path.split("/")[4] for path, *_ in gateway.heard if "messages" in path]
    assert paths[0] == paths[2] != paths[1]
    again = gateway.heard[-1][1]["content"]
    assert "too short" in again
    assert "You write." not in again
    usage = uwf("step", "show", f"{thread}:1", "--json").json["usage"]
    assert (usage["inputTokens"], usage["outputTokens"]) == (11, 7)


def test_a_gateway_that_forgot_the_session_is_told_everything(
    uwf: Uwf, thread: str
) -> None:
    with serve([FIRST, DONE], [BAD, DONE], [LAST, DONE]) as gateway:
        agent = ("--agent", f"{gateway.url} dev")
        uwf("thread", "exec", thread, "-c", "2", *agent)
        gateway.forget()

        done = uwf("thread", "exec", thread, *agent, "--json")

    assert done.json["status"] == "end", done.out
    assert "You write." in gateway.heard[-1][1]["content"]
    step = uwf("step", "show", f"{thread}:3", "--json").json
    assert any("told all again" in each for each in step["warnings"])
    assert step["detail"]["sessionId"] == gateway.sessions[-1]


def test_a_correction_goes_into_the_same_session(uwf: Uwf, thread: str) -> None:
    prose = turn(0, "All is well.")
    with serve([prose, DONE], [LAST, DONE]) as gateway:
        done = uwf("thread", "exec", thread, "--agent", f"{gateway.url} dev", "--json")

    assert done.json["status"] == "end", done.out
    assert len(gateway.sessions) == 1
    assert "could not be used" in gateway.heard[-1][1]["content"]
    assert uwf("step", "show", f"{thread}:1", "--json").json["usage"]["turns"] == 4


@pytest.mark.slow
def test_a_server_of_acp_does_a_step_in_its_session(uwf: Uwf, work: Path) -> None:
    pytest.importorskip("acp")
    (work / "solo.yaml").write_text(SOLO)
    started = uwf("thread", "start", "solo.yaml", "-p", "the task", "--json")
    thread = started.json["threadId"]
    agent = ("--agent", f"acp:{sys.executable} -B {SERVER} resume")

    first = uwf("thread", "exec", thread, *agent, "--json")
    again = uwf("thread", "resume", thread, "-p", "Once more.", *agent, "--json")

    assert first.json["status"] == "end", first.out
    assert again.json["status"] == "end", again.out
    step = uwf("step", "show", f"{thread}:2", "--json").json
    assert step["detail"]["sessionId"] == "s-1"
    assert step["warnings"] == [
        "not allowed: edit: Write a.txt",
        "allow kinds of tools with agents.acp.tools",
    ]
    assert "You write." not in (work / "prompt.txt").read_text()
    assert "Once more." in (work / "prompt.txt").read_text()
