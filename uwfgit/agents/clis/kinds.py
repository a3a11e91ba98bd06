"""The CLIs that can be run headless, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uwfgit.agents.clis.claude_code import CLAUDE_CODE
from uwfgit.agents.clis.cli import Cli
from uwfgit.agents.clis.codex import CODEX
from uwfgit.agents.clis.cursor import CURSOR
from uwfgit.agents.clis.gemini import GEMINI
from uwfgit.agents.clis.hermes import HERMES
from uwfgit.agents.clis.opencode import OPENCODE

CLIS: Final[Mapping[str, Cli]] = {
    cli.kind: cli for cli in (CLAUDE_CODE, CODEX, GEMINI, OPENCODE, CURSOR, HERMES)
}
