"""Two threads as a page shows them side by side."""

from __future__ import annotations

from msgspec import Struct

from uwfgit.model.thread.compare import Comparison
from uwfgit.model.thread.tip import Tip


class Side(Struct, frozen=True, kw_only=True):
    """One of the two: where it stands, its status and its title as people see them."""

    tip: Tip
    status: str
    title: str


class ComparisonView(Struct, frozen=True, kw_only=True):
    """Both threads, and how they compare."""

    a: Side
    b: Side
    found: Comparison
