"""What a server tells of its agent's work, as turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from uwfgit.agents.base import ToolCall
from uwfgit.agents.foreign_json import Event
from uwfgit.agents.speech import Speech
from uwfgit.store.canonical import Json

MAX_TEXT_CHARS: Final = 8 * 1024 * 1024
_ENDED: Final = ("completed", "failed")


class _Tool(Struct, kw_only=True):
    """A tool's use as it is told of, bit by bit."""

    name: str
    arguments: Json = None
    result: str | None = None


class Updates(Struct, kw_only=True):
    """Reads ``session/update`` notifications; unknown ones are passed over.

    ``is_open`` is false while a server replays what was said before. A message ends
    where a tool is used, and its text is the answer when none follows.
    """

    speech: Speech
    is_open: bool = False
    is_cut: bool = False
    cost_usd: float | None = None
    texts: list[str] = field(default_factory=list)
    _text: list[str] = field(default_factory=list)
    _thoughts: list[str] = field(default_factory=list)
    _tools: dict[str, _Tool] = field(default_factory=dict)
    _room: int = MAX_TEXT_CHARS

    def take(self, update: Mapping[str, Any]) -> None:
        """Take one update."""
        told = Event(update)
        kind, text = told.text("sessionUpdate"), told.text("content", "text")
        if kind == "usage_update":
            cost = told.amount("cost", "amount")
            self.cost_usd = self.cost_usd if cost is None else float(cost)
        elif not self.is_open:
            return
        elif kind == "agent_message_chunk" and self._fits(text):
            self._text.append(text)
            self.speech.hear(text)
        elif kind == "agent_thought_chunk" and self._fits(text):
            self._thoughts.append(text)
        elif kind in ("tool_call", "tool_call_update"):
            self._take_tool(told)

    def finish(self) -> None:
        """Close what is still open: a message, and tools that never ended."""
        for name in list(self._tools):
            self._end_tool(name)
        self._end_message()

    def _fits(self, text: str) -> bool:
        self._room -= len(text)
        self.is_cut = self.is_cut or self._room < 0
        return self._room >= 0 and bool(text)

    def _take_tool(self, update: Event) -> None:
        name = str(update.raw("toolCallId"))
        if name not in self._tools:
            self._end_message()
            self._tools[name] = _Tool(name="tool")
        tool = self._tools[name]
        tool.name = update.text("title") or update.text("kind") or tool.name
        if update.raw("rawInput") is not None:
            tool.arguments = update.raw("rawInput")
        result = _result(update)
        if result and self._fits(result):
            tool.result = result
        if update.text("status") in _ENDED:
            self._end_tool(name)

    def _end_tool(self, name: str) -> None:
        tool = self._tools.pop(name)
        if not self.speech.turns:
            self.speech.add("")
        self.speech.add_call(
            ToolCall(name=tool.name, arguments=tool.arguments, result=tool.result)
        )

    def _end_message(self) -> None:
        text = "".join(self._text)
        if not text and not self._thoughts:
            return
        self.speech.add(text, reasoning="".join(self._thoughts) or None)
        self.texts += [text] if text.strip() else []
        self._text.clear()
        self._thoughts.clear()


def _result(update: Event) -> str:
    """Return what a tool showed: its text, else the paths of the files it changed."""
    parts = (
        f"changed {block.text('path')}"
        if block.text("type") == "diff"
        else block.text("content", "text")
        for block in update.parts("content")
    )
    return "\n".join(part for part in parts if part)
