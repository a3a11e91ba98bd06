"""A step in full: what was asked, what came back, what happened between (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from uwfgit.ids import ThreadId
from uwfgit.model.ledger.prices import cost_of
from uwfgit.model.thread.compare import step_duration
from uwfgit.model.thread.step import Step
from uwfgit.model.wording import count_of
from uwfgit.web.render.code import code_block, json_block
from uwfgit.web.render.frame import Site, command, facts, fold, moment, person, spent
from uwfgit.web.render.markdown import markdown, plain_fields
from uwfgit.web.render.markup import Child, Html, div, join, link, span, tag
from uwfgit.web.view.thread import Numbered, Run

_SHORT: Final = 120
_ARGUMENTS: Final = 200
_HOW: Final = {
    "resume": "resumed",
    "poke": "done again after a correction",
}


def step_article(site: Site, thread: ThreadId, entry: Numbered) -> Html:
    """Lay out all that stands under one number of a thread."""
    run, anchor = entry.run, site.links.anchor(thread, entry.number)
    before = [
        *(_aside(site, thread, each, "failed attempt") for each in entry.attempts),
        *(_aside(site, thread, each, "replaced step") for each in entry.replaced),
    ]
    if run is None:
        return tag(
            "article",
            div("number", str(entry.number)),
            div("content", before),
            class_="step pending",
            id=anchor,
        )
    return tag(
        "article",
        div("number", tag("a", str(entry.number), href=f"#{anchor}")),
        div(
            "content",
            _heading(site, thread, run),
            before,
            run_body(site, thread, run),
        ),
        class_=f"step {_tone(run.step.status)}",
        id=anchor,
    )


def _tone(status: str | None) -> str:
    return {"$SUSPEND": "waits", "error": "failed"}.get(status or "", "fine")


def _heading(site: Site, thread: ThreadId, run: Run) -> Html:
    step = run.step
    how = _HOW.get(run.event.name, "") if run.event else ""
    who = [
        join("by ", tag("b", step.agent)),
        str(run.detail.get("model") or "") or None,
        *spent(step_duration(step), step.usage, cost_of(step.usage, run.detail)),
        moment(step.completed_at_ms, site.year),
        _change(site, thread, step),
        how,
    ]
    said = span(f"said {_tone(step.status)}", step.status) if step.status else None
    return tag(
        "header",
        tag("h3", step.role, span("arrow", " → ") if said else None, said),
        facts(who),
    )


def run_body(site: Site, thread: ThreadId, run: Run) -> Html:
    """Lay out a run below its heading."""
    step, child = run.step, run.step.child
    return join(
        tag(
            "p",
            "Done by thread ",
            link(site.links.thread(child.thread), tag("code", child.thread)),
        )
        if child is not None
        else None,
        fields_list(step.output),
        markdown(step.body) if step.body.strip() else None,
        [div("warning", "Warning: ", warning) for warning in step.warnings],
        div("warning", "What its agent did cannot be read: ", run.problem)
        if run.problem
        else None,
        div("folds", list(_folds(site, thread, run))),
    )


def fields_list(output: Mapping[str, Any]) -> Html | None:
    """Lay out the fields of an answer, or the inputs of a thread."""
    fields = plain_fields(output)
    if not fields:
        return None
    rows = [
        join(tag("dt", name), tag("dd", field_value(value))) for name, value in fields
    ]
    return tag("dl", rows, class_="fields")


def field_value(value: Any) -> Html:  # noqa: ANN401 - a JSON value
    """Lay out the value of a field."""
    if isinstance(value, str):
        return markdown(value) if "\n" in value.strip() else tag("span", value or "-")
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        return tag("ul", [tag("li", each) for each in value], class_="values")
    if not value or isinstance(value, bool | int | float):
        return tag("code", json.dumps(value))
    return json_block(value)


def _folds(site: Site, thread: ThreadId, run: Run) -> Iterator[Html]:
    step, detail = run.step, run.detail
    line = " ".join(step.edge_prompt.split())
    hint = line if len(line) <= _SHORT else line[: _SHORT - 1] + "…"
    asked = [div("asked", markdown(step.edge_prompt))]
    if step.note:
        asked += [tag("h4", "Note"), div("asked", markdown(step.note))]
    yield fold(join("Asked", span("hint", hint)), *asked)
    turns = detail.get("turns") or []
    # A single one without tools is the reply itself.
    if len(turns) > 1 or any(turn.get("toolCalls") for turn in turns):
        calls = sum(len(turn.get("toolCalls") or []) for turn in turns)
        told = count_of(len(turns), "turn")
        told += f", {count_of(calls, 'tool call')}" if calls else ""
        yield fold(join("Turns", span("hint", told)), turns_list(turns))
    if run.code:
        yield fold("Code", code_block(run.code, "diff"))
    whole = detail.get("assembledPrompt")
    yield fold(
        "Record",
        _record(site, thread, run),
        fold("The whole prompt", tag("pre", str(whole), tabindex=0)) if whole else None,
    )


def turns_list(turns: Sequence[Mapping[str, Any]]) -> Html:
    """Lay out the turns of a run, one that is still going on too."""
    return tag("ol", [_turn(turn) for turn in turns], class_="turns")


def _turn(turn: Mapping[str, Any]) -> Html:
    content = str(turn.get("content") or "")
    reasoning = turn.get("reasoning")
    role = str(turn.get("role") or "-")
    return tag(
        "li",
        span("speaker", role),
        fold("Reasoning", tag("pre", str(reasoning), tabindex=0))
        if reasoning
        else None,
        markdown(content) if content.strip() else None,
        [_call(call) for call in turn.get("toolCalls") or []],
        class_=f"turn {role if role.isascii() and role.isalpha() else 'other'}",
    )


def _call(call: Mapping[str, Any]) -> Html:
    arguments = call.get("arguments")
    text = (
        arguments
        if isinstance(arguments, str)
        else json.dumps(arguments, ensure_ascii=False)
    )
    result = call.get("result")
    told = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
    short = text if len(text) <= _ARGUMENTS else text[: _ARGUMENTS - 1] + "…"
    return fold(
        join(tag("b", str(call.get("name") or "-")), " ", tag("code", short)),
        tag("pre", text, tabindex=0) if short != text else None,
        tag("pre", told, tabindex=0, class_="result")
        if result is not None
        else tag("p", "no result recorded", class_="none"),
        class_="call",
    )


def _record(site: Site, thread: ThreadId, run: Run) -> Html:
    """Say where the run stands: its nodes, its commit, its folder."""
    step, event, found = run.step, run.event, run.step.code.snapshot
    node = site.links.node
    rows: list[tuple[str, Child]] = [
        ("step", link(node(thread, step.hash), tag("code", step.hash))),
        ("output", link(node(thread, step.output_hash), tag("code", step.output_hash))),
        ("detail", link(node(thread, step.detail_hash), tag("code", step.detail_hash))),
        ("kind", str(run.detail.get("kind") or "-")),
        ("session", str(run.detail.get("sessionId") or "") or None),
        ("folder", tag("code", step.cwd)),
        ("code", _code(step.code.before, step.code.after)),
        ("files", _code(found.before, found.after) if found else None),
        ("understood by", step.extracted_by),
    ]
    if event is not None:
        rows += [
            ("commit", tag("code", event.commit.oid)),
            ("recorded by", person(event.commit.committer.name)),
            ("in git", command(f"uwf git show {event.commit.oid[:12]}")),
        ]
    rows.append(("in uwf", command(f"uwf step show {step.hash}")))
    return tag(
        "dl",
        [join(tag("dt", name), tag("dd", value)) for name, value in rows if value],
        class_="record",
    )


def _change(site: Site, thread: ThreadId, step: Step) -> Html | None:
    """Lead to what a step of the chain changed in the code, where a server shows it."""
    found = step.code.snapshot
    if site.script is None or found is None or found.before == found.after:
        return None
    href = f"{site.links.thread(thread)}/code/{step.number}"
    return link(href, "what it changed", class_="change")


def _code(before: str | None, after: str | None) -> Html | None:
    if not before and not after:
        return None
    if before == after:
        return tag("code", (after or "-")[:12])
    return join(
        tag("code", (before or "-")[:12]), " → ", tag("code", (after or "-")[:12])
    )


def _aside(site: Site, thread: ThreadId, run: Run, what: str) -> Html:
    step = run.step
    why = step.output.get("error") if what == "failed attempt" else step.status
    return fold(
        join(span("what", what), span("hint", str(why or ""))),
        facts(
            [
                step.role,
                join("by ", step.agent),
                *spent(
                    step_duration(step), step.usage, cost_of(step.usage, run.detail)
                ),
                moment(step.completed_at_ms, site.year),
            ]
        ),
        run_body(site, thread, run),
        class_="aside " + what.partition(" ")[0],
    )
