"""What a client answers, whatever a hub asks; what a hub believes of a client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.errors import InvalidError
from uwfgit.web.hub.allowed import ACTS, EXEC, allowed_acts, find_refusal
from uwfgit.web.hub.frames import (
    Ask,
    Hello,
    Reply,
    read_ask,
    read_hello,
    read_reply,
    write_ask,
    write_hello,
    write_reply,
)

THREAD = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
NODE = "0123456789ABC"
READ = [
    "/api/threads",
    "/api/threads?q=a+b&limit=9",
    f"/api/threads/{THREAD}",
    f"/api/threads/{THREAD}/live?since={'a' * 40}",
    f"/api/threads/{THREAD}/nodes/{NODE}",
    "/api/workflows",
    "/api/workflows/solve-issue",
    "/view/threads",
    "/view/live",
    f"/view/threads/{THREAD}?from=51",
    f"/view/compare/{THREAD}/{THREAD}",
    f"/view/threads/{THREAD}/code/12",
    "/view/workflows/ping",
    f"/view/workflows/ping/{NODE}/changes",
]
NEVER = [
    ("GET", "/edit/ping.yaml"),
    ("POST", "/edit/ping.yaml"),
    ("GET", "/static/web.js"),
    ("GET", "/api/threads/../../etc/passwd"),
    ("GET", f"/api/threads/{THREAD}/../x"),
    ("GET", f"/api/threads/{THREAD}/%2e%2e"),
    ("GET", "/api//threads"),
    ("GET", "/api/threads/"),
    ("GET", "/api/threads#x"),
    ("GET", "/api/threads?a=/etc"),
    ("GET", f"/api/threads/{THREAD.lower()}"),
    ("GET", "/api/workflows/../x"),
    ("GET", "/api/workflows/.."),
    ("GET", f"/api/threads/{THREAD}\n"),
    ("GET", f"/view/threads/{THREAD}/code/0x1"),
    ("GET", "/"),
    ("GET", ""),
    ("HEAD", "/api/threads"),
    ("get", "/api/threads"),
    ("PUT", "/api/threads"),
    ("DELETE", f"/api/threads/{THREAD}"),
    ("POST", f"/api/threads/{THREAD}/trust"),
    ("POST", f"/api/threads/{THREAD}/approve"),
    ("POST", f"/api/threads/{THREAD}/poke"),
    ("POST", f"/api/threads/{THREAD}/fork"),
    ("POST", f"/api/threads/{THREAD}/exec/"),
    ("POST", f"/api/threads/{THREAD}/exec?all=1"),
    ("POST", "/view/threads"),
    ("POST", "/api/workflows"),
]
SETS = [
    pytest.param(allowed_acts(acts=False, runs=False), id="reading"),
    pytest.param(allowed_acts(acts=True, runs=False), id="acts"),
    pytest.param(allowed_acts(acts=False, runs=True), id="exec"),
    pytest.param(allowed_acts(acts=True, runs=True), id="all"),
    pytest.param(frozenset({"trust", "edit", "poke", "fork", "approve"}), id="odd"),
]


def place(act: str) -> str:
    return "/api/threads" if act == "start" else f"/api/threads/{THREAD}/{act}"


@pytest.mark.parametrize("acts", SETS)
def test_reading_is_answered_always(acts: frozenset[str]) -> None:
    for path in READ:
        assert find_refusal(Ask(id=1, path=path), acts) is None, path
        posted = find_refusal(Ask(id=1, method="POST", path=path), acts)
        if path != "/api/threads":
            assert posted is not None, path


def test_a_question_that_only_reads_brings_no_body() -> None:
    for path in READ:
        assert find_refusal(Ask(id=1, path=path, body="x"), ACTS | EXEC) is not None


@pytest.mark.parametrize("acts", SETS)
def test_an_act_is_answered_only_where_its_flag_is_given(acts: frozenset[str]) -> None:
    for act in ACTS | EXEC:
        refusal = find_refusal(Ask(id=1, method="POST", path=place(act)), acts)
        assert (refusal is None) == (act in acts), act
        if refusal is not None:
            assert refusal.status == 403


@pytest.mark.parametrize("acts", SETS)
def test_trust_files_and_all_else_are_never_answered(acts: frozenset[str]) -> None:
    for method, path in NEVER:
        refusal = find_refusal(Ask(id=1, method=method, path=path), acts)
        assert refusal is not None, (method, path)
        assert refusal.status == 404


PARTS = ["api", "view", "threads", "workflows", "live", "nodes", "exec", "trust"]
PARTS += ["..", ".", "%2e%2e", THREAD, NODE, "ping", "", "edit", "stop", "\x00", "é"]
PATHS = st.lists(st.sampled_from(PARTS)).map(lambda parts: "/" + "/".join(parts))


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD", "get", ""]) | st.text(),
    path=PATHS | st.text(),
    body=st.text(),
    acts=st.sets(st.sampled_from(sorted(ACTS | EXEC))),
)
def test_nothing_beyond_the_flags_passes_whatever_is_asked(
    method: str, path: str, body: str, acts: set[str]
) -> None:
    ask = Ask(id=1, method=method, path=path, body=body)

    if find_refusal(ask, acts) is None:
        if method == "GET":
            assert path.startswith(("/api/", "/view/"))
            assert not body
        else:
            assert method == "POST"
            assert path in {place(act) for act in acts}
        assert ".." not in path.partition("?")[0]
        assert "%" not in path.partition("?")[0]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(), each),
    max_leaves=8,
)
KEYS = ["id", "method", "path", "headers", "body", "status", "more", "end", "acts"]
FRAMES = st.dictionaries(st.sampled_from(KEYS), VALUES).map(json.dumps)


@given(text=FRAMES | st.text() | st.binary() | VALUES.map(json.dumps))
def test_any_text_is_a_frame_or_an_error(text: str | bytes) -> None:
    for read in (read_ask, read_reply, read_hello):
        try:
            read(text)
        except InvalidError as exc:
            assert exc.message  # noqa: PT017 - either is right


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


@given(number=st.integers(0, 2**40), path=TEXTS, body=TEXTS, more=st.booleans())
def test_what_is_written_is_what_is_read(
    number: int, path: str, body: str, *, more: bool
) -> None:
    headers = {"content-type": "application/json"}
    ask = Ask(id=number, method="POST", path=path, headers=headers, body=body)
    reply = Reply(id=number, status=200, headers=headers, body=body, more=more)
    hello = Hello(acts=frozenset({"exec"}), agents=(path,))

    assert read_ask(write_ask(ask)) == ask
    assert read_reply(write_reply(reply)) == reply
    assert read_hello(write_hello(hello)) == hello


def test_frames_have_bounds() -> None:
    long: dict[str, Any] = {"id": 1, "method": "GET", "path": "/" * 3_000}
    deep = "[" * 100_000
    for text in (
        json.dumps(long),
        json.dumps({"id": 1, "body": "x" * 1_000_001}),
        json.dumps({"id": 1, "headers": {str(n): "" for n in range(20)}}),
        json.dumps({"id": 2**60}),
        json.dumps({"id": -1}),
        json.dumps({"id": True}),
        '{"id": 1, "body": "\\ud800"}',
        deep,
    ):
        with pytest.raises(InvalidError):
            read_ask(text)
