"""A thread of very many steps: everything works on it, and no step costs more.

``python tests/stress/long.py --steps 5000`` makes one step by step, lets git and
uwf pack, check, push, clone and verify it, reads it in every way, forks it in the
middle, pokes it and goes on; and tells how long each of that took.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.builders import git, reply
from tests.stress.forked import IMPORTED, call, list_threads, prepare_user
from uwfgit.cli.share import cmd_remote, cmd_sync, cmd_verify
from uwfgit.cli.thread import cmd_compare, cmd_step
from uwfgit.ids import ThreadId
from uwfgit.store.canonical import Json

_IMPORTED: Final = (
    *IMPORTED,
    *(cmd_compare, cmd_remote, cmd_step, cmd_sync, cmd_verify),
)
_CHUNKS: Final = 10
_STEP = re.compile(r"^step ", re.MULTILINE)


@dataclass(slots=True, kw_only=True)
class Long:
    """The thread, its store, and how long everything took."""

    folder: Path
    steps: int
    thread: ThreadId
    took: list[tuple[str, float]] = field(default_factory=list)
    per_step: list[float] = field(default_factory=list)

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.took.append((what, time.monotonic() - began))

    def uwf(self, *words: str) -> str:
        """Run a command that must succeed."""
        with self.timed("uwf " + " ".join(words).replace(self.thread, "T")[:60]):
            code, out = call(*words)
        assert code == 0, (words, out[-2000:])
        return out

    def json(self, *words: str) -> Json:
        return json.loads(self.uwf(*words, "--json"))

    def git(self, store: Path, *words: str) -> str:
        with self.timed("git " + " ".join(words).replace(self.thread, "T")[:60]):
            return git(store, *words)

    @property
    def agent(self) -> list[str]:
        return ["--agent", f"scripted:{self.folder / 'replies.json'}"]


def run_long(folder: Path, steps: int) -> Long:
    """Make the thread and do everything with it.

    Raises:
        AssertionError: Something failed, or is not there.
    """
    prepare_user(folder)
    worker = [reply(plan=f"plan {number}") for number in range(steps)]
    critic = [reply("bad", reason=f"reason {number}") for number in range(steps)]
    replies = {"replies": {"worker": worker, "critic": critic}}
    (folder / "replies.json").write_text(json.dumps(replies))
    assert call("thread", "start", "work.yaml", "-p", "a long one")[0] == 0
    (thread,) = list_threads(folder)
    long = Long(folder=folder, steps=steps, thread=thread)
    _grow(long)
    for do in (_read, _pack, _read, _share, _go_on):
        do(long)
    return long


def _grow(long: Long) -> None:
    left, chunk = long.steps, max(1, long.steps // _CHUNKS)
    while left:
        count = min(chunk, left)
        began = time.monotonic()
        code, out = call("thread", "exec", long.thread, "-c", str(count), *long.agent)
        long.per_step.append((time.monotonic() - began) / count)
        assert (code, len(_STEP.findall(out))) == (0, count), out[-2000:]
        left -= count


def _read(long: Long) -> None:
    thread = long.thread
    assert long.json("thread", "show", thread)["steps"] == long.steps
    assert len(long.json("thread", "list")["items"]) == 1
    assert f"reason {long.steps // 2 - 1}" in long.uwf("thread", "read", thread)
    assert len(long.json("step", "list", thread)["items"]) == long.steps
    assert long.json("step", "show", f"{thread}:1")["number"] == 1
    log = long.uwf("thread", "log", thread, "--oneline")
    assert len(log.splitlines()) == long.steps + 1
    assert long.json("verify", thread)["ok"]


def _pack(long: Long) -> None:
    fsck = ("fsck", "--strict", "--no-dangling", "--no-progress")
    long.git(long.store, *fsck)
    long.uwf("gc")
    long.git(long.store, "gc", "--quiet")
    long.uwf("gc", "--prune=now", "--yes")
    long.git(long.store, *fsck)
    long.uwf("reindex")
    long.uwf("doctor")


def _share(long: Long) -> None:
    branch = f"thread/{long.thread}"
    for name in ("ours.git", "plain.git"):
        git(long.store, "init", "--quiet", "--bare", str(long.folder / name))
    ours, plain = long.folder / "ours.git", long.folder / "plain.git"
    long.uwf("remote", "add", "origin", str(ours))
    long.uwf("push", "origin", long.thread)
    long.uwf("push", "origin", long.thread)
    long.git(long.store, "push", "--quiet", "--no-verify", str(plain), branch, "main")
    long.git(plain, "fsck", "--strict", "--no-dangling", "--no-progress")
    tips = [git(path, "rev-parse", branch) for path in (long.store, ours, plain)]
    assert len(set(tips)) == 1
    clone = str(long.folder / "clone")
    long.uwf("clone", str(ours), clone)
    shown = long.json("--store", clone, "thread", "show", long.thread)
    assert shown["steps"] == long.steps
    assert long.json("--store", clone, "verify", long.thread)["ok"]
    long.uwf("pull")


def _go_on(long: Long) -> None:
    thread, middle = long.thread, long.steps // 2
    fork = long.json("thread", "fork", thread, "--at", str(middle))["threadId"]
    assert long.json("thread", "show", fork)["steps"] == middle
    long.uwf("thread", "exec", fork, *long.agent)
    again = ["--agent", f"stdio:{long.folder / 'agent'}"]
    long.uwf("thread", "poke", thread, "-p", "again", *again)
    long.uwf("thread", "exec", thread, *again)
    assert long.json("thread", "show", thread)["steps"] == long.steps + 1
    for each in (thread, fork):
        assert long.json("verify", each)["ok"]
    long.uwf("push", "origin", thread)
    long.git(long.store, "fsck", "--strict", "--no-dangling", "--no-progress")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    steps: int = parser.parse_args().steps
    with tempfile.TemporaryDirectory(prefix="long-") as scratch:
        long = run_long(Path(scratch) / "it", steps)
        os.chdir("/")
    write: Callable[[str], object] = sys.stdout.write
    for number, seconds in enumerate(long.per_step):
        write(f"{seconds * 1000:>9.1f} ms a step, tenth {number + 1}\n")
    for what, seconds in long.took:
        write(f"{seconds:>9.2f} s  {what}\n")
    write(f"{steps} steps: all of it works\n")


if __name__ == "__main__":
    _main()
