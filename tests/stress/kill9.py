"""Kill the program at random instants, and look at what it leaves.

``python tests/stress/kill9.py 300 [SEED]`` runs it at length. After each kill:
everything that had been reported is there, ``git fsck --strict`` is clean, no
lock of ours is held, and the next command works and leaves no lock file of git's.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))


from tests.builders import git, make_workflow, reply, workflow_data
from tests.stress.forked import (
    call,
    list_threads,
    open_ledger,
    prepare_user,
    read_all,
    start,
)
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.ledger import Ledger, find_node
from uwfgit.model.ledger.registry import load_registered
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.locks.flock import read_holder

_GOOD: Final = (0, 3)
_PRUNES: Final[tuple[list[str], ...]] = ([], ["--prune"], ["--prune=now", "--yes"])
_STEP = re.compile(r"^step (\d+) +(\S+) +(\S+)", re.MULTILINE)
_NEW = re.compile(r'"threadId": "([0-9A-Z]{26})"')
_HASH = re.compile(r"\b[0-9A-F][0-9A-HJKMNP-TV-Z]{12}\b")


@dataclass(slots=True)
class Tally:
    """What was killed where, and how much was found to be there afterwards."""

    kills: Counter[str] = field(default_factory=Counter)
    survived: Counter[str] = field(default_factory=Counter)
    leftovers: int = 0
    reported: int = 0
    git_locks: int = 0


@dataclass(slots=True)
class Harness:
    """One store, its threads, and a source of chance."""

    folder: Path
    chance: random.Random
    tally: Tally = field(default_factory=Tally)
    durations: dict[str, float] = field(default_factory=dict)
    version: int = 0

    @property
    def store_path(self) -> Path:
        return self.folder / "store"

    def prepare(self) -> None:
        prepare_user(self.folder)
        assert call("thread", "start", "work.yaml", "-p", "first")[0] == 0
        code, out = call("thread", "exec", *self.threads(), *self.agent)
        assert code == 0, out

    def ledger(self) -> Ledger:
        return open_ledger(self.folder)

    def threads(self) -> list[ThreadId]:
        return list_threads(self.folder)

    @property
    def agent(self) -> list[str]:
        return ["--agent", f"stdio:{self.folder / 'agent'}"]

    def call_and_kill(self, kind: str, words: list[str]) -> str:
        """Run a command, kill it at some instant, and give what it had reported."""
        began = time.monotonic()
        pid, reader = start(*words)
        usual = self.durations.get(kind, 0.1)
        time.sleep(self.chance.uniform(0, usual * 1.1))
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        out = read_all(reader)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        took = time.monotonic() - began
        if code == -signal.SIGKILL:
            self.tally.kills[kind] += 1
            # Later next time, until some are too late: so kills reach the end.
            self.durations[kind] = usual * 1.15
        else:
            self.tally.survived[kind] += 1
            assert code in {0, 1, 3}, (kind, code, out)
            self.durations[kind] = (usual + took) / 2
        return out


def _choose(harness: Harness) -> tuple[str, list[str], ThreadId | None]:
    chance = harness.chance
    thread = chance.choice(harness.threads())
    state = load_tip(harness.ledger().store, thread).state
    half = str(state.steps // 2)
    choices: list[tuple[str, list[str], ThreadId | None]] = [
        ("start", ["thread", "start", "work.yaml", "-p", "another", "--json"], None),
        ("fork", ["thread", "fork", thread, "--at", half, "--json"], None),
        ("workflow add", ["workflow", "add", "work.yaml"], None),
        ("cas put", ["cas", "put-text", f"text {chance.random()}"], None),
    ]
    if state.status == "idle":
        words = ["thread", "exec", thread, "-c", "3", *harness.agent]
        choices += [("exec", words, thread)] * 4
    if state.status == "suspended":
        words = ["thread", "resume", thread, *harness.agent]
        choices += [("resume", words, thread)] * 20
    if state.steps and state.status != "cancelled":
        words = ["thread", "poke", thread, "-p", "again", *harness.agent]
        choices += [("poke", words, thread)] * 2
    if state.status in {"idle", "suspended"} and len(harness.threads()) > 4:
        choices += [("cancel", ["thread", "cancel", thread], thread)] * 2
    if len(harness.threads()) > 8:
        choices.append(("rm", ["thread", "rm", thread], None))
    return chance.choice(choices)


def _before(harness: Harness, kind: str) -> None:
    chance = harness.chance
    if kind == "workflow add":
        harness.version += 1
        work = make_workflow(description=f"version {harness.version}")
        (harness.folder / "work.yaml").write_bytes(workflow_data(work))
    if chance.random() < 0.2:
        git(harness.store_path, "pack-refs", "--all")
    suspends = chance.random() < 0.15
    text = "---\n$status: $SUSPEND\nreason: why?\n---\n" if suspends else None
    (harness.folder / "worker.reply").write_text(text or reply(plan="p"))


def _check_reported(harness: Harness, kind: str, words: list[str], out: str) -> None:
    ledger = harness.ledger()
    tally = harness.tally
    if kind in {"exec", "resume", "poke"}:
        record = open_record(ledger.store, ThreadId(words[2]))
        steps = {step.number: step for step in record.iter_steps()}
        for number, role, status in _STEP.findall(out):
            assert steps[int(number)].role == role, (words, out)
            assert steps[int(number)].status == status, (words, out)
            tally.reported += 1
    elif kind in {"start", "fork"}:
        if found := _NEW.search(out):
            assert found[1] in harness.threads(), (words, out)
            tally.reported += 1
    elif kind == "workflow add" and (found := _HASH.search(out)):
        load_registered(ledger, "work", Hash(found[0]))
        tally.reported += 1
    elif kind == "cas put" and (found := _HASH.search(out)):
        assert find_node(ledger, Hash(found[0])) is not None, out
        tally.reported += 1
    elif kind == "cancel" and out.startswith("cancelled"):
        assert load_tip(ledger.store, ThreadId(words[2])).state.status == "cancelled"
        tally.reported += 1
    for thread in harness.threads():
        record = open_record(ledger.store, thread)
        assert sum(1 for _ in record.iter_steps()) == record.tip.state.steps


def _check_store(harness: Harness) -> None:
    git(harness.store_path, "fsck", "--strict", "--no-dangling", "--no-progress")
    for path in (harness.store_path / "uwf" / "locks").rglob("*"):
        if path.is_file():
            assert read_holder(path) is None, path


def _git_locks(harness: Harness) -> list[Path]:
    places = [harness.store_path, harness.store_path / "refs"]
    found = [*places[0].glob("*.lock"), *places[1].rglob("*.lock")]
    return [*found, *(harness.store_path / "logs").rglob("*.lock")]


def _check_next(harness: Harness, thread: ThreadId | None) -> None:
    harness.tally.leftovers += len(_git_locks(harness))
    words = ["cas", "put-text", f"next {harness.chance.random()}"]
    if thread is not None and thread in harness.threads():
        status = load_tip(harness.ledger().store, thread).state.status
        verb = {"idle": "exec", "suspended": "resume", "end": "resume"}.get(status)
        if verb:
            words = ["thread", verb, thread, *harness.agent]
    code, out = call(*words)
    assert code in _GOOD, (words, code, out)
    assert _git_locks(harness) == [], words


def kill_git(harness: Harness) -> None:
    """Kill a gc of git's; a lock file it leaves is named, and a person removes it."""
    command = ["git", f"--git-dir={harness.store_path}", "gc", "--quiet"]
    usual = harness.durations.setdefault("git gc", 0.3)
    process = subprocess.Popen(
        command,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(harness.chance.uniform(0, usual))
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    harness.tally.kills["git gc"] += 1
    left = _git_locks(harness)
    harness.tally.git_locks += len(left)
    for path in left:
        path.unlink()


def run_kills(
    folder: Path,
    count: int,
    *,
    seed: int,
    tell: Callable[[str], None] = lambda _: None,
) -> Tally:
    """Kill so many commands in a new store below ``folder``.

    Raises:
        AssertionError: Something was lost, or left behind.
    """
    harness = Harness(folder=folder, chance=random.Random(seed))  # noqa: S311 - the seed is printed, to do it again
    harness.prepare()
    while harness.tally.kills.total() < count:
        roll = harness.chance.random()
        if roll < 0.04:
            kill_git(harness)
            _check_store(harness)
            _check_next(harness, None)
            continue
        kind, words, thread = _choose(harness)
        if roll < 0.1:
            kind, words, thread = "gc", ["gc", *harness.chance.choice(_PRUNES)], None
        _before(harness, kind)
        out = harness.call_and_kill(kind, words)
        if kind == "gc":
            _await_git(harness)
        _check_reported(harness, kind, words, out)
        _check_store(harness)
        _check_next(harness, thread)
        if harness.tally.kills.total() % 25 == 0:
            tell(f"{harness.tally.kills.total()} kills")
    return harness.tally


def _await_git(harness: Harness) -> None:
    """Let a git that outlived its caller finish."""
    marker = f"--git-dir={harness.store_path}"
    deadline = time.monotonic() + 300
    while (
        subprocess.run(
            ["pgrep", "-f", "--", marker], capture_output=True, check=False
        ).returncode
        == 0
    ):
        assert time.monotonic() < deadline, "a git does not end"
        time.sleep(0.02)


def _main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1_000_000
    began = time.monotonic()
    _tell(f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="kill9-") as scratch:
        tally = run_kills(Path(scratch) / "it", count, seed=seed, tell=_tell)
    _tell(f"{tally.kills.total()} kills in {time.monotonic() - began:.0f} s")
    for kind, number in sorted(tally.kills.items()):
        _tell(f"  {kind:<14} {number:>4} killed, {tally.survived[kind]} were faster")
    _tell(f"{tally.reported} reports, all of them true")
    _tell(f"{tally.leftovers} locks of git's left by us, removed by the next command")
    _tell(f"{tally.git_locks} left by a killed git")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _main()
