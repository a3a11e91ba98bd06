"""One run's folder, and the stores that several lines measure."""

from __future__ import annotations

import os
import random
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

import pygit2
from msgspec.structs import replace

from tests.benchmarks.measuring import run_process
from tests.builders import make_workflow, reply, workflow_data
from uwfgit.agents.base import Agent, AgentReply, AgentRequest, ToolCall, Turn, Usage
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.engine import make_engine
from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.executor import Engine, exec_thread
from uwfgit.engine.run.thread import start_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.tip import Tip
from uwfgit.store.locks.flock import lock
from uwfgit.store.repository import init_store

_AT_MS: Final = 1_800_000_000_000
_TEXT: Final = (
    "the parser reads each line once and keeps a table of offsets so that a later "
    "request seeks instead of scanning but when the file shrinks between two reads "
    "an old offset points past its end and the request fails with an error that "
    "names neither file nor line we should check size and time before use and "
    "rebuild the table when either differs tests cover truncation rotation and a "
    "rename during the read the cost is one stat call per request"
)
_WORDS: Final = _TEXT.split()


def prose(seed: object, words: int) -> str:
    """Make a text that compresses as text does, the same for the same seed."""
    dice = random.Random(f"{seed}")  # noqa: S311 - no secret
    lines = []
    while words > 0:
        count = min(words, dice.randint(8, 14))
        lines.append(" ".join(dice.choice(_WORDS) for _ in range(count)))
        words -= count
    return "\n".join(lines)


