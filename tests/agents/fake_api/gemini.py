"""Gemini: ``POST /v1beta/models/MODEL:generateContent`` and its streaming twin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tests.agents.fake_api.moves import Say
from tests.agents.fake_api.wire import Asked, Body, Event, event, flatten, pieces

NAME: Final = "gemini"
_ERRORS: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
}


def matches(path: str) -> bool:
    """Tell whether a path asks for an answer."""
    return path.endswith((":generateContent", ":streamGenerateContent"))


def read(path: str, body: Body) -> Asked:
    """Read a request's body; model and streaming stand in its path."""
    contents = body.get("contents", [])
    said = [("system", _text(body.get("systemInstruction") or {}))]
    said += [(str(item.get("role", "user")), _text(item)) for item in contents]
    parts = [part for item in contents for part in item.get("parts", ())]
    last = contents[-1].get("parts", ()) if contents else ()
    return Asked(
        model=path.rpartition("/")[2].partition(":")[0],
        streams=path.endswith(":streamGenerateContent"),
        said=tuple(said),
        tools=tuple(
            function["name"]
            for tool in body.get("tools", ())
            for function in tool.get("functionDeclarations", ())
        ),
        results=tuple(
            flatten(list(part["functionResponse"].get("response", {}).values()))
            for part in parts
            if "functionResponse" in part
        ),
        is_after_tool=any("functionResponse" in part for part in last),
    )


def complete(say: Say, asked: Asked) -> Body:
    """Give the whole answer as one body."""
    return _chunk(asked, _parts(say), finish=say.finish or "STOP", say=say)


def stream(say: Say, asked: Asked) -> Iterable[Event]:
    """Give the answer as events."""
    for piece in pieces(say.text, say.piece_chars):
        yield event(_chunk(asked, [{"text": piece}], finish=None, say=None))
    calls = [part for part in _parts(say) if "functionCall" in part]
    # A last chunk without any part is taken for an empty answer.
    last = calls or [{"text": ""}]
    yield event(_chunk(asked, last, finish=say.finish or "STOP", say=say))


def refuse(status: int, message: str) -> Body:
    """Give the body of an error."""
    word = _ERRORS.get(status, "UNAVAILABLE")
    return {"error": {"code": status, "message": message, "status": word}}


def _text(content: Body) -> str:
    return flatten(content.get("parts", []))


def _parts(say: Say) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if say.text or not say.calls:
        parts.append({"text": say.text})
    parts += [
        {"functionCall": {"name": call.name, "args": dict(call.arguments)}}
        for call in say.calls
    ]
    return parts


def _chunk(
    asked: Asked, parts: list[dict[str, Any]], *, finish: str | None, say: Say | None
) -> dict[str, Any]:
    candidate: dict[str, Any] = {
        "content": {"role": "model", "parts": parts},
        "index": 0,
    }
    if finish is not None:
        candidate["finishReason"] = finish
    chunk: dict[str, Any] = {"candidates": [candidate], "modelVersion": asked.model}
    if say is not None:
        chunk["usageMetadata"] = {
            "promptTokenCount": say.input_tokens,
            "cachedContentTokenCount": say.cached_tokens,
            "candidatesTokenCount": say.output_tokens,
            "totalTokenCount": say.input_tokens + say.output_tokens,
        }
    return chunk
