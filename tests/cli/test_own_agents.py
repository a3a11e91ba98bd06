"""What a worker says of the agents that threads need."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tests.builders import begin
from uwfgit.cli.fleet.own_agents import OwnAgents
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.model.ledger.ledger import Ledger


def test_of_a_role_that_a_forged_thread_names_nothing_is_said(
    ledger: Ledger, tmp_path: Path
) -> None:
    tip = begin(ledger, tmp_path)
    forged = replace(tip, state=replace(tip.state, current_role="nobody"))
    context = CommandContext(options=GlobalOptions(), environment={}, folder=tmp_path)
    agents = OwnAgents(
        context=context, ledger=ledger, repo=tmp_path, flag="stdio:no-such-program"
    )

    assert "no-such-program" in (agents.lacks(tip) or "")
    assert agents.lacks(forged) is None
