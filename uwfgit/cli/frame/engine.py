"""The engine of a command, with the agents and the habits of the configuration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from uwfgit.agents.registry import choose_agent, make_reader
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.snapshots import make_keeper
from uwfgit.cli.frame.world import now_ms
from uwfgit.engine.run.executor import Engine
from uwfgit.store.git.enclosing import find_enclosing
from uwfgit.store.git.worktree import read_head

if TYPE_CHECKING:
    from uwfgit.agents.base import Agent
    from uwfgit.model.ledger.ledger import Ledger


def make_engine(context: CommandContext, ledger: Ledger) -> Engine:
    """Put an engine over a ledger."""
    environment = context.child_environment()
    roots: dict[Path, Path] = {}

    def choose(flag: str | None, workflow: str, role: str) -> Agent:
        agent = choose_agent(
            flag,
            settings=context.settings,
            workflow=workflow,
            role=role,
            base_dir=context.search_folder or Path("/"),
            environment=environment,
            variables=context.variables,
        )
        if context.options.verbose:
            context.output.say(shown(f"agent of role {role}: {agent.label}"))
        return agent

    def code_head(folder: Path) -> str | None:
        root = roots.get(folder)
        if root is None:
            if (enclosing := find_enclosing(folder)) is None:
                return None
            root = roots[folder] = enclosing.root
        return read_head(root, environment=context.environment)

    return Engine(
        ledger=ledger,
        settings=context.settings,
        choose=choose,
        environment=environment,
        home=context.home,
        code_head=code_head,
        keeper=make_keeper(
            ledger,
            settings=context.settings,
            environment=context.environment,
            home=context.home_for_paths,
            say=context.output.say,
        ),
        tell=lambda text: context.output.say(shown(text)),
        masker=context.masker,
        command=context.command,
        on_ready=context.ready.tell_begun,
        on_wait=lambda why: context.output.say(shown(why)),
        read_reply=make_reader(
            context.settings, variables=context.variables, now_ms=now_ms
        ),
    )
