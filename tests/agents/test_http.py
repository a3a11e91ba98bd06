"""The HTTP client and chat completions, against real sockets on loopback."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.agents.fake_api import Call, FakeApi, Say, Script, modes
from uwfgit.agents.http.chat import ChatModel, Completion, Patience, complete, is_limit
from uwfgit.agents.http.client import (
    Endpoint,
    HttpAnswer,
    HttpBounds,
    Refusal,
    read_retry_after,
    send,
)
from uwfgit.agents.http.events import EventReader, ServerEvent
from uwfgit.constants import MAX_TIME

BOUNDS = HttpBounds(idle_seconds=5, total_seconds=5)
MESSAGES = [{"role": "user", "content": "the task"}]


def _ask(
    api: FakeApi,
    *,
    bounds: HttpBounds = BOUNDS,
    on_text: Callable[[str], None] | None = None,
    waits: list[float] | None = None,
) -> Completion | Refusal:
    slept: list[float] = [] if waits is None else waits
    endpoint = Endpoint(base_url=f"{api.url}/v1/", key="k-1", key_name="$MY_KEY")
    return complete(
        ChatModel(endpoint=endpoint, name="m"),
        MESSAGES,
        bounds=bounds,
        on_text=on_text,
        patience=Patience(sleep=slept.append),
    )


def _refusal(script: Script, *, bounds: HttpBounds = BOUNDS) -> tuple[Refusal, int]:
    with FakeApi(script) as api:
        found = _ask(api, bounds=bounds)
        assert isinstance(found, Refusal)
        return found, len(api.requests)


def test_an_answer_is_streamed_and_put_together() -> None:
    told: list[str] = []
    said = Say(text="one two three " * 9, input_tokens=7, cached_tokens=3)

    with FakeApi(modes.always(said)) as api:
        found = _ask(api, on_text=told.append)

    assert isinstance(found, Completion)
    assert found.text == said.text == "".join(told)
    assert len(told) > 1
    assert found.finish == "stop"
    assert found.tokens is not None
    assert (found.tokens.input, found.tokens.cached, found.tokens.output) == (7, 3, 20)
    assert api.requests[0].headers["authorization"] == "Bearer k-1"
    assert api.requests[0].path == "/v1/chat/completions"


def test_tool_calls_are_put_together_from_their_pieces() -> None:
    calls = (
        Call(name="read_file", arguments={"path": "a" * 100}),
        Call(name="cas_get", arguments={}),
    )

    with FakeApi(modes.always(Say(text="Look.", calls=calls))) as api:
        found = _ask(api)

    assert isinstance(found, Completion)
    assert [(call.name, call.arguments) for call in found.calls] == [
        ("read_file", f'{{"path": "{"a" * 100}"}}'),
        ("cas_get", "{}"),
    ]
    assert len({call.id for call in found.calls}) == 2
    assert found.message()["tool_calls"][0]["function"]["name"] == "read_file"


@pytest.mark.parametrize(
    ("status", "tries"), [(400, 1), (401, 1), (404, 1), (429, 5), (500, 5), (529, 5)]
)
def test_only_a_busy_server_is_asked_again(status: int, tries: int) -> None:
    found, asked = _refusal(modes.fail(status, message="not now"))

    assert (found.status, asked) == (status, tries)
    assert f"answered {status}: not now" in found.message


def test_a_refused_key_is_named_and_not_shown() -> None:
    found, _ = _refusal(modes.fail(401, message="no such key"))

    assert found.message.endswith("no such key; check the key in $MY_KEY")
    assert "k-1" not in repr(found)


def test_a_busy_server_gets_growing_pauses_then_its_answer_counts() -> None:
    waits: list[float] = []

    with FakeApi(modes.fail(503, times=3)) as api:
        found = _ask(api, waits=waits)

    assert isinstance(found, Completion)
    assert len(waits) == 3
    assert waits == sorted(waits)
    assert 0.5 <= waits[0] <= 1


def test_the_pause_a_server_asks_for_is_kept() -> None:
    waits: list[float] = []

    with FakeApi(modes.fail(429, times=1, retry_after="7")) as api:
        assert isinstance(_ask(api, waits=waits), Completion)

    assert waits == [7]


def test_a_long_pause_is_a_limit_and_not_waited_for() -> None:
    found, asked = _refusal(modes.fail(429, retry_after="3600"))

    assert asked == 1
    assert is_limit(found)
    assert found.retry_seconds == 3600


def test_an_empty_account_is_not_asked_again() -> None:
    found, asked = _refusal(modes.fail(429, message="insufficient_quota"))

    assert asked == 1
    assert not is_limit(found)


def test_silence_ends_at_its_limit_and_is_not_repeated() -> None:
    found, asked = _refusal(
        modes.hang(), bounds=HttpBounds(idle_seconds=0.2, total_seconds=5)
    )

    assert asked == 1
    assert found.late == "idle"
    assert found.message.endswith("said nothing for 0.2 s")


def test_a_lively_answer_ends_at_the_total_limit() -> None:
    found, _ = _refusal(
        modes.slow_drip("x" * 4000, pause_seconds=0.05),
        bounds=HttpBounds(idle_seconds=5, total_seconds=0.5),
    )

    assert found.late == "total"
    assert found.message.endswith("took longer than 0.5 s")


def test_a_cut_stream_is_asked_again_and_then_told() -> None:
    found, asked = _refusal(modes.cut_stream())

    assert asked == 5
    assert found.message.endswith("ended the connection early")


def test_broken_json_is_told_with_its_beginning() -> None:
    found, asked = _refusal(modes.bad_json())

    assert asked == 1
    assert "not JSON: \"{'not': json," in found.message


def test_a_huge_answer_is_cut_and_says_so() -> None:
    with FakeApi(modes.huge_answer(20 * 1024 * 1024)) as api:
        found = _ask(api, bounds=HttpBounds(idle_seconds=5, total_seconds=60))

    assert isinstance(found, Completion)
    assert found.is_cut
    assert 7_000_000 < len(found.text) <= 8 * 1024 * 1024


def test_nobody_there_is_told_at_once() -> None:
    with FakeApi(modes.answer()) as api:
        pass

    found = _ask(api)

    assert isinstance(found, Refusal)
    assert found.message == (
        f"cannot reach 127.0.0.1:{api.port}: Connection refused; is it running?"
    )


@contextmanager
def _serve(
    status: int, headers: Mapping[str, str], body: bytes
) -> Iterator[tuple[Endpoint, list[str]]]:
    """Serve one fixed answer; lists the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class names it
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        yield Endpoint(base_url=url, key="k-1"), asked
    finally:
        server.shutdown()
        server.server_close()


