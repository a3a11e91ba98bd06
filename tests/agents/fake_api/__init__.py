"""A model's API on loopback, for real agents and real HTTP clients under test.

It speaks four protocols, one a module: Anthropic messages, OpenAI responses, OpenAI
chat completions and Gemini. What it says is decided by a ``Script``: a function from
the request it heard to a ``Move``. The named scripts of ``modes`` cover what a test
needs: answers, tool calls, silence, cut streams, refusals, broken JSON.

    with FakeApi(modes.answer(text="---\\n$status: done\\n---\\n")) as api:
        run(["claude", "-p"], env={"ANTHROPIC_BASE_URL": api.url, ...})
    assert "the task" in api.requests[0].text

By hand: ``python -m tests.agents.fake_api --mode answer --port 8099``.
"""

from __future__ import annotations

from tests.agents.fake_api import modes
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
from tests.agents.fake_api.server import FakeApi, tools_only
from tests.agents.fake_api.wire import Request

__all__ = [
    "BadJson",
    "Call",
    "Cut",
    "Drip",
    "Fail",
    "FakeApi",
    "Hang",
    "Move",
    "Request",
    "Say",
    "Script",
    "modes",
    "tools_only",
]
