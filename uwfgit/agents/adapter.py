"""Kind ``adapter``: a command that stores its own node and prints the node's hash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from uwfgit.agents.base import AgentReply, AgentRequest, Failure
from uwfgit.agents.children.complaints import one_line
from uwfgit.agents.stdio import run_command
from uwfgit.ids import Hash, find_hash

_LINE_SHOWN_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterAgent:
    """A command of the adapter protocol: ``COMMAND ARGS… THREAD-ID ROLE``."""

    label: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float | None = None
    kind: str = field(default="adapter", init=False)
    has_sessions: bool = field(default=False, init=False)

    def run(self, request: AgentRequest) -> AgentReply:
        """Run the command once; the hash on its last line is the reply's ``node``."""
        named = {**request.environment, "UWF_AGENT": self.label}
        result = run_command(
            (*self.argv, request.thread, request.role),
            replace(request, environment=named),
            label=self.label,
            env=self.env,
            timeout_seconds=self.timeout_seconds,
        )
        before, line = _split_last_line(result.stdout)
        node = _read_hash(line) if result.failure is None else None
        return AgentReply(
            text=result.stdout if node is None else before,
            exit_code=result.exit_code,
            warnings=result.warnings,
            failure=result.failure or (None if node else _no_hash(line)),
            node=node,
        )


def _split_last_line(text: str) -> tuple[str, str]:
    """Give the last line that is not blank, and all that stands before it."""
    said = text.rstrip()
    start = said.rfind("\n") + 1
    return said[:start], said[start:].strip()


def _read_hash(line: str) -> Hash | None:
    if not line.startswith("{"):
        return find_hash(line)
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    text = value.get("stepHash")
    return find_hash(text) if isinstance(text, str) else None


def _no_hash(line: str) -> Failure:
    shown = f"'{one_line(line, _LINE_SHOWN_CHARS)}'" if line else "missing"
    message = f"the adapter's last line must be a node's hash, but is {shown}"
    return Failure(phase="agent", message=message)
