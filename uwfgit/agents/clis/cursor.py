"""Kind ``cursor``: Cursor's agent, headless.

Its program could not be had for tests: what is read here is what others recorded of
its events, which are those of Claude Code but for its tool calls. It tells no usage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from uwfgit.agents.clis.cli import Cli, Invocation
from uwfgit.agents.clis.transcript import Transcript, ignore
from uwfgit.agents.foreign_json import Event, flatten


def _arguments(call: Invocation) -> list[str]:
    """Return the arguments; without ``--force`` it only proposes edits."""
    return [
        *("-p", "--output-format", "stream-json"),
        *(["--resume", call.session] if call.session else []),
        *(["--model", call.model] if call.model else []),
        *call.args,
        call.prompt,
    ]


def _read_tool(run: Transcript, event: Event) -> None:
    call = event.text("call_id")
    for name, tool in event.part("tool_call").value.items():
        what = Event(tool) if isinstance(tool, Mapping) else Event({})
        if not run.has_call(call):
            run.call(call, name.removesuffix("ToolCall"), what.raw("args"))
        if event.text("subtype") != "completed":
            continue
        rejected = what.part("result", "rejected")
        if rejected.value:
            run.deny(call, "tool", rejected.raw("command") or rejected.raw("path"))
        run.result(call, flatten(what.raw("result")) or str(what.raw("result") or ""))


def _read_result(run: Transcript, event: Event) -> None:
    """Note the end; its text is all that was said in the run, run together."""
    run.note_session(event.text("session_id"))
    run.finish(None if run.last_said else event.text("result"))
    if event.flag("is_error") or event.text("subtype") != "success":
        run.fail(event.text("result") or event.text("subtype"))


_READERS: Final[Mapping[str, Callable[[Transcript, Event], None]]] = {
    "system": lambda run, event: run.note_session(
        event.text("session_id"), model=event.text("model")
    ),
    "user": ignore,
    "thinking": ignore,
    "assistant": lambda run, event: run.say(flatten(event.raw("message", "content"))),
    "tool_call": _read_tool,
    "result": _read_result,
}


CLI: Final = Cli(
    kind="cursor",
    install="curl https://cursor.com/install -fsS | bash",
    login="run `cursor-agent login`, or set CURSOR_API_KEY",
    update="cursor-agent update",
    options=("--output-format", "--resume"),
    arguments=_arguments,
    readers=_READERS,
    event_name=lambda event: event.text("type"),
    terminal="result",
    prompt_on_stdin=False,
)
