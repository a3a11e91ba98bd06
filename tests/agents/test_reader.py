"""A model that reads the fields out of a reply, against the fake API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.agents.fake_api import Fail, FakeApi, Move, Request, Say, modes
from uwfgit.agents.builtin.reader import ModelReader
from uwfgit.agents.http.chat import ChatModel, Patience
from uwfgit.agents.http.client import Endpoint

SCHEMA: Mapping[str, Any] = {
    "properties": {"$status": {"const": "done"}, "files": {"type": "array"}},
    "required": ["$status"],
}
REPORT = "I changed a.py and b.py. All is done."


def _reader(api: FakeApi) -> ModelReader:
    endpoint = Endpoint(base_url=f"{api.url}/v1")
    return ModelReader(
        model=ChatModel(endpoint=endpoint, name="m"),
        now_ms=lambda: 1_700_000_000_000,
        patience=Patience(sleep=lambda _: None),
    )


@pytest.mark.parametrize("lead", ["", "```json\n"])
def test_the_fields_become_a_block(lead: str) -> None:
    said = json.dumps({"status": "done", "files": ["a.py"]})
    text = f"{lead}{said}\n```" if lead else said

    with FakeApi(modes.answer(text)) as api:
        reply = _reader(api).read(REPORT, SCHEMA)

    assert reply.failure is None
    assert reply.text == "---\n$status: done\nfiles:\n  - a.py\n---\n\n"
    assert (reply.model, reply.usage and reply.usage.input_tokens) == ("m", 100)
    (request,) = api.requests
    assert request.last_text == REPORT
    form = request.body["response_format"]
    assert form["type"] == "json_schema"
    assert "report" not in form["json_schema"]["schema"]["properties"]
    assert "tools" not in request.body


def test_a_server_without_schemas_is_asked_for_an_object() -> None:
    def play(request: Request) -> Move:
        if request.body["response_format"]["type"] == "json_schema":
            return Fail(status=400, message="unknown response_format")
        return Say(text='{"status": "done"}')

    with FakeApi(play) as api:
        reply = _reader(api).read(REPORT, SCHEMA)

    assert reply.text == "---\n$status: done\n---\n\n"
    assert len(api.requests) == 2


@pytest.mark.parametrize(
    ("text", "told"), [("no idea", "not JSON"), ("[1]", "must be a JSON object")]
)
def test_an_answer_that_is_no_object_is_a_failure(text: str, told: str) -> None:
    with FakeApi(modes.answer(text)) as api:
        reply = _reader(api).read(REPORT, SCHEMA)

    assert reply.failure is not None
    assert told in reply.failure.message


def test_a_refusal_is_a_failure() -> None:
    with FakeApi(modes.fail(401, message="no")) as api:
        reply = _reader(api).read(REPORT, SCHEMA)

    assert reply.failure is not None
    assert "answered 401" in reply.failure.message
