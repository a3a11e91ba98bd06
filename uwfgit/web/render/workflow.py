"""A workflow's page: its graph, its roles, its versions (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from uwfgit.model.ledger.registry import Version
from uwfgit.model.picture.chart import chart_of
from uwfgit.model.wording import count_of
from uwfgit.model.workflow.workflow import Edges, Role, Target, Workflow
from uwfgit.web.render.code import code_block, json_block
from uwfgit.web.render.forms.start import input_text, input_types
from uwfgit.web.render.frame import Site, facts, fold, moment, page, section, tail
from uwfgit.web.render.markdown import markdown
from uwfgit.web.render.markup import Child, Html, div, join, link, span, tag
from uwfgit.web.render.picture import svg_picture
from uwfgit.web.view.workflow import WorkflowLine, WorkflowView

_HINT: Final = 100
_SHOWN: Final = 12


def workflow_page(
    site: Site,
    view: WorkflowView,
    *,
    acts: Child = None,
) -> Html:
    """Lay out the page of a workflow."""
    return page(
        site,
        view.workflow.name,
        workflow_body(site, view, acts=acts),
        kind="workflow",
    )


def workflow_body(
    site: Site,
    view: WorkflowView,
    *,
    acts: Child,
) -> Html:
    """Lay out what stands inside the frame."""
    workflow = view.workflow
    start = _edges(workflow.graph.get("$START"))
    same = (each.origin for each in view.versions if each.hash == view.hash)
    origin = next(filter(None, same), None)
    return join(
        tag(
            "header",
            tag(
                "p",
                link(site.links.workflows() or site.links.threads(), "Workflows"),
                class_="crumb",
            ),
            tag("h1", workflow.name),
            tag("p", workflow.description, class_="sum"),
            facts(
                [
                    count_of(len(workflow.roles), "role"),
                    tag("code", view.hash),
                    # The commit elsewhere that the version shown is of.
                    tag("code", origin) if origin is not None else None,
                ]
            ),
            class_="head",
        ),
        acts,
        div(
            "columns",
            tag(
                "aside",
                section("Graph", div("scroll", _graph(view)), class_="path"),
                _versions(site, view),
                _threads(site, view),
            ),
            div(
                "main",
                _inputs(workflow.inputs) if workflow.inputs else None,
                section(
                    "Roles",
                    [
                        _role(number, name, role, workflow.graph.get(name))
                        for number, (name, role) in enumerate(_in_order(workflow))
                    ],
                ),
                section("How it begins", start) if start else None,
                section("File", fold("Show the file", code_block(view.source, "yaml")))
                if view.source
                else None,
            ),
        ),
    )


def _in_order(workflow: Workflow) -> list[tuple[str, Role]]:
    """Return the roles as a run meets them, not as they happen to be stored."""
    names = [box.name for box in chart_of(workflow).boxes]
    return sorted(workflow.roles.items(), key=lambda each: names.index(each[0]))


def _graph(view: WorkflowView) -> Html:
    links = {
        name: f"#role-{number}"
        for number, name in enumerate(name for name, _ in _in_order(view.workflow))
    }
    return svg_picture(chart_of(view.workflow), links=links)


def _inputs(inputs: Mapping[str, Any]) -> Html:
    rows = []
    for name, schema in inputs.items():
        known = schema if isinstance(schema, Mapping) else {}
        told, choices = known.get("description"), known.get("enum")
        kinds = [
            " or ".join(input_types(schema)),
            f"one of {', '.join(map(input_text, choices))}"
            if isinstance(choices, list)
            else "",
            f"else {json.dumps(known['default'], ensure_ascii=False)}"
            if "default" in known
            else "",
        ]
        facts_ = ", ".join(each for each in kinds if each)
        about = tag(
            "dd",
            tag("span", str(told)) if told else None,
            tag("p", facts_, class_="note") if facts_ else None,
            json_block(schema) if not told and not facts_ else None,
        )
        rows.append(join(tag("dt", name), about))
    return section("Inputs", tag("dl", rows, class_="fields"))


def _role(number: int, name: str, role: Role, edges: Edges | None) -> Html:
    parts = (
        ("Goal", role.goal),
        ("Procedure", role.procedure),
        ("Output", role.output),
    )
    return tag(
        "article",
        tag("header", tag("h3", name), tag("p", role.description, class_="sum")),
        tag(
            "ul", [tag("li", each) for each in role.capabilities], class_="capabilities"
        )
        if role.capabilities
        else None,
        _edges(edges),
        div(
            "folds",
            [
                fold(join(title, span("hint", _first(text))), markdown(text))
                for title, text in parts
                if text.strip()
            ],
            fold("Answer's schema", json_block(dict(role.schema))),
        ),
        class_="role",
        id=f"role-{number}",
    )


def _first(text: str) -> str:
    line = next((each.strip() for each in text.splitlines() if each.strip()), "")
    return line if len(line) <= _HINT else line[: _HINT - 1] + "…"


def _edges(edges: Edges | None) -> Html | None:
    if not edges:
        return None
    rows: Sequence[tuple[str, Target]] = (
        [(each.when or "otherwise", each) for each in edges]
        if isinstance(edges, tuple)
        else list(edges.items())
    )
    return tag(
        "dl",
        [
            join(
                tag("dt", status),
                tag(
                    "dd",
                    span("arrow", "→ "),
                    tag("b", target.role),
                    tag("p", target.prompt, class_="prompt"),
                ),
            )
            for status, target in rows
        ],
        class_="edges",
    )


def _versions(site: Site, view: WorkflowView) -> Html | None:
    if not view.versions:
        return None
    return section(
        "Versions",
        tag(
            "ol",
            [
                tag(
                    "li",
                    link(
                        site.links.workflow(each.name, each.hash),
                        tag("code", each.hash),
                        aria_current="true" if each.hash == view.hash else None,
                    ),
                    " ",
                    moment(each.timestamp_ms, site.year),
                    span("note", "current") if each.current else None,
                    _what_changed(site, each),
                )
                for each in view.versions
            ],
            class_="family",
        ),
    )


def _what_changed(site: Site, version: Version) -> Html | None:
    """Lead to the difference, where there is a server to make it."""
    href = site.links.workflow(version.name, version.hash)
    if site.script is None or href is None:
        return None
    return link(f"{href}/changes", "what changed", class_="quiet")


def changes_page(site: Site, name: str, version: str, text: str) -> Html:
    """Lay out what a version changed."""
    body = join(
        tag(
            "header",
            tag(
                "p",
                link(site.links.workflows(), "Workflows"),
                span("slash", "/"),
                name,
                class_="crumb",
            ),
            tag("h1", "What version ", tag("code", version), " changed"),
            class_="head",
        ),
        code_block(text, "diff") if text else tag("p", "Nothing.", class_="none"),
    )
    return page(site, f"{name} {version}", body, kind="changes")


def _threads(site: Site, view: WorkflowView) -> Html | None:
    if not view.threads:
        return None
    shown = list(view.threads.items())[:_SHOWN]
    more = len(view.threads) - len(shown)
    return section(
        "Threads",
        tag(
            "ul",
            [
                tag(
                    "li",
                    link(site.links.thread(each), title or each),
                    " ",
                    tag("code", tail(each)),
                )
                for each, title in shown
            ],
            class_="family",
        ),
        tag("p", f"and {more:,} more", class_="none") if more else None,
    )


def workflows_page(
    site: Site, lines: Sequence[WorkflowLine], files: Child = None
) -> Html:
    """Lay out the listing of workflows."""
    body = join(
        tag("header", tag("h1", "Workflows"), class_="head"),
        tag("ol", [_line(site, each) for each in lines], class_="list plain")
        if lines
        else tag(
            "p",
            "No workflow is registered. Register one: ",
            tag("code", "uwf workflow add FILE", class_="command"),
            class_="none",
        ),
        files,
    )
    return page(site, "Workflows", body, kind="workflows")


def files_list(names: Sequence[str], base: str) -> Html | None:
    """List the files that can be edited."""
    if not names:
        return None
    items = [
        tag("li", div("what", tag("a", name, href=f"{base}/{name}", class_="title")))
        for name in names
    ]
    return section("Files in .workflows", tag("ol", items, class_="list plain"))


def _line(site: Site, line: WorkflowLine) -> Html:
    href = site.links.workflow(line.name, line.hash) if line.hash else None
    return tag(
        "li",
        div(
            "what",
            link(href, line.name, class_="title"),
            tag("p", line.problem or line.description, class_="sum"),
            facts(
                [
                    count_of(line.versions, "version"),
                    count_of(line.threads, "thread"),
                    tag("code", line.hash) if line.hash else None,
                ]
            ),
        ),
    )
