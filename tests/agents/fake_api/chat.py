"""OpenAI-compatible chat completions: ``POST …/chat/completions``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from tests.agents.fake_api.moves import Say
from tests.agents.fake_api.wire import Asked, Body, Event, event, flatten, pieces

NAME: Final = "chat"


def matches(path: str) -> bool:
    """Tell whether a path asks for an answer."""
    return path.endswith("/chat/completions")


def read(path: str, body: Body) -> Asked:  # noqa: ARG001 - as every protocol reads
    """Read a request's body."""
    messages = body.get("messages", [])
    return Asked(
        model=str(body.get("model", "")),
        streams=bool(body.get("stream")),
        said=tuple((item["role"], flatten(item.get("content"))) for item in messages),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools", ())),
        results=tuple(
            flatten(item.get("content")) for item in messages if item["role"] == "tool"
        ),
        is_after_tool=bool(messages) and messages[-1]["role"] == "tool",
    )


def complete(say: Say, asked: Asked) -> Body:
    """Give the whole answer as one body."""
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
    if say.calls:
        message["tool_calls"] = _calls(say, asked)
    choice = {"index": 0, "message": message, "finish_reason": _finish(say)}
    return {
        **_head(asked),
        "object": "chat.completion",
        "choices": [choice],
        "usage": _usage(say),
    }


def stream(say: Say, asked: Asked) -> Iterable[Event]:
    """Give the answer as events."""
    yield _chunk(asked, {"role": "assistant", "content": ""})
    for piece in pieces(say.text, say.piece_chars):
        yield _chunk(asked, {"content": piece})
    for index, call in enumerate(_calls(say, asked)):
        yield from _stream_call(index, call, say, asked)
    yield _chunk(asked, {}, finish=_finish(say))
    yield event({**_head(asked), "choices": [], "usage": _usage(say)})
    yield b"data: [DONE]\n\n"


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


def _stream_call(
    index: int, call: dict[str, Any], say: Say, asked: Asked
) -> Iterable[Event]:
    function = {"name": call["function"]["name"], "arguments": ""}
    first = {**call, "index": index, "function": function}
    yield _chunk(asked, {"tool_calls": [first]})
    for piece in pieces(call["function"]["arguments"], say.piece_chars):
        more = {"index": index, "function": {"arguments": piece}}
        yield _chunk(asked, {"tool_calls": [more]})


def _chunk(asked: Asked, delta: Body, *, finish: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({**_head(asked), "choices": [choice], "usage": None})


def _head(asked: Asked) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-fake{len(asked.said)}",
        "object": "chat.completion.chunk",
        "created": 1_800_000_000,
        "model": asked.model,
    }


def _calls(say: Say, asked: Asked) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{len(asked.said)}_{index}",
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": json.dumps(dict(call.arguments)),
            },
        }
        for index, call in enumerate(say.calls)
    ]


def _finish(say: Say) -> str:
    return say.finish or ("tool_calls" if say.calls else "stop")


def _usage(say: Say) -> dict[str, Any]:
    return {
        "prompt_tokens": say.input_tokens,
        "completion_tokens": say.output_tokens,
        "total_tokens": say.input_tokens + say.output_tokens,
        "prompt_tokens_details": {"cached_tokens": say.cached_tokens},
    }
