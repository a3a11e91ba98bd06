"""Kind ``gateway``: an agent behind HTTP; its turns come as server-sent events."""

from __future__ import annotations

import dataclasses
import re
import time
from typing import Final
from urllib.parse import quote

from msgspec import Struct, field

from uwfgit.agents.base import AgentReply, AgentRequest, Failure, ToolCall, Turn, Usage
from uwfgit.agents.children.complaints import one_line
from uwfgit.agents.children.process import TimeLimits
from uwfgit.agents.foreign_json import Event, clean_text, clean_value, read_event
from uwfgit.agents.http.client import Endpoint, HttpAnswer, HttpBounds, Refusal, send
from uwfgit.agents.http.events import EventReader, ServerEvent
from uwfgit.agents.stdio import time_limits

SILENT_SECONDS: Final = 45.0
"""Longest silence; a gateway sends a heartbeat every 15 seconds."""
MAX_TURNS: Final = 10_000
_DAY_SECONDS: Final = 86_400.0
_SHORT: Final = 30.0
_SHOWN_CHARS: Final = 300
_STREAM: Final = {"Accept": "text/event-stream"}
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_GONE: Final = "session_not_found"
_NOT_FOUND: Final = 404


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GatewayAgent:
    """An agent of a gateway; a session there is one of its conversations."""

    label: str
    url: str
    gateway: str
    timeout_seconds: float | None = None
    silent_seconds: float = SILENT_SECONDS
    kind: str = dataclasses.field(default="gateway", init=False)
    has_sessions: bool = dataclasses.field(default=True, init=False)

    def run(self, request: AgentRequest) -> AgentReply:
        """Send the prompt into the session, or a new one, and hear it to its end."""
        call = _Call(agent=self, request=request)
        session = request.session_id or call.create()
        if isinstance(session, Failure):
            return AgentReply(text="", failure=session)
        if not _ID.fullmatch(session):
            message = "the gateway's session id is not one"
            return AgentReply(text="", failure=Failure(phase="agent", message=message))
        return call.talk(session)


class _Talk(Struct, kw_only=True):
    """What a stream of events amounted to so far."""

    request: AgentRequest
    turns: dict[int, Turn] = field(default_factory=dict)
    usage: Usage | None = None
    failure: Failure | None = None
    is_over: bool = False
    reader: EventReader = field(default_factory=EventReader)
    last_id: str | None = None

    def hear(self, chunk: bytes) -> bool:
        for event in self.reader.feed(chunk):
            self.last_id = event.id or self.last_id
            self._take(event)
            if self.is_over:
                return False
        return True

    def _take(self, event: ServerEvent) -> None:
        if event.name == "heartbeat":
            return
        value = _read_value(event.data)
        if value is None:
            self._fail(f"sent something that is not its format: {event.data[:200]!r}")
        elif event.name == "turn":
            self._take_turn(value)
        elif event.name == "done":
            self.is_over = True
            self.usage = Usage(
                turns=value.number("turnCount"),
                input_tokens=value.number("tokens", "in"),
                output_tokens=value.number("tokens", "out"),
                duration_ms=value.number("durationMs"),
                cost_usd=None,
            )
        elif event.name == "error":
            told = value.value
            self._fail(f"{told.get('error', 'error')}: {told.get('message', '')}")
        elif event.name == "suspend":
            seconds = value.number("elapsedMs") / 1000
            reason = value.value.get("reason", "no reason")
            self._fail(
                f"stopped its agent after {seconds:.0f} s "
                f"({reason}); resume goes on in its session"
            )

    def _take_turn(self, value: Event) -> None:
        if not isinstance(value.raw("role"), str) or not isinstance(
            value.raw("content"), str
        ):
            self._fail("sent a turn without role or content")
            return
        is_numbered = isinstance(value.raw("index"), int)
        number = value.number("index") if is_numbered else len(self.turns)
        if len(self.turns) >= MAX_TURNS:
            self._fail(f"sent more than {MAX_TURNS} turns")
            return
        turn = Turn(
            index=number,
            role=value.text("role"),
            content=value.text("content"),
            tool_calls=_read_calls(value),
            at_ms=self.request.now_ms(),
        )
        is_new = number not in self.turns
        self.turns[number] = turn
        # After a reconnect the gateway may tell what was told already.
        if is_new and self.request.on_turn is not None:
            self.request.on_turn(turn)

    def _fail(self, message: str) -> None:
        told = one_line(f"the gateway {message}", _SHOWN_CHARS)
        self.failure = Failure(phase="agent", message=told)
        self.is_over = True

    @property
    def said(self) -> str | None:
        """What the agent said last."""
        texts = [
            t.content for _, t in sorted(self.turns.items()) if t.role == "assistant"
        ]
        return texts[-1] if texts else None


