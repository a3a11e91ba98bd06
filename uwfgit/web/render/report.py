"""What a command said about a thread, on a page (pure)."""

from __future__ import annotations

from uwfgit.ids import ThreadId
from uwfgit.web.render.code import code_block
from uwfgit.web.render.frame import Site, command, page, tail
from uwfgit.web.render.markup import Html, join, link, span, tag
from uwfgit.web.view.report import Report


def report_page(site: Site, thread: ThreadId, report: Report) -> Html:
    """Lay out a report about a thread."""
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
            tag("h1", report.title),
            tag("p", command(report.told), class_="sum"),
            class_="head",
        ),
        code_block(report.text, report.kind)
        if report.kind
        else tag("pre", report.text, class_="plain", tabindex=0),
    )
    return page(site, report.title, body, kind="report")
