"""Kind ``adapter``: a command that stores its own node and prints the node's hash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from uwfgit.agents.base import AgentReply, AgentRequest, Failure, Usage
from uwfgit.agents.children.complaints import one_line
from uwfgit.agents.children.process import ProcessResult
from uwfgit.agents.foreign_json import Event, clean_value, read_event
from uwfgit.agents.stdio import find_missing_command, run_command
from uwfgit.ids import find_hash
from uwfgit.model.yaml.dump import dump_yaml

_LINE_SHOWN_CHARS: Final = 200
_USAGE_CODES: Final = (1, 2)
_OLDER: Final = "the older protocol: --thread, --role, --prompt"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterAgent:
    """A command of the adapter protocol: ``COMMAND ARGS… THREAD-ID ROLE``."""

    label: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float | None = None
    kind: str = field(default="adapter", init=False)
    has_sessions: bool = field(default=False, init=False)

    def find_missing(self, environment: Mapping[str, str], *, cwd: Path) -> str | None:
        """Say why the command cannot be started; ``None`` when it can."""
        return find_missing_command(self.argv, self.env, environment, cwd=cwd)

    def run(self, request: AgentRequest) -> AgentReply:
        """Run the command once; the hash on its last line is the reply's ``node``.

        A command that asks for ``--thread`` and ``--role`` instead speaks the older
        protocol and is run so.
        """
        result = self._call(request, request.thread, request.role)
        if _wants_flags(result):
            words = ("--thread", request.thread, "--role", request.role)
            prompt = ("--prompt", request.edge_prompt)
            return _read_older(self._call(request, *words, *prompt))
        before, line = _split_last_line(result.stdout)
        told = read_event(line)
        named = line if told is None else told.text("stepHash")
        node = find_hash(named) if result.failure is None else None
        failure = result.failure
        if failure is None and node is None:
            shown = f"'{one_line(line, _LINE_SHOWN_CHARS)}'" if line else "missing"
            message = (
                f"the adapter's last line must be a node's hash, but is {shown}; a "
                "plain command is 'stdio:COMMAND'"
            )
            failure = Failure(phase="agent", message=message)
        return AgentReply(
            text=result.stdout if node is None else before,
            exit_code=result.exit_code,
            warnings=result.warnings,
            failure=failure,
            node=node,
        )

    def _call(self, request: AgentRequest, *words: str) -> ProcessResult:
        named = {**request.environment, "UWF_AGENT": self.label}
        return run_command(
            (*self.argv, *words),
            replace(request, environment=named),
            label=self.label,
            env=self.env,
            timeout_seconds=self.timeout_seconds,
        )


def _wants_flags(result: ProcessResult) -> bool:
    """Whether a command complained of missing flags, as older adapters do."""
    if result.failure is None or result.exit_code not in _USAGE_CODES:
        return False
    said = f"{result.stdout}{result.stderr_tail}"
    return "--thread" in said and "--role" in said


def _read_older(result: ProcessResult) -> AgentReply:
    """Read what an adapter of the older protocol printed.

    Its nodes are in a store of its own, so that its answer is taken from the line
    itself, as a reply like any other.
    """
    before, line = _split_last_line(result.stdout)
    if result.failure is not None:
        message = f"{result.failure.message} ({_OLDER})"
        failure = Failure(phase=result.failure.phase, message=message)
        return AgentReply(
            text=result.stdout, exit_code=result.exit_code, failure=failure
        )
    found = read_event(line) or Event({})
    fields = clean_value(found.raw("frontmatter"))
    if found.flag("isError"):
        told = one_line(
            str(found.raw("errorMessage") or "no reason"), _LINE_SHOWN_CHARS
        )
        failed: Failure | None = Failure(phase="agent", message=told)
    elif not isinstance(fields, dict) or not isinstance(found.raw("body"), str):
        shown = one_line(line, _LINE_SHOWN_CHARS)
        message = f"its last line has no frontmatter and body: '{shown}' ({_OLDER})"
        failed = Failure(phase="agent", message=message)
    else:
        failed = None
        before = f"---\n{dump_yaml(fields)}---\n\n{found.text('body')}"
    return AgentReply(
        text=before,
        usage=_read_usage(found),
        exit_code=result.exit_code,
        warnings=(*result.warnings, f"the adapter was run by {_OLDER}"),
        failure=failed,
    )


def _read_usage(found: Event) -> Usage | None:
    if not isinstance(found.raw("usage"), dict):
        return None
    usage = found.part("usage")
    return Usage(
        turns=usage.number("turns"),
        input_tokens=usage.number("inputTokens"),
        output_tokens=usage.number("outputTokens"),
        # It is told in seconds.
        duration_ms=Event({"ms": 1000 * (usage.amount("duration") or 0)}).number("ms"),
        cost_usd=None,
    )


def _split_last_line(text: str) -> tuple[str, str]:
    """Return the last line that is not blank, and all that stands before it."""
    said = text.rstrip()
    start = said.rfind("\n") + 1
    return said[:start], said[start:].strip()
