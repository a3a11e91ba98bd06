"""What a command said about a thread, on a page (pure)."""

from __future__ import annotations

from uwfgit.ids import ThreadId
from uwfgit.web.render.code import code_block
from uwfgit.web.render.frame import Site, command, page, tail
from uwfgit.web.render.markup import Html, join, link, span, tag


def report_page(
    site: Site, thread: ThreadId, title: str, told: str, text: str, kind: str
) -> Html:
    """Lay out a report.

    Args:
        site: What the page is part of.
        thread: Which thread it is about.
        title: What it comes to.
        told: The command that says the same.
        text: The report.
        kind: The language it is written in, such as ``diff``.
    """
    body = join(
        tag(
            "header",
            tag(
                "p",
                link(site.links.threads(), "Threads"),
                span("slash", "/"),
                link(site.links.thread(thread), tag("code", tail(thread))),
                class_="crumb",
            ),
            tag("h1", title),
            tag("p", command(told), class_="sum"),
            class_="head",
        ),
        code_block(text, kind),
    )
    return page(site, title, body, kind="report")
