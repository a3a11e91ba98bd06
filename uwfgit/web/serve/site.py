"""What a server is made of: its stores, its rules, and what it may do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from uwfgit.web.edit.files import Desk
from uwfgit.web.render.frame import Site
from uwfgit.web.serve.acts import Run
from uwfgit.web.serve.gate import Rules
from uwfgit.web.serve.links import ServedLinks
from uwfgit.web.serve.shelf import Shelf

SCRIPT = "/static/web.js"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The JSON of threads and steps as the command line writes it.

    Handed in, since the keys are named in one place only.
    """

    thread: Callable[..., dict[str, Any]]
    row: Callable[..., dict[str, Any]]
    step: Callable[..., dict[str, Any]]
    roles: Callable[..., Any]
    graph: Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """One store on the server.

    Without ``acts`` nothing may be set going; what only reads runs all the same.
    """

    shelf: Shelf
    run: Run
    acts: bool
    agents: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """All that a server needs to know."""

    rules: Rules
    stores: Sequence[Served]
    shapes: Shapes
    about: str = ""
    desk: Desk | None = None
    """The workflow files that may be edited."""
    on_bug: Callable[[Exception], str] = str
    """Keeps what is known of a bug, and says where."""

    def site(self, served: Served, *, first: int | None = None) -> Site:
        """Return what a page of a store is part of."""
        shelf = served.shelf
        return Site(
            links=ServedLinks(root=shelf.root, first=first),
            name=shelf.name,
            about=self.about,
            script=SCRIPT,
            token=self.rules.keys.page_token if served.acts else None,
            year=time.localtime().tm_year,
            stores=tuple(
                (each.shelf.name, f"{each.shelf.root}/threads") for each in self.stores
            ),
        )