@dataclass(kw_only=True)
class World:
    """One run's folder, its environment, and what several lines share."""

    folder: Path
    quick: bool
    _longs: dict[int, Long] = field(default_factory=dict)
    _counter: int = 0

    def size(self, full: int, quick: int) -> int:
        """Choose a size for this run."""
        return quick if self.quick else full

    def new_folder(self, name: str) -> Path:
        self._counter += 1
        path = self.folder / f"{self._counter:02d}-{name}"
        path.mkdir(parents=True)
        return path

    @cached_property
    def environment(self) -> dict[str, str]:
        """A user's environment with a home of its own."""
        home = self.folder / "home"
        home.mkdir(parents=True)
        (home / ".gitconfig").write_text(
            "[user]\n\tname = Ada\n\temail = ada@example.com\n[gc]\n\tauto = 0\n"
        )
        return {
            "HOME": str(home),
            "UWF_HOME": str(home / ".uwf"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "LANG": "C.UTF-8",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
            # Both sides of a comparison run from compiled files.
            "PYTHONPYCACHEPREFIX": str(self.folder / "pycache"),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }

    @property
    def home(self) -> Path:
        return Path(self.environment["UWF_HOME"])

    @cached_property
    def uwf(self) -> list[str | Path]:
        """The program as its users start it."""
        beside = Path(sys.executable).with_name("uwf")
        return [beside] if beside.exists() else [sys.executable, "-m", "uwfgit"]

    @cached_property
    def code(self) -> Path:
        """Where agents work: outside of a work tree, as the budgets say."""
        return self.new_folder("code")

    def make_store(self, name: str) -> Path:
        path = self.new_folder(name) / "store"
        init_store(path, home=self.home, fsync=False)
        return path

    @contextmanager
    def opened(self, path: Path, *, fsync: bool = False) -> Iterator[Ledger]:
        """Open a store as a command that writes does."""
        context = self.context(path)
        with context.closing:
            ledger = context.open_ledger(write=True)
            pygit2.settings.enable_fsync_gitdir(fsync)
            yield replace(ledger, store=replace(ledger.store, fsync=fsync))
        pygit2.settings.enable_fsync_gitdir(False)  # noqa: FBT003 - its only form

    def context(self, path: Path) -> CommandContext:
        return CommandContext(
            options=GlobalOptions(store=str(path)),
            environment=self.environment,
            folder=self.code,
        )

    def engine(self, ledger: Ledger, agent: Agent | None = None) -> Engine:
        """Put an engine over a ledger, with an agent of our own or the named ones."""
        engine = make_engine(self.context(ledger.store.path), ledger)
        return engine if agent is None else replace(engine, choose=lambda *_: agent)

    def start(self, ledger: Ledger) -> Tip:
        """Start a thread of two roles that send work to each other."""
        workflow = make_workflow()
        return start_thread(
            ledger,
            workflow=workflow,
            data=workflow_data(workflow),
            prompt=f"Fix the offsets.\n\n{prose('task', 80)}",
            cwd=self.code,
            cwd_in_repo=".",
        )

    def long(self, steps: int) -> Long:
        """Give a thread of so many steps, made once a run."""
        if steps not in self._longs:
            self._longs[steps] = _make_long(self, steps)
        return self._longs[steps]

    def packed(self, long: Long) -> Path:
        """Give a copy of a long thread's store after ``git gc``."""
        copy = self.copy(long.store, "packed")
        self.git(copy, "gc", "--quiet")
        return copy

    def copy(self, store: Path, name: str) -> Path:
        path = self.new_folder(name) / "store"
        # Git may still merge packs by itself.
        with lock(store / "uwf" / "locks" / "repack", command="copy", wait=300):
            shutil.copytree(store, path)
        init_store(path, home=self.home, fsync=False)
        return path

    def git(self, store: Path, *args: str | Path) -> str:
        words = ["git", f"--git-dir={store}", *args]
        return run_process(words, self.environment).decode().strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Long:
    """A long thread, and what each of its steps took, in ms."""

    store: Path
    thread: ThreadId
    times: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Talker:
    """An agent that knows its answers before it is asked: it takes no time."""

    replies: Mapping[int, AgentReply]
    kind: str = "scripted"
    label: str = "scripted"
    has_sessions: bool = False

    def run(self, request: AgentRequest) -> AgentReply:
        return self.replies[request.number]


def make_talker(first: int, count: int, *, turns: int = 20) -> Talker:
    """Make an agent for steps of the two-role workflow, of its workers first."""
    numbers = range(first, first + count)
    return Talker(replies={n: _make_reply(n, turns) for n in numbers})


def _make_reply(number: int, turns: int) -> AgentReply:
    seed = f"step {number}"
    status, name = ("done", "plan") if number % 2 else ("bad", "reason")
    text = reply(status, prose(seed, 250), **{name: prose(f"{seed}:{name}", 15)})
    spoken = tuple(_make_turn(seed, index) for index in range(turns - 1))
    last = Turn(index=0, role="assistant", content=text, at_ms=_AT_MS)
    usage = Usage(
        turns=turns, input_tokens=9, output_tokens=9, duration_ms=9, cost_usd=None
    )
    return AgentReply(text=text, turns=(*spoken, last), usage=usage)


def _make_turn(seed: str, index: int) -> Turn:
    name = f"{seed}:{index}"
    call = ToolCall(name="read", arguments={"path": name}, result=prose(name, 60))
    return Turn(
        index=0,
        role="assistant",
        content=prose(f"{name}:said", 25),
        tool_calls=(call,),
        at_ms=_AT_MS,
    )


def run_steps(engine: Engine, thread: ThreadId, count: int) -> list[float]:
    """Run steps and give what each took, in ms."""
    ends = [time.perf_counter()]
    report = exec_thread(
        engine,
        thread,
        count=count,
        on_step=lambda _: ends.append(time.perf_counter()),
    )
    if len(report.steps) != count or report.end is not RunEnd.DONE:
        raise RuntimeError(f"thread {thread} stopped: {report.problem}")
    return [(after - before) * 1000 for before, after in pairwise(ends)]


def _make_long(world: World, steps: int) -> Long:
    path = world.make_store(f"long-{steps}")
    with world.opened(path) as ledger:
        tip = world.start(ledger)
        engine = world.engine(ledger, make_talker(1, steps))
        times = run_steps(engine, tip.thread, steps)
    return Long(store=path, thread=tip.thread, times=tuple(times))
