"""A vendor's limit: told with its end, and gone on from by itself then."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tests.acting import acting, saying
from tests.builders import record_of, reply
from tests.history import check_thread, names, state_of
from uwfgit.agents.base import AgentReply, Failure
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.executor import exec_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger

GOOD: Final = reply(plan="x")
ENDS: Final = 1_900_000_000_000


def limited(at_ms: int | None = ENDS) -> AgentReply:
    failure = Failure(phase="limit", message="limit reached", retry_at_ms=at_ms)
    return AgentReply(text="", failure=failure)


def at(ledger: Ledger, now_ms: int) -> Ledger:
    return replace(ledger, now_ms=lambda: now_ms)


def test_a_limit_is_an_attempt_that_says_until_when(
    ledger: Ledger, thread: ThreadId
) -> None:
    report = exec_thread(acting(ledger, saying(limited())), thread, count=1)

    state = state_of(ledger.store, thread)
    assert report.end is RunEnd.AGENT_FAILED
    assert (state.status, state.retry_at_ms) == ("suspended", ENDS)
    assert names(ledger.store, thread)[-1] == "attempt"


def test_before_its_end_exec_runs_nothing_and_says_how_to_wait(
    ledger: Ledger, thread: ThreadId
) -> None:
    exec_thread(acting(ledger, saying(limited())), thread, count=1)

    report = exec_thread(acting(ledger, saying()), thread, count=1)

    assert (report.end, report.steps) == (RunEnd.WAITING, ())
    assert report.hint is not None
    assert report.hint.endswith(f"uwf thread exec {thread} --wait")


def test_from_its_end_on_exec_goes_on_as_resume_does(
    ledger: Ledger, thread: ThreadId
) -> None:
    exec_thread(acting(ledger, saying(limited())), thread, count=1)
    later = at(ledger, ENDS)
    bad = reply("bad", "Not fine.", reason="slow")

    report = exec_thread(acting(later, saying(GOOD, bad)), thread, count=2)

    assert report.end is RunEnd.DONE
    assert names(ledger.store, thread)[-3:] == ["attempt", "resume", "step"]
    assert state_of(ledger.store, thread).retry_at_ms is None
    assert record_of(ledger, thread).steps()[0].previous_attempts
    check_thread(ledger.store, thread)


def test_a_limit_without_an_end_waits_for_a_person(
    ledger: Ledger, thread: ThreadId
) -> None:
    exec_thread(acting(ledger, saying(limited(None))), thread, count=1)

    report = exec_thread(acting(at(ledger, ENDS), saying()), thread, count=1)

    assert (report.end, report.steps) == (RunEnd.WAITING, ())
