"""What all pages share: the frame, links, statuses, times and facts (pure)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final, Protocol
from urllib.parse import quote

from msgspec import Struct

from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.prices import Cost
from uwfgit.model.thread.step import Usage
from uwfgit.model.wording import format_duration
from uwfgit.web.render.markup import Child, Html, link, span, tag

STATUS_WORDS: Final = {
    "idle": "ready",
    "running": "running",
    "suspended": "waiting",
    "end": "ended",
    "cancelled": "cancelled",
    "diverged": "diverged",
    "corrupt": "damaged",
}
DASH: Final = "\N{EN DASH}"
_ICON: Final = "data:image/svg+xml," + quote(
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>"
    "<path d='M4 3v6a3 3 0 0 0 3 3h5' fill='none' stroke='#777' stroke-width='2'/>"
    "<circle cx='4' cy='3' r='2.4' fill='#2c7a51'/>"
    "<circle cx='12.4' cy='12' r='2.6' fill='#2159b5'/></svg>"
)
_THOUSAND: Final = 1000
_TAIL: Final = 6
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


class Links(Protocol):
    """Where things stand; ``None`` for what has no page here."""

    @property
    def style(self) -> str | None:
        """The style sheet."""

    def threads(self) -> str | None:
        """The listing."""

    def workflows(self) -> str | None:
        """The workflows."""

    def thread(self, thread: ThreadId, number: int | None = None) -> str | None:
        """A thread, or one step of it."""

    def anchor(self, thread: ThreadId, number: int) -> str:
        """The id of a step on its thread's page."""

    def workflow(self, name: str, workflow: Hash) -> str | None:
        """A version of a workflow."""

    def node(self, thread: ThreadId, node: Hash) -> str | None:
        """A raw node of a thread."""

    def diff(self, a: ThreadId, b: ThreadId) -> str | None:
        """Two threads side by side."""


ALL_ACTS: Final = frozenset(
    {
        *("start", "exec", "resume", "poke", "fork", "stop", "pause", "cancel"),
        *("approve", "trust"),
    }
)
"""What a page may set going in a store of this machine."""


class Stand(Struct, frozen=True, kw_only=True):
    """A store in the list of those that are served: its name, and where it begins."""

    name: str
    href: str
    is_gone: bool = False


class Site(Struct, frozen=True, kw_only=True):
    """What a page is part of: a served store or an exported folder.

    ``token`` is what a form sends along; without one nothing can be changed, and
    with one only what ``acts`` names.
    ``about`` says in the foot where the page is from.
    """

    links: Links
    name: str
    about: str = ""
    script: str | None = None
    token: str | None = None
    acts: frozenset[str] = frozenset()
    year: int = 0
    stores: tuple[Stand, ...] = ()
    """All stores that are served."""

    def may(self, act: str) -> bool:
        """Whether something can be done from its pages."""
        return self.token is not None and act in self.acts


GENERATOR: Final = tag("meta", name="generator", content="uwf")
"""Tells a page of ours, wherever it was put, from one of another hand."""


