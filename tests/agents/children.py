"""Requests and real child processes for the agents' tests."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from uwfgit.agents.base import AgentRequest, ReplyCount, Turn, Usage
from uwfgit.agents.children.process import ProcessResult, TimeLimits, run_process
from uwfgit.ids import ThreadId

THREAD = ThreadId("01JABCDEFGHJKMNPQRSTVWXYZ0")
ENVIRONMENT: Mapping[str, str] = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def run_python(
    code: str,
    *,
    cwd: Path,
    prompt: str = "",
    idle: float = 20,
    wall: float | None = None,
    on_line: Callable[[str], None] | None = None,
    extra: Mapping[str, str] | None = None,
    is_over: Callable[[], bool] | None = None,
) -> ProcessResult:
    """Run a Python text as an agent's command."""
    return run_process(
        [sys.executable, "-c", code],
        prompt=prompt,
        cwd=cwd,
        environment={**ENVIRONMENT, **(extra or {})},
        limits=TimeLimits(idle_seconds=idle, wall_seconds=wall),
        on_line=on_line,
        is_over=is_over,
    )


def make_request(  # noqa: PLR0913 - a builder of tests
    *,
    cwd: Path,
    prompt: str = "Do it.",
    role: str = "developer",
    correction: int = 0,
    count: ReplyCount | None = None,
    environment: Mapping[str, str] = ENVIRONMENT,
    idle: float = 20,
    wall: float | None = None,
    on_turn: Callable[[Turn], None] | None = None,
    session: str | None = None,
    total: Usage | None = None,
) -> AgentRequest:
    """Make a request with defaults for all that a test does not look at."""
    return AgentRequest(
        thread=THREAD,
        role=role,
        number=1,
        prompt=prompt,
        edge_prompt=prompt,
        cwd=cwd,
        environment=environment,
        correction=correction,
        session_id=session,
        session_total=total,
        count_replies=lambda: count or ReplyCount(of_role=0, of_all=0),
        idle_seconds=idle,
        wall_seconds=wall,
        now_ms=lambda: 1_700_000_000_000,
        on_turn=on_turn,
    )


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_for_death(pid: int) -> bool:
    """Tell whether a process is gone, at once or within half a minute."""
    deadline = time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_alive(pid)
