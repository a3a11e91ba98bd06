"""Anthropic messages: ``POST /v1/messages``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from tests.agents.fake_api.moves import Say
from tests.agents.fake_api.wire import Asked, Body, Event, event, flatten, pieces

NAME: Final = "anthropic"
_ERRORS: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def matches(path: str) -> bool:
    """Tell whether a path asks for an answer."""
    return path.endswith("/v1/messages")


def read(path: str, body: Body) -> Asked:  # noqa: ARG001 - as every protocol reads
    """Read a request's body."""
    messages = body.get("messages", [])
    said = [("system", flatten(body.get("system", "")))]
    said += [(item["role"], flatten(item["content"])) for item in messages]
    blocks = [
        block
        for item in messages
        if isinstance(item["content"], list)
        for block in item["content"]
    ]
    last = messages[-1]["content"] if messages else ""
    return Asked(
        model=str(body.get("model", "")),
        streams=bool(body.get("stream")),
        said=tuple(said),
        tools=tuple(tool["name"] for tool in body.get("tools", ())),
        results=tuple(flatten(b) for b in blocks if b.get("type") == "tool_result"),
        is_after_tool=isinstance(last, list)
        and any(block.get("type") == "tool_result" for block in last),
    )


def complete(say: Say, asked: Asked) -> Body:
    """Give the whole answer as one body."""
    return {
        **_message(asked),
        "content": _blocks(say),
        "stop_reason": _stop(say),
        "usage": _usage(say),
    }


def stream(say: Say, asked: Asked) -> Iterable[Event]:
    """Give the answer as events."""
    start = {**_message(asked), "content": [], "stop_reason": None}
    start["usage"] = {**_usage(say), "output_tokens": 1}
    yield _event("message_start", message=start)
    for index, block in enumerate(_blocks(say)):
        yield from _stream_block(index, block, say)
    yield _event(
        "message_delta",
        delta={"stop_reason": _stop(say), "stop_sequence": None},
        usage={"output_tokens": say.output_tokens},
    )
    yield _event("message_stop")


def refuse(status: int, message: str) -> Body:
    """Give the body of an error."""
    kind = _ERRORS.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def _stream_block(index: int, block: dict[str, Any], say: Say) -> Iterable[Event]:
    if block["type"] == "text":
        empty: dict[str, Any] = {"type": "text", "text": ""}
        deltas: list[dict[str, str]] = [
            {"type": "text_delta", "text": piece}
            for piece in pieces(block["text"], say.piece_chars)
        ]
    else:
        empty = {**block, "input": {}}
        deltas = [
            {"type": "input_json_delta", "partial_json": piece}
            for piece in pieces(json.dumps(block["input"]), say.piece_chars)
        ]
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(kind: str, **fields: object) -> Event:
    return event({"type": kind, **fields}, name=kind)


def _message(asked: Asked) -> dict[str, Any]:
    return {
        "id": f"msg_fake{len(asked.said)}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "stop_sequence": None,
    }


def _blocks(say: Say) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if say.text or not say.calls:
        blocks.append({"type": "text", "text": say.text})
    blocks += [
        {
            "type": "tool_use",
            "id": f"toolu_fake{index}",
            "name": call.name,
            "input": dict(call.arguments),
        }
        for index, call in enumerate(say.calls)
    ]
    return blocks


def _stop(say: Say) -> str:
    return say.finish or ("tool_use" if say.calls else "end_turn")


def _usage(say: Say) -> dict[str, int]:
    return {
        "input_tokens": say.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": say.cached_tokens,
        "output_tokens": say.output_tokens,
    }