class _Call(Struct, kw_only=True):
    """One run."""

    agent: GatewayAgent
    request: AgentRequest
    started: float = field(default_factory=time.monotonic)

    @property
    def endpoint(self) -> Endpoint:
        name = quote(self.agent.gateway, safe="")
        return Endpoint(base_url=f"{self.agent.url.rstrip('/')}/gateways/{name}")

    @property
    def limits(self) -> TimeLimits:
        return time_limits(
            self.request,
            label=self.agent.label,
            timeout_seconds=self.agent.timeout_seconds,
        )

    def create(self) -> str | Failure:
        """Make a session; give its id."""
        said = bytearray()

        def hear(chunk: bytes) -> bool:
            said.extend(chunk)
            return True

        found = send(
            self.endpoint,
            "/sessions",
            body={"workspaceRoot": str(self.request.cwd)},
            bounds=HttpBounds(
                idle_seconds=_SHORT, total_seconds=_SHORT, max_bytes=65_536
            ),
            hear=hear,
        )
        if isinstance(found, Refusal):
            return self._explain(found)
        value = _read_value(said.decode(errors="replace"))
        name = "" if value is None else value.text("id")
        if name:
            return name
        return Failure(phase="agent", message="the gateway gave no id of a session")

    def talk(self, session: str) -> AgentReply:
        """Send the prompt and hear the answer; after a silence ask once more for it."""
        talk = _Talk(request=self.request)
        found: HttpAnswer | Refusal | Failure
        try:
            found = self._post(session, talk, is_again=False)
            if self._is_broken_off(found, talk):
                talk.reader = EventReader()
                found = self._post(session, talk, is_again=True)
        except (KeyboardInterrupt, SystemExit):
            found = Failure(phase="interrupted", message="the agent was interrupted")
        is_gone = (
            isinstance(found, Refusal)
            and found.status == _NOT_FOUND
            and _GONE in found.body
            and self.request.session_id is not None
        )
        turns = tuple(turn for _, turn in sorted(talk.turns.items()))
        usage = talk.usage
        if usage is None and turns:
            elapsed = int((time.monotonic() - self.started) * 1000)
            usage = Usage(
                turns=len(turns),
                input_tokens=0,
                output_tokens=0,
                duration_ms=elapsed,
                cost_usd=None,
            )
        return AgentReply(
            text=talk.said or "",
            turns=turns,
            usage=usage,
            session_id=None if is_gone else session,
            is_session_refused=is_gone,
            failure=self._failure(talk, found),
        )

    def _post(
        self, session: str, talk: _Talk, *, is_again: bool
    ) -> HttpAnswer | Refusal:
        headers = {
            **_STREAM,
            **({"Last-Event-ID": talk.last_id or "0"} if is_again else {}),
        }
        left = (self.limits.wall_seconds or _DAY_SECONDS) - (
            time.monotonic() - self.started
        )
        return send(
            self.endpoint,
            f"/sessions/{quote(session, safe='')}/messages",
            body=None if is_again else {"content": self.request.prompt},
            headers=headers,
            bounds=HttpBounds(
                idle_seconds=self.agent.silent_seconds,
                total_seconds=max(0.01, left),
                max_bytes=64 * 1024 * 1024,
            ),
            hear=talk.hear,
        )

    def _is_broken_off(self, found: HttpAnswer | Refusal, talk: _Talk) -> bool:
        if talk.is_over:
            return False
        if isinstance(found, HttpAnswer):
            return not found.is_cut
        # A connection that was lost, or silent, and no answer of the server's.
        return found.status is None and (found.again or found.late == "idle")

    def _failure(
        self, talk: _Talk, found: HttpAnswer | Refusal | Failure
    ) -> Failure | None:
        if isinstance(found, Failure):
            return found
        if talk.failure is not None:
            return talk.failure
        if not talk.is_over:
            if isinstance(found, Refusal):
                return self._explain(found)
            why = "sent more than 64 MiB" if found.is_cut else "ended its answer early"
            count = len(talk.turns)
            message = f"the gateway {why}, after {count} turn{'s'[: count != 1]}"
            return Failure(phase="agent", message=message)
        if talk.said is None:
            return Failure(phase="agent", message="the gateway's agent said nothing")
        return None

    def _explain(self, refusal: Refusal) -> Failure:
        if refusal.late == "total":
            message = f"{refusal.message} ({self.limits.wall_setting})"
            return Failure(phase="agent", message=message)
        if refusal.late == "idle":
            message = f"{refusal.message}, not even a heartbeat"
            return Failure(phase="agent", message=message)
        return Failure(phase="agent", message=refusal.message)


def _read_value(text: str) -> Event | None:
    """Return the value of an envelope ``{type, value}``."""
    envelope = read_event(text) or Event({})
    return envelope.part("value") if isinstance(envelope.raw("value"), dict) else None


def _read_calls(turn: Event) -> tuple[ToolCall, ...] | None:
    found = []
    for call in turn.parts("toolCalls"):
        told = call.value
        result = told.get("result", told.get("output"))
        arguments = told.get("arguments", told.get("input"))
        found.append(
            ToolCall(
                name=clean_text(str(told.get("name", "tool"))),
                arguments=clean_value(arguments),
                result=clean_text(result) if isinstance(result, str) else None,
            )
        )
    return tuple(found) or None
