"""The gateway's client, against a server on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.agents.children import make_request
from tests.agents.gateway_server import DONE, Event, Gateway, serve, turn
from tests.steady import steadily
from uwfgit.agents.base import AgentReply, Failure, ToolCall, Turn, Usage
from uwfgit.agents.gateway import GatewayAgent

GOOD = "---\n$status: done\n---\n"
WAIT: Event = ("wait", 20)


def _run(
    gateway: Gateway,
    work: Path,
    *,
    session: str | None = None,
    told: list[Turn] | None = None,
    name: str = "dev",
    silent_seconds: float = 1,
) -> AgentReply:
    agent = GatewayAgent(
        label="far", url=gateway.url, gateway=name, silent_seconds=silent_seconds
    )
    tell = None if told is None else told.append
    request = replace(make_request(cwd=work, on_turn=tell), session_id=session)
    return agent.run(request)


def test_a_session_is_made_and_the_last_turn_is_the_answer(tmp_path: Path) -> None:
    told: list[Turn] = []
    calls = [{"name": "bash", "input": {"command": "ls"}, "output": "a"}]
    events = [
        turn(0, "the prompt", role="user"),
        turn(1, "Working.", toolCalls=calls),
        ("heartbeat", {}),
        ("unheard of", {"x": 1}),
        turn(2, GOOD),
        DONE,
        turn(3, "too late"),
    ]

    with serve(events) as gateway:
        reply = _run(gateway, tmp_path, told=told)

    assert reply.failure is None
    assert reply.text == GOOD
    assert [each.content for each in told] == ["the prompt", "Working.", GOOD]
    assert reply.turns[1].tool_calls == (
        ToolCall(name="bash", arguments={"command": "ls"}, result="a"),
    )
    assert reply.usage == Usage(
        turns=2, input_tokens=11, output_tokens=7, duration_ms=1234, cost_usd=None
    )
    (made, sent) = gateway.heard
    assert made == ("/gateways/dev/sessions", {"workspaceRoot": str(tmp_path)}, None)
    assert sent[:2] == (
        f"/gateways/dev/sessions/{reply.session_id}/messages",
        {"content": "Do it."},
    )


def test_a_session_is_gone_on_with(tmp_path: Path) -> None:
    with serve([turn(0, GOOD), DONE], [turn(0, GOOD), DONE]) as gateway:
        first = _run(gateway, tmp_path)
        second = _run(gateway, tmp_path, session=first.session_id)

    assert second.failure is None
    assert second.session_id == first.session_id
    assert len(gateway.sessions) == 1


def test_a_session_that_is_gone_is_refused_so_that_all_can_be_told(
    tmp_path: Path,
) -> None:
    with serve([turn(0, GOOD), DONE]) as gateway:
        first = _run(gateway, tmp_path)
        gateway.forget()
        second = _run(gateway, tmp_path, session=first.session_id)

    assert second.is_session_refused
    assert second.session_id is None


def test_after_a_silence_it_reconnects_once_where_it_was(tmp_path: Path) -> None:
    told: list[Turn] = []
    first = [turn(0, "one"), turn(1, "two"), WAIT]
    again = [turn(1, "two"), turn(2, GOOD), DONE]

    with serve(first, again) as gateway:
        reply = _run(gateway, tmp_path, told=told)

    assert reply.failure is None
    assert [each.content for each in reply.turns] == ["one", "two", GOOD]
    assert [each.content for each in told] == ["one", "two", GOOD]
    assert [(body, after) for _, body, after in gateway.heard[1:]] == [
        ({"content": "Do it."}, None),
        ({}, "2"),
    ]


def test_heartbeats_keep_a_silent_agent_alive(tmp_path: Path) -> None:
    beats: list[Event] = [("heartbeat", {}), ("wait", 0.1)]

    def work() -> tuple[Failure | None, int]:
        with serve([*beats * 7, turn(0, GOOD), DONE]) as gateway:
            reply = _run(gateway, tmp_path, silent_seconds=0.5)
        return reply.failure, len(gateway.heard)

    assert steadily(work, within=0.3) == (None, 2)


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([[WAIT], [WAIT]], "said nothing for 1 s, not even a heartbeat"),
        ([[turn(0, "x")], []], "the gateway ended its answer early, after 1 turn"),
        (
            [[("error", {"error": "adapter_error", "message": "no\nluck"})]],
            "the gateway adapter_error: no / luck",
        ),
        (
            [[("suspend", {"reason": "timeout", "elapsedMs": 61_000})]],
            "stopped its agent after 61 s (timeout); resume goes on in its session",
        ),
        ([[("raw", "event: turn\ndata: {oops\n\n")]], "not its format: '{oops'"),
        ([[("turn", {"role": "assistant"})]], "a turn without role or content"),
        ([[DONE]], "the gateway's agent said nothing"),
    ],
)
def test_what_a_gateway_does_wrong_is_one_line_and_keeps_its_session(
    tmp_path: Path, answers: list[list[Event]], told: str
) -> None:
    with serve(*answers) as gateway:
        reply = _run(gateway, tmp_path)

    assert reply.failure is not None
    assert reply.failure.message.endswith(told)
    assert reply.session_id is not None


def test_an_unknown_gateway_is_named_with_the_address(tmp_path: Path) -> None:
    with serve() as gateway:
        reply = _run(gateway, tmp_path, name="other/one")

    assert reply.failure is not None
    assert reply.failure.message.endswith(
        "answered 404: gateway_not_found; check the address, and the name asked for"
    )
    assert gateway.heard[0][0] == "/gateways/other%2Fone/sessions"


def test_nobody_there_is_told(tmp_path: Path) -> None:
    with serve() as gateway:
        pass

    reply = _run(gateway, tmp_path)

    assert reply.failure is not None
    assert reply.failure.message.startswith("cannot reach 127.0.0.1:")


def test_what_no_record_could_hold_is_made_harmless(tmp_path: Path) -> None:
    calls = [{"name": "x\ud800", "input": {"a": float("inf")}, "output": "\udfff"}]
    tokens = {"in": float("inf"), "out": 10**400}
    done = {"turnCount": float("nan"), "tokens": tokens, "durationMs": -1}
    events = [turn(0, f"{GOOD}\ud800", toolCalls=calls), ("done", done)]

    with serve(events) as gateway:
        reply = _run(gateway, tmp_path)

    assert reply.failure is None
    assert reply.text == f"{GOOD}\ufffd"
    assert reply.usage == Usage(
        turns=0, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=None
    )
    assert reply.turns[0].tool_calls == (
        ToolCall(name="x\ufffd", arguments={"a": "inf"}, result="\ufffd"),
    )


def test_a_stop_that_names_an_endless_time_is_told(tmp_path: Path) -> None:
    with serve([("suspend", {"elapsedMs": float("inf")})]) as gateway:
        reply = _run(gateway, tmp_path)

    assert reply.failure is not None
    assert reply.failure.message.startswith("the gateway stopped its agent after 0 s")
