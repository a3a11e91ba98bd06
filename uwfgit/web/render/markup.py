"""HTML as values: the only place where text becomes markup, always escaped (pure).

There is no template that could forget it: whatever is no :class:`Html` is text,
its markup inert and its control and bidirectional characters shown, but in what a
form sends back (:class:`Carried`).
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Final, TypeAlias

from uwfgit.model.wording import shown, shown_lines


class Html(str):
    """Markup that this room made; any other string is text."""

    __slots__ = ()


class Carried(str):
    """Text that a form carries and sends back: none of it is written as a code."""

    __slots__ = ()


Child: TypeAlias = "Html | str | int | Iterable[Child] | None"
Attribute: TypeAlias = str | int | float | bool | None

EMPTY: Final = Html("")
_VOID: Final = frozenset({"br", "hr", "img", "input", "link", "meta"})


def text(value: str) -> Html:
    """Escape a text; its lines stay lines."""
    return Html(html.escape(shown_lines(value), quote=False))


def join(*children: Child) -> Html:
    """Put markup and text one after the other."""
    return Html("".join(_parts(children)))


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            yield child
        elif isinstance(child, Carried):
            yield html.escape(child, quote=False)
        elif isinstance(child, str):
            yield text(child)
        elif isinstance(child, int):
            yield str(child)
        else:
            yield from _parts(child)


def tag(element: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Make an element.

    Args:
        element: Its name.
        children: Markup, text, numbers, or sequences of them; ``None`` is nothing.
        attributes: ``class_`` is ``class``, ``data_role`` is ``data-role``; ``None``
            and ``False`` leave one out, ``True`` writes its name alone.
    """
    head = f"<{element}{_attributes(attributes)}>"
    if element in _VOID:
        return Html(head)
    return Html(f"{head}{''.join(_parts(children))}</{element}>")


def _attributes(attributes: dict[str, Attribute]) -> str:
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {name}")
        else:
            words = value if isinstance(value, Carried) else shown(str(value))
            written.append(f' {name}="{html.escape(words)}"')
    return "".join(written)


def div(class_: str, *children: Child, **attributes: Attribute) -> Html:
    """Make a ``div`` of a class."""
    return tag("div", *children, class_=class_, **attributes)


def span(class_: str, *children: Child, **attributes: Attribute) -> Html:
    """Make a ``span`` of a class."""
    return tag("span", *children, class_=class_, **attributes)


def link(href: str | None, *children: Child, **attributes: Attribute) -> Html:
    """Make a link to a page of ours; without one the words stand alone."""
    if href is None:
        return join(*children)
    return tag("a", *children, href=href, **attributes)
