"""The listing of threads, and the index of an export (pure)."""

from __future__ import annotations

from urllib.parse import urlencode

from uwfgit.constants import MAX_NESTED
from uwfgit.ids import ThreadId
from uwfgit.model.thread.hold import HELD
from uwfgit.model.wording import count_of
from uwfgit.web.render.frame import (
    DASH,
    STATUS_WORDS,
    Site,
    chip,
    facts,
    fold,
    moment,
    page,
    person,
    spent,
    tail,
)
from uwfgit.web.render.markup import Html, div, join, link, span, tag
from uwfgit.web.view.listing import ORDERS, Line, Listing, Question

_ORDER_WORDS = {
    "updated": "last change",
    "started": "start",
    "steps": "steps",
    "tokens": "tokens",
    "duration": "time taken",
}


def threads_page(
    site: Site,
    listing: Listing,
    *,
    base: str | None,
) -> Html:
    """Lay out the listing.

    Args:
        site: What it is part of.
        listing: The page of it that was asked for.
        base: Where a search is sent to; ``None`` where nothing can answer one.
    """
    body = join(
        threads_head(listing),
        _filters(listing, base) if base is not None else None,
        threads_list(site, listing),
        _pages(listing, base) if base is not None else None,
    )
    return page(site, "Threads", body, kind="threads", live=f"{base}/live")


def threads_head(listing: Listing) -> Html:
    """Head a listing with how many threads stand how."""
    return tag(
        "header",
        tag("h1", "Threads"),
        tag("p", _sum(listing), class_="sum"),
        class_="head",
    )


def _sum(listing: Listing) -> str:
    told = [
        f"{count:,} {STATUS_WORDS.get(status, status)}"
        for status, count in sorted(listing.statuses.items(), key=lambda each: -each[1])
    ]
    if listing.found != listing.total:
        return f"{listing.found:,} of {listing.total:,}"
    return ", ".join(told) or "none yet"


def threads_list(site: Site, listing: Listing) -> Html:
    """Lay out the lines themselves."""
    if not listing.lines:
        empty = "Nothing fits this search." if listing.total else "No thread yet."
        return tag("p", empty, class_="none", id="list")
    below = dict(listing.below)
    return tag(
        "ol",
        [_line(site, line, below, depth=0) for line in listing.lines],
        class_="list",
        id="list",
    )


def _line(
    site: Site, line: Line, below: dict[ThreadId, tuple[Line, ...]], *, depth: int
) -> Html:
    usage = line.usage
    told = line.title or line.problem or line.thread
    until = moment(line.retry_at_ms, site.year)
    return tag(
        "li",
        chip(line.status),
        div(
            "what",
            link(site.links.thread(line.thread), told, class_="title"),
            facts(
                [
                    line.workflow or None,
                    join("at ", tag("b", line.role)) if line.role else None,
                    join("until ", until) if until else None,
                    HELD if line.is_held else None,
                    count_of(line.steps, "step") if line.workflow else None,
                    *spent((usage.duration_ms or None) if usage else None, usage),
                    join("fork of ", tail(line.fork_of)) if line.fork_of else None,
                    tag("code", tail(line.thread)),
                ]
            ),
        ),
        div(
            "when",
            moment(line.updated_ms, site.year),
            person(line.started_by) if line.started_by else None,
        ),
        _fold(site, below.pop(line.thread, ()), below, depth=depth + 1),
        id=f"t-{line.thread}",
    )


def _fold(
    site: Site,
    lines: tuple[Line, ...],
    below: dict[ThreadId, tuple[Line, ...]],
    *,
    depth: int,
) -> Html | None:
    """Fold in what did steps of a thread; of a strange listing no more than is sane."""
    if not lines or depth > MAX_NESTED:
        return None
    return fold(
        f"{count_of(len(lines), 'thread')} did steps of it",
        tag(
            "ol",
            [_line(site, each, below, depth=depth) for each in lines],
            class_="list",
        ),
        class_="below",
    )


def _filters(listing: Listing, base: str) -> Html:
    asked = listing.question
    return tag(
        "form",
        tag(
            "input",
            type="search",
            name="q",
            value=asked.words,
            placeholder="Search tasks, roles, people, ids",
            aria_label="Search",
            id="search",
        ),
        _select(
            "status",
            "Status",
            asked.status,
            [("", "any status"), *((s, w) for s, w in STATUS_WORDS.items())],
        ),
        _select(
            "workflow",
            "Workflow",
            asked.workflow,
            [("", "any workflow"), *((w, w) for w in listing.workflows)],
        ),
        _select(
            "sort", "Order", asked.order, [(o, f"by {_ORDER_WORDS[o]}") for o in ORDERS]
        ),
        tag("button", "Find", type="submit", class_="quiet"),
        action=base,
        method="get",
        class_="filters",
        role="search",
    )


def _select(name: str, label: str, chosen: str, options: list[tuple[str, str]]) -> Html:
    return tag(
        "select",
        [
            tag("option", words, value=value, selected=value == chosen)
            for value, words in options
        ],
        name=name,
        aria_label=label,
    )


def _pages(listing: Listing, base: str) -> Html | None:
    asked = listing.question
    if listing.found <= asked.limit:
        return None
    last = min(asked.offset + asked.limit, listing.found)
    return tag(
        "nav",
        _turn(base, asked, asked.offset - asked.limit, "Previous")
        if asked.offset
        else span("", ""),
        span("range", f"{asked.offset + 1:,}{DASH}{last:,} of {listing.found:,}"),
        _turn(base, asked, last, "Next") if last < listing.found else span("", ""),
        class_="pages",
        aria_label="More threads",
    )


def _turn(base: str, asked: Question, offset: int, words: str) -> Html:
    values = {
        "q": asked.words,
        "status": asked.status,
        "workflow": asked.workflow,
        "sort": asked.order if asked.order != "updated" else "",
        "from": str(max(0, offset)) if offset > 0 else "",
    }
    query = urlencode({key: value for key, value in values.items() if value})
    return tag("a", words, href=f"{base}?{query}" if query else base)
