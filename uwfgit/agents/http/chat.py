"""OpenAI-compatible chat completions: ask a model once, again where that may help."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.agents.base import Usage
from uwfgit.agents.foreign_json import Event, clean_text, read_event
from uwfgit.agents.http.client import Endpoint, HttpAnswer, HttpBounds, Refusal, send
from uwfgit.agents.http.events import EventReader

ChatMessage = dict[str, Any]
"""One message as the protocol writes it."""

PATH: Final = "/chat/completions"
TRIES: Final = 5
PATIENCE_SECONDS: Final = 60.0
"""The longest wait before a further try; a server that asks for more is a limit."""
MAX_TEXT_CHARS: Final = 8 * 1024 * 1024
_EXHAUSTED: Final = "insufficient_quota"
_STATUS_LIMIT: Final = 429


class ChatModel(Struct, frozen=True, kw_only=True):
    """A model at its endpoint."""

    endpoint: Endpoint
    name: str


class ToolUse(Struct, frozen=True, kw_only=True):
    """A tool the model wants used; its arguments as it wrote them."""

    id: str
    name: str
    arguments: str


class Tokens(Struct, frozen=True, kw_only=True):
    """What one answer cost; ``cached`` is a part of ``input``."""

    input: int
    cached: int
    output: int


class Completion(Struct, frozen=True, kw_only=True):
    """A model's whole answer.

    ``finish`` is the protocol's word; ``is_cut`` means that the answer was longer
    than what is taken of one.
    """

    text: str
    reasoning: str | None
    calls: tuple[ToolUse, ...]
    finish: str | None
    tokens: Tokens | None
    model: str | None
    is_cut: bool = False

    def usage(self, started: float) -> Usage:
        """Return what it cost; ``started`` is the monotonic time it was asked at."""
        tokens = self.tokens
        return Usage(
            turns=1,
            input_tokens=tokens.input if tokens else 0,
            output_tokens=tokens.output if tokens else 0,
            duration_ms=int((time.monotonic() - started) * 1000),
            cost_usd=None,
        )

    def message(self) -> ChatMessage:
        """Write it as a message of the conversation."""
        message: ChatMessage = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.calls
            ]
        return message


class Patience(Struct, frozen=True, kw_only=True):
    """How the waiting between tries is done; tests make it short."""

    sleep: Callable[[float], None] = time.sleep
    first_seconds: float = 1.0
    tries: int = TRIES


def complete(
    model: ChatModel,
    messages: Sequence[ChatMessage],
    *,
    bounds: HttpBounds,
    tools: Sequence[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
    on_text: Callable[[str], None] | None = None,
    on_wait: Callable[[str], None] | None = None,
    patience: Patience | None = None,
) -> Completion | Refusal:
    """Ask a model for the next message of a conversation.

    A server that is busy or gone is asked again, with growing pauses or the ones it
    wants; one that answered wrongly, or not in time, is not.

    Args:
        on_text: Told the text as it comes; of a try that failed too.
        on_wait: Told why there is a pause before the next try.
    """
    patience = patience or Patience()
    body = _body(model, messages, tools, options or {})
    number = 0
    while True:
        number += 1
        found = _try(model, body, bounds, on_text)
        if isinstance(found, Completion) or not found.again:
            return found
        pause = found.retry_seconds
        if pause is None:
            # Jitter keeps the steps of one machine from coming back all at once.
            jitter = random.uniform(0.5, 1)  # noqa: S311 - no secret
            pause = patience.first_seconds * 2.0 ** (number - 1) * jitter
        if number == patience.tries or pause > PATIENCE_SECONDS:
            return found
        if on_wait is not None:
            on_wait(f"{found.message}; trying again in {pause:.0f} s")
        patience.sleep(pause)


def is_limit(refusal: Refusal) -> bool:
    """Whether a refusal is a limit that time lifts."""
    return refusal.status == _STATUS_LIMIT and _EXHAUSTED not in refusal.body


def _body(
    model: ChatModel,
    messages: Sequence[ChatMessage],
    tools: Sequence[Mapping[str, Any]],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": model.name,
        "messages": list(messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        **options,
    }
    if tools:
        body["tools"] = list(tools)
        body["tool_choice"] = "auto"
    return body


def _try(
    model: ChatModel,
    body: Mapping[str, Any],
    bounds: HttpBounds,
    on_text: Callable[[str], None] | None,
) -> Completion | Refusal:
    hearing = _Hearing(on_text=on_text)
    found = send(model.endpoint, PATH, body=body, bounds=bounds, hear=hearing.hear)
    if isinstance(found, Refusal):
        exhausted = _EXHAUSTED in found.body
        return replace(found, again=found.again and not exhausted)
    host = model.endpoint.host
    problem = hearing.finish(found, host)
    return problem or hearing.completion(is_cut=found.is_cut or hearing.is_cut)


class _Call(Struct, kw_only=True):
    """A tool call as its pieces come."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class _Hearing(Struct, kw_only=True):
    """An answer as its pieces come: as events, or as one body."""

    on_text: Callable[[str], None] | None
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, _Call] = field(default_factory=dict)
    finish_word: str | None = None
    tokens: Tokens | None = None
    model: str | None = None
    is_cut: bool = False
    _room: int = MAX_TEXT_CHARS
    _reader: EventReader = field(default_factory=EventReader)
    _raw: bytearray = field(default_factory=bytearray)
    _is_done: bool = False
    _has_events: bool = False
    _broken: str | None = None
    _error: str | None = None

    def hear(self, chunk: bytes) -> bool:
        if not self._has_events:
            self._raw += chunk
        for event in self._reader.feed(chunk):
            self._has_events = True
            self._raw.clear()
            if event.data.strip() == "[DONE]":
                self._is_done = True
                return False
            self._take(event.data)
        return self._broken is None and self._error is None and not self.is_cut

    def finish(self, answer: HttpAnswer, host: str) -> Refusal | None:
        """Read what came as one body; tell what is wrong with the whole."""
        if not self._has_events:
            self._take(self._raw.decode(errors="replace"))
            self._is_done = self._broken is None
        if self._error is not None:
            return Refusal(message=f"{host}: {self._error}", status=answer.status)
        if self._broken is not None:
            return Refusal(
                message=f"{host} answered with something that is not JSON: "
                f"{self._broken}"
            )
        whole = self._is_done or self.finish_word is not None
        if not whole and not (self.is_cut or answer.is_cut):
            return Refusal(message=f"{host} ended its answer early", again=True)
        return None

    def completion(self, *, is_cut: bool) -> Completion:
        calls = tuple(
            ToolUse(
                id=call.id or f"call_{index}",
                name=call.name,
                arguments="".join(call.arguments),
            )
            for index, call in sorted(self.calls.items())
        )
        return Completion(
            text="".join(self.text),
            reasoning="".join(self.reasoning) or None,
            calls=() if is_cut else calls,
            finish=self.finish_word,
            tokens=self.tokens,
            model=self.model,
            is_cut=is_cut,
        )

    def _take(self, data: str) -> None:
        event = read_event(data)
        if event is None:
            self._broken = repr(data[:80])
            return
        error = event.raw("error")
        if error:
            told = event.raw("error", "message") if isinstance(error, dict) else error
            self._error = clean_text(str(told))[:300]
            return
        self.model = event.text("model") or self.model
        usage = event.part("usage")
        if usage.value:
            self.tokens = Tokens(
                input=usage.number("prompt_tokens"),
                cached=usage.number("prompt_tokens_details", "cached_tokens"),
                output=usage.number("completion_tokens"),
            )
        for choice in event.parts("choices"):
            if choice.value.get("index", 0) == 0:
                self._take_choice(choice)

    def _take_choice(self, choice: Event) -> None:
        delta = choice.part("delta" if choice.raw("delta") else "message")
        text = delta.text("content")
        if text and self._take_room(len(text)):
            self.text.append(text)
            if self.on_text is not None:
                self.on_text(text)
        for key in ("reasoning_content", "reasoning"):
            thought = delta.text(key)
            if self._take_room(len(thought)):
                self.reasoning.append(thought)
        for place, call in enumerate(delta.parts("tool_calls")):
            self._take_call(call, place)
        self.finish_word = choice.text("finish_reason") or self.finish_word

    def _take_call(self, call: Event, place: int) -> None:
        index = call.raw("index")
        known = self.calls.setdefault(
            index if isinstance(index, int) else place, _Call()
        )
        known.id = known.id or call.text("id")
        known.name = known.name or call.text("function", "name")
        arguments = call.raw("function", "arguments")
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        if isinstance(arguments, str) and self._take_room(len(arguments)):
            known.arguments.append(arguments)

    def _take_room(self, size: int) -> bool:
        self._room -= size
        self.is_cut = self.is_cut or self._room < 0
        return self._room >= 0
