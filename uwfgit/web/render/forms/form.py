"""A form that carries the page's token, and its button (pure)."""

from __future__ import annotations

from typing import Final

from uwfgit.web.render.frame import Site
from uwfgit.web.render.markup import Child, Html, tag

INPUT: Final = "input."
"""What the name of an input's field begins with."""


def form(site: Site, action: str, *children: Child, class_: str | None = None) -> Html:
    """Make a form that carries the page's token."""
    return tag(
        "form",
        tag("input", type="hidden", name="token", value=site.token),
        *children,
        method="post",
        action=action,
        class_=class_,
    )


def button(words: str, *, quiet: bool = False, name: str = "", value: str = "") -> Html:
    """Make a button that sends its form."""
    return tag(
        "button",
        words,
        type="submit",
        class_="quiet" if quiet else None,
        name=name or None,
        value=value or None,
    )
