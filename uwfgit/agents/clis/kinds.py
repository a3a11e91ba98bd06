"""The CLIs that can be run headless: what is known of each before one is chosen."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from uwfgit.agents.clis.cli import Cli


class CliKind(Struct, frozen=True, kw_only=True):
    """A row of the table; all else stands in the kind's own module."""

    program: str
    """What it is called on PATH; each of them knows ``--version``."""
    edit_args: tuple[str, ...] = ()
    """With these it may edit files in its folder without a person to ask."""
    provider: str | None = None
    """Whose its models are, where it says their bare names."""


CLI_KINDS: Final[Mapping[str, CliKind]] = {
    "claude-code": CliKind(
        program="claude",
        edit_args=("--permission-mode", "acceptEdits"),
        provider="anthropic",
    ),
    "codex": CliKind(
        program="codex",
        edit_args=("-c", 'sandbox_mode="workspace-write"'),
        provider="openai",
    ),
    "gemini": CliKind(
        program="gemini", edit_args=("--approval-mode", "auto_edit"), provider="google"
    ),
    "opencode": CliKind(program="opencode", edit_args=("--auto",)),
    "cursor": CliKind(program="cursor-agent", edit_args=("--force",)),
    "hermes": CliKind(program="hermes"),
}


def load_cli(kind: str) -> Cli:
    """Load what a kind's module says: ``CLI``, in the module named as the kind is.

    Late, for one step runs one of them.
    """
    module = import_module(f"{__package__}.{kind.replace('-', '_')}")
    cli: Cli = module.CLI
    return cli
