"""The engine of a command, with the agents and the habits of the configuration.

And what takes snapshots of code for it, which a few commands use alone.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import child_environment, now_ms
from uwfgit.store.git.enclosing import find_enclosing
from uwfgit.store.git.worktree import read_head

if TYPE_CHECKING:
    from uwfgit.agents.base import Agent
    from uwfgit.code.snapshots.keep import Keeper
    from uwfgit.code.snapshots.take import Camera
    from uwfgit.code.worktree import WorkTree
    from uwfgit.config import Settings
    from uwfgit.engine.run.engine import Engine
    from uwfgit.model.ledger.ledger import Ledger


def make_engine(context: CommandContext, ledger: Ledger) -> Engine:
    """Put an engine over a ledger."""
    from uwfgit.agents.registry import choose_agent, read_fields
    from uwfgit.engine.run.engine import Engine

    settings = context.settings
    environment = child_environment(context.environment)
    read_reply = None
    if settings.extract_model is not None:
        read_reply = partial(
            read_fields,
            settings,
            settings.extract_model,
            variables=context.variables,
            now_ms=now_ms,
        )
    roots: dict[Path, Path] = {}

    def choose(flag: str | None, workflow: str, role: str) -> Agent:
        agent = choose_agent(
            flag,
            settings=settings,
            workflow=workflow,
            role=role,
            base_dir=context.folder or Path("/"),
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
        settings=settings,
        choose=choose,
        environment=environment,
        home=context.home,
        code_head=code_head,
        find_keeper=partial(find_keeper, context, ledger),
        tell=lambda text: context.output.say(shown(text)),
        masker=context.masker,
        command=context.command,
        on_ready=(
            partial(context.ready.tell, {"ready": True})
            if context.ready is not None
            else lambda: None
        ),
        on_wait=lambda why: context.output.say(shown(why)),
        read_reply=read_reply,
        end_run=end_run,
    )


def end_run(run: str) -> int:
    """End what a killed run left at work; only then is there more to import."""
    from uwfgit.agents.children.left import end_run

    return end_run(run)


def make_camera(folder: Path, *, settings: Settings, home: Path) -> Camera:
    """Return what takes snapshots; ``folder`` is where copies of an index stand."""
    from uwfgit.code.snapshots.leave_out import Bounds
    from uwfgit.code.snapshots.take import Camera

    return Camera(
        folder=folder,
        home=home,
        is_secret=has_secret,
        bounds=Bounds(seconds=settings.limits.snapshot_seconds),
    )


def find_keeper(context: CommandContext, ledger: Ledger, folder: Path) -> Keeper | None:
    """Return what keeps the code of the work tree a folder is in.

    ``None`` outside of one, and where no code is to be kept.
    """
    if not context.settings.keeps_code or find_enclosing(folder) is None:
        return None
    from uwfgit.code.snapshots.keep import Keeper

    def tell(tree: WorkTree) -> None:
        if ledger.local.is_first(f"code {tree.common_dir}"):
            context.output.say(
                "note: the code around each step is kept as refs/uwf/code/ in "
                f"{shown(str(tree.common_dir))}; a plain push, fetch or clone leaves "
                "it there, a mirror takes it (to turn it off: record.code none)"
            )

    return Keeper(
        camera=make_camera(
            ledger.store.state_dir / "code",
            settings=context.settings,
            home=context.home_for_paths,
        ),
        environment=context.environment,
        now=now,
        on_kept=tell,
    )


def has_secret(path: str, data: bytes) -> bool:
    """Whether the scan would stop a file, by its path or content."""
    from uwfgit.sync.secrets.text import scan_text

    return bool(scan_text(path) or scan_text(data.decode("utf-8", "replace")))


def now() -> int:
    """Return the time in seconds, as git counts it."""
    return int(time.time())
