"""Kind ``codex``: OpenAI Codex, headless (``codex exec``)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from uwfgit.agents.base import Usage
from uwfgit.agents.clis.cli import Cli, Invocation, LoginStatus
from uwfgit.agents.clis.session_files import LocatedFiles, Place
from uwfgit.agents.clis.transcript import Transcript, ignore
from uwfgit.agents.foreign_json import Event, flatten, read_api_error
from uwfgit.constants import MAX_TIME
from uwfgit.model.thread.step import is_grown, usage_since
from uwfgit.store.files import read_plain

_STATUS: Final = re.compile(r"status:? (\d{3})")
_WAIT: Final = re.compile(
    r"try again in (?:(\d{1,9}) days?)?,? ?(?:(\d{1,9}) hours?)?,? ?"
    r"(?:(\d{1,9}) minutes?)?,? ?(?:(\d{1,9}(?:\.\d{1,9})?) ?s)?",
    re.IGNORECASE,
)
_LIMIT_WORDS: Final = "hit your usage limit"


def _arguments(call: Invocation) -> list[str]:
    """Return the arguments: those of ``exec`` stand before ``resume``, which has few.

    There is no choosing of tools and no limit of turns.
    """
    return [
        "exec",
        "--json",
        *(["--model", call.model] if call.model else []),
        *call.args,
        *(["resume", call.session] if call.session else []),
        "-",
    ]


def _read_item(run: Transcript, event: Event) -> None:
    item = event.part("item")
    kind, is_whole = item.text("type"), event.text("type") == "item.completed"
    if kind in _ITEMS:
        _ITEMS[kind](run, item, is_whole)
    elif kind not in _WORDS:
        run.note_unknown(f"item {kind}")
    elif is_whole:
        _WORDS[kind](run, item)


def _read_command(run: Transcript, item: Event, is_whole: bool) -> None:  # noqa: FBT001 - one of a table
    _call(run, item, "shell", {"command": item.raw("command")})
    if not is_whole:
        return
    if item.text("status") == "declined":
        run.deny(item.text("id"), "shell", {"command": item.raw("command")})
    code = item.raw("exit_code")
    output = item.text("aggregated_output")
    run.result(item.text("id"), f"{output}\n[exit code {code}]" if code else output)


def _read_change(run: Transcript, item: Event, is_whole: bool) -> None:  # noqa: FBT001 - one of a table
    _call(run, item, "file_change", {"changes": item.raw("changes")})
    if is_whole:
        if item.text("status") == "declined":
            run.deny(item.text("id"), "file_change", {"changes": item.raw("changes")})
        run.result(item.text("id"), item.text("status"))


def _read_tool(run: Transcript, item: Event, is_whole: bool) -> None:  # noqa: FBT001 - one of a table
    name = f"{item.text('server')}.{item.text('tool')}".strip(".")
    _call(run, item, name or item.text("type"), item.raw("arguments"))
    if is_whole:
        content = item.raw("result", "content")
        told = flatten(content) or item.text("error", "message")
        run.result(item.text("id"), told)


def _call(run: Transcript, item: Event, name: str, arguments: object) -> None:
    if not run.has_call(item.text("id")):
        run.call(item.text("id"), name, arguments)


_WORDS: Final[Mapping[str, Callable[[Transcript, Event], None]]] = {
    "agent_message": lambda run, item: run.say(item.text("text")),
    "reasoning": lambda run, item: run.say("", reasoning=item.text("text")),
    "error": lambda run, item: run.remark(item.text("message")),
    "todo_list": ignore,
}
"""Items that count when they are whole."""
_ITEMS: Final[Mapping[str, Callable[[Transcript, Event, bool], None]]] = {
    "command_execution": _read_command,
    "file_change": _read_change,
    "mcp_tool_call": _read_tool,
    "collab_tool_call": _read_tool,
    "web_search": lambda run, item, _: _call(
        run, item, "web_search", {"query": item.raw("query")}
    ),
}


def _read_end(run: Transcript, event: Event) -> None:
    """Note the end; tokens are told of the whole session."""
    told = event.part("usage")
    run.session_total = Usage(
        turns=0,
        input_tokens=told.number("input_tokens"),
        output_tokens=told.number("output_tokens"),
        duration_ms=0,
        cost_usd=None,
        cache_read_tokens=told.number("cached_input_tokens"),
        cache_write_tokens=told.number("cache_write_input_tokens"),
    )
    total = run.session_total
    before = run.before if is_grown(run.before, total) else None
    grown = usage_since(before, total) or replace(total, input_tokens=0)
    turns = sum(turn.role == "assistant" for turn in run.turns)
    run.usage = replace(grown, turns=turns, duration_ms=run.duration_ms)
    run.finish()


def _read_failure(run: Transcript, event: Event) -> None:
    told = event.text("error", "message")
    message, code = read_api_error(told)
    status = _STATUS.search(told)
    run.http_status = int(status[1]) if status else code or run.http_status
    run.finish()
    run.fail(message)
    wait = _WAIT.search(message)
    if wait and any(wait.groups()):
        days, hours, minutes, seconds = (float(each or 0) for each in wait.groups())
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        run.retry_at_ms = run.now_ms() + int(total * 1000)
    elif _LIMIT_WORDS in message:
        run.http_status = 429


def _read_error(run: Transcript, event: Event) -> None:
    """Keep a complaint: it may be the last word, or only a further try."""
    status = _STATUS.search(event.text("message"))
    if status:
        run.http_status = int(status[1])


_UUID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}(?:-[0-9a-f]{4})-[0-9a-f]{12}"
)


def _home(environment: Mapping[str, str]) -> Path:
    config = environment.get("CODEX_HOME")
    return Path(config) if config else Path(environment.get("HOME", "/")) / ".codex"


def _locate(session: str, cwd: Path, environment: Mapping[str, str]) -> Place:  # noqa: ARG001 - one of a kind's functions
    """Find a session's file, else name one: the id tells when the session began.

    One of the far future is taken to be of 1970.
    """
    base = _home(environment)
    found = sorted(
        base.glob(f"sessions/[0-9]*/[0-9]*/[0-9]*/rollout-*-{session}.jsonl")
    )
    if found:
        return Place(base=base, file=found[-1])
    milliseconds = int(session.replace("-", "")[:12], 16)
    if milliseconds >= MAX_TIME * 1000:
        milliseconds = 0
    began = datetime.fromtimestamp(milliseconds / 1000, UTC)
    name = f"rollout-{began:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
    return Place(base=base, file=base / "sessions" / f"{began:%Y/%m/%d}" / name)


_KEYS: Final = ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN")
_ELSEWHERE: Final = re.compile(r"provider|profile|base_url|^--oss$|^-p")
_SYSTEM: Final = (
    Path("/etc/codex/config.toml"),
    Path("/etc/codex/managed_config.toml"),
)
_CONFIG_BYTES: Final = 4 * 1024 * 1024


def _may_do_without(args: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether a key in a variable, or another provider, may take a login's place.

    ``codex login status`` counts neither; ``codex exec`` runs with both.
    """
    if any(environment.get(name) for name in _KEYS):
        return True
    said = [*args]
    for file in (_home(environment) / "config.toml", *_SYSTEM):
        try:
            said.append(read_plain(file, most=_CONFIG_BYTES).decode(errors="replace"))
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return any(_ELSEWHERE.search(each) for each in said)


CLI: Final = Cli(
    kind="codex",
    install="npm install -g @openai/codex",
    login="run `codex login`, or set CODEX_API_KEY",
    update="codex update",
    help=("exec", "--help"),
    options=("--json",),
    login_status=LoginStatus(
        words=("login", "status"),
        denial=re.compile(r"^Not logged in", re.MULTILINE),
        may_do_without=_may_do_without,
    ),
    arguments=_arguments,
    readers={
        "thread.started": lambda run, event: run.note_session(event.text("thread_id")),
        "turn.started": ignore,
        "item.started": _read_item,
        "item.updated": _read_item,
        "item.completed": _read_item,
        "turn.completed": _read_end,
        "turn.failed": _read_failure,
        "error": _read_error,
    },
    event_name=lambda event: event.text("type"),
    terminal="turn.completed",
    resume=("resume",),
    session=_UUID,
    session_files=lambda _: LocatedFiles(
        locate=_locate,
        # One that differs, of the same time.
        new_id=lambda session: f"{session[:14]}7{str(uuid.uuid4())[15:]}",
    ),
)
