"""The supervisor's look at a run, and the summary of a thread that does not run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.engine.ask.budget import NOTHING_BESIDE, Beside
from uwfgit.engine.judge.judging import (
    SEEN_STEPS,
    SUMMED_STEPS,
    Judge,
    Supervisor,
    fit_summary,
    hold_detail,
    read_decision,
    summary_prompt,
    supervisor_prompt,
)
from uwfgit.errors import AgentError, StateError, UwfError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.append import append_hold
from uwfgit.model.ledger.branch import append_summary
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.mask import Masker
from uwfgit.model.thread.hold import why_suspended
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.step import Step
from uwfgit.model.thread.tip import Tip, load_tip


class Look(Struct, frozen=True, kw_only=True):
    """What came of a supervisor's look at a run."""

    stops: bool
    beside: Beside
    """What this look and those before it cost that no event tells."""


def supervise(
    ledger: Ledger,
    record: Record,
    supervisor: Supervisor,
    *,
    beside: Beside,
    masker: Masker,
    warn: Callable[[str], None],
) -> Look:
    """Let a supervisor look at a thread that is idle, and stop it.

    What keeps it from judging is a warning: the run goes on. A look that lets it go
    on leaves no event; what those of a run cost stands in the hold they come to.

    Args:
        ledger: Where the thread is.
        record: The thread.
        supervisor: Who looks.
        beside: What the looks before this one cost.
        masker: Knows the secrets.
        warn: Told what kept it from judging.
    """
    judge = supervisor.judge
    prompt = masker.mask(
        supervisor_prompt(record.start.prompt, _newest(record, SEEN_STEPS)), set()
    )
    reply = judge.ask(prompt, thread=record.tip.thread)
    look = Look(stops=False, beside=beside.with_reply(reply))
    decision = reply.failure.message if reply.failure else read_decision(reply.text)
    if isinstance(decision, str):
        warn(f"warning: the supervisor did not judge: {decision}")
        return look
    if not decision.stops:
        return look
    turns = tuple(
        replace(turn, content=masker.mask(turn.content, set())) for turn in reply.turns
    )
    try:
        append_hold(
            ledger,
            record,
            reason=masker.mask(decision.reason, set()),
            detail=hold_detail(prompt, replace(reply, turns=turns)),
            usage=look.beside.usage,
            judge=judge.label,
        )
    except UwfError as exc:
        warn(f"warning: what the supervisor decided was not recorded: {exc.message}")
        return look
    return Look(stops=True, beside=NOTHING_BESIDE)


def _newest(record: Record, count: int) -> list[Step]:
    return list(islice(record.iter_steps(), count))[::-1]


def summarise(
    ledger: Ledger, thread: ThreadId, judge: Judge, *, masker: Masker
) -> tuple[Tip, str]:
    """Have a thread summarised that does not run; its lock must be held.

    Returns:
        The new tip, and the summary.

    Raises:
        StateError: It can be run; a summary is of what has stopped.
        AgentError: The model or agent gave none; the thread is as it was.
    """
    tip = load_tip(ledger.store, thread)
    state = tip.state
    if state.status == "idle":
        raise StateError(
            f"thread {thread} is not over: its next role is {state.current_role}",
            hint=f"run it first: uwf thread exec {thread} --all",
        )
    record = open_record(ledger.store, tip)
    why = why_suspended(ledger.store, tip.commit, state)
    stands = ": ".join(filter(None, [state.status, why]))
    prompt = masker.mask(
        summary_prompt(record.start.prompt, _newest(record, SUMMED_STEPS), stands),
        set(),
    )
    reply = judge.ask(prompt, thread=thread)
    text = fit_summary(masker.mask(reply.text, set()))
    if reply.failure is not None or not text:
        why = reply.failure.message if reply.failure else "it said nothing"
        raise AgentError(f"no summary by {judge.label}: {why}", agent=judge.label)
    new = append_summary(
        ledger, tip, text=text, usage=reply.usage, judge=reply.model or judge.label
    )
    return new, text
