"""Kind ``stdio``: any command with the prompt on stdin and markdown on stdout."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.agents.base import AgentReply, AgentRequest, Failure, Turn
from uwfgit.agents.children.complaints import check_command, one_line
from uwfgit.agents.children.process import (
    STDERR_SHOWN_CHARS,
    ProcessResult,
    TimeLimits,
    run_process,
)

_WORD: Final = re.compile(r"[A-Za-z0-9+/=]{16}")
_HELD_CHARS: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioAgent:
    """A command that reads a prompt and prints its reply.

    ``timeout_seconds`` is how long one run may take, silent or not.
    """

    label: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_seconds: float | None = None
    kind: str = field(default="stdio", init=False)
    has_sessions: bool = field(default=False, init=False)

    def find_missing(self, environment: Mapping[str, str], *, cwd: Path) -> str | None:
        """Say why the command cannot be started; ``None`` when it can."""
        return find_missing_command(self.argv, self.env, environment, cwd=cwd)

    def run(self, request: AgentRequest) -> AgentReply:
        """Run the command once; all it printed is the reply, one turn.

        The turn is told line by line, or as many at once as come together.
        """
        speech = _Speech(tell=request.on_turn, now_ms=request.now_ms)
        result = run_command(
            self.argv,
            request,
            label=self.label,
            env=self.env,
            timeout_seconds=self.timeout_seconds,
            on_line=speech.hear if request.on_turn else None,
        )
        speech.end()
        failure, text = result.failure, result.stdout
        if failure is None and not text.strip():
            tail = one_line(result.stderr_tail, STDERR_SHOWN_CHARS)
            message = f"the agent said nothing{': ' if tail else ''}{tail}"
            failure = Failure(phase="agent", message=message)
        at_ms = request.now_ms()
        turn = Turn(index=0, role="assistant", content=text, at_ms=at_ms)
        return AgentReply(
            text=text,
            turns=(turn,) if text else (),
            exit_code=result.exit_code,
            warnings=result.warnings,
            failure=failure,
        )


def find_missing_command(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    cwd: Path,
) -> str | None:
    """Say why a configured command cannot be started; ``None`` when it can."""
    given = merge_environment(env, environment)
    return check_command(argv[0], cwd=cwd, environment=given)


def run_command(
    argv: tuple[str, ...],
    request: AgentRequest,
    *,
    label: str,
    env: Mapping[str, str],
    timeout_seconds: float | None,
    on_line: Callable[[str], None] | None = None,
) -> ProcessResult:
    """Run a configured command for a request, under the nearer of the limits.

    The agent's own variables win over the request's, but never over ``UWF_*`` ones,
    and its ``PATH`` stands behind the first folder of the request's.
    """
    return run_process(
        argv,
        prompt=request.prompt,
        cwd=request.cwd,
        environment=merge_environment(env, request.environment),
        limits=time_limits(request, label=label, timeout_seconds=timeout_seconds),
        on_line=on_line,
        joins_lines=True,
    )


def time_limits(
    request: AgentRequest, *, label: str, timeout_seconds: float | None
) -> TimeLimits:
    """Return the nearer of an agent's own limit and the general ones.

    An agent's timeout is how long one run may take, silent or not.
    """
    if timeout_seconds is None:
        return TimeLimits(
            idle_seconds=request.idle_seconds, wall_seconds=request.wall_seconds
        )
    own = f"agents.{label}.timeoutSeconds"
    wall = request.wall_seconds
    if wall is not None and wall <= timeout_seconds:
        return TimeLimits(
            idle_seconds=timeout_seconds, idle_setting=own, wall_seconds=wall
        )
    return TimeLimits(
        idle_seconds=timeout_seconds,
        idle_setting=own,
        wall_seconds=timeout_seconds,
        wall_setting=own,
    )


class _Speech(Struct, kw_only=True):
    """What a command says, told in parts of whole lines.

    Each part is masked alone. A line that ends in a long word waits for the next:
    keys and encoded text are wrapped like that.
    """

    tell: Callable[[Turn], None] | None
    now_ms: Callable[[], int]
    _held: str = ""

    def hear(self, lines: str) -> None:
        self._held += f"{lines}\n"
        if len(self._held) >= _HELD_CHARS or not _WORD.fullmatch(lines[-16:]):
            self.end()

    def end(self) -> None:
        if self._held and self.tell is not None:
            turn = Turn(
                index=0, role="assistant", content=self._held, at_ms=self.now_ms()
            )
            self._held = ""
            self.tell(turn)


def merge_environment(
    env: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return a child's environment: the agent's variables, never over ``UWF_*``."""
    own = {name: value for name, value in env.items() if not name.startswith("UWF_")}
    first = given.get("PATH", "").partition(os.pathsep)[0]
    if first and "PATH" in own:
        own["PATH"] = f"{first}{os.pathsep}{own['PATH']}"
    return {**env, **given, **own}
