"""What the events of one run amount to; each kind's reader fills it in.

Bounded: of a long turn, tool result or run the middle is left out, and said so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from msgspec import Struct, field

from uwfgit.agents.base import Failure, Phase, ToolCall, Turn, Usage
from uwfgit.agents.foreign_json import clean_value
from uwfgit.store.canonical import Json

TURN_CHARS: Final = 1_000_000
RESULT_CHARS: Final = 200_000
ARGUMENT_CHARS: Final = 100_000
RUN_CHARS: Final = 4_000_000
"""All turns together; a node holds 16 MiB."""
_KINDS_NAMED: Final = 8
NOTICE: Final = "notice"
"""The role of what the program says in the model's place."""


class _Call(Struct):
    name: str
    arguments: Json
    result: str | None = None


class _Turn(Struct, kw_only=True):
    role: str
    key: str
    content: str = ""
    reasoning: str = ""
    calls: list[_Call] = field(default_factory=list)
    at_ms: int


class Transcript(Struct, kw_only=True):
    """One run of an agent as its events tell it.

    Attributes:
        now_ms: The clock.
        tell: Told each turn, or the next part of one, as it comes.
        before: What the session had cost before this run.
        answer: The final text, once the terminal event gave it.
        is_over: Whether the terminal event came.
        failure: What that event, or one before it, said went wrong.
        http_status: The vendor's last refusal, if there was one.
        retry_at_ms: When the vendor's limit ends, if it said so.
        is_logged_out: Whether it said that it has no login.
    """

    now_ms: Callable[[], int]
    tell: Callable[[Turn], None] | None = None
    before: Usage | None = None
    session_id: str | None = None
    model: str | None = None
    version: str | None = None
    usage: Usage | None = None
    session_total: Usage | None = None
    answer: str | None = None
    is_over: bool = False
    failure: Failure | None = None
    http_status: int | None = None
    retry_at_ms: int | None = None
    is_logged_out: bool = False
    began_ms: int = 0
    remarks: list[str] = field(default_factory=list)
    _turns: list[_Turn] = field(default_factory=list)
    _calls: dict[str, _Call] = field(default_factory=dict)
    _denied: dict[str, str] = field(default_factory=dict)
    _unknown: dict[str, int] = field(default_factory=dict)
    _room: int = RUN_CHARS
    _cut: int = 0

    def __post_init__(self) -> None:
        self.began_ms = self.now_ms()

    def say(
        self, text: str, *, role: str = "assistant", key: str = "", reasoning: str = ""
    ) -> None:
        """Add what was said; of one key it is a further part of the newest turn."""
        turn = self._turn(role, key)
        room = TURN_CHARS - len(turn.content)
        part = f"\n\n{text}" if turn.content and text else text
        turn.content += self._fit(part, room)
        turn.reasoning += self._fit(reasoning, RESULT_CHARS - len(turn.reasoning))
        self._tell(turn, part)

    def stream(self, text: str) -> None:
        """Add the next piece of what is being said; nobody is told before its end."""
        turn = self._turn("assistant", "stream")
        turn.content += self._fit(text, TURN_CHARS - len(turn.content))

    def end_stream(self) -> None:
        """Tell what was streamed."""
        if self._turns and self._turns[-1].key == "stream":
            self._turns[-1].key = ""
            self._tell(self._turns[-1], self._turns[-1].content)

    def call(
        self,
        call: str,
        name: str,
        arguments: object,
        *,
        key: str = "",
        role: str = "assistant",
    ) -> None:
        """Add a tool call to the newest turn of the role."""
        turn = self._newest(role) if not key else self._turn(role, key)
        value = clean_value(arguments)
        size = len(json.dumps(value))
        if size <= min(ARGUMENT_CHARS, self._room):
            self._room -= size
        else:
            value = self._fit(json.dumps(value, ensure_ascii=False), ARGUMENT_CHARS)
        made = _Call(name, value)
        turn.calls.append(made)
        self._calls[call] = made
        self._tell(turn, "", made)

    def result(self, call: str, text: str) -> None:
        """Add what a tool call gave."""
        made = self._calls.get(call)
        if made is None:
            return
        made.result = self._fit(text, RESULT_CHARS)
        if self.tell is not None:
            at_ms = self.now_ms()
            index = -len(self._calls)
            self.tell(Turn(index=index, role="tool", content=made.result, at_ms=at_ms))

    def has_call(self, call: str) -> bool:
        """Whether a tool call of this name was told before."""
        return call in self._calls

    def deny(self, call: str, tool: str, arguments: object) -> None:
        """Note that the agent was not allowed to use a tool."""
        shown = json.dumps(clean_value(arguments), ensure_ascii=False)
        self._denied[call] = f"permission denied: {tool} {shown[:200]}"

    def note_session(self, session: str, *, model: str = "") -> None:
        """Note the session's id, and its model, where they are told."""
        self.session_id = session or self.session_id
        self.model = model or self.model

    def remark(self, text: str) -> None:
        """Note a warning."""
        self.remarks.append(text)

    def note_unknown(self, kind: str) -> None:
        """Note an event that this uwf does not know."""
        self._unknown[kind] = self._unknown.get(kind, 0) + 1

    def fail(self, message: str, *, phase: Phase = "agent") -> None:
        """Note what went wrong, as one line."""
        lines = (line.strip() for line in message.splitlines())
        text = " / ".join(line for line in lines if line)
        text = text or "the agent reported an error without a word"
        self.failure = Failure(phase=phase, message=text)

    def finish(self, answer: str | None = None) -> None:
        """Note the terminal event."""
        self.end_stream()
        self.is_over = True
        self.answer = answer

    def go_on(self) -> None:
        """Note that the terminal event was not the last one after all."""
        self.is_over, self.failure = False, None

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns, each call with what it gave."""
        return tuple(
            Turn(
                index=index,
                role=turn.role,
                content=turn.content,
                tool_calls=_freeze(turn.calls),
                reasoning=turn.reasoning or None,
                at_ms=turn.at_ms,
            )
            for index, turn in enumerate(self._turns)
        )

    @property
    def said(self) -> str:
        """Everything the agent itself said, in order."""
        own = (turn.content for turn in self._turns if turn.role == "assistant")
        return "\n\n".join(text for text in own if text)

    @property
    def last_said(self) -> str:
        """What it said after its last tool call, or in its newest turn with words."""
        for turn in reversed(self._turns):
            if turn.role == "assistant" and turn.content.strip():
                return turn.content
        return ""

    @property
    def has_spoken(self) -> bool:
        """Whether the model, and not only the program, said or did something."""
        return any(turn.role != NOTICE for turn in self._turns)

    @property
    def duration_ms(self) -> int:
        """How long the run took so far."""
        return max(0, self.now_ms() - self.began_ms)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to say on the step."""
        kinds = sorted(self._unknown.items())
        unknown = [
            f"the agent told of '{kind[:64]}', which this uwf does not know"
            + (f" ({count} times)" if count > 1 else "")
            for kind, count in kinds[:_KINDS_NAMED]
        ]
        if len(kinds) > _KINDS_NAMED:
            unknown.append(f"and of {len(kinds) - _KINDS_NAMED} other unknown things")
        cut = [f"{self._cut:,} characters of its turns were not kept"] * bool(self._cut)
        return (*self.remarks, *self._denied.values(), *cut, *unknown)

    def _turn(self, role: str, key: str) -> _Turn:
        """Return the newest turn when it is of this role and key, else a new one."""
        if self._turns:
            newest = self._turns[-1]
            if newest.role == role and newest.key == key and key:
                return newest
        if key != "stream":
            self.end_stream()
        turn = _Turn(role=role, key=key, at_ms=self.now_ms())
        self._turns.append(turn)
        return turn

    def _newest(self, role: str) -> _Turn:
        """Return the newest turn of this role, unless it is over.

        Where all that a turn asked for was given, the model was asked again.
        """
        self.end_stream()
        if self._turns and self._turns[-1].role == role:
            calls = self._turns[-1].calls
            if not calls or any(call.result is None for call in calls):
                return self._turns[-1]
        return self._turn(role, "")

    def _tell(self, turn: _Turn, content: str, call: _Call | None = None) -> None:
        if self.tell is None:
            return
        self.tell(
            Turn(
                index=len(self._turns) - 1,
                role=turn.role,
                content=content,
                tool_calls=_freeze([call]) if call else None,
                at_ms=turn.at_ms,
            )
        )

    def _fit(self, text: str, room: int) -> str:
        """Leave out the middle of a text that is too long."""
        room = max(0, min(room, self._room))
        kept = text
        if len(text) > room:
            left_out = len(text) - room
            self._cut += left_out
            half = room // 2
            mark = f"\n[{left_out:,} characters left out]\n"
            kept = f"{text[:half]}{mark}{text[len(text) - half :]}" if half else mark
        self._room -= min(len(text), room)
        return kept


def _freeze(calls: list[_Call]) -> tuple[ToolCall, ...] | None:
    made = tuple(
        ToolCall(name=call.name, arguments=call.arguments, result=call.result)
        for call in calls
    )
    return made or None


def ignore(*_: object) -> None:
    """Take note of nothing: a reader for what is about the program itself."""
