"""What can be done with a thread as it stands (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uwfgit.ids import ThreadId
from uwfgit.web.render.forms.form import button, form
from uwfgit.web.render.frame import Site, fold
from uwfgit.web.render.markup import Html, div, span, tag
from uwfgit.web.view.thread import ThreadView

_VERBS: Final = {"resume": "Resume", "poke": "Do it again"}


def thread_acts(site: Site, view: ThreadView, agents: Sequence[str]) -> Html | None:
    """Lay out what can be done with a thread as it stands."""
    place, status = site.links.thread(view.tip.thread), view.status
    body: list[Html | None] = []
    if status == "running":
        body.append(_stops(site, place, view))
    elif status == "idle":
        body.append(_run(site, place, agents))
    elif status == "suspended":
        # Where no role follows, a resume is refused.
        first = _poke if view.wait == "lost" else _resume
        body.append(first(site, place, agents))
    if status in {"idle", "suspended", "end"}:
        body.append(_more(site, place, view, agents))
    if not any(body):
        return None
    return tag("section", body, class_="acts", aria_label="Acts", id="acts")


def _stops(site: Site, place: str | None, view: ThreadView) -> Html | None:
    ways = {"pause": "Stop after this step", "stop": "Stop now"}
    forms = [
        form(site, f"{place}/{act}", button(words, quiet=True))
        for act, words in ways.items()
        if site.may(act) and not (act == "pause" and view.is_pausing)
    ]
    told = span("note", "It stops after this step.") if view.is_pausing else None
    return div("row", told, forms) if forms or told else None


def _run(site: Site, place: str | None, agents: Sequence[str]) -> Html | None:
    if not site.may("exec"):
        return None
    return form(
        site,
        f"{place}/exec",
        button("Run the next step"),
        button("Run to the end", quiet=True, name="all", value="1"),
        _agents(agents),
        class_="row",
    )


def _resume(site: Site, place: str | None, agents: Sequence[str]) -> Html | None:
    return _say(site, place, "resume", "What to tell the agent", agents)


def _poke(site: Site, place: str | None, agents: Sequence[str]) -> Html | None:
    return _say(site, place, "poke", "What to do differently", agents)


def _agents(agents: Sequence[str]) -> Html | None:
    if not agents:
        return None
    return tag(
        "select",
        tag("option", "the usual agent", value=""),
        [tag("option", name, value=name) for name in agents],
        name="agent",
        aria_label="Agent",
    )


def _say(
    site: Site, place: str | None, act: str, label: str, agents: Sequence[str]
) -> Html | None:
    """Make the form of an act that says something to the agent."""
    if not site.may(act):
        return None
    return form(
        site,
        f"{place}/{act}",
        tag(
            "textarea",
            name="prompt",
            placeholder=label,
            aria_label=label,
            # A correction that says nothing is none.
            required=act == "poke",
            rows=3,
        ),
        div("row", button(_VERBS[act]), _agents(agents)),
    )


def _more(
    site: Site, place: str | None, view: ThreadView, agents: Sequence[str]
) -> Html | None:
    thread, steps = view.tip.thread, view.tip.state.steps
    parts = []
    if view.status == "end" and site.may("resume"):
        label = "What is still to be done"
        again = _say(site, place, "resume", label, agents)
        parts.append(fold("Take it up again", again))
    if steps and view.wait != "lost" and site.may("poke"):
        parts.append(fold("Do the last step again", _poke(site, place, agents)))
    if site.may("fork"):
        parts.append(
            fold(
                "Fork",
                form(
                    site,
                    f"{place}/fork",
                    tag("label", "after step ", _step_number(steps)),
                    button("Fork", quiet=True),
                    class_="row",
                ),
            )
        )
    is_approved = view.tip.state.head in view.approvals
    if steps and not is_approved and site.may("approve"):
        parts.append(fold("Approve", _approve(site, place, thread)))
    if view.status != "end" and site.may("cancel"):
        parts.append(
            fold(
                "Cancel",
                form(
                    site,
                    f"{place}/cancel",
                    tag("input", name="reason", placeholder="Why", aria_label="Why"),
                    button("Cancel the thread", quiet=True),
                    class_="row",
                ),
            )
        )
    return div("more", parts) if parts else None


def _step_number(most: int) -> Html:
    return tag(
        "input",
        type="number",
        name="at",
        min=0,
        max=most,
        value=most,
        aria_label="Step",
    )


def _approve(site: Site, place: str | None, thread: ThreadId) -> Html:
    return form(
        site,
        f"{place}/approve",
        tag(
            "input",
            name="message",
            placeholder="Why",
            aria_label="Why",
            id=f"why-{thread}",
        ),
        button("Approve the newest step", quiet=True),
        class_="row",
    )
