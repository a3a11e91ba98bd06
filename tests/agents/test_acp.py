"""The ACP client, against a server made with the protocol's own SDK."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.agents.acp_server import GOOD
from tests.agents.children import make_request
from uwfgit.agents.acp.agent import AcpAgent
from uwfgit.agents.base import AgentReply, ToolCall, Turn, Usage

pytest.importorskip("acp")
SERVER = Path(__file__).with_name("acp_server.py")


def _run(mode: str, work: Path, **changes: Any) -> AgentReply:  # noqa: ANN401 - any field
    tools = changes.pop("tools", ("edit",))
    agent = AcpAgent(
        label="far", argv=(sys.executable, "-B", str(SERVER), mode), tools=tools
    )
    return agent.run(replace(make_request(cwd=work, idle=60), **changes))


def test_a_prompt_is_worked_on_with_a_tool_that_is_allowed(tmp_path: Path) -> None:
    told: list[Turn] = []

    reply = _run("good", tmp_path, on_turn=told.append)

    assert reply.failure is None
    assert (reply.text, reply.session_id) == (GOOD, "s-1")
    assert reply.agent_version == "sdk-agent 0.9"
    assert (tmp_path / "a.txt").read_text() == "new text"
    assert (tmp_path / "prompt.txt").read_text() == "Do it."
    first, last = reply.turns
    assert (first.content, first.reasoning) == ("Let me see.\n", "Hm.")
    assert first.tool_calls is not None
    assert first.tool_calls[0].name == "Write a.txt"
    assert first.tool_calls[0].result == "option y, files not offered (-32601)"
    assert last.content == GOOD
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (30, 4)
    assert reply.usage.cost_usd == 0.75
    assert reply.warnings == ()
    assert told[0].content == "Let me see.\n"
    assert isinstance((told[1].tool_calls or ())[0], ToolCall)


@pytest.mark.slow
def test_files_and_terminals_are_never_offered(tmp_path: Path) -> None:
    _run("good", tmp_path)

    said = json.loads((tmp_path / "initialize.json").read_text())
    assert said["version"] == 1
    assert said["client"]["fs"]["readTextFile"] is False
    assert said["client"]["fs"]["writeTextFile"] is False
    assert said["client"]["terminal"] is False


@pytest.mark.slow
@pytest.mark.parametrize("tools", [(), ("read", "execute")])
def test_what_is_not_allowed_is_refused_and_warned_about(
    tmp_path: Path, tools: tuple[str, ...]
) -> None:
    reply = _run("good", tmp_path, tools=tools)

    assert not (tmp_path / "a.txt").exists()
    assert reply.failure is None
    assert reply.warnings == (
        "not allowed: edit: Write a.txt",
        "allow kinds of tools with agents.far.tools",
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["resume", "load"])
def test_a_session_is_gone_on_with_and_its_replay_not_heard(
    tmp_path: Path, mode: str
) -> None:
    first = _run(mode, tmp_path)
    spent = Usage(turns=0, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=0.5)

    second = _run(
        mode, tmp_path, session_id=first.session_id, session_total=spent, prompt="More."
    )

    assert second.failure is None
    assert second.session_id == "s-1"
    assert second.turns[0].content == "Let me see.\n"
    assert (tmp_path / "prompt.txt").read_text() == "More."
    assert second.usage is not None
    assert second.usage.cost_usd == 0.25
    assert second.session_total is not None
    assert second.session_total.cost_usd == 0.75


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["resume", "load", "good"])
def test_a_session_that_is_unknown_is_refused(tmp_path: Path, mode: str) -> None:
    reply = _run(mode, tmp_path, session_id="s-7")

    assert reply.is_session_refused
    assert reply.session_id is None
    assert not (tmp_path / "prompt.txt").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "told"),
    [
        ("newer", "the server speaks version 2 of the protocol, this uwf speaks 1"),
        ("crash", "exited with code 3: no licence"),
        ("refuse", "the agent stopped without an answer: refusal"),
        ("logged-out", "the server made no session: Authentication required"),
    ],
)
def test_what_goes_wrong_is_one_line(tmp_path: Path, mode: str, told: str) -> None:
    reply = _run(mode, tmp_path)

    assert reply.failure is not None
    assert told in reply.failure.message
    assert "\n" not in reply.failure.message


@pytest.mark.slow
def test_lines_that_are_not_the_protocol_are_counted(tmp_path: Path) -> None:
    reply = _run("noise", tmp_path)

    assert reply.failure is None
    assert "not of its protocol: 1 line of the server" in reply.warnings


def test_an_interrupted_server_is_told_to_cancel_and_then_stopped(
    tmp_path: Path,
) -> None:
    def interrupt(_: Turn) -> None:
        raise KeyboardInterrupt

    reply = _run("hang", tmp_path, on_turn=interrupt)

    assert reply.failure is not None
    assert reply.failure.phase == "interrupted"
    assert (tmp_path / "cancelled").exists()
    assert reply.session_id == "s-1"
    assert reply.turns[0].content == "Working.\n"


@pytest.mark.slow
def test_a_silent_server_is_stopped_with_its_session_kept(tmp_path: Path) -> None:
    reply = _run("hang", tmp_path, wall_seconds=8)

    assert reply.failure is not None
    assert "limits.wallSeconds" in reply.failure.message
    assert (tmp_path / "cancelled").exists()
    assert reply.session_id == "s-1"


HOSTILE = """\
import json, sys
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(kind, **more):
    send(method="session/update", params={"update": {"sessionUpdate": kind, **more}})
for number, line in enumerate(sys.stdin):
    if number == 0:
        send(id=0, result={"protocolVersion": 1})
    elif number == 1:
        send(id=1, result={"sessionId": "s"})
    else:
        given = {"a": 1e400, "b": "\\ud800"}
        update("tool_call", toolCallId=1, title="t", rawInput=given)
        update("agent_message_chunk", content={"type": "text", "text": "Done\\ud800"})
        for amount in (1e400, 10**400):
            update("usage_update", cost={"amount": amount})
        usage = {"inputTokens": 10**400, "outputTokens": -5}
        send(id=2, result={"stopReason": "end_turn", "usage": usage})
"""


def test_what_no_record_could_hold_is_made_harmless(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(HOSTILE)
    agent = AcpAgent(label="far", argv=(sys.executable, "-B", "server.py"))

    reply = agent.run(make_request(cwd=tmp_path, idle=60))

    assert reply.failure is None
    assert reply.text == "Done\ufffd"
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (0, 0)
    assert reply.usage.cost_usd is None
    assert reply.turns[0].tool_calls == (
        ToolCall(name="t", arguments={"a": "inf", "b": "\ufffd"}),
    )
