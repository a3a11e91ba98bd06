"""Which processes belong to an agent's run; the only place that reads ``/proc``.

A killed process group is not enough: shells that agents start live in sessions of
their own, and lose their parent when the agent dies first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
PS_COLUMNS: Final = "pid=,ppid=,pgid=,stat=,time=,lstart="
_PS_FIELDS: Final = 5
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A live process; two are the same when pid and start time are.

    ``seconds`` is the processor time of it and of its children that ended.
    """

    pid: int
    started: str
    parent: int = field(compare=False)
    group: int = field(compare=False)
    session: int = field(compare=False)
    seconds: float = field(default=0.0, compare=False)


Table = Mapping[int, Process]


def has_proc() -> bool:
    """Whether this system shows its processes as files."""
    return (PROC / "self" / "stat").exists()


def read_table() -> Table:
    """List all live processes from ``/proc``; zombies are not among them."""
    found = (_read_process(entry) for entry in PROC.iterdir() if entry.name.isdecimal())
    return {process.pid: process for process in found if process is not None}


def _read_process(folder: Path) -> Process | None:
    try:
        text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name, in parentheses, may hold anything, parentheses too.
    state, parent, group, session, *rest = text.rpartition(")")[2].split()
    if state in "ZX":
        return None
    return Process(
        pid=int(folder.name),
        parent=int(parent),
        group=int(group),
        session=int(session),
        started=rest[15],
        seconds=sum(int(each) for each in rest[7:11]) / _TICKS,
    )


def parse_ps(text: str) -> Table:
    """Read the output of ``ps -A -o`` with ``PS_COLUMNS``; it knows no sessions."""
    table = {}
    for line in text.splitlines():
        fields = line.split(maxsplit=_PS_FIELDS)
        if len(fields) <= _PS_FIELDS or fields[3].startswith("Z"):
            continue
        pid, parent, group = (int(field) for field in fields[:3])
        table[pid] = Process(
            pid=pid,
            parent=parent,
            group=group,
            session=0,
            started=fields[_PS_FIELDS],
            seconds=_read_time(fields[4]),
        )
    return table


def _read_time(text: str) -> float:
    """Read ``ps``'s processor time: ``[[DD-]HH:]MM:SS[.CC]``."""
    days, _, clock = text.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = 60 * seconds + float(part)
    return seconds + 86_400 * int(days or 0)


def find_marked(table: Table, mark: str | None) -> set[Process]:
    """Find the processes whose environment holds the line ``mark``.

    A run's mark is new for every run, so this also finds what has left both the
    session and its parents. Other users' processes cannot be read and are not found.
    """
    if mark is None or not has_proc():
        return set()
    wanted = mark.encode(errors="surrogateescape")
    if wanted in _read_environment("self"):
        # Handed down to this program itself, so it tells no run from another.
        return set()
    return {
        process for pid, process in table.items() if wanted in _read_environment(pid)
    }


def _read_environment(pid: int | str) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def find_members(
    table: Table, *, root: int, is_root_ours: bool, also: Iterable[Process]
) -> set[Process]:
    """Find a run's processes: the root, its session and group, and all below them.

    Args:
        table: All processes there are.
        root: The pid the run began with.
        is_root_ours: False once it was reaped; the pid may then be a stranger's.
        also: Members found before; they count as long as they live.
    """
    members = set(also) & set(table.values())
    if is_root_ours or root not in table:
        members |= {
            process
            for process in table.values()
            if root in (process.pid, process.group, process.session)
        }
    children: dict[int, list[Process]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process)
    waiting = list(members)
    while waiting:
        for child in children.get(waiting.pop().pid, ()):
            if child not in members:
                members.add(child)
                waiting.append(child)
    return members
