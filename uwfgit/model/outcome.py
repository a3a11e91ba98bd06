"""What a step leaves a thread in, and how its agent is named in a commit (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from uwfgit.constants import SUSPEND_CHARS
from uwfgit.model.message import NONE
from uwfgit.model.state import Status

AGENT_EMAIL: Final = "agent@localhost"
_LABEL = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The state a step leaves a thread in."""

    status: Status
    current_role: str | None = None
    suspended_role: str | None = None
    suspend_message: str | None = None
    next: str = NONE


def short_message(text: str) -> str:
    """Bound a text for ``thread.json``; the whole stands in the step's output."""
    if len(text) <= SUSPEND_CHARS:
        return text
    return text[: SUSPEND_CHARS - 1] + "…"


def agent_label(label: str) -> str:
    """Make a label that can stand in an author line."""
    return _LABEL.sub("-", label)[:64] or "agent"
