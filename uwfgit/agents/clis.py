"""The CLIs that can be run headless, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uwfgit.agents.claude_code import CLAUDE_CODE
from uwfgit.agents.codex import CODEX
from uwfgit.agents.headless import Cli

CLIS: Final[Mapping[str, Cli]] = {cli.kind: cli for cli in (CLAUDE_CODE, CODEX)}
