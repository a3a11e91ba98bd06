"""Kind ``claude-code``: Claude Code, headless (``claude -p``)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from uwfgit.agents.base import Usage
from uwfgit.agents.clis.cli import Cli, Invocation, LoginStatus
from uwfgit.agents.clis.session_files import LocatedFiles, Place
from uwfgit.agents.clis.transcript import NOTICE, Transcript, ignore
from uwfgit.agents.foreign_json import Event, flatten
from uwfgit.model.thread.step import NO_USAGE

_LIMITED: Final = 429
_EPOCH: Final = re.compile(r"limit reached\|(\d{10})")


def _arguments(call: Invocation) -> list[str]:
    """Return the arguments; partial messages are what tells it from a hung one."""
    session = (
        ["--resume", call.session] if call.session else ["--session-id", call.new_id]
    )
    return [
        "-p",
        *("--output-format", "stream-json", "--verbose", "--include-partial-messages"),
        *session,
        *(["--model", call.model] if call.model else []),
        *(["--max-turns", str(call.max_turns)] if call.max_turns else []),
        *([] if call.tools is None else ["--tools", ",".join(call.tools)]),
        *call.args,
    ]


def _read_system(run: Transcript, event: Event) -> None:
    subtype = event.text("subtype")
    if subtype == "init":
        run.note_session(event.text("session_id"), model=event.text("model"))
        run.version = event.text("claude_code_version") or run.version
    elif subtype == "api_retry":
        run.http_status = event.number("error_status") or None
    elif subtype == "permission_denied":
        run.deny(event.text("tool_use_id"), event.text("tool_name"), {})


def _read_assistant(run: Transcript, event: Event) -> None:
    run.go_on()
    message = event.part("message")
    is_synthetic = message.text("model") == "<synthetic>"
    role = "subagent" if event.text("parent_tool_use_id") else "assistant"
    if is_synthetic:
        role = NOTICE
        run.is_logged_out = event.text("error") == "authentication_failed"
    else:
        run.model = message.text("model") or run.model
    key = message.text("id")
    for block in message.parts("content"):
        kind = block.text("type")
        if kind == "text":
            run.say(block.text("text"), role=role, key=key)
        elif kind == "thinking":
            run.say("", role=role, key=key, reasoning=block.text("thinking"))
        elif kind in {"tool_use", "server_tool_use", "mcp_tool_use"}:
            name, call = block.text("name"), block.text("id")
            run.call(call, name, block.raw("input"), role=role, key=key)


def _read_user(run: Transcript, event: Event) -> None:
    for block in event.part("message").parts("content"):
        if block.text("type") == "tool_result":
            run.result(block.text("tool_use_id"), flatten(block.raw("content")))


def _read_stream(run: Transcript, event: Event) -> None:
    """Count tokens as they come, for a run that does not get to its end."""
    part = event.part("event")
    usage = part.part("message", "usage")
    if part.text("type") == "message_delta":
        usage = Event({"output_tokens": part.number("usage", "output_tokens")})
    elif part.text("type") != "message_start":
        return
    else:
        usage = Event({**usage.value, "output_tokens": 0})
    turns = 1 if part.text("type") == "message_start" else 0
    so_far = run.usage or NO_USAGE
    run.usage = Usage(
        turns=so_far.turns + turns,
        input_tokens=so_far.input_tokens + _input_tokens(usage),
        output_tokens=so_far.output_tokens + usage.number("output_tokens"),
        duration_ms=0,
        cost_usd=None,
    )


def _read_limit(run: Transcript, event: Event) -> None:
    info = event.part("rate_limit_info")
    kind = info.text("rateLimitType") or "the"
    if info.text("status") == "allowed_warning":
        run.remark(f"the vendor warns: {kind} limit is nearly reached")
    elif info.text("status") == "rejected" and info.number("resetsAt"):
        run.retry_at_ms = info.number("resetsAt") * 1000


def _read_result(run: Transcript, event: Event) -> None:
    run.note_session(event.text("session_id"))
    run.http_status = event.number("api_error_status") or run.http_status
    for denial in event.parts("permission_denials"):
        tool, call = denial.text("tool_name"), denial.text("tool_use_id")
        run.deny(call, tool, denial.raw("tool_input"))
    _count(run, event)
    run.finish(event.text("result"))
    if event.text("stop_reason") in {"max_tokens", "refusal"}:
        run.remark(f"the model stopped early: {event.text('stop_reason')}")
    if not event.flag("is_error") and event.text("subtype") == "success":
        return
    errors = event.raw("errors")
    told = "; ".join(map(str, errors)) if isinstance(errors, list) else ""
    message = event.text("result") or told or event.text("subtype")
    epoch = _EPOCH.search(message)
    if epoch:
        run.retry_at_ms = int(epoch[1]) * 1000
    is_limit = run.http_status == _LIMITED or run.retry_at_ms is not None
    run.fail(message, phase="limit" if is_limit else "agent")


def _count(run: Transcript, event: Event) -> None:
    """Note tokens and cost of this run alone; the cost told is the whole session's."""
    usage = event.part("usage")
    total = event.amount("total_cost_usd")
    run.session_total = Usage(
        turns=0, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=total
    )
    run.usage = Usage(
        turns=event.number("num_turns"),
        input_tokens=_input_tokens(usage),
        output_tokens=usage.number("output_tokens"),
        duration_ms=event.number("duration_ms"),
        cost_usd=_cost(run, event, total),
        cache_read_tokens=usage.number("cache_read_input_tokens"),
        cache_write_tokens=usage.number("cache_creation_input_tokens"),
    )


