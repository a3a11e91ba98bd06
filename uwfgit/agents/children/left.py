"""What a killed program's agent left at work: found by the run's mark, and ended."""

from __future__ import annotations

import os
import signal
import time
from typing import Final

from uwfgit.agents.children import tree
from uwfgit.agents.children.child import TICK
from uwfgit.agents.children.process import MARK
from uwfgit.agents.children.stopping import KILL_SECONDS, STOP_SECONDS, try_kill
from uwfgit.agents.children.vitals import read_processes

_NO_ROOT: Final = -1


def end_run(run: str) -> int:
    """End all processes of a run, by its ``UWF_STEP``; count those there were.

    The mark is new for every run, so no other process is met, and none where other
    processes' environments cannot be read. First they are asked, then killed.
    """
    members = _find(run, set())
    found = len(members)
    for number, seconds in (
        (signal.SIGTERM, STOP_SECONDS),
        (signal.SIGKILL, KILL_SECONDS),
    ):
        for member in members:
            try_kill(os.kill, member.pid, number)
        deadline = time.monotonic() + seconds
        while members and time.monotonic() < deadline:
            time.sleep(TICK)
            members = _find(run, members)
    return found


def _find(run: str, known: set[tree.Process]) -> set[tree.Process]:
    table = read_processes()
    also = known | tree.find_marked(table, f"{MARK}={run}")
    return tree.find_members(table, root=_NO_ROOT, is_root_ours=False, also=also)
