"""Many ``thread start`` beside each other: ``python tests/stress/starts.py 64 8``."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.builders import git
from tests.stress.forked import list_threads, open_ledger, prepare_user, read_all, start
from uwfgit.ids import ThreadId
from uwfgit.model.thread.tip import load_tip

_THREAD: Final = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")


def run_starts(folder: Path, count: int, *, at_once: int) -> list[ThreadId]:
    """Start so many threads, always ``at_once`` of them beside each other.

    Raises:
        AssertionError: One failed, or is not there.
    """
    prepare_user(folder)
    running: list[tuple[int, int]] = []
    found: list[ThreadId] = []
    for number in range(count):
        words = ("thread", "start", "work.yaml", "-p", f"task {number}")
        running.append(start(*words))
        if len(running) == at_once:
            found.append(_finish(*running.pop(0)))
    found += [_finish(*each) for each in running]
    assert sorted(found) == sorted(list_threads(folder))
    ledger = open_ledger(folder)
    for thread in found:
        assert load_tip(ledger.store, thread).state.status == "idle"
    git(folder / "store", "fsck", "--strict", "--no-dangling", "--no-progress")
    return found


def _finish(pid: int, reader: int) -> ThreadId:
    out = read_all(reader)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    names = set(_THREAD.findall(out))
    assert (code, len(names)) == (0, 1), out
    return ThreadId(names.pop())


def _main() -> None:
    count, at_once = (int(word) for word in (*sys.argv[1:], "64", "8")[:2])
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="starts-") as scratch:
        found = run_starts(Path(scratch) / "it", count, at_once=at_once)
    took = time.monotonic() - began
    sys.stdout.write(f"{len(found)} threads, {at_once} at a time, in {took:.1f} s\n")


if __name__ == "__main__":
    _main()
