"""How pushes and pulls are told: as JSON, and as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from uwfgit.cli.context import CommandContext
from uwfgit.cli.output import Output
from uwfgit.cli.screen import shown

if TYPE_CHECKING:
    from uwfgit.sync.exchange import Outcome
    from uwfgit.sync.pull import PullReport
    from uwfgit.sync.push import PushReport

_NAMED: Final = 10
"""Threads named one by one when there are many of a kind."""
_TOLD: Final = 20
"""Lines for refs that went well, of each kind."""
_GOOD: Final = ("new", "updated")
_COLORS: Final = {
    "new": "end",
    "updated": "end",
    "refused": "error",
    "rejected": "error",
    "diverged": "error",
    "busy": "warning",
    "behind": "warning",
}


def push_payload(report: PushReport) -> dict[str, Any]:
    """Give a push as JSON; what is up to date is only counted."""
    sent, waiting = _split(report)
    return {
        "remote": report.remote.name,
        "dryRun": report.dry_run,
        "items": [outcome_payload(each) for each in sent],
        "upToDate": report.up_to_date,
        "notShared": [_name(each) for each in waiting],
    }


def _split(report: PushReport) -> tuple[list[Outcome], list[Outcome]]:
    """Give what was tried, and what is not shared yet and was not asked for."""
    tried: list[Outcome] = []
    waiting: list[Outcome] = []
    for each in report.outcomes:
        (waiting if each.result == "not-shared" else tried).append(each)
    return tried, waiting


def pull_payload(report: PullReport) -> dict[str, Any]:
    """Give a pull as JSON; what is up to date is only counted."""
    return {
        "remote": report.source,
        "items": [outcome_payload(each) for each in report.outcomes],
        "upToDate": report.up_to_date,
        "collisions": [
            {"hash": each.hash, "threads": list(each.threads)}
            for each in report.collisions
        ],
    }


def outcome_payload(outcome: Outcome) -> dict[str, Any]:
    """Give what became of one ref."""
    return {
        "threadId": outcome.thread,
        "workflow": outcome.workflow,
        "ref": outcome.ref,
        "result": outcome.result,
        "old": outcome.old,
        "oid": outcome.new,
        "message": outcome.message,
    }


def _name(outcome: Outcome) -> str:
    return outcome.thread or outcome.ref.removeprefix("refs/heads/")


def push_text(output: Output, report: PushReport) -> str:
    """Write a push for people."""
    told, waiting = _split(report)
    lines = list(_lines(output, told))
    if report.up_to_date:
        lines.append(f"{report.up_to_date} up to date")
    if not lines:
        lines.append("nothing to push")
    if any(each.result in _GOOD for each in told):
        word = "would push to" if report.dry_run else "pushed to"
        lines.insert(0, f"{word} {shown(report.remote.name)}:")
    if waiting:
        names = ", ".join(shown(_name(each)) for each in waiting[:_NAMED])
        more = f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
        lines.append(f"not shared yet: {names}{more} (name them, or --all)")
    return "\n".join(lines)


def pull_text(output: Output, report: PullReport) -> str:
    """Write a pull for people."""
    lines = list(_lines(output, report.outcomes))
    if report.up_to_date:
        lines.append(f"{report.up_to_date} up to date")
    lines.insert(0, f"from {shown(report.source)}:")
    return "\n".join(lines if len(lines) > 1 else [*lines, "nothing there"])


def _lines(output: Output, outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Write a line a ref; of many that went well, the first ones and a count."""
    counts = Counter(outcome.result for outcome in outcomes)
    told: Counter[str] = Counter()
    for outcome in outcomes:
        told[outcome.result] += 1
        if outcome.message is None and told[outcome.result] > _TOLD:
            continue
        tail = f"  {shown(outcome.message)}" if outcome.message else ""
        yield f"{_word(output, outcome.result)}  {shown(_name(outcome))}{tail}"
    for result in _GOOD:
        if counts[result] > _TOLD:
            yield f"{_word(output, result)}  {counts[result] - _TOLD} more"


def _word(output: Output, result: str) -> str:
    return output.paint(result.ljust(10), _COLORS.get(result, ""))


def warn_collisions(context: CommandContext, report: PullReport) -> None:
    """Tell of hashes that name different contents in different threads."""
    for each in report.collisions:
        context.output.warn(
            f"hash {each.hash} names different contents in threads "
            f"{', '.join(each.threads)}; name the thread when you ask for it"
        )
