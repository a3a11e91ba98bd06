"""What is seen of an agent while the command that runs it waits.

On a terminal one line, renewed: who works, how much, how long, what was said last.
Elsewhere a line when a step takes long, and one at its end. With ``-v`` each turn.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Final, Self

from msgspec import Struct, field

from uwfgit.agents.base import ToolCall, Turn, Usage
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import (
    count_of,
    format_duration,
    talk,
    talk_over,
    talk_width,
)
from uwfgit.cli.frame.screen import shown
from uwfgit.model.wording import first_line, last_line

_DELAY: Final = 0.5
_PAUSE: Final = 0.2
_LONG: Final = 2.0
"""A step that takes longer is told of where there is no terminal."""
_ARGUMENT_CHARS: Final = 80


class _Scene(Struct, kw_only=True):
    """One step as it is seen."""

    number: int
    role: str
    agent: str
    began: float = field(default_factory=time.monotonic)
    turns: int = 0
    newest: int = -1
    tokens: int = 0
    said: str = ""
    is_told: bool = False

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def line(self) -> str:
        """Write it as one line."""
        parts = [f"step {self.number} {self.role} ({self.agent})"]
        if self.turns:
            parts.append(count_of(self.turns, "turn"))
        if self.tokens:
            parts.append(f"{self.tokens:,} tokens")
        minutes, seconds = divmod(int(self.seconds), 60)
        parts.append(f"{minutes}:{seconds:02d}")
        if self.said:
            parts.append(self.said)
        return " · ".join(parts)


class Watching:
    """Looks on while steps run; a context manager that leaves no line behind."""

    def __init__(self, context: CommandContext) -> None:
        options = context.options
        self._width = talk_width(quiet=options.quiet)
        self._tells = not options.quiet and context.output.is_text
        self._is_verbose = options.verbose and self._tells
        self._announces = self._tells and not self._is_verbose
        self._lock = threading.Lock()
        self._scene: _Scene | None = None
        self._has_line = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Self:
        if self._tells or self._width is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        self._clear()

    def begin(self, *, number: int, role: str, agent: str) -> None:
        """See that an agent is asked now."""
        with self._lock:
            self._scene = _Scene(number=number, role=role, agent=agent)

    def turn(self, turn: Turn) -> None:
        """See a turn, or the next part of one."""
        with self._lock:
            scene = self._scene
            if scene is None:
                return
            is_new = turn.index != scene.newest
            scene.newest = turn.index
            if is_new and turn.role == "assistant" and not turn.tool_calls:
                scene.turns += 1
            calls = turn.tool_calls
            said = _describe(calls[-1]) if calls else last_line(turn.content)
            scene.said = said or scene.said
            if self._is_verbose:
                self._print(turn, is_new=is_new)

    def spent(self, usage: Usage) -> None:
        """See what the run has cost so far."""
        with self._lock:
            if self._scene is not None:
                self._scene.tokens = usage.input_tokens + usage.output_tokens

    def end(self) -> None:
        """See that the agent is done."""
        with self._lock:
            scene, self._scene = self._scene, None
            self._clear()
            if scene is not None and scene.is_told:
                taken = format_duration(int(scene.seconds * 1000))
                talk(f"step {scene.number} {shown(scene.role)}: ended after {taken}")

    def _show(self) -> None:
        while not self._ended.wait(_PAUSE):
            with self._lock:
                scene = self._scene
                if scene is None or scene.seconds < _DELAY:
                    continue
                if self._width is not None:
                    talk_over(scene.line(), self._width)
                    self._has_line = True
                elif scene.seconds >= _LONG and not scene.is_told and self._announces:
                    scene.is_told = True
                    who = f"step {scene.number} {scene.role} ({scene.agent})"
                    talk(f"{shown(who)}: at work")

    def _print(self, turn: Turn, *, is_new: bool) -> None:
        self._clear()
        head = f"{turn.role}: " if is_new else ""
        if turn.content.strip():
            talk(f"  {head}{turn.content.rstrip()}")
        for call in turn.tool_calls or ():
            talk(f"  {shown(_describe(call))}")

    def _clear(self) -> None:
        if self._width is not None and self._has_line:
            talk_over("", self._width)
            self._has_line = False


def _describe(call: ToolCall) -> str:
    """Write a tool's use in one line: its name and its first text."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    texts = (value for value in arguments.values() if isinstance(value, str))
    first = first_line(next(texts, "")) or ""
    return f"{call.name} {first[:_ARGUMENT_CHARS]}".strip()
