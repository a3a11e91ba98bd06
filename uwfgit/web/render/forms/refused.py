"""What is said when something was not done, and what it still takes (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import Final

from uwfgit.web.render.forms.form import INPUT, button, form
from uwfgit.web.render.frame import Site, command, page, section, tail
from uwfgit.web.render.markup import Carried, Child, Html, div, join, link, tag
from uwfgit.web.view.thread import ThreadView

_TYPED: Final = ("prompt", "reason", "message")


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
    return tag("pre", dedent("\n".join(lines)), class_="plain", tabindex=0)


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
        name.removeprefix(INPUT): value
        for name, value in fields.items()
        if (name in _TYPED or name.startswith(INPUT)) and value.strip()
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
