"""What is seen of an agent while the command that runs it waits.

On a terminal one line, renewed: who works, how much, how long, what was said last.
Elsewhere a line when a step takes long, and one at its end. With ``-v`` each turn.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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


@contextmanager
def watching(context: CommandContext) -> Iterator[_Watcher | None]:
    """Look on while steps run; ``None`` when nobody is there who would be told."""
    quiet = context.options.quiet
    width = talk_width(quiet=quiet)
    tells = not quiet and context.output.is_text
    if width is None and not tells:
        yield None
        return
    watcher = _Watcher(
        width=width, tells=tells, is_verbose=tells and context.options.verbose > 0
    )
    thread = threading.Thread(target=watcher.show, daemon=True)
    thread.start()
    try:
        yield watcher
    finally:
        watcher.ended.set()
        thread.join()
        # Ctrl-C may have come between a step's beginning and its end.
        watcher.end()


class _Watcher(Struct, kw_only=True):
    """Looks on for people; leaves no line behind when a step ends."""

    width: int | None
    """Of the terminal; ``None`` when there is none."""
    tells: bool
    is_verbose: bool
    """Whether each turn is told."""
    ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _scene: _Scene | None = None
    _line_width: int = 0
    """Of the line that stands on the terminal; 0 when none does."""

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
            if self.is_verbose:
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
            if self._line_width:
                self._clear()
            if scene is not None and scene.is_told:
                taken = format_duration(int(scene.seconds * 1000))
                talk(f"step {scene.number} {shown(scene.role)}: ended after {taken}")

    def show(self) -> None:
        """Renew the line, or tell of a long step, until watching has ended."""
        announces = self.tells and not self.is_verbose
        while not self.ended.wait(_PAUSE):
            with self._lock:
                scene = self._scene
                if scene is None or scene.seconds < _DELAY:
                    continue
                if self.width is not None:
                    talk_over(scene.line(), self.width)
                    self._line_width = self.width
                elif scene.seconds >= _LONG and announces and not scene.is_told:
                    scene.is_told = True
                    who = f"step {scene.number} {scene.role} ({scene.agent})"
                    talk(f"{shown(who)}: at work")

    def _print(self, turn: Turn, *, is_new: bool) -> None:
        if self._line_width:
            self._clear()
        head = f"{turn.role}: " if is_new else ""
        if turn.content.strip():
            talk(f"  {head}{turn.content.rstrip()}")
        for call in turn.tool_calls or ():
            talk(f"  {shown(_describe(call))}")

    def _clear(self) -> None:
        talk_over("", self._line_width)
        self._line_width = 0


def _describe(call: ToolCall) -> str:
    """Write a tool's use in one line: its name and its first text."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    texts = (value for value in arguments.values() if isinstance(value, str))
    first = first_line(next(texts, "")) or ""
    return f"{call.name} {first[:_ARGUMENT_CHARS]}".strip()
