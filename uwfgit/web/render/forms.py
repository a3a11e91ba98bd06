"""What can be done from a page: plain forms, which need no script (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from uwfgit.ids import ThreadId
from uwfgit.model.wording import shown_lines
from uwfgit.web.render.frame import Site, command, fold, page, section, tail
from uwfgit.web.render.markup import Carried, Child, Html, div, join, link, span, tag
from uwfgit.web.view.thread import ThreadView

_TYPED: Final = ("prompt", "reason", "message")
_EXAMPLES: Final = {"array": '["one", "two"]', "object": '{"name": "value"}'}


def form(site: Site, action: str, *children: Child, class_: str | None = None) -> Html:
    """Make a form that carries the page's token."""
    return tag(
        "form",
        tag("input", type="hidden", name="token", value=site.token),
        *children,
        method="post",
        action=action,
        class_=class_,
    )


def button(words: str, *, quiet: bool = False, name: str = "", value: str = "") -> Html:
    """Make a button that sends its form."""
    return tag(
        "button",
        words,
        type="submit",
        class_="quiet" if quiet else None,
        name=name or None,
        value=value or None,
    )


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


_VERBS: Final = {"resume": "Resume", "poke": "Do it again"}


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
                    tag("label", "after step ", _number("at", steps)),
                    button("Fork", quiet=True),
                    class_="row",
                ),
            )
        )
    if steps and site.may("approve"):
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


