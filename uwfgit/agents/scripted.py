"""Kind ``scripted``: replies from a YAML file, for the demo, tests and dry runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from uwfgit.agents.base import AgentReply, AgentRequest, Failure, Turn, Usage
from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import ConfigError
from uwfgit.model.yaml.core import parse_yaml
from uwfgit.store.canonical import Json
from uwfgit.store.files import read_plain

ScriptEntry = tuple[str, ...]
"""A reply, then the answers to its corrections; the last one repeats."""


class Script(Struct, frozen=True, kw_only=True):
    """A script's content: replies by role, or steps in the order they come."""

    file: Path
    replies: Mapping[str, tuple[ScriptEntry, ...]]
    steps: tuple[tuple[str, ScriptEntry], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAgent:
    """Says what the script holds for the place the thread's record is at."""

    label: str
    script: Script
    kind: str = field(default="scripted", init=False)
    has_sessions: bool = field(default=False, init=False)
    tells_cost: bool = field(default=True, init=False)

    def run(self, request: AgentRequest) -> AgentReply:
        """Return the scripted reply; a script that does not fit is a failure."""
        found = _find_entry(self.script, request)
        if isinstance(found, Failure):
            return AgentReply(text="", failure=found)
        text = found[min(request.correction, len(found) - 1)]
        turn = Turn(index=0, role="assistant", content=text, at_ms=request.now_ms())
        usage = Usage(
            turns=1, input_tokens=0, output_tokens=0, duration_ms=0, cost_usd=None
        )
        return AgentReply(text=text, turns=(turn,), usage=usage)


def _find_entry(script: Script, request: AgentRequest) -> ScriptEntry | Failure:
    count = request.count_replies()
    if script.steps is not None:
        return _find_step(script, script.steps, role=request.role, index=count.of_all)
    entries = script.replies.get(request.role)
    if entries is None:
        roles = ", ".join(script.replies) or "none"
        return _failure(script, f"has no replies of role '{request.role}' ({roles})")
    if count.of_role >= len(entries):
        end = f"ends at number {len(entries)} of role '{request.role}'"
        return _failure(script, f"{end}, asked for number {count.of_role + 1}")
    return entries[count.of_role]


def _find_step(
    script: Script, steps: Sequence[tuple[str, ScriptEntry]], *, role: str, index: int
) -> ScriptEntry | Failure:
    asked = f"asked for number {index + 1}, of role '{role}'"
    if index >= len(steps):
        return _failure(script, f"ends at number {len(steps)}, {asked}")
    scripted_role, entry = steps[index]
    if scripted_role != role:
        return _failure(script, f"has role '{scripted_role}' there, {asked}")
    return entry


def _failure(script: Script, message: str) -> Failure:
    return Failure(phase="agent", message=f"script '{script.file.name}' {message}")


def read_script(path: Path) -> Script:
    """Read a script file; what it holds is parsed once, until it changes.

    Raises:
        ConfigError: It cannot be read, or does not have a script's shape.
        InvalidError: It is not YAML; carries file, line and column.
    """
    try:
        data = read_plain(path, most=YAML_MAX_BYTES)
    except OSError as exc:
        raise ConfigError(
            f"cannot read the script: {exc.strerror}", source=path
        ) from exc
    return _parse_script(path, data)


@lru_cache(maxsize=8)
def _parse_script(path: Path, data: bytes) -> Script:
    # A long run asks for its agent at every step; parsing costs more than a step.
    content = parse_yaml(data, file=str(path)).value
    if not isinstance(content, dict):
        raise _misshapen(path, None, "must be a mapping with `replies` or `steps`")
    names = [name for name in content if not name.startswith("x-")]
    if names == ["steps"]:
        steps = tuple(
            _read_step(path, f"steps[{index}]", step)
            for index, step in enumerate(_read_list(path, "steps", content["steps"]))
        )
        return Script(file=path, replies={}, steps=steps)
    replies = content.get("replies")
    if names != ["replies"] or not isinstance(replies, dict):
        raise _misshapen(path, None, "must hold either `replies` by role, or `steps`")
    return Script(
        file=path,
        replies={
            role: _read_entries(path, f"replies.{role}", entries)
            for role, entries in replies.items()
        },
    )


def _read_step(path: Path, key: str, step: Json) -> tuple[str, ScriptEntry]:
    if not isinstance(step, dict) or set(step) != {"role", "output"}:
        raise _misshapen(path, key, "must hold `role` and `output`")
    role = step["role"]
    if not isinstance(role, str):
        raise _misshapen(path, f"{key}.role", "must be text")
    return role, _read_entry(path, f"{key}.output", step["output"])


def _read_entries(path: Path, key: str, entries: Json) -> tuple[ScriptEntry, ...]:
    return tuple(
        _read_entry(path, f"{key}[{index}]", entry)
        for index, entry in enumerate(_read_list(path, key, entries))
    )


def _read_entry(path: Path, key: str, entry: Json) -> ScriptEntry:
    texts = [entry] if isinstance(entry, str) else _read_list(path, key, entry)
    if not texts:
        raise _misshapen(path, key, "must hold at least one text")
    found = [text for text in texts if isinstance(text, str)]
    if len(found) != len(texts):
        raise _misshapen(path, key, "must be text, or a list of texts")
    return tuple(found)


def _read_list(path: Path, key: str, value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise _misshapen(path, key, "must be a list")
    return value


def _misshapen(path: Path, key: str | None, message: str) -> ConfigError:
    return ConfigError(message, source=path, key=key)
