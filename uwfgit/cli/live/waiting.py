"""Waiting for a vendor's limit to end: by the wall clock, without lock or slot."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from uwfgit.cli.frame.arguments import parse_span
from uwfgit.cli.frame.context import CommandContext
from uwfgit.errors import UsageError
from uwfgit.model.thread.tip import load_tip
from uwfgit.model.wording import format_time

if TYPE_CHECKING:
    from uwfgit.engine.run.engine import Engine
    from uwfgit.engine.run.report import RunReport
    from uwfgit.ids import ThreadId

_NAP: Final = 20.0
"""A machine that slept finds out so late at most."""


def read_duration(text: str) -> int:
    """Read how long to wait at most, in milliseconds.

    Raises:
        UsageError: It is no span of time.
    """
    span = parse_span(text.strip())
    if span is None:
        raise UsageError(
            f"--wait: '{text}' is not a time", hint="for example 30m or 6h"
        )
    return span


def wait_for_limit(
    context: CommandContext, engine: Engine, thread: ThreadId, patience_ms: int
) -> bool:
    """Wait until a thread that waits for a limit can go on; ``False``: it need not.

    A limit that ends later than the user's patience is told, not waited for.
    """
    state = load_tip(engine.ledger.store, thread).state
    now = engine.ledger.now_ms
    if state.retry_at_ms is None:
        return False
    ends = format_time(state.retry_at_ms) or "an unknown time"
    if state.retry_at_ms - now() > patience_ms:
        context.output.say(f"the limit lasts until {ends}: not waited for")
        return False
    context.output.say(f"waiting for the limit to end at {ends}")
    while now() < state.retry_at_ms:
        time.sleep(min(_NAP, (state.retry_at_ms - now()) / 1000 + 0.01))
    return True


def add_report(first: RunReport, second: RunReport) -> RunReport:
    """Put what ran after a wait behind what ran before it."""
    return replace(second, steps=(*first.steps, *second.steps))


def count_good(report: RunReport) -> int:
    """Count the steps of a report that are no failed tries."""
    return sum(step.error is None for step in report.steps)
