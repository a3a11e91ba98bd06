"""The editor's page: the text beside its picture and its problems (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from uwfgit.constants import END
from uwfgit.errors import Problem
from uwfgit.model.picture.chart import Chart
from uwfgit.model.wording import UNSAFE, count_of
from uwfgit.web.edit.redraw import Drawn
from uwfgit.web.render.frame import Site, page, section
from uwfgit.web.render.markup import Carried, Html, div, join, link, span, tag
from uwfgit.web.render.picture import svg_picture

_FORM = "editor"
_HIDDEN = 5


class Draft(Struct, frozen=True, kw_only=True):
    """A text that is being edited, and what is seen of it.

    ``was`` tells the file that it was made from.
    """

    name: str
    text: str
    was: str
    chart: Chart | None
    drawn: Drawn
    problems: Sequence[Problem]
    said: str = ""
    """What became of the last act; "" when nothing was done."""
    is_bad: bool = False


def editor_page(site: Site, draft: Draft, base: str) -> Html:
    """Lay out the editor."""
    body = join(
        tag(
            "header",
            tag("p", link(site.links.workflows(), "Workflows"), class_="crumb"),
            tag("h1", draft.name),
            class_="head",
        ),
        tag(
            "form",
            tag("input", type="hidden", name="token", value=site.token),
            tag("input", type="hidden", name="was", value=draft.was, id="was"),
            tag(
                "textarea",
                # A browser takes the first line break of a text area away.
                "\n",
                Carried(draft.text),
                name="text",
                id="text",
                spellcheck="false",
                aria_label="The workflow file",
                rows=36,
            ),
            div(
                "row",
                tag("button", "Save", type="submit", name="act", value="save"),
                tag(
                    "button",
                    "Check",
                    type="submit",
                    name="act",
                    value="check",
                    class_="quiet",
                ),
            ),
            method="post",
            action=base,
            id=_FORM,
            class_="text",
        ),
        editor_side(draft),
    )
    return page(site, draft.name, div("desk", body), kind="workflow edit")


def editor_side(draft: Draft) -> Html:
    """Lay out what stands beside the text; it is replaced while one types."""
    errors = sum(each.severity == "error" for each in draft.problems)
    links = {name: f"#edit-{number}" for number, name in enumerate(draft.drawn.roles)}
    told = draft.said or ("nothing is wrong" if not draft.problems else "")
    return tag(
        "div",
        tag(
            "p",
            told or count_of(len(draft.problems), "problem"),
            class_="said-line bad"
            if draft.is_bad or (errors and not told)
            else "said-line",
            role="status",
        ),
        tag("ol", [_problem(each) for each in draft.problems], class_="problems")
        if draft.problems
        else None,
        _hidden(draft.text),
        section(
            "Graph",
            div("scroll", svg_picture(draft.chart, links=links))
            if draft.chart is not None
            else tag("p", "There is no graph yet.", class_="none"),
            class_="path",
        ),
        section("Change it", *_changes(draft)),
        id="side",
        data_was=draft.was,
    )


def _hidden(text: str) -> Html | None:
    """Name what the text holds that an editor does not show."""
    found = [
        (number, match[0])
        for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1)
        for match in UNSAFE.finditer(line)
    ]
    if not found:
        return None
    more = len(found) - _HIDDEN
    return tag(
        "p",
        "Not to be seen in the text: ",
        join(
            *(
                join(", " if at else None, tag("code", char), f" in line {number}")
                for at, (number, char) in enumerate(found[:_HIDDEN])
            ),
        ),
        f" and {more} more" if more > 0 else None,
        class_="warning",
    )


def _problem(problem: Problem) -> Html:
    line = problem.line or 1
    return tag(
        "li",
        tag("a", f"line {line}", href="#text", data_line=line),
        span(
            "what",
            join(tag("b", problem.path), ": ") if problem.path else None,
            problem.message,
        ),
        span("hint", problem.hint) if problem.hint else None,
        class_=problem.severity,
    )


def _changes(draft: Draft) -> list[Html]:
    parts = [
        _role(draft, number, name) for number, name in enumerate(draft.drawn.roles)
    ]
    return [
        *parts,
        div(
            "row",
            _input("new-role", "", "A new role"),
            _button("add-role", "Add the role"),
        ),
    ]


def _role(draft: Draft, number: int, name: str) -> Html:
    edges = [
        (at, edge) for at, edge in enumerate(draft.drawn.edges) if edge.role == name
    ]
    return tag(
        "details",
        tag("summary", name),
        div(
            "row",
            _input(f"name.{number}", name, f"Name of {name}"),
            _button(f"rename-role.{number}", "Rename"),
            _button(f"delete-role.{number}", "Delete"),
        ),
        [
            div(
                "row",
                span("status", str(edge.key)),
                _targets(f"to.{at}", draft, edge.target, f"{name} {edge.key} leads to"),
                _button(f"move-edge.{at}", "Redraw"),
                _button(f"delete-edge.{at}", "Delete"),
            )
            for at, edge in edges
        ],
        div(
            "row",
            _input(f"status.{number}", "", f"A new status of {name}"),
            _targets(f"target.{number}", draft, END, f"A new edge of {name} leads to"),
            _button(f"add-edge.{number}", "Add the edge"),
        ),
        id=f"edit-{number}",
        name="role",
    )


def _input(name: str, value: str, label: str) -> Html:
    return tag(
        "input", name=name, value=value, aria_label=label, placeholder=label, form=_FORM
    )


def _button(act: str, words: str) -> Html:
    return tag(
        "button",
        words,
        type="submit",
        name="act",
        value=act,
        form=_FORM,
        class_="quiet",
    )


def _targets(name: str, draft: Draft, chosen: str, label: str) -> Html:
    names = [*draft.drawn.roles, END]
    names += [chosen] if chosen not in names else []
    return tag(
        "select",
        [tag("option", each, value=each, selected=each == chosen) for each in names],
        name=name,
        aria_label=label,
        form=_FORM,
    )


def all_of(draft: Draft) -> dict[str, str]:
    """Return what a script replaces on the page."""
    return {"text": draft.text, "was": draft.was, "side": editor_side(draft)}
