"""The named scripts: one for each way a model's API can behave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tests.agents.fake_api.moves import (
    BadJson,
    Call,
    Cut,
    Drip,
    Fail,
    Hang,
    Move,
    Say,
    Script,
)
from tests.agents.fake_api.wire import Request

GOOD: Final = "---\n$status: done\n---\n\nThe work is done.\n"
PROSE: Final = "I looked into it and everything is fine."
CALL: Final = Call(name="read_file", arguments={"path": "README.md"})


def answer(text: str = GOOD) -> Script:
    """Say the same every time."""
    return always(Say(text=text))


def always(move: Move) -> Script:
    """Make the same move every time."""
    return lambda _: move


def in_turn(moves: Sequence[Move]) -> Script:
    """Make the moves one after the other; the last one repeats."""
    return lambda request: moves[min(request.index, len(moves) - 1)]


def tool_call(call: Call = CALL, text: str = GOOD) -> Script:
    """Ask for a tool; when its result is there, answer."""

    def play(request: Request) -> Move:
        if request.asked.is_after_tool:
            return Say(text=text)
        return Say(text="Let me look.", calls=(call,))

    return play


def tool_loop(call: Call = CALL) -> Script:
    """Ask for a tool for ever."""
    return always(Say(calls=(call,)))


def hang() -> Script:
    """Take the request and say nothing."""
    return always(Hang())


def slow_drip(text: str = GOOD, *, pause_seconds: float = 0.2) -> Script:
    """Answer in small pieces, each after a pause."""
    say = Say(text=text, piece_chars=8)
    return always(Drip(say=say, pause_seconds=pause_seconds))


def cut_stream(text: str = GOOD) -> Script:
    """Answer half, then drop the connection."""
    return always(Cut(say=Say(text=text, piece_chars=8)))


def fail(
    status: int,
    *,
    message: str | None = None,
    times: int | None = None,
    retry_after: str | None = None,
    text: str = GOOD,
) -> Script:
    """Refuse, ``times`` times (always when ``None``), then answer."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    refusal = Fail(
        status=status, message=message or f"refused with {status}", headers=headers
    )
    if times is None:
        return always(refusal)
    return in_turn([*[refusal] * times, Say(text=text)])


def bad_json() -> Script:
    """Answer with something that is not JSON."""
    return always(BadJson())


def huge_answer(size: int = 50 * 1024 * 1024) -> Script:
    """Answer with this many characters."""
    return always(Say(text="lorem ipsum " * (size // 12), piece_chars=65_536))


def no_frontmatter(text: str = PROSE) -> Script:
    """Answer in prose, whatever is said about it."""
    return answer(text)


def after_corrections(count: int = 2, text: str = GOOD) -> Script:
    """Answer in prose ``count`` times, then well."""
    return in_turn([*[Say(text=PROSE)] * count, Say(text=text)])


MODES: Final[dict[str, Callable[[], Script]]] = {
    "answer": answer,
    "tool-call": tool_call,
    "tool-loop": tool_loop,
    "hang": hang,
    "slow-drip": slow_drip,
    "cut-stream": cut_stream,
    "400": lambda: fail(400, message="prompt is too long: 300000 tokens > 200000"),
    "401": lambda: fail(401, message="invalid x-api-key"),
    "429": lambda: fail(429, message="rate limited", retry_after="1"),
    "500": lambda: fail(500, message="internal error"),
    "529": lambda: fail(529, message="overloaded"),
    "bad-json": bad_json,
    "huge-answer": huge_answer,
    "no-frontmatter": no_frontmatter,
    "after-two-corrections": after_corrections,
}
"""The modes by name, for the command line and for tables of mode by kind."""
