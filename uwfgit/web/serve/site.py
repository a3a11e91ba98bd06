"""What a server is made of: its stores, its rules, and what it may do."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Final, Protocol

from msgspec import Struct
from starlette.routing import BaseRoute

from uwfgit.web.edit.files import Desk
from uwfgit.web.render.frame import ALL_ACTS, Site, Stand
from uwfgit.web.serve.acts import Run
from uwfgit.web.serve.gate import Rules
from uwfgit.web.serve.links import ServedLinks
from uwfgit.web.serve.reading import Acting, Reading, StoreReading
from uwfgit.web.serve.shelf import Shelf

SCRIPT: Final = "/static/web.js"
EDIT_ROOT: Final = "/edit"
FAR_ROOT: Final = "/clients"
"""Below which the stores of a hub's clients stand, each by its name."""


class Shapes(Struct, frozen=True, kw_only=True):
    """The JSON of threads and steps as the command line writes it.

    Handed in, since the keys are named in one place only.
    """

    thread: Callable[..., dict[str, Any]]
    row: Callable[..., dict[str, Any]]
    step: Callable[..., dict[str, Any]]
    roles: Callable[..., Any]
    graph: Callable[..., Any]


class Place(Struct, frozen=True, kw_only=True):
    """A store as pages know it, wherever it is.

    ``acts`` names what may be done there; ``root`` is where its pages begin.
    """

    name: str
    root: str
    reading: Reading
    acting: Acting
    acts: frozenset[str]
    agents: Sequence[str] = ()


class Served(Struct, frozen=True, kw_only=True, dict=True):
    """One store of this machine on the server.

    Without ``acts`` nothing may be set going; what only reads runs all the same.
    """

    shelf: Shelf
    run: Run
    acts: bool
    agents: Sequence[str] = ()

    @cached_property
    def place(self) -> Place:
        """The store as its pages know it."""
        reading = StoreReading(self.shelf, self.run)
        return Place(
            name=self.shelf.name,
            root=self.shelf.root,
            reading=reading,
            acting=reading,
            acts=ALL_ACTS if self.acts else frozenset(),
            agents=self.agents,
        )


class Elsewhere(Protocol):
    """The stores of other machines that a hub shows."""

    def routes(self) -> Sequence[BaseRoute]:
        """Return the routes that are not pages: connecting, and the API."""

    def stands(self) -> Sequence[Stand]:
        """Return what the sidebar shows of them."""

    def place(self, name: str) -> Place:
        """Return a store by its client's name.

        Raises:
            NotFoundError: No client has that name.
        """


class Serving(Struct, frozen=True, kw_only=True):
    """All that a server needs to know."""

    rules: Rules
    stores: Sequence[Served]
    shapes: Shapes
    about: str = ""
    desk: Desk | None = None
    """The workflow files that may be edited."""
    on_bug: Callable[[Exception], str] = str
    """Keeps what is known of a bug, and says where."""
    elsewhere: Elsewhere | None = None

    def site(self, place: Place, *, first: int | None = None) -> Site:
        """Return what a page of a store is part of."""
        own = [
            Stand(name=each.place.name, href=f"{each.place.root}/threads")
            for each in self.stores
        ]
        others = self.elsewhere.stands() if self.elsewhere is not None else ()
        return Site(
            links=ServedLinks(root=place.root, first=first),
            name=place.name,
            about=self.about,
            script=SCRIPT,
            token=self.rules.keys.page_token if place.acts else None,
            acts=place.acts,
            year=time.localtime().tm_year,
            stores=(*own, *others),
        )
