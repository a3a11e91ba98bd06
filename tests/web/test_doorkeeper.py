"""The gate without a server, and the keys it looks at."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from uwfgit.errors import StateError, StoreError
from uwfgit.web.hub.doors import Doors
from uwfgit.web.serve.gate import Gate, Hosts, Rules
from uwfgit.web.serve.keys import CODE_SECONDS, Keys, load_key, make_code

HOST = ("host", "127.0.0.1:8000")
BASIC = ("authorization", "Basic the-token")
BEARER = ("authorization", "Bearer the-token")
CROSS = ("sec-fetch-site", "cross-site")
EVIL = ("host", "evil:8000")
JSON = ("content-type", "application/json")


@dataclass(slots=True)
class Asked:
    """A request that was made: what came back, and the paths that the app saw."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    reached: list[str] = field(default_factory=list)


def ask(
    method: str,
    path: str,
    *headers: tuple[str, str],
    body: Sequence[bytes] = (b"",),
) -> Asked:
    asked, parts = Asked(), [*body]

    async def app(scope: Scope, _: Receive, send: Send) -> None:
        asked.reached.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"seen"})

    async def receive() -> dict[str, Any]:
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: Any) -> None:  # noqa: ANN401 - as a server has it
        if message["type"] == "http.response.start":
            asked.status = message["status"]
            told = message["headers"]
            asked.headers = {name.decode(): value.decode() for name, value in told}
        else:
            asked.body += message["body"]

    keys = Keys(key="k" * 32, port=8000, bearer=lambda: "the-token", now_s=lambda: 0.0)
    hosts = Hosts(names=frozenset({HOST[1]}), port=8000)
    gate = Gate(app, Rules(keys=keys, hosts=hosts), on_bug=str)
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }
    asyncio.run(gate(scope, receive, send))
    return asked


@pytest.mark.parametrize(
    "headers", [pytest.param((HOST, BEARER), id="let in"), pytest.param((), id="not")]
)
def test_each_answer_carries_what_keeps_a_browser_safe(
    headers: tuple[tuple[str, str], ...],
) -> None:
    carried = ask("GET", "/threads", *headers).headers

    safe = {
        "content-security-policy": "default-src 'none'; script-src 'self'; "
        "style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    assert safe.items() <= carried.items()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        pytest.param(("GET", "/threads", EVIL, BEARER), 403, id="host"),
        pytest.param(("GET", "/threads", HOST, HOST, BEARER), 400, id="two hosts"),
        pytest.param(("GET", "/threads", HOST), 401, id="nobody"),
        pytest.param(("GET", "/threads", HOST, BASIC), 401, id="no bearer"),
        pytest.param(("PUT", "/threads", HOST, BEARER), 405, id="method"),
        pytest.param(("POST", "/enter", HOST, JSON), 405, id="no code by post"),
        pytest.param(("GET", "/a/../b", HOST, BEARER), 404, id="dots"),
        pytest.param(("POST", "/api/x", HOST, BEARER), 415, id="no type"),
        pytest.param(
            ("GET", "/x", HOST, BEARER, ("origin", "http://evil")), 403, id="origin"
        ),
        pytest.param(
            ("GET", "/x", HOST, BEARER, CROSS),
            403,
            id="site",
        ),
        pytest.param(
            ("POST", "/api/x", HOST, BEARER, JSON, ("content-length", "1000001")),
            413,
            id="length",
        ),
    ],
)
def test_what_the_rules_do_not_allow_reaches_no_route(
    words: tuple[Any, ...], status: int
) -> None:
    asked = ask(*words)

    assert (asked.status, asked.reached) == (status, [])


def test_a_body_is_counted_while_it_comes() -> None:
    post = ("POST", "/api/x", HOST, BEARER, JSON)

    assert ask(*post, body=[b"x" * 500_000] * 2).reached == ["/api/x"]
    large = ask(*post, body=[b"x" * 500_000, b"x" * 500_000, b"x"])
    assert (large.status, large.reached) == (413, [])


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_not_used(tmp_path: Path, mode: int) -> None:
    key = load_key(tmp_path, "token")
    path = tmp_path / "web" / "token.key"
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_key(tmp_path, "token") == key
    path.chmod(mode)

    with pytest.raises(StoreError, match="can be read by others"):
        load_key(tmp_path, "token")


def test_a_code_opens_once_and_within_a_minute() -> None:
    now = [1000.0]
    keys = Keys(key="k" * 32, port=1, bearer=str, now_s=lambda: now[0])
    code, late = make_code(keys.key, now[0]), make_code(keys.key, now[0])

    assert [keys.take_code(code), keys.take_code(code)] == [True, False]
    assert not keys.take_code(make_code("another key", now[0]))
    now[0] += CODE_SECONDS + 1
    assert not keys.take_code(late)


def test_a_client_is_let_in_by_the_newest_secret_of_its_name(tmp_path: Path) -> None:
    doors = Doors(path=tmp_path / "web" / "hub.json")
    first = doors.add("alpha", renew=False)
    with pytest.raises(StateError):
        doors.add("alpha", renew=False)
    second = doors.add("alpha", renew=True)

    assert [doors.is_open("alpha", each) for each in (first, second, "")] == [
        *(False, True, False)
    ]
    assert not doors.is_open("beta", second)
    assert doors.path.stat().st_mode & 0o777 == 0o600
    assert second not in doors.path.read_text()