def _send(endpoint: Endpoint, heard: list[bytes]) -> HttpAnswer | Refusal:
    def hear(chunk: bytes) -> bool:
        heard.append(chunk)
        return True

    return send(endpoint, "/x", body={}, bounds=BOUNDS, hear=hear)


def test_no_redirect_is_followed() -> None:
    with (
        _serve(200, {}, b"{}") as (other, other_asked),
        _serve(307, {"Location": f"{other.base_url}/x"}, b"") as (endpoint, _),
    ):
        found = _send(endpoint, [])

    assert isinstance(found, Refusal)
    assert "redirects to 127.0.0.1:" in found.message
    assert other_asked == []


def test_a_compressed_answer_is_refused_unread() -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    heard: list[bytes] = []

    with _serve(200, {"Content-Encoding": "gzip"}, bomb) as (endpoint, _):
        found = _send(endpoint, heard)

    assert isinstance(found, Refusal)
    assert found.message.endswith("answered in encoding gzip")
    assert heard == []


def test_a_whole_body_is_understood_too() -> None:
    body = b'{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}'

    with _serve(200, {}, body) as (endpoint, _):
        found = complete(
            ChatModel(endpoint=endpoint, name="m"), MESSAGES, bounds=BOUNDS
        )

    assert isinstance(found, Completion)
    assert found.text == "hi"


def test_an_error_inside_a_good_status_is_a_refusal() -> None:
    with _serve(200, {}, b'{"error": {"message": "model not loaded"}}') as (at, _):
        found = complete(ChatModel(endpoint=at, name="m"), MESSAGES, bounds=BOUNDS)

    assert isinstance(found, Refusal)
    assert found.message.endswith("model not loaded")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, MAX_TIME),
        ({"retry-after-ms": "1e999"}, MAX_TIME),
        ({"retry-after": "nan"}, 0),
        ({}, None),
    ],
)
def test_what_a_server_asks_for_is_read(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert read_retry_after(headers) == seconds


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_read_wherever_the_stream_is_cut(size: int) -> None:
    stream = (
        b"\xef\xbb\xbf: a comment\n\nevent: turn\r\ndata: one\r\ndata: two\r\n"
        b"id: 4\r\n\r\ndata: \xc3\xa9\n\ndata: unfinished\n"
    )
    reader = EventReader()

    found = [
        event
        for start in range(0, len(stream), size)
        for event in reader.feed(stream[start : start + size])
    ]

    expected = [
        ServerEvent(name="turn", data="one\ntwo", id="4"),
        ServerEvent(name="message", data="é", id="4"),
    ]
    assert found == expected
