"""A thread with every event, the honest original of the forged histories."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.builders import begin, make_engine, reply, run, write_script
from tests.sync.forge import history
from uwfgit.engine.run.executor import poke_thread, resume_thread
from uwfgit.engine.run.thread import cancel_thread
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.keep import put_nodes
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import make_text
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.handle import Store
from uwfgit.sync.verify.report import ThreadReport
from uwfgit.sync.verify.verify import verify_thread

PLAN = "A plan that stands in a node of its own.\n"


@dataclass(frozen=True)
class Tour:
    """The thread; tests write objects beside it and never move its ref."""

    ledger: Ledger
    thread: ThreadId
    tip: Oid

    @property
    def store(self) -> Store:
        return self.ledger.store

    def commits(self) -> list[Oid]:
        return history(self.store, self.tip)

    def verify(self, tip: Oid) -> ThreadReport:
        return verify_thread(self.store, tip, self.thread)


START, WORK, JUDGE, TRY, RESUME, WAIT, POKE, CANCEL = range(8)
"""The commits of :func:`make_tour`, by their order."""


def make_tour(ledger: Ledger, folder: Path, **changes: object) -> ThreadId:
    """Make a thread that has every event but fork and resolve."""
    plan = make_text(PLAN)
    put_nodes(ledger, [plan])
    facts = {"prompt": f"Fix the bug as in {plan.hash}"}
    thread = begin(ledger, folder, **{**facts, **changes}).thread
    replies = {
        "worker": [reply(plan=plan.hash), "No block.", reply(plan="Second")],
        "critic": [
            reply("bad", reason="Too short"),
            suspend(),
            reply("bad", reason="x"),
        ],
    }
    agent = write_script(folder, replies)
    engine = make_engine(ledger)
    run(ledger, thread, agent, 2)
    run(ledger, thread, agent, 1)
    resume_thread(engine, thread, note="Try again", agent=agent)
    run(ledger, thread, agent, 1)
    poke_thread(engine, thread, note="Decide", agent=agent)
    cancel_thread(ledger, thread, reason="Enough\n\nSeen: enough", command="test")
    return thread


def suspend(reason: str = "Which one?") -> str:
    """Write an agent's answer that asks a person."""
    return reply("$SUSPEND", body="I cannot say.", reason=reason)


def tip_of(ledger: Ledger, thread: ThreadId) -> Oid:
    return load_tip(ledger.store, thread).commit


def set_tip(store: Store, thread: str, tip: str) -> None:
    """Move a thread's branch, as plain ``git update-ref`` would."""
    store.repo.references.create(f"refs/heads/thread/{thread}", tip, force=True)
