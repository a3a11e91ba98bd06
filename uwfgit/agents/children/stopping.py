"""Ending a child process with everything it started; the only place that kills."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Final

from uwfgit.agents.children import tree
from uwfgit.agents.children.child import TICK, Child
from uwfgit.agents.children.vitals import read_processes

STOP_SECONDS: Final = 5.0
"""Between the request to end and the kill."""
KILL_SECONDS: Final = 2.0


def stop_child(child: Child, mark: str | None) -> None:
    """End the child and all it started: ask, wait, kill; keep reading meanwhile."""
    try:
        child.members = find_members(child, mark)
        _signal(child, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while _is_alive(child) and time.monotonic() < deadline:
            child.pump()
            child.members = find_members(child, None)
    except (KeyboardInterrupt, SystemExit):
        # Asked a second time: no more waiting.
        pass
    finally:
        child.members = find_members(child, mark)
        kill_members(child, mark)


def kill_members(child: Child, mark: str | None) -> None:
    """Kill the members found so far, and those they start meanwhile."""
    deadline = time.monotonic() + KILL_SECONDS
    while _is_alive(child) and time.monotonic() < deadline:
        _signal(child, signal.SIGKILL)
        child.pump()
        # One that was just being forked is found in the next round.
        child.members = find_members(child, mark)
    drain(child, TICK)


def _is_alive(child: Child) -> bool:
    return bool(child.members) or child.process.poll() is None


def find_members(child: Child, mark: str | None) -> set[tree.Process]:
    """Find the live processes of a child's run, those found before among them."""
    table = read_processes()
    return tree.find_members(
        table,
        root=child.process.pid,
        is_root_ours=child.process.poll() is None,
        also=child.members | tree.find_marked(table, mark),
    )


def _signal(child: Child, number: signal.Signals) -> None:
    """Signal each member once: a second request would mean another thing to it."""
    root = child.process.pid
    # Not reaped, so the group is surely its own; reaches what is just being forked.
    has_group = child.process.poll() is None
    if has_group:
        try_kill(os.killpg, root, number)
    for member in child.members:
        if not (has_group and member.group == root):
            try_kill(os.kill, member.pid, number)


def try_kill(
    kill: Callable[[int, int], None], target: int, number: signal.Signals
) -> None:
    """Signal one process or a group, if it is there and ours."""
    try:
        kill(target, number)
    except OSError:
        # Gone already, or another user's.
        return


def drain(child: Child, seconds: float) -> None:
    """Read on until the outputs are closed, at most so long."""
    deadline = time.monotonic() + seconds
    while child.is_speaking and time.monotonic() < deadline:
        child.pump()
