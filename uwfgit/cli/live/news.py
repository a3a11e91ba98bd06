"""What happened to a thread since the user last asked what is new."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import format_time
from uwfgit.cli.frame.screen import shown

if TYPE_CHECKING:
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.event import Event
    from uwfgit.model.thread.tip import Tip


def list_news(ledger: Ledger, tip: Tip) -> list[Event]:
    """List the events since the user looked last, oldest first; all if never."""
    from uwfgit.model.thread.event import iter_events

    seen = ledger.local.find_seen(tip.thread)
    found: list[Event] = []
    for event in iter_events(ledger.store, tip.commit):
        if event.commit.oid == seen:
            break
        found.append(event)
    return found[::-1]


def mark_seen(context: CommandContext, ledger: Ledger, tip: Tip) -> None:
    """Keep that the user looked at all there is; an agent's look does not count."""
    if not context.environment.get("UWF_STEP"):
        ledger.local.set_seen(tip.thread, tip.commit)


def news_payload(event: Event) -> dict[str, Any]:
    """Give an event as JSON."""
    return {
        "event": event.name,
        "role": event.role,
        "status": event.status,
        "hash": event.node,
        "by": f"{event.commit.author.name} <{event.commit.author.email}>",
        "atMs": event.commit.committer.time * 1000,
        "oid": event.commit.oid,
    }


def news_line(event: Event) -> str:
    """Write an event as one line: when, what, who."""
    what = " ".join(word for word in (event.name, event.role, event.status) if word)
    when = format_time(event.commit.committer.time * 1000) or "-"
    return shown(f"new      {when}  {what}, by {event.commit.author.name}")
