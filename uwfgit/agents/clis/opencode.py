"""Kind ``opencode``: opencode, headless (``opencode run``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from uwfgit.agents.base import Usage
from uwfgit.agents.clis.cli import Cli, Invocation
from uwfgit.agents.clis.exported_files import ExportedFiles
from uwfgit.agents.clis.transcript import Transcript
from uwfgit.agents.foreign_json import Event
from uwfgit.model.thread.step import NO_USAGE

_GOES_ON: Final = "tool-calls"


def _arguments(call: Invocation) -> list[str]:
    """Return the arguments; permissions that would be asked for are refused."""
    return [
        *("run", "--format", "json"),
        *(["--session", call.session] if call.session else []),
        *(["--model", call.model] if call.model else []),
        *call.args,
    ]


def _read_start(run: Transcript, event: Event) -> None:
    run.note_session(event.text("sessionID"))
    run.go_on()


def _read_text(run: Transcript, event: Event) -> None:
    run.note_session(event.text("sessionID"))
    part = event.part("part")
    run.say(part.text("text"), key=part.text("messageID"))


def _read_tool(run: Transcript, event: Event) -> None:
    part = event.part("part")
    call, state = part.text("callID"), part.part("state")
    run.call(call, part.text("tool"), state.raw("input"), key=part.text("messageID"))
    told = state.text("output") or state.text("error")
    run.result(call, told)
    if state.text("status") == "error" and "permission" in told.lower():
        run.deny(call, part.text("tool"), state.raw("input"))


def _read_finish(run: Transcript, event: Event) -> None:
    """Add one answer's tokens; the run ends with one that asks for no tool."""
    part = event.part("part")
    tokens = part.part("tokens")
    before = run.usage or NO_USAGE
    read, written = tokens.number("cache", "read"), tokens.number("cache", "write")
    cost = part.amount("cost") or None
    run.usage = Usage(
        turns=before.turns + 1,
        input_tokens=before.input_tokens + tokens.number("input") + read + written,
        output_tokens=before.output_tokens
        + tokens.number("output")
        + tokens.number("reasoning"),
        duration_ms=run.duration_ms,
        cost_usd=before.cost_usd if cost is None else (before.cost_usd or 0) + cost,
        cache_read_tokens=(before.cache_read_tokens or 0) + read,
        cache_write_tokens=(before.cache_write_tokens or 0) + written,
    )
    if part.text("reason") != _GOES_ON:
        run.finish()
        if part.text("reason") == "length":
            run.remark("the model stopped early: length")


def _read_error(run: Transcript, event: Event) -> None:
    run.note_session(event.text("sessionID"))
    error = event.part("error")
    run.http_status = error.number("data", "statusCode") or None
    run.finish()
    run.fail(error.text("data", "message") or error.text("name"))


_READERS: Final[Mapping[str, Callable[[Transcript, Event], None]]] = {
    "step_start": _read_start,
    "text": _read_text,
    "reasoning": lambda run, event: run.say(
        "", key=event.text("part", "messageID"), reasoning=event.text("part", "text")
    ),
    "tool_use": _read_tool,
    "step_finish": _read_finish,
    "error": _read_error,
}


CLI: Final = Cli(
    kind="opencode",
    install="npm install -g opencode-ai",
    login="run `opencode auth login`",
    update="opencode upgrade",
    help=("run", "--help"),
    options=("--format", "--session"),
    arguments=_arguments,
    readers=_READERS,
    event_name=lambda event: event.text("type"),
    terminal="step_finish",
    tells_cost=True,
    resume=("--session",),
    session=re.compile(r"ses_[0-9A-Za-z]{20,64}"),
    session_files=lambda command: ExportedFiles(command=command),
)