def page(
    site: Site,
    title: str,
    *children: Child,
    kind: str,
    inline: str = "",
    live: str | None = None,
    tip: str | None = None,
) -> Html:
    """Put a page's content into the frame.

    Args:
        site: What it is part of.
        title: Of the window.
        children: The content.
        kind: Names the page for the style sheet.
        inline: The style sheet itself, for a page that must ask for nothing.
        live: Where what happens to it is streamed.
        tip: The commit it shows; the stream goes on from there.
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        GENERATOR,
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        _policy() if inline else None,
        tag("link", rel="icon", href=_ICON),
        tag("title", f"{title} · uwf"),
        tag("style", Html(inline)) if inline else None,
        tag("link", rel="stylesheet", href=site.links.style) if not inline else None,
        tag("script", src=site.script, defer=True) if site.script else None,
    )
    body = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#main"),
        _top(site, kind),
        tag(
            "main",
            *children,
            id="main",
            class_=kind,
            data_live=live if site.script else None,
            data_tip=tip if site.script else None,
        ),
        tag("footer", site.about, class_="foot") if site.about else None,
    )
    return Html(f"<!doctype html>\n{tag('html', head, body, lang='en')}\n")


def _policy() -> Html:
    return tag(
        "meta",
        http_equiv="Content-Security-Policy",
        content="default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
    )


def _top(site: Site, kind: str) -> Html:
    places = (
        (
            "Threads",
            site.links.threads(),
            {"threads", "thread", "diff", "node", "report"},
        ),
        (
            "Workflows",
            site.links.workflows(),
            {"workflows", "workflow", "workflow edit", "changes"},
        ),
    )
    return tag(
        "header",
        link(site.links.threads(), "uwf", class_="mark"),
        _stores(site),
        tag(
            "nav",
            [
                link(href, name, aria_current="page" if kind in kinds else None)
                for name, href, kinds in places
                if href
            ],
            aria_label="Pages",
        ),
        class_="top",
    )


def _stores(site: Site) -> Html:
    """Name the store; with several, lead to each of them."""
    if len(site.stores) <= 1:
        return span("where", site.name)
    return tag(
        "details",
        tag("summary", site.name),
        tag(
            "ul",
            [
                tag(
                    "li",
                    link(
                        each.href,
                        each.name,
                        aria_current="true" if each.name == site.name else None,
                    ),
                    span("note", "gone") if each.is_gone else None,
                )
                for each in site.stores
            ],
        ),
        class_="stores",
    )


def chip(status: str) -> Html:
    """Show a thread's status as a coloured dot and a word."""
    word = STATUS_WORDS.get(status, status)
    return span(f"chip {status}", word)


def moment(at_ms: int | None, year: int) -> Html | None:
    """Show a time: ``28 Nov, 16:22``; with the year when it is another one."""
    if at_ms is None:
        return None
    try:
        parts = time.localtime(at_ms // _THOUSAND)
        exact = time.strftime("%Y-%m-%dT%H:%M:%S%z", parts)
    except (OverflowError, ValueError, OSError):
        return None
    day = f"{parts.tm_mday} {_MONTHS[parts.tm_mon - 1]}"
    if parts.tm_year != year:
        day += f" {parts.tm_year}"
    clock = f"{parts.tm_hour:02d}:{parts.tm_min:02d}"
    return tag("time", f"{day}, {clock}", datetime=exact)


def person(who: str) -> Html:
    """Show a person by name; the address is there for who looks closer."""
    name, _, rest = who.partition("<")
    mail = rest.rstrip("> ")
    return tag("span", name.strip() or mail, title=mail or None)


def facts(items: Iterable[Child]) -> Html:
    """Show short facts on one line."""
    return tag("ul", [tag("li", item) for item in items if item], class_="facts")


def spent(
    duration_ms: int | None, usage: Usage | None, cost: Cost | None = None
) -> list[str]:
    """Say what a run took: time, tokens, money."""
    told = [format_duration(duration_ms) or ""]
    if usage is not None and (usage.input_tokens or usage.output_tokens):
        told.append(f"{short(usage.input_tokens + usage.output_tokens)} tokens")
    if usage is not None and cost is not None:
        told.append(str(cost))
    elif usage is not None and usage.cost_usd is not None:
        told.append(
            f"${usage.cost_usd:.2f}"
            if usage.cost_usd >= 1
            else f"${usage.cost_usd:.4f}"
        )
    return [each for each in told if each]


def short(number: int) -> str:
    """Write a large number short: ``1,234``, ``45k``, ``1.2M``."""
    if number < 10 * _THOUSAND:
        return f"{number:,}"
    if number < _THOUSAND * _THOUSAND:
        return f"{number / _THOUSAND:.0f}k"
    return f"{number / _THOUSAND / _THOUSAND:.1f}M"


def tail(thread: str) -> str:
    """Return the end of a thread's id, by which the CLI knows it too."""
    return thread[-_TAIL:]


def section(
    title: str, *children: Child, class_: str = "", **attributes: str | None
) -> Html:
    """Make a part of a page under a quiet heading."""
    return tag(
        "section", tag("h2", title), *children, class_=class_ or None, **attributes
    )


def fold(
    summary: Child, *children: Child, class_: str = "", is_open: bool = False
) -> Html:
    """Make a part that opens at a click, without any script."""
    return tag(
        "details",
        tag("summary", summary),
        *children,
        class_=class_ or None,
        open=is_open,
    )


def command(words: str) -> Html:
    """Show a command as one would type it."""
    return tag("code", words, class_="command")
