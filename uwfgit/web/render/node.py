"""A raw node: its type, its payload, and what it links to (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from uwfgit.ids import Hash, ThreadId
from uwfgit.model.node import BUILTIN_NAMES, TEXT_TYPE
from uwfgit.web.render.code import json_block
from uwfgit.web.render.frame import Site, command, facts, page, section, tail
from uwfgit.web.render.markdown import markdown
from uwfgit.web.render.markup import Html, join, link, span, tag
from uwfgit.web.view.node import NodeView

_NAMES: Mapping[Hash, str] = {node: name for name, node in BUILTIN_NAMES.items()}


def node_page(site: Site, thread: ThreadId, view: NodeView) -> Html:
    """Lay out a node, whose hash is resolved in a thread's tree."""
    node = view.node
    body = join(
        tag(
            "header",
            tag(
                "p",
                link(site.links.threads(), "Threads"),
                span("slash", "/"),
                link(site.links.thread(thread), tag("code", tail(thread))),
                span("slash", "/"),
                "node",
                class_="crumb",
            ),
            tag("h1", tag("code", node.hash)),
            facts(
                [_NAMES.get(node.type, "output"), join("type ", tag("code", node.type))]
            ),
            class_="head",
        ),
        section(
            "Payload",
            markdown(node.payload)
            if node.type == TEXT_TYPE and isinstance(node.payload, str)
            else json_block(node.payload),
        ),
        _refs(site, thread, view.refs),
        section(
            "In git",
            tag("p", command(f"uwf git show {view.oid}")),
            tag("p", command(f"uwf cas get {node.hash} --thread {tail(thread)}")),
        ),
    )
    return page(site, f"node {node.hash}", body, kind="node")


def _refs(site: Site, thread: ThreadId, refs: tuple[Hash, ...]) -> Html | None:
    if not refs:
        return None
    return section(
        "Links",
        tag(
            "ul",
            [
                tag("li", link(site.links.node(thread, each), tag("code", each)))
                for each in refs
            ],
            class_="family",
        ),
    )
