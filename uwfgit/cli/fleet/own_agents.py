"""Whether a worker has the agent that a thread needs next, asked before it is taken."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.agents.base import Agent, NeedsProgram
from uwfgit.agents.registry import choose_agent
from uwfgit.cli.fleet.running import clean_environment
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.world import child_environment
from uwfgit.errors import UwfError
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import Tip


class OwnAgents(Struct, kw_only=True, dict=True):
    """The agents of ``uwf worker``: those its steps will choose from.

    A thread taken without one would fail, and wait for a person, though another
    worker could run it.
    """

    context: CommandContext
    ledger: Ledger
    repo: Path
    flag: str | None

    @cached_property
    def _there(self) -> CommandContext:
        """The command as it is in the folder where steps run."""
        return replace(self.context, folder=self.repo)

    def require_flag(self) -> None:
        """See that ``--agent`` means an agent.

        Raises:
            ConfigError, InvalidError: It does not.
        """
        if self.flag is not None:
            self._choose("", "")

    def lacks(self, tip: Tip) -> str | None:
        """Return why no agent can do a thread's next step here; ``None`` if one can."""
        role = tip.state.current_role or tip.state.suspended_role or ""
        # A forged thread may name one that is none.
        made = open_record(self.ledger.store, tip).workflow.roles.get(role)
        if made is None or made.workflow is not None:
            return None
        try:
            agent = self._choose(tip.state.workflow_name, role)
        except UwfError as exc:
            return exc.message
        environment = clean_environment(child_environment(self.context.environment))
        if not isinstance(agent, NeedsProgram):
            return None
        return agent.find_missing(environment, cwd=self.repo)

    def _choose(self, workflow: str, role: str) -> Agent:
        settings, _ = self._there.loaded_settings
        return choose_agent(
            self.flag,
            settings=settings,
            workflow=workflow,
            role=role,
            base_dir=self.repo,
            environment=clean_environment(child_environment(self.context.environment)),
            variables=self._there.variables,
        )
