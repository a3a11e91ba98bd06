"""What a server tells of its agent's work, as turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from uwfgit.agents.base import ToolCall
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
        kind = update.get("sessionUpdate")
        if kind == "usage_update":
            self._take_cost(update.get("cost"))
        elif not self.is_open:
            return
        elif kind == "agent_message_chunk":
            self._take_text(_text(update.get("content")))
        elif kind == "agent_thought_chunk":
            self._take_thought(_text(update.get("content")))
        elif kind in ("tool_call", "tool_call_update"):
            self._take_tool(update)

    def finish(self) -> None:
        """Close what is still open: a message, and tools that never ended."""
        for name in list(self._tools):
            self._end_tool(name)
        self._end_message()

    def _take_text(self, text: str) -> None:
        if self._fits(text):
            self._text.append(text)
            self.speech.hear(text)

    def _take_thought(self, text: str) -> None:
        if self._fits(text):
            self._thoughts.append(text)

    def _fits(self, text: str) -> bool:
        self._room -= len(text)
        self.is_cut = self.is_cut or self._room < 0
        return self._room >= 0 and bool(text)

    def _take_tool(self, update: Mapping[str, Any]) -> None:
        name = str(update.get("toolCallId"))
        if name not in self._tools:
            self._end_message()
            self._tools[name] = _Tool(name="tool")
        tool = self._tools[name]
        title = update.get("title") or update.get("kind")
        if isinstance(title, str):
            tool.name = title
        if update.get("rawInput") is not None:
            tool.arguments = update["rawInput"]
        result = _result(update)
        if result and self._fits(result):
            tool.result = result
        if update.get("status") in _ENDED:
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

    def _take_cost(self, cost: object) -> None:
        amount = cost.get("amount") if isinstance(cost, dict) else None
        if isinstance(amount, int | float) and not isinstance(amount, bool):
            self.cost_usd = float(amount)


def _text(content: object) -> str:
    text = content.get("text") if isinstance(content, dict) else None
    return text if isinstance(text, str) else ""


def _result(update: Mapping[str, Any]) -> str:
    """Return what a tool showed: its text, else the paths of the files it changed."""
    parts = []
    content = update.get("content")
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict):
            continue
        if block.get("type") == "diff":
            parts.append(f"changed {block.get('path')}")
        else:
            parts.append(_text(block.get("content")))
    return "\n".join(part for part in parts if part)
