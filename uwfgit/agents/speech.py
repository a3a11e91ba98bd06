"""What an agent does, as turns: told while it works, and kept for the record."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.agents.base import ToolCall, Turn
from uwfgit.agents.foreign_json import clean_text, clean_value


class Speech(Struct, kw_only=True):
    """The turns of one run.

    Text is told by whole lines as it comes, so that a secret is never told in two
    halves; each use of a tool when it has a result. What no node could hold is made
    harmless here.
    """

    tell: Callable[[Turn], None] | None
    now_ms: Callable[[], int]
    turns: list[Turn] = field(default_factory=list)
    _told: int = 0
    _held: str = ""
    _pieces: list[str] = field(default_factory=list)

    def hear(self, text: str) -> None:
        """Take the next piece of an answer."""
        self._pieces.append(text)
        whole, end, rest = (self._held + text).rpartition("\n")
        self._held = rest
        if end:
            self._tell(self._make(whole + end))

    def note(self, text: str) -> None:
        """Tell what happens instead of an answer; what came of it is void."""
        self._end()
        self._tell(self._make(text, role="system"))
        self._told += 1

    def add(self, content: str, *, reasoning: str | None = None) -> None:
        """Record a whole message, whose text may have been told in pieces."""
        self._end()
        thought = None if reasoning is None else clean_text(reasoning)
        self.turns.append(replace(self._make(content), reasoning=thought))

    def break_off(self) -> str:
        """Record what came of an answer that has no end, and return it."""
        text = clean_text("".join(self._pieces))
        if text:
            self._end()
            self.turns.append(self._make(text))
        return text

    def add_prompt(self, text: str) -> None:
        """Record what the model was told between its answers, and tell it."""
        turn = self._make(text, role="user")
        self._tell(turn)
        self._told += 1
        self.turns.append(turn)

    def add_call(self, call: ToolCall) -> None:
        """Record a tool's use with the newest answer, and tell it."""
        call = ToolCall(
            name=clean_text(call.name),
            arguments=clean_value(call.arguments),
            result=None if call.result is None else clean_text(call.result),
        )
        last = self.turns[-1]
        self.turns[-1] = replace(last, tool_calls=(*(last.tool_calls or ()), call))
        self._tell(replace(self._make(""), tool_calls=(call,)))
        self._told += 1

    def _end(self) -> None:
        if self._held:
            self._tell(self._make(self._held))
            self._held = ""
        self._pieces.clear()
        self._told += 1

    def _make(self, content: str, *, role: str = "assistant") -> Turn:
        return Turn(
            index=self._told,
            role=role,
            content=clean_text(content),
            at_ms=self.now_ms(),
        )

    def _tell(self, turn: Turn) -> None:
        if self.tell is not None:
            self.tell(turn)
