"""Kind ``gemini``: Gemini CLI, headless, with its events as they come."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from uwfgit.agents.base import Usage
from uwfgit.agents.clis.cli import Cli, Invocation
from uwfgit.agents.clis.session_files import LocatedFiles, Place
from uwfgit.agents.clis.transcript import Transcript
from uwfgit.agents.foreign_json import Event, flatten, read_api_error, read_event
from uwfgit.model.memory.memory import is_file_name

_BEGAN: Final = "1970-01-01T00-00"
_EXITS: Final = {
    41: "it has no login: set GEMINI_API_KEY, or run `gemini` once and log in",
    42: "it refuses what it was given",
    44: "its sandbox failed",
    52: "its configuration is broken",
    53: "it reached its limit of turns",
    54: "a tool failed for good",
    55: "it does not trust this folder: add `--skip-trust` to the agent's args",
}


def _arguments(call: Invocation) -> list[str]:
    """Return the arguments; tools are chosen by its policies, turns by its settings."""
    session = (
        ["--resume", call.session] if call.session else ["--session-id", call.new_id]
    )
    return [
        *("--output-format", "stream-json"),
        *session,
        *(["--model", call.model] if call.model else []),
        *call.args,
    ]


def _read_message(run: Transcript, event: Event) -> None:
    if event.text("role") != "assistant":
        return
    if event.flag("delta"):
        run.stream(event.text("content"))
    else:
        run.say(event.text("content"))


def _read_end(run: Transcript, event: Event) -> None:
    stats = event.part("stats")
    run.usage = Usage(
        turns=sum(turn.role == "assistant" for turn in run.turns),
        input_tokens=stats.number("input_tokens"),
        output_tokens=stats.number("output_tokens"),
        duration_ms=stats.number("duration_ms"),
        cost_usd=None,
        cache_read_tokens=stats.number("cached"),
    )
    models = stats.part("models").value
    run.model = next(iter(models), run.model)
    run.finish()
    if event.text("status") != "success":
        message, code = read_api_error(event.text("error", "message"))
        run.http_status = code or None
        run.fail(message)


_READERS: Final[Mapping[str, Callable[[Transcript, Event], None]]] = {
    "init": lambda run, event: run.note_session(
        event.text("session_id"), model=event.text("model")
    ),
    "message": _read_message,
    "tool_use": lambda run, event: run.call(
        event.text("tool_id"), event.text("tool_name"), event.raw("parameters")
    ),
    "tool_result": lambda run, event: run.result(
        event.text("tool_id"),
        flatten(event.raw("output")) or event.text("error", "message"),
    ),
    "error": lambda run, event: run.remark(event.text("message")),
    "result": _read_end,
}


_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PROJECTS_BYTES: Final = 4 * 1024 * 1024
_WORD: Final = re.compile(r"[^0-9a-z]+")


def _locate(session: str, cwd: Path, environment: Mapping[str, str]) -> Place:
    """Find a session's newest file, else name one: they are sorted by project.

    A project is named as Gemini CLI would; where it does not, the session is refused.
    """
    base = Path(environment.get("HOME", "/")) / ".gemini"
    root = os.path.realpath(cwd)
    word = _WORD.sub("-", Path(root).name.lower()).strip("-") or "project"
    project = base / "tmp" / (_find_project(base, root) or word)
    short = session[:8]
    found = sorted((project / "chats").glob(f"session-*-{short}.jsonl"))
    file = found[-1] if found else project / "chats" / f"session-{_BEGAN}-{short}.jsonl"
    return Place(base=base, file=file, marker=(project / ".project_root", root))


def _find_project(base: Path, root: str) -> str | None:
    """Look up what Gemini CLI calls a folder."""
    try:
        with (base / "projects.json").open("rb") as file:
            known = read_event(file.read(_PROJECTS_BYTES).decode(errors="replace"))
    except OSError:
        return None
    name = known.text("projects", root) if known is not None else ""
    return name if is_file_name(name) and "/" not in name else None


CLI: Final = Cli(
    kind="gemini",
    install="npm install -g @google/gemini-cli",
    login="set GEMINI_API_KEY, or run `gemini` once and log in",
    update="npm install -g @google/gemini-cli@latest",
    options=("--session-id", "--resume", "--output-format"),
    arguments=_arguments,
    readers=_READERS,
    event_name=lambda event: event.text("type"),
    terminal="result",
    streams=True,
    explain_exit=_EXITS,
    exit_statuses={status % 256: status for status in (400, 401, 403, 429, 500, 503)},
    session=_UUID,
    session_files=lambda _: LocatedFiles(locate=_locate),
)
