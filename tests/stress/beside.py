"""Writers beside git's own housekeeping: nothing is lost, nobody fails.

``python tests/stress/beside.py 60`` lets them run for that many seconds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.builders import git
from tests.stress.forked import (
    call,
    list_threads,
    open_ledger,
    prepare_user,
    read_all,
    start,
)
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.ledger import find_node
from uwfgit.model.thread.record import open_record

_HASH = re.compile(r"^[0-9A-F][0-9A-HJKMNP-TV-Z]{12}$", re.MULTILINE)
_STEP = re.compile(r"^step ", re.MULTILINE)
_KEEPING: Final = (
    ["gc", "--quiet"],
    ["repack", "-a", "-d", "--quiet"],
    ["pack-refs", "--all"],
    ["gc", "--quiet", "--prune=2.weeks.ago"],
)

Command = Callable[[int], list[str]]


@dataclass(slots=True)
class Tally:
    """What was done, what of it failed, and what was reported."""

    done: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    steps: Counter[ThreadId] = field(default_factory=Counter)
    nodes: set[Hash] = field(default_factory=set)
    keeping: int = 0


def _commands(agent: str, threads: list[ThreadId]) -> dict[str, Command]:
    """Give what runs beside each other: by name, the words of the n-th time."""
    commands: dict[str, Command] = {}
    for thread in threads:
        commands[f"exec {thread}"] = _exec(thread, agent)
    commands["start"] = lambda n: ["thread", "start", "work.yaml", "-p", f"task {n}"]
    for name in ("cas put", "cas put of the same"):
        commands[name] = lambda n: ["cas", "put-text", f"text {n}"]
    commands["cas put of another"] = lambda n: ["cas", "put-text", f"other {n}"]
    commands["list"] = lambda _: ["thread", "list", "--all"]
    commands["read"] = lambda _: ["thread", "read", threads[0]]
    return commands


def _exec(thread: ThreadId, agent: str) -> Command:
    return lambda _: ["thread", "exec", thread, "-c", "4", "--agent", agent]


@contextmanager
def _housekeeping(store: Path) -> Iterator[list[str]]:
    """Let git, and ``uwf gc``, tidy up in a loop; gives what failed."""
    stop = store.parent / "stop"
    log = store.parent / "keeping.log"
    pid = os.fork()
    if not pid:
        try:
            _keep_house(store, stop, log)
        finally:
            os._exit(0)
    failed: list[str] = []
    try:
        yield failed
    finally:
        stop.touch()
        os.waitpid(pid, 0)
        lines = log.read_text().splitlines()
        failed += [line for line in lines if not line.startswith("0 ")]
        failed.insert(0, str(len(lines)))


def _keep_house(store: Path, stop: Path, log: Path) -> None:
    with log.open("w") as file:
        while not stop.exists():
            for words in _KEEPING:
                done = subprocess.run(
                    ["git", f"--git-dir={store}", *words],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                said = done.stderr.replace("\n", " ")
                file.write(f"{done.returncode} git {words} {said}\n")
            for flags in ([], ["--prune"], ["--prune=now", "--yes"]):
                code, out = call("gc", *flags)
                file.write(f"{code} uwf gc {flags} {out.strip() if code else ''}\n")


def run_beside(folder: Path, seconds: float) -> Tally:
    """Let writers and housekeeping run beside each other for a while.

    Raises:
        AssertionError: Something that was reported is not there.
    """
    prepare_user(folder)
    for number in range(2):
        assert call("thread", "start", "work.yaml", "-p", f"first {number}")[0] == 0
    commands = _commands(f"stdio:{folder / 'agent'}", list_threads(folder))
    tally = Tally()
    with _housekeeping(folder / "store") as failed:
        _write(commands, seconds, tally)
    tally.keeping = int(failed.pop(0))
    tally.failed += failed
    _check(folder, tally)
    return tally


def _write(commands: dict[str, Command], seconds: float, tally: Tally) -> None:
    deadline = time.monotonic() + seconds
    number = 0
    while time.monotonic() < deadline:
        number += 1
        running = {name: start(*words(number)) for name, words in commands.items()}
        for name in commands:
            _reap(name, running, tally)


def _reap(name: str, running: dict[str, tuple[int, int]], tally: Tally) -> None:
    pid, reader = running.pop(name)
    out = read_all(reader)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    kind = name.split(" ", maxsplit=1)[0] if name.startswith("exec") else name
    tally.done[kind] += 1
    if code:
        tally.failed.append(f"{code} {name}: {out.strip()}")
    if name.startswith("exec"):
        tally.steps[ThreadId(name.removeprefix("exec "))] += len(_STEP.findall(out))
    tally.nodes.update(Hash(found) for found in _HASH.findall(out) if "cas" in name)


def _check(folder: Path, tally: Tally) -> None:
    git(folder / "store", "fsck", "--strict", "--no-dangling", "--no-progress")
    ledger = open_ledger(folder)
    for thread, count in tally.steps.items():
        record = open_record(ledger.store, thread)
        assert record.tip.state.steps == count
        assert sum(1 for _ in record.iter_steps()) == count
    assert len(list_threads(folder)) == tally.done["start"] + 2
    for node in tally.nodes:
        assert find_node(ledger, node) is not None


def _main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory(prefix="beside-") as scratch:
        tally = run_beside(Path(scratch) / "it", seconds)
    lines = [f"{number:>5} x {kind}" for kind, number in tally.done.items()]
    lines.append(f"{sum(tally.steps.values()):>5} steps reported, all there")
    lines.append(f"{len(tally.nodes):>5} nodes put, all there")
    lines.append(f"{tally.keeping:>5} x git gc, repack, pack-refs, uwf gc meanwhile")
    lines.append(f"{len(tally.failed):>5} failures")
    sys.stdout.write("\n".join([*lines, *tally.failed, ""]))


if __name__ == "__main__":
    _main()
