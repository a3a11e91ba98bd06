"""OpenAI responses: ``POST …/responses``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from tests.agents.fake_api.moves import Say
from tests.agents.fake_api.wire import Asked, Body, Event, event, flatten, pieces

NAME: Final = "responses"
_RESULTS: Final = ("function_call_output", "custom_tool_call_output")


def matches(path: str) -> bool:
    """Tell whether a path asks for an answer."""
    return path.endswith("/responses")


def read(path: str, body: Body) -> Asked:  # noqa: ARG001 - as every protocol reads
    """Read a request's body."""
    given = body.get("input", [])
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    said = [("system", flatten(body.get("instructions") or ""))]
    said += [
        (str(item.get("role") or item.get("type")), flatten(item)) for item in items
    ]
    return Asked(
        model=str(body.get("model", "")),
        streams=bool(body.get("stream")),
        said=tuple(said),
        tools=tuple(
            str(tool.get("name") or tool.get("type")) for tool in body.get("tools", ())
        ),
        results=tuple(flatten(i) for i in items if i.get("type") in _RESULTS),
        is_after_tool=bool(items) and items[-1].get("type") in _RESULTS,
    )


def complete(say: Say, asked: Asked) -> Body:
    """Give the whole answer as one body."""
    return _response(asked, status="completed", output=_items(say, asked), say=say)


def stream(say: Say, asked: Asked) -> Iterable[Event]:
    """Give the answer as events."""
    begun = _response(asked, status="in_progress", output=[], say=None)
    yield _event("response.created", response=begun)
    for index, item in enumerate(_items(say, asked)):
        if item["type"] == "message":
            yield from _stream_message(index, item, say)
        else:
            yield from _stream_call(index, item, say)
    yield _event("response.completed", response=complete(say, asked))


def refuse(status: int, message: str) -> Body:
    """Give the body of an error."""
    return {
        "error": {
            "message": message,
            "type": "api_error",
            "param": None,
            "code": status,
        }
    }


def _stream_message(index: int, item: dict[str, Any], say: Say) -> Iterable[Event]:
    where = {"item_id": item["id"], "output_index": index}
    part = {**where, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": []}
    yield _added(index, {**item, "status": "in_progress", "content": []})
    yield _event("response.content_part.added", **part, part=empty)
    for piece in pieces(say.text, say.piece_chars):
        yield _event("response.output_text.delta", **part, delta=piece)
    yield _event("response.output_text.done", **part, text=say.text)
    yield _event("response.content_part.done", **part, part=item["content"][0])
    yield _event("response.output_item.done", output_index=index, item=item)


def _stream_call(index: int, item: dict[str, Any], say: Say) -> Iterable[Event]:
    where = {"item_id": item["id"], "output_index": index}
    yield _added(index, {**item, "status": "in_progress", "arguments": ""})
    for piece in pieces(item["arguments"], say.piece_chars):
        yield _event("response.function_call_arguments.delta", **where, delta=piece)
    yield _event(
        "response.function_call_arguments.done", **where, arguments=item["arguments"]
    )
    yield _event("response.output_item.done", output_index=index, item=item)


def _added(index: int, item: dict[str, Any]) -> Event:
    return _event("response.output_item.added", output_index=index, item=item)


def _event(kind: str, **fields: object) -> Event:
    return event({"type": kind, **fields}, name=kind)


def _items(say: Say, asked: Asked) -> list[dict[str, Any]]:
    turn = len(asked.said)
    items: list[dict[str, Any]] = []
    if say.text or not say.calls:
        part = {"type": "output_text", "text": say.text, "annotations": []}
        items.append(
            {
                "id": f"msg_fake{turn}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    items += [
        {
            "id": f"fc_fake{turn}_{index}",
            "type": "function_call",
            "status": "completed",
            "call_id": f"call_fake{turn}_{index}",
            "name": call.name,
            "arguments": json.dumps(dict(call.arguments)),
        }
        for index, call in enumerate(say.calls)
    ]
    return items


def _response(
    asked: Asked, *, status: str, output: list[dict[str, Any]], say: Say | None
) -> dict[str, Any]:
    return {
        "id": f"resp_fake{len(asked.said)}",
        "object": "response",
        "created_at": 1_800_000_000,
        "status": status,
        "error": None,
        "model": asked.model,
        "output": output,
        "usage": say and _usage(say),
    }


def _usage(say: Say) -> dict[str, Any]:
    return {
        "input_tokens": say.input_tokens,
        "input_tokens_details": {"cached_tokens": say.cached_tokens},
        "output_tokens": say.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": say.input_tokens + say.output_tokens,
    }
