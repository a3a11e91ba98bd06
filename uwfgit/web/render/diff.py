"""Two threads side by side, from the step at which they part (pure)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any, Final

from uwfgit.model.thread.compare import (
    Pair,
    Sum,
    list_fields,
    step_duration,
)
from uwfgit.model.thread.step import Step
from uwfgit.model.thread.tip import Tip
from uwfgit.model.wording import count_of
from uwfgit.web.render.frame import Site, chip, facts, page, spent, tail
from uwfgit.web.render.markdown import markdown
from uwfgit.web.render.markup import Html, div, join, link, span, tag
from uwfgit.web.render.steps import field_value
from uwfgit.web.view.comparison import ComparisonView, Side

_COMPARED: Final = 20_000
"""Characters of a text whose words are compared; longer ones stand as they are."""


def diff_page(site: Site, view: ComparisonView) -> Html:
    """Lay out two threads."""
    a, b = view.a.tip, view.b.tip
    title = f"{tail(a.thread)} and {tail(b.thread)}"
    return page(site, title, _body(site, view), kind="diff")


def _body(site: Site, view: ComparisonView) -> Html:
    a, b, found = view.a, view.b, view.found
    point = found.fork_point
    shared = (
        "No step in common"
        if point is None
        else f"The same up to step {point.number}, {point.role}"
        + (f" → {point.status}" if point.status else "")
    )
    return join(
        tag(
            "header",
            tag(
                "p",
                link(site.links.threads(), "Threads"),
                span("slash", "/"),
                "comparison",
                class_="crumb",
            ),
            tag("h1", a.title if a.title == b.title else f"{a.title} and {b.title}"),
            tag("p", shared, class_="sum"),
            class_="head",
        ),
        div(
            "pairs",
            div(
                "pair heads",
                span("number", ""),
                _head(site, a, found.sum_a),
                _head(site, b, found.sum_b),
            ),
            [_pair(site, a.tip, b.tip, pair) for pair in found.pairs],
        )
        if found.pairs
        else tag("p", "Neither goes on from there.", class_="none"),
    )


def _head(site: Site, side: Side, total: Sum) -> Html:
    tip = side.tip
    return div(
        "side",
        link(site.links.thread(tip.thread), tag("code", tip.thread)),
        facts(
            [
                chip(side.status),
                count_of(total.steps, "step"),
                *spent(total.duration_ms, total.usage),
            ]
        ),
    )


def _pair(site: Site, a: Tip, b: Tip, pair: Pair) -> Html:
    is_same = pair.a is not None and pair.b is not None and not pair.differs
    return div(
        "pair same" if is_same else "pair",
        span("number", str(pair.number)),
        _side(site, a, pair.a, pair.b, pair),
        _side(site, b, pair.b, pair.a, pair),
    )


def _side(
    site: Site, tip: Tip, step: Step | None, other: Step | None, pair: Pair
) -> Html:
    if step is None:
        return div("side absent", "-", data_of=tail(tip.thread))
    said = join(span("arrow", " → "), step.status) if step.status else None
    differs = bool({"role", "status"} & set(pair.differs))
    return div(
        "side",
        tag(
            "h3",
            link(site.links.thread(tip.thread, step.number), step.role, said),
            class_="differs" if differs else None,
        ),
        facts([join("by ", step.agent), *spent(step_duration(step), step.usage)]),
        tag("dl", list(_fields(step, other, pair)), class_="fields"),
        data_of=tail(tip.thread),
    )


def _fields(step: Step, other: Step | None, pair: Pair) -> Iterator[Html]:
    for name in list_fields(step, other):
        if name in step.output:
            theirs = other.output.get(name) if other else None
            ours = step.output[name]
            if f"output.{name}" in pair.differs:
                yield _row(name, _marked(_plain(ours), _plain(theirs)), differs=True)
            else:
                yield _row(name, field_value(ours))
    if body := step.body.strip():
        theirs = other.body if other and "body" in pair.differs else None
        if theirs:
            yield _row("text", _marked(body, theirs.strip()), differs=True)
        else:
            yield join(tag("dt", "text"), tag("dd", markdown(body), class_="flows"))


def _row(name: str, shown: Html, *, differs: bool = False) -> Html:
    return join(
        tag("dt", name),
        tag("dd", shown, class_="text differs" if differs else None),
    )


def _plain(value: Any) -> str:  # noqa: ANN401 - a JSON value
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        return "\n".join(f"- {each}" for each in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _marked(value: str, theirs: str) -> Html:
    """Mark the words that the other side does not have there."""
    if len(value) + len(theirs) > _COMPARED:
        return join(value)
    ours, others = _words(value), _words(theirs)
    parts: list[Html] = []
    for kind, start, end, _, _ in SequenceMatcher(
        None, ours, others, autojunk=False
    ).get_opcodes():
        words = "".join(ours[start:end])
        if words:
            parts.append(join(words) if kind == "equal" else tag("mark", words))
    return join(parts)


def _words(text: str) -> list[str]:
    return [part for part in re.split(r"(\s+)", text) if part]