def _input_tokens(usage: Event) -> int:
    """Count all that was read, from the cache or not."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(usage.number(name) for name in names)


def _cost(run: Transcript, event: Event, total: float | None) -> float | None:
    since = event.part("model_usage_since_last_result")
    costs = [
        Event({"of": each}).amount("of", "costUSD") for each in since.value.values()
    ]
    if "model_usage_since_last_result" in event.value:
        return round(sum(cost for cost in costs if cost is not None), 10)
    if total is None:
        return None
    before = run.before.cost_usd if run.before else None
    # A session whose totals began anew (`conversation_reset`) has cost this much.
    if before is None or before > total:
        return total
    return round(total - before, 10)


_READERS: Final[Mapping[str, Callable[[Transcript, Event], None]]] = {
    "system": _read_system,
    "assistant": _read_assistant,
    "user": _read_user,
    "stream_event": _read_stream,
    "rate_limit_event": _read_limit,
    "result": _read_result,
    **dict.fromkeys(
        (
            "auth_status",
            "conversation_reset",
            "keep_alive",
            "prompt_suggestion",
            "tool_progress",
            "tool_use_summary",
        ),
        ignore,
    ),
}


_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SLUG: Final = re.compile(r"[^0-9A-Za-z]")


def _locate(session: str, cwd: Path, environment: Mapping[str, str]) -> Place:
    """Name a session's file: Claude Code sorts them by working directory."""
    config = environment.get("CLAUDE_CONFIG_DIR")
    base = Path(config) if config else Path(environment.get("HOME", "/")) / ".claude"
    project = base / "projects" / _SLUG.sub("-", os.path.realpath(cwd))
    return Place(base=base, file=project / f"{session}.jsonl", folder=project / session)


CLI: Final = Cli(
    kind="claude-code",
    install="npm install -g @anthropic-ai/claude-code",
    login="run `claude` once and log in, or set ANTHROPIC_API_KEY",
    update="claude update",
    options=("--include-partial-messages", "--session-id", "--resume"),
    login_status=LoginStatus(
        words=("auth", "status"),
        denial=re.compile(r'"loggedIn":\s*false'),
        known_by="auth",
        # A file of settings may name a program that prints the key.
        may_do_without=lambda args, _: any(
            each.startswith("--settings") for each in args
        ),
    ),
    arguments=_arguments,
    readers=_READERS,
    event_name=lambda event: event.text("type"),
    streams=True,
    tells_version=True,
    terminal="result",
    tells_cost=True,
    session=_UUID,
    session_files=lambda _: LocatedFiles(locate=_locate),
)
