"""A thread's page: where it stands, the way it took, its time and its steps (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uwfgit.ids import Hash
from uwfgit.model.thread.event import RUN_EVENTS, SUPERVISOR, Event
from uwfgit.model.thread.hold import HELD
from uwfgit.model.wording import count_of
from uwfgit.web.render.frame import (
    DASH,
    Site,
    chip,
    command,
    facts,
    fold,
    moment,
    page,
    person,
    section,
    spent,
    tail,
)
from uwfgit.web.render.markdown import markdown
from uwfgit.web.render.markup import Child, Html, div, join, link, span, tag
from uwfgit.web.render.picture import svg_picture
from uwfgit.web.render.steps import fields_list, step_article
from uwfgit.web.render.timeline import svg_timeline
from uwfgit.web.view.thread import BLOCK, Kin, ThreadView, block_start

_LONG_TASK: Final = 600
_SHOWN_AS_STEPS: Final = frozenset({"start", *RUN_EVENTS})


def thread_page(site: Site, view: ThreadView, *, acts: Child = None) -> Html:
    """Lay out the page of a thread."""
    return page(
        site,
        view.title,
        thread_body(site, view, acts=acts),
        kind="thread",
        live=f"{site.links.thread(view.tip.thread)}/live",
        tip=view.tip.commit,
    )


def thread_body(site: Site, view: ThreadView, *, acts: Child = None) -> Html:
    """Lay out what stands inside the frame."""
    return join(
        _head(site, view),
        _waiting(site, view),
        acts,
        div(
            "columns",
            tag(
                "aside",
                section("Path", div("scroll", _picture(site, view)), class_="path"),
                _threads(site, view),
                _family(site, view),
                _in_git(site, view),
            ),
            div(
                "main",
                section("Summary", markdown(view.summary), class_="summary")
                if view.summary
                else None,
                _task(view),
                section("Inputs", fields_list(view.inputs)) if view.inputs else None,
                _time(site, view),
                _steps(site, view),
            ),
        ),
    )


def _head(site: Site, view: ThreadView) -> Html:
    state = view.tip.state
    workflow = site.links.workflow(state.workflow_name, state.workflow_hash)
    took = sum(max(0, s.completed_at_ms - s.started_at_ms) for s in view.steps)
    return tag(
        "header",
        tag(
            "p",
            link(site.links.threads(), "Threads"),
            span("slash", "/"),
            link(workflow, state.workflow_name),
            class_="crumb",
        ),
        tag("h1", view.title),
        facts(
            [
                chip(view.status),
                count_of(state.steps, "step"),
                *spent(took if view.steps else None, state.usage, view.cost),
                join(
                    moment(state.started_at_ms, site.year),
                    " by ",
                    person(state.started_by),
                ),
                tag("code", view.tip.thread, class_="id"),
            ]
        ),
        class_="head",
    )


def _waiting(site: Site, view: ThreadView) -> Html | None:
    state = view.tip.state
    is_waiting = state.status == "suspended" and view.status != "running"
    if not is_waiting or not state.suspend_message:
        return None
    who = state.suspended_role or "The thread"
    until = moment(state.retry_at_ms, site.year)
    heads = {
        "failed": f"{who} did not finish",
        "lost": f"No role follows {who}",
        "held": f"{who} is {HELD}",
    }
    ways = {"failed": "resume {}", "lost": "poke {} -p TEXT", "held": "resume {}"}
    is_held = view.wait == "held"
    said = state.suspend_message
    way = "resume {}" if until else ways.get(view.wait, "resume {} -p TEXT")
    return div(
        "callout",
        tag("b", who, " waits for a limit, until ", until)
        if until
        else tag("b", heads.get(view.wait, f"{who} waits for a person")),
        tag("p", said.removeprefix(SUPERVISOR) if is_held else said),
        tag(
            "p",
            "Release it: " if is_held else None,
            command(f"uwf thread {way.format(tail(view.tip.thread))}"),
            class_="way",
        ),
        role="note",
    )


def _picture(site: Site, view: ThreadView) -> Html:
    newest: dict[str, str] = {}
    for step in view.steps:
        child = site.links.thread(step.child.thread) if step.child else None
        href = child or site.links.thread(view.tip.thread, step.number)
        if href:
            newest[step.role] = href
    return svg_picture(view.chart, links=newest, label="the way the thread took")


def _task(view: ThreadView) -> Html | None:
    task = view.task.strip()
    if "\n" not in task and task.endswith(view.title):
        return None
    laid_out = markdown(task)
    if len(task) > _LONG_TASK:
        laid_out = fold("Read the whole task", laid_out)
    return section("Task", laid_out, class_="task")


def _time(site: Site, view: ThreadView) -> Html | None:
    if not view.steps:
        return None
    thread = view.tip.thread
    picture = svg_timeline(view.steps, lambda number: site.links.thread(thread, number))
    return section("Time", div("scroll", picture), class_="time")


def _steps(site: Site, view: ThreadView) -> Html:
    thread = view.tip.thread
    # For what follows it alone: a single page may hold several threads.
    anchor = None if site.script is None else "steps"
    if not view.block and view.status == "running":
        told = tag("p", "The first one is running.", class_="none")
        return section("Steps", told, id=anchor)
    if not view.block:
        return section(
            "Steps",
            tag("p", "No step yet. Run the first one:", class_="none"),
            command(f"uwf thread exec {tail(thread)}"),
            id=anchor,
        )
    return section(
        "Steps",
        _blocks(site, view),
        [step_article(site, thread, entry) for entry in view.block],
        _blocks(site, view),
        id=anchor,
    )


def _blocks(site: Site, view: ThreadView) -> Html | None:
    """Lead to the other blocks of a long thread."""
    count = len(view.steps)
    if count <= BLOCK or len(view.block) > BLOCK + 1:
        return None
    first = range(1, count + 1, BLOCK)
    return tag(
        "nav",
        [
            tag(
                "a",
                f"{start}{DASH}{min(start + BLOCK - 1, count)}",
                href=site.links.thread(view.tip.thread, start),
                aria_current="true" if start == block_start(view.first) else None,
            )
            for start in first
        ],
        class_="blocks",
        aria_label="Steps",
    )


def _family(site: Site, view: ThreadView) -> Html | None:
    if not view.relatives:
        return None
    lines = []
    for each in view.relatives:
        where = f"step {each.number}" if each.number else "the start"
        href = site.links.diff(*sorted((view.tip.thread, each.thread)))
        lines.append(
            tag(
                "li",
                link(site.links.thread(each.thread), tag("code", tail(each.thread))),
                span(
                    "note",
                    f"origin, left after {where}"
                    if each.is_origin
                    else f"fork after {where}",
                ),
                chip(each.status),
                link(href, "compare", class_="quiet") if href else None,
            )
        )
    return section("Forks", tag("ul", lines, class_="family"), class_="forks")


def _threads(site: Site, view: ThreadView) -> Html | None:
    """Lead to the thread above, and to those that did steps of this one."""
    parent = view.parent
    if parent is None and not view.children:
        return None
    lines = []
    if parent is not None:
        where = f"this does its step {parent.number}" if parent.number else "not here"
        lines.append(_kin(site, parent, where, number=parent.number or None))
    for child in view.children:
        did = f"did step {child.number}" if child.number else "at work for this"
        lines.append(_kin(site, child, did if child.status else f"{did}, not here"))
    return section("Threads", tag("ul", lines, class_="family"), class_="kin")


def _kin(site: Site, kin: Kin, note: str, *, number: int | None = None) -> Html:
    name = [kin.workflow, " "] if kin.workflow else []
    return tag(
        "li",
        link(
            site.links.thread(kin.thread, number), name, tag("code", tail(kin.thread))
        ),
        span("note", note),
        chip(kin.status) if kin.status else None,
    )


def _in_git(site: Site, view: ThreadView) -> Html:
    thread = view.tip.thread
    events = [event for event in view.events if event.name not in _SHOWN_AS_STEPS]
    numbers = {step.hash: step.number for step in view.steps}
    approved = [str(numbers.get(Hash(each), each)) for each in view.approvals]
    return section(
        "In git",
        tag("p", command(f"uwf git log -p thread/{thread}")),
        tag("ul", [_event(site, each) for each in events], class_="events")
        if events
        else None,
        fold("Raw", tag("dl", list(_raw(site, view)), class_="record")),
        tag("p", f"approved: step {', '.join(approved)}") if approved else None,
        # Only a server can make the proof.
        tag("p", link(f"{site.links.thread(thread)}/verify", "verify it"))
        if site.script
        else None,
        class_="git",
    )


def _event(site: Site, event: Event) -> Html:
    subject = event.commit.message.partition("\n")[0]
    return tag(
        "li",
        tag("code", event.commit.oid[:8]),
        " ",
        subject,
        " ",
        moment(event.commit.committer.time * 1000, site.year),
    )


def _raw(site: Site, view: ThreadView) -> Iterator[Html]:
    tip, state = view.tip, view.tip.state
    for name, node in (
        ("head", state.head),
        ("start", state.start),
        ("workflow", state.workflow_hash),
    ):
        href = site.links.node(tip.thread, node)
        yield join(tag("dt", name), tag("dd", link(href, tag("code", node))))
    yield join(tag("dt", "commit"), tag("dd", tag("code", tip.commit)))
    yield join(tag("dt", "folder"), tag("dd", tag("code", view.cwd)))
