"""What running steps needs of the outside, and what one cycle is to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from uwfgit.agents.base import Agent, AgentReply
from uwfgit.code.snapshots.keep import Keeper
from uwfgit.config import Settings
from uwfgit.engine.ask.budget import NOTHING_BESIDE, Beside
from uwfgit.engine.ask.live import Watcher
from uwfgit.engine.decide.moderator import Routed
from uwfgit.engine.judge.judging import Supervisor
from uwfgit.engine.run.report import RunReport
from uwfgit.errors import StateError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.mask import NO_MASK, Masker
from uwfgit.model.thread.record import Record
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.store.canonical import Json


class Ground(Struct, frozen=True, kw_only=True):
    """Where a foreign thread works: its folders are someone else's text.

    Attributes:
        cwd: Takes the place of the recorded working directory.
        roots: Where a location that its workflow names must lie.
    """

    cwd: Path
    roots: tuple[Path, ...]


class Engine(Struct, frozen=True, kw_only=True):
    """What running steps needs of the outside.

    Attributes:
        choose: Gives the agent for (``--agent`` flag, workflow, role).
        environment: What every agent's environment starts from.
        home: ``UWF_HOME``.
        code_head: Reads the HEAD of the work tree at a folder.
        find_keeper: Gives what keeps the code of the work tree that a folder is in;
            ``None`` outside of one, or where the user wants none kept.
        tell: Told what the user should know of a run before it begins.
        masker: Knows the secrets that must not be recorded.
        command: What is being run, for whoever meets the thread's lock.
        on_ready: Told before each cycle that it can begin: the thread is held
            and nothing is missing.
        on_wait: Told why a cycle has to wait.
        read_reply: Asks a model for the block of a reply that has none.
        watcher: Looks on while a step runs.
        supervisor: Looks at a run after every so many steps, and may stop it.
        beside: What its looks at this run have cost so far.
        taken: How many steps of the run other processes took, for its looks.
        find_workflow: Finds a workflow that an agent's alias names.
        admit: Looks at a thread before anything of it runs, given the
            ``--agent`` and ``--cwd`` flags; raises when it may not run. Gives
            where a thread that others made may work.
        above: The threads a step of which is run, by the threads that do it.
        recall: What agents may remember: what is proven to be the user's or of
            someone trusted, ``any`` memory of the thread, or ``none`` at all.
        is_trusted: Whether the commit of a memory is signed by someone the user
            trusts.
        end_run: Ends what a run left at work whose program was killed, by its
            ``UWF_STEP``; gives how many processes that were.
    """

    ledger: Ledger
    settings: Settings
    choose: Callable[[str | None, str, str], Agent]
    environment: Mapping[str, str]
    home: Path
    code_head: Callable[[Path], str | None]
    find_keeper: Callable[[Path], Keeper | None] = lambda _: None
    tell: Callable[[str], None] = lambda _: None
    masker: Masker = NO_MASK
    command: str = "uwf"
    on_ready: Callable[[], None] = lambda: None
    on_wait: Callable[[str], None] = lambda _: None
    read_reply: Callable[[str, Json], AgentReply] | None = None
    watcher: Watcher | None = None
    supervisor: Supervisor | None = None
    beside: Beside = NOTHING_BESIDE
    taken: int = 0
    find_workflow: Callable[[str], Workflow] | None = None
    admit: Callable[[Record, str, str | None, Path | None], Ground | None] = (
        lambda _record, _role, _agent, _cwd: None
    )
    above: tuple[ThreadId, ...] = ()
    recall: Literal["proven", "any", "none"] = "proven"
    is_trusted: Callable[[Oid], bool] = lambda _: False
    end_run: Callable[[str], int] = lambda _: 0


def _nothing_goes_on(_engine: Engine, thread: ThreadId, _note: str | None) -> RunReport:
    raise StateError(f"thread {thread} cannot be run from here")


class Cycle(Struct, frozen=True, kw_only=True):
    """What one cycle is to do."""

    event: Literal["step", "resume", "poke"]
    routed: Routed
    agent: str | None
    cwd: Path | None
    ground: Ground | None = None
    note: str | None = None
    masked: tuple[str, ...] = ()
    """The secrets that were masked in the note."""
    steps_left: int = 100
    """How many steps the run may still take, this one and a child's among them."""
    go_on: Callable[[Engine, ThreadId, str | None], RunReport] = _nothing_goes_on
    """Runs a child as far as it goes, with a note."""
    is_last: Callable[[], bool] = lambda: True
    """Whether the command ends with it even when the thread could go on."""
