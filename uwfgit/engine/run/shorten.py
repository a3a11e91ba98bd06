"""Make what an agent said too much of fit a record, from its middle (pure).

The start says what was asked and how the work began, the end what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from uwfgit.agents.base import ToolCall, Turn
from uwfgit.engine.ask.live import turn_payload
from uwfgit.store.canonical import encode_json

_INDENT: Final = 128
_KEPT_CHARS: Final = 1_000
"""What stays of a text that is cut."""


def cut_middle(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters, what was cut said in its place."""
    if len(text) <= limit:
        return text
    note = f"\n[{len(text) - limit:,} characters cut]\n"
    kept = max(limit - len(note), 0)
    return text[: kept - kept // 2] + note + text[len(text) - kept // 2 :]


def shorten_turns(turns: Sequence[Turn], limit: int) -> tuple[Turn, ...]:
    """Return turns whose JSON has at most ``limit`` bytes.

    Cut are results of tools first, then texts and arguments, then whole turns;
    those in the middle before those at the ends, and no more than it takes.
    """
    found: list[Turn | None] = list(turns)
    sizes = [_size(turn) for turn in turns]
    size = sum(sizes)
    order = sorted(range(len(found)), key=lambda n: abs(2 * n + 1 - len(found)))
    for cut in (_cut_results, _cut_texts, lambda _: None):
        for index in order:
            turn = found[index]
            if size <= limit or turn is None:
                break
            found[index] = cut(turn)
            size += _size(found[index]) - sizes[index]
            sizes[index] = _size(found[index])
    return tuple(turn for turn in found if turn is not None)


def _size(turn: Turn | None) -> int:
    # In the record each of some twelve lines is indented by four to ten more.
    return 0 if turn is None else len(encode_json(turn_payload(turn))) + _INDENT


def _cut(text: str | None) -> str | None:
    return None if text is None else cut_middle(text, _KEPT_CHARS)


def _cut_results(turn: Turn) -> Turn:
    return _with_calls(turn, lambda call: replace(call, result=_cut(call.result)))


def _cut_texts(turn: Turn) -> Turn:
    content = cut_middle(turn.content, _KEPT_CHARS)
    turn = replace(turn, content=content, reasoning=_cut(turn.reasoning))
    return _with_calls(turn, _cut_arguments)


def _cut_arguments(call: ToolCall) -> ToolCall:
    text = encode_json(call.arguments).decode()
    if len(text) <= _KEPT_CHARS:
        return call
    return replace(call, arguments=cut_middle(text, _KEPT_CHARS))


def _with_calls(turn: Turn, change: Callable[[ToolCall], ToolCall]) -> Turn:
    if turn.tool_calls is None:
        return turn
    return replace(turn, tool_calls=tuple(map(change, turn.tool_calls)))
