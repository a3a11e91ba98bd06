"""Looking on from another terminal: the turns of a running thread as they come."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import write
from uwfgit.cli.frame.screen import shown, shown_lines
from uwfgit.errors import StateError
from uwfgit.ids import ThreadId

if TYPE_CHECKING:
    from uwfgit.model.ledger.ledger import Ledger

_PAUSE: Final = 0.2
_BETWEEN_SECONDS: Final = 1.0
"""Between two steps of one run nothing runs for a moment."""
_SHOWN_RESULT: Final = 400


def find_running_thread(context: CommandContext) -> ThreadId:
    """Return the newest thread that runs.

    Raises:
        StateError: None does.
    """
    from uwfgit.model.ledger.standing import find_running

    running = find_running(context.open_ledger().store)
    if not running:
        raise StateError(
            "no thread is running", hint="`uwf thread list` shows all there are"
        )
    return ThreadId(max(running))


def follow_live(context: CommandContext, thread: str, *, role: str | None) -> None:
    """Print the turns of a thread's running steps until nothing of it runs."""
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.model.thread.tip import load_tip

    ledger = context.open_ledger()
    found = resolve_thread(ledger, thread)
    printer = _Printer(context)
    for turn in _iter_turns(ledger, found):
        if role in (None, turn["of"]):
            printer.show(turn)
    printer.end()
    tip = load_tip(ledger.store, found)
    if not context.output.is_text:
        end = {"threadId": found, "status": tip.state.status, "steps": tip.state.steps}
        write(json.dumps(end) + "\n")
        return
    context.output.say(f"{found} is {tip.state.status}")
    context.output.say(f"look at it: uwf thread show {found}")


def _iter_turns(ledger: Ledger, thread: ThreadId) -> Iterator[dict[str, Any]]:
    """Yield each turn, and each further part of the newest one, once."""
    from uwfgit.engine.ask.live import read_live
    from uwfgit.model.ledger.standing import is_running

    told: dict[tuple[int, int], int] = {}
    silent_since: float | None = None
    while True:
        runs = is_running(ledger.store, thread)
        for turn in read_live(ledger.store, thread) if runs else ():
            key = (turn["step"], turn["index"])
            length = told.get(key)
            content = turn["content"]
            if length is None or len(content) > length:
                told[key] = len(content)
                yield {
                    **turn,
                    "content": content[length or 0 :],
                    "isNew": length is None,
                }
        if runs:
            silent_since = None
        elif silent_since is None:
            silent_since = time.monotonic()
        elif time.monotonic() - silent_since >= _BETWEEN_SECONDS:
            return
        time.sleep(_PAUSE)


class _Printer:
    """Writes turns for people, or one JSON object a line."""

    def __init__(self, context: CommandContext) -> None:
        self._is_text = context.output.is_text
        self._step: int | None = None
        self._is_open = False

    def show(self, turn: dict[str, Any]) -> None:
        """Write a turn, or what was added to it."""
        if not self._is_text:
            write(json.dumps(turn, ensure_ascii=False) + "\n")
            return
        if turn["step"] != self._step:
            self._step = turn["step"]
            self._break()
            write(f"step {turn['step']} {shown(turn['of'])}\n")
        if turn["isNew"]:
            self._break()
            write(f"{shown(turn['role'])}: ")
        if turn["content"]:
            text = shown_lines(turn["content"])
            write(text)
            self._is_open = not text.endswith("\n")
        for call in turn["toolCalls"] or ():
            self._break()
            write(f"{_call_text(call)}\n")
        if turn["isNew"] and not turn["content"]:
            self._is_open = False

    def end(self) -> None:
        """End the line that is open."""
        self._break()

    def _break(self) -> None:
        if self._is_open:
            write("\n")
        self._is_open = False


def _call_text(call: dict[str, Any]) -> str:
    arguments = json.dumps(call.get("arguments"), ensure_ascii=False)
    result = call.get("result")
    lines = [f"{call.get('name')} {arguments}"]
    if isinstance(result, str) and result:
        lines.append(f"  -> {result[:_SHOWN_RESULT]}")
    return "\n".join(shown(line) for line in lines)
