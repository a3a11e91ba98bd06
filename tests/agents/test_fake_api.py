"""The fake API says what its script says, in each protocol's own words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.agents.fake_api import Call, FakeApi, Say, Script, modes, tools_only

PATHS: Mapping[str, str] = {
    "anthropic": "/v1/messages?beta=true",
    "responses": "/v1/responses",
    "chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/m:generateContent",
}
MESSAGES = [{"role": "user", "content": "the task"}]
TOOLS: Mapping[str, Any] = {
    "anthropic": [{"name": "read_file"}],
    "responses": [{"type": "function", "name": "read_file"}],
    "chat": [{"type": "function", "function": {"name": "read_file"}}],
    "gemini": [{"functionDeclarations": [{"name": "read_file"}]}],
}
each_protocol = pytest.mark.parametrize("protocol", list(PATHS))


def _ask(
    api: FakeApi, protocol: str, *, stream: bool, tools: bool = True
) -> httpx.Response:
    path = PATHS[protocol]
    body: dict[str, Any] = {"model": "m", "stream": stream}
    if protocol == "gemini":
        body = {"contents": [{"role": "user", "parts": [{"text": "the task"}]}]}
        if stream:
            path = "/v1beta/models/m:streamGenerateContent?alt=sse"
    else:
        body["input" if protocol == "responses" else "messages"] = MESSAGES
    if tools:
        body["tools"] = TOOLS[protocol]
    return httpx.post(api.url + path, json=body, timeout=30)


def _events(response: httpx.Response) -> list[Any]:
    lines = [
        line.removeprefix("data: ")
        for line in response.text.splitlines()
        if line.startswith("data: ")
    ]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@each_protocol
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_comes_whole_with_its_usage(protocol: str, *, stream: bool) -> None:
    said = Say(text="first and second " * 9, input_tokens=1234, output_tokens=77)

    with FakeApi(modes.always(said)) as api:
        response = _ask(api, protocol, stream=stream)

    found = json.dumps(_events(response) if stream else response.json())
    joined = "".join(_texts(json.loads(found), stream=stream))
    assert said.text in joined
    assert "1234" in found
    assert "77" in found
    assert [(r.protocol, r.asked.model, r.last_text) for r in api.requests] == [
        (protocol, "m", "the task")
    ]
    assert api.requests[0].asked.tools == ("read_file",)


def _texts(value: object, *, stream: bool) -> list[str]:
    """Give the strings of a reply that hold what the model said."""
    if isinstance(value, list):
        return [text for item in value for text in _texts(item, stream=stream)]
    if not isinstance(value, dict):
        return []
    found: list[str] = []
    for key, item in value.items():
        if key in {"text", "content", "delta"} and isinstance(item, str):
            found.append(item)
        else:
            found += _texts(item, stream=stream)
    return found


@each_protocol
@pytest.mark.parametrize("stream", [True, False])
def test_a_tool_call_names_its_tool(protocol: str, *, stream: bool) -> None:
    call = Call(name="read_file", arguments={"path": "a.txt"})

    with FakeApi(modes.tool_loop(call)) as api:
        text = _ask(api, protocol, stream=stream).text

    assert "read_file" in text
    assert "a.txt" in text


@each_protocol
@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_a_refusal_has_its_status_and_message(protocol: str, status: int) -> None:
    script = modes.fail(status, message="no, thank you", retry_after="7")

    with FakeApi(script) as api:
        response = _ask(api, protocol, stream=True)

    assert response.status_code == status
    assert response.headers["Retry-After"] == "7"
    assert response.json()["error"]["message"] == "no, thank you"


def test_a_refusal_can_pass() -> None:
    with FakeApi(modes.fail(529, times=2)) as api:
        found = [_ask(api, "chat", stream=False).status_code for _ in range(3)]

    assert found == [529, 529, 200]


@each_protocol
@pytest.mark.parametrize("stream", [True, False])
def test_a_cut_answer_ends_in_the_middle(protocol: str, *, stream: bool) -> None:
    with FakeApi(modes.cut_stream()) as api, pytest.raises(httpx.RemoteProtocolError):
        _ask(api, protocol, stream=stream)


@each_protocol
def test_silence_lasts_until_the_client_gives_up(protocol: str) -> None:
    patience = httpx.Timeout(30, read=0.5)
    with FakeApi(modes.hang()) as api, pytest.raises(httpx.ReadTimeout):
        httpx.post(api.url + PATHS[protocol], json={"model": "m"}, timeout=patience)

    assert len(api.requests) == 1


@each_protocol
def test_a_drip_is_slow_and_whole(protocol: str) -> None:
    with FakeApi(modes.slow_drip("x" * 24, pause_seconds=0.02)) as api:
        response = _ask(api, protocol, stream=True)

    assert response.elapsed.total_seconds() > 0.05
    assert "x" * 8 in response.text


@each_protocol
@pytest.mark.parametrize("stream", [True, False])
def test_broken_json_comes_with_a_good_status(protocol: str, *, stream: bool) -> None:
    with FakeApi(modes.bad_json()) as api:
        response = _ask(api, protocol, stream=stream)

    assert response.status_code == 200
    with pytest.raises(ValueError, match="Expecting"):
        _events(response) if stream else response.json()


def test_a_huge_answer_is_huge() -> None:
    with FakeApi(modes.huge_answer(1_000_000)) as api:
        assert len(_ask(api, "anthropic", stream=True).content) > 999_000


def test_frontmatter_comes_after_two_corrections() -> None:
    with FakeApi(modes.after_corrections()) as api:
        said = [_ask(api, "chat", stream=False).text for _ in range(4)]

    assert ["$status" in text for text in said] == [False, False, True, True]


def test_a_call_is_answered_after_its_result() -> None:
    with FakeApi(modes.tool_call()) as api:
        first = _ask(api, "chat", stream=False).json()["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": "x", "content": "file's text"}
        body = {"model": "m", "messages": [*MESSAGES, first, result]}
        second = httpx.post(f"{api.url}/v1/chat/completions", json=body).json()

    assert first["tool_calls"][0]["function"]["name"] == "read_file"
    assert second["choices"][0]["message"]["content"] == modes.GOOD
    assert api.requests[1].asked.results == ("file's text",)


def test_side_requests_are_answered_but_do_not_count() -> None:
    with FakeApi(modes.after_corrections(1), is_side=tools_only) as api:
        _ask(api, "anthropic", stream=True, tools=False)
        httpx.get(f"{api.url}/v1/models")
        first = _ask(api, "anthropic", stream=True).text
        second = _ask(api, "anthropic", stream=True).text

    assert ("$status" in first, "$status" in second) == (False, True)
    assert (len(api.requests), len(api.side_requests)) == (2, 2)


@pytest.mark.parametrize("name", list(modes.MODES))
def test_every_mode_has_a_script(name: str) -> None:
    script: Script = modes.MODES[name]()

    assert callable(script)
