"""Two threads as a page shows them side by side."""

from __future__ import annotations

from dataclasses import dataclass

from uwfgit.model.thread.compare import Comparison
from uwfgit.model.thread.record import Tip


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two: where it stands, its status and its title as people see them."""

    tip: Tip
    status: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """Both threads, and how they compare."""

    a: Side
    b: Side
    found: Comparison
