"""What a worker says of threads: of the agents they need, and of who made them."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.builders import begin, record_of, reply
from tests.engine.nested import Play, child, children_of, parent, start
from tests.sync.people import WIRE
from uwfgit.cli.fleet.hands import WorkerHands
from uwfgit.cli.fleet.own_agents import OwnAgents
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.sync.exchange.remotes import Remote

REPLIES = {
    "preparer": [reply("ready")],
    "coder": [reply("coded", what="code")],
    "tester": [reply("built", what="a tool")],
}


def make_agents(ledger: Ledger, folder: Path, flag: str) -> OwnAgents:
    context = CommandContext(options=GlobalOptions(), environment={}, folder=folder)
    return OwnAgents(context=context, ledger=ledger, repo=folder, flag=flag)


def play(ledger: Ledger, folder: Path, count: int) -> ThreadId:
    """Run so many steps of a thread whose second one another does."""
    thread = start(ledger, folder, parent(), child())
    Play(ledger, folder, thread, REPLIES).go(count=count)
    return thread


def test_of_a_role_that_a_forged_thread_names_nothing_is_said(
    ledger: Ledger, tmp_path: Path
) -> None:
    tip = begin(ledger, tmp_path)
    forged = replace(tip, state=replace(tip.state, current_role="nobody"))
    agents = make_agents(ledger, tmp_path, "stdio:no-such-program")

    assert "no-such-program" in (agents.lacks(tip) or "")
    assert agents.lacks(forged) is None


def test_a_role_that_a_workflow_does_needs_no_agent(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = play(ledger, tmp_path, 1)
    agents = make_agents(ledger, tmp_path, "stdio:no-such-program")

    assert agents.lacks(record_of(ledger, thread).tip) is None


def test_a_thread_is_not_run_whose_child_nobody_in_trust_vouches_for(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = play(ledger, tmp_path, 2)
    (made,) = children_of(ledger, thread)
    agents = make_agents(ledger, tmp_path, "stdio:true")
    hands = WorkerHands(
        context=agents.context,
        ledger=ledger,
        remote=Remote(name="origin", url="/x", push_urls=("/x",), kind="dedicated"),
        wire=WIRE,
        repo=tmp_path,
        workflows=None,
        agent=None,
        trust_pushers=False,
        agents=agents,
        say=lambda _, __: None,
    )
    tip = record_of(ledger, thread).tip
    assert hands.distrust_thread(tip) is None

    # As that of one which others have added to.
    ledger.local.set_foreign(made)

    assert hands.distrust_thread(tip) == (
        f"its child {made} has an event not signed by anyone in trust"
    )
    hands.trust_pushers = True
    assert hands.distrust_thread(tip) is None