def _number(name: str, most: int) -> Html:
    return tag(
        "input",
        type="number",
        name=name,
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


def start_form(
    site: Site, workflow: str, inputs: Mapping[str, Any] | None
) -> Html | None:
    """Lay out the form that starts a thread of a workflow."""
    if not site.may("start"):
        return None
    fields = [_input(name, schema) for name, schema in (inputs or {}).items()]
    return tag(
        "section",
        fold(
            "Start a thread",
            form(
                site,
                f"{site.links.workflows()}/{workflow}/start",
                tag(
                    "textarea",
                    name="prompt",
                    placeholder="The task",
                    aria_label="The task",
                    required=True,
                    rows=4,
                ),
                fields,
                div(
                    "row",
                    button("Start"),
                    button("Start and run", quiet=True, name="run", value="1"),
                ),
            ),
        ),
        class_="acts",
    )


def input_types(schema: Any) -> tuple[str, ...]:  # noqa: ANN401 - a JSON Schema
    """Return the types of value that an input may be, besides null; none for any."""
    kinds = schema.get("type") if isinstance(schema, Mapping) else None
    several = kinds if isinstance(kinds, list) else [kinds]
    return tuple(each for each in several if isinstance(each, str) and each != "null")


def input_choices(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return what an input is chosen from; ``None`` if it is typed, or ticked."""
    choices, kinds = schema.get("enum"), schema.get("type")
    if isinstance(choices, list):
        return choices
    # A tick has no third state.
    is_three = kinds in (["boolean", "null"], ["null", "boolean"])
    return [None, True, False] if is_three else None


def input_text(value: Any) -> str:  # noqa: ANN401 - a JSON value
    """Write a value as a person writes it: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def default_text(schema: Any) -> str:  # noqa: ANN401 - a JSON Schema
    """Return what the field of an input holds before anyone types, as it is sent."""
    default = schema.get("default") if isinstance(schema, Mapping) else None
    return "" if default is None else shown_lines(input_text(default))


def _input(name: str, schema: Any) -> Html:  # noqa: ANN401 - a JSON Schema
    known = schema if isinstance(schema, Mapping) else {}
    told = known.get("description")
    return tag(
        "label",
        tag("span", name, class_="name"),
        _control(f"input.{name}", known),
        tag("small", str(told)) if told else None,
        class_="input",
    )


def _control(field: str, schema: Mapping[str, Any]) -> Html:
    choices, kinds = input_choices(schema), input_types(schema)
    if choices is not None:
        return _choice(field, choices, schema)
    if kinds == ("boolean",):
        ticked = schema.get("default") is True
        return tag("input", type="checkbox", name=field, checked=ticked)
    shown_first = default_text(schema)
    is_text = not kinds or "string" in kinds
    # What is emptied is the empty text, where the input may be one; else nothing.
    is_needed = "default" not in schema or (bool(shown_first) and not is_text)
    if "\n" in shown_first:
        # A browser takes the first line break of a text area away.
        words = ("\n", shown_first)
        return tag("textarea", *words, name=field, required=is_needed, rows=4)
    is_number = len(kinds) == 1 and kinds[0] in {"integer", "number"}
    return tag(
        "input",
        type="number" if is_number else "text",
        name=field,
        step=("any" if kinds[0] == "number" else 1) if is_number else None,
        min=_bound(schema, "minimum") if is_number else None,
        max=_bound(schema, "maximum") if is_number else None,
        value=Carried(shown_first) if shown_first else None,
        placeholder=_EXAMPLES.get(kinds[0]) if len(kinds) == 1 else None,
        required=is_needed,
    )


def _bound(schema: Mapping[str, Any], name: str) -> int | float | None:
    value = schema.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number else None


def _choice(field: str, choices: Sequence[Any], schema: Mapping[str, Any]) -> Html:
    chosen = [input_text(schema["default"])] if "default" in schema else []
    options = [input_text(each) for each in choices]
    return tag(
        "select",
        None if chosen else tag("option", "choose one", value=""),
        [
            tag("option", each, value=Carried(each), selected=each in chosen)
            for each in options
        ],
        name=field,
        required=not chosen,
    )


def problem_page(
    site: Site,
    title: str,
    messages: Sequence[str],
    hint: str | None,
    back: str | None,
    *more: Child,
) -> Html:
    """Say why something was not done, and what to do instead."""
    body = join(
        tag("header", tag("h1", title), class_="head"),
        div(
            "callout bad",
            [tag("p", each) for each in messages],
            tag("p", hint, class_="hint-line") if hint else None,
            role="alert",
        ),
        *more,
        tag("p", link(back, "Back")) if back else None,
    )
    return page(site, title, body, kind="problem")


def trust_screen(screen: str) -> Html:
    """Lay out what the command line says of a thread of others before it runs."""
    lines = [
        line
        for line in screen.splitlines()
        if not line.startswith(("error:", "hint:", "note:"))
    ]
    return tag("pre", "\n".join(lines), class_="plain", tabindex=0)


def folder_form(
    view: ThreadView, screen: str, act: str, fields: Mapping[str, str]
) -> Html:
    """Say how a thread of others runs whose folder is not known on this machine.

    No page chooses a folder; once one is chosen, pages run the thread too.
    """
    words = f"uwf thread {act} {tail(view.tip.thread)} --trust --cwd DIR"
    told = f"{words} -p TEXT" if fields.get("prompt", "").strip() else words
    return tag(
        "section",
        trust_screen(screen),
        tag("p", "Its folder is not known on this machine. Choose one in a terminal:"),
        tag("p", command(told)),
        written(fields),
        class_="acts",
    )


def written(fields: Mapping[str, str]) -> Html | None:
    """Show what was typed into a form that came to nothing, so that it is not lost."""
    typed = {
        name.removeprefix("input."): value
        for name, value in fields.items()
        if (name in _TYPED or name.startswith("input.")) and value.strip()
    }
    if not typed:
        return None
    rows = [
        join(
            tag("dt", name),
            tag("dd", tag("pre", value, class_="plain", tabindex=0)),
        )
        for name, value in typed.items()
    ]
    return section("What you wrote", tag("dl", rows, class_="fields"))


def trust_form(
    site: Site, view: ThreadView, screen: str, act: str, fields: Mapping[str, str]
) -> Html:
    """Lay out what a user has to agree to before a thread of others runs.

    What is answered holds for this tip and this workflow alone.

    Args:
        site: What the page is part of.
        view: The thread.
        screen: What the command line says of it.
        act: What was asked for.
        fields: With what.
    """
    tip = view.tip
    kept = {
        key: value for key, value in fields.items() if key not in {"token", "trust"}
    }
    return tag(
        "section",
        trust_screen(screen),
        form(
            site,
            f"{site.links.thread(tip.thread)}/{act}",
            tag("input", type="hidden", name="trust", value="1"),
            tag("input", type="hidden", name="tip", value=tip.commit),
            tag("input", type="hidden", name="workflow", value=tip.state.workflow_oid),
            [
                tag("input", type="hidden", name=key, value=Carried(value))
                for key, value in kept.items()
            ],
            button("Trust it, and run"),
        ),
        class_="acts",
    )
