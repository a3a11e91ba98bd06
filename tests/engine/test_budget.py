"""What a thread may cost: over steps, over children, and inside one step."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.acting import Act, ActingAgent, saying
from tests.builders import begin, make_engine, record_of, reply
from tests.engine.nested import child, children_of, parent, start
from tests.history import check_thread, names, state_of
from uwfgit.agents.base import AgentReply, AgentRequest, Turn
from uwfgit.config import Limits, Settings
from uwfgit.engine.ask.budget import find_excess
from uwfgit.engine.run.executor import Engine, exec_thread, poke_thread, resume_thread
from uwfgit.errors import BudgetError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger import prices
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.event import iter_events
from uwfgit.model.thread.step import Usage, add_usage

DONE = reply(plan="x")
BAD = reply("bad", reason="slow")


def used(**changes: Any) -> Usage:  # noqa: ANN401 - fields of a usage
    facts = {"turns": 1, "input_tokens": 60, "output_tokens": 40, "duration_ms": 60_000}
    return Usage(**{**facts, "cost_usd": 0.5, **changes})


def costing(**changes: Any) -> AgentReply:  # noqa: ANN401 - fields of a usage
    return AgentReply(text=DONE, usage=used(**changes))


def engine(
    ledger: Ledger,
    act: Act,
    *,
    tells_cost: bool = True,
    **limits: Any,  # noqa: ANN401 - as they are taken
) -> Engine:
    agent = ActingAgent(act=act, tells_cost=tells_cost)
    settings = Settings(limits=Limits(**limits))
    return make_engine(ledger, choose=lambda *_: agent, settings=settings)


@pytest.fixture
def thread(ledger: Ledger, tmp_path: Path) -> ThreadId:
    return begin(ledger, tmp_path).thread


LIMITS = [
    pytest.param({"max_cost_usd": 1.0}, "1 of 1 USD", id="cost"),
    pytest.param({"max_tokens": 200}, "200 of 200 tokens", id="tokens"),
    pytest.param({"max_turns": 2}, "2 of 2 turns", id="turns"),
    pytest.param({"max_minutes": 2.0}, "2 of 2 minutes", id="minutes"),
]


@pytest.mark.parametrize(("limits", "words"), LIMITS)
def test_what_is_used_up_stops_the_next_step_and_records_nothing(
    ledger: Ledger, thread: ThreadId, limits: dict[str, Any], words: str
) -> None:
    replies = [costing(), replace(costing(), text=BAD), costing()]
    able = engine(ledger, saying(*replies), **limits)

    report = exec_thread(able, thread, count=None)
    with pytest.raises(BudgetError) as caught:
        exec_thread(able, thread, count=1)

    assert (report.end, report.code) == ("refused", "budget")
    assert names(ledger.store, thread) == ["start", "step", "step"]
    assert caught.value.code == "budget"
    assert words in caught.value.message
    check_thread(ledger.store, thread)


def test_a_raised_budget_goes_on(ledger: Ledger, thread: ThreadId) -> None:
    exec_thread(engine(ledger, saying(costing())), thread, count=1)
    with pytest.raises(BudgetError):
        exec_thread(engine(ledger, saying(), max_tokens=100), thread, count=1)
    with pytest.raises(BudgetError):
        poke_thread(engine(ledger, saying(), max_tokens=100), thread, note="x")

    able = engine(ledger, saying(reply("good")), max_tokens=101)
    assert exec_thread(able, thread, count=1).end == "done"


def test_money_is_limited_by_list_prices_where_none_is_told(
    ledger: Ledger, thread: ThreadId
) -> None:
    told = replace(costing(cost_usd=None, input_tokens=10**6), model="gpt-5")
    able = engine(ledger, saying(told, told), tells_cost=False, max_cost_usd=1.0)

    report = exec_thread(able, thread, count=None)

    assert (report.code, len(report.steps)) == ("budget", 2)
    assert report.problem is not None
    assert "1.2504 of 1 USD" in report.problem


def test_money_is_not_limited_where_no_price_is_known(
    ledger: Ledger, thread: ThreadId
) -> None:
    told = replace(costing(cost_usd=None), model="m")
    able = engine(ledger, saying(told, told), tells_cost=False, max_cost_usd=1.0)

    report = exec_thread(able, thread, count=None)

    assert (report.code, len(report.steps)) == ("budget", 2)
    assert report.problem is not None
    assert "is not known" in report.problem


def test_money_is_not_limited_where_none_is_told(
    ledger: Ledger, thread: ThreadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "_PACKAGE", "no_such_package")
    with pytest.raises(BudgetError) as caught:
        exec_thread(
            engine(ledger, saying(), tells_cost=False, max_cost_usd=5.0),
            thread,
            count=1,
        )

    assert caught.value.hint is not None
    assert "limits.maxTokens" in caught.value.hint
    assert names(ledger.store, thread) == ["start"]


def _talking(count: int) -> Any:  # noqa: ANN401 - an act
    def act(request: AgentRequest) -> AgentReply:
        assert request.on_turn is not None
        for number in range(count):
            request.on_turn(
                Turn(
                    index=number,
                    role="assistant",
                    content=f"turn {number}",
                    at_ms=request.now_ms(),
                )
            )
        return AgentReply(text=DONE, usage=used(turns=count))

    return act


def test_turns_are_counted_while_they_come(ledger: Ledger, thread: ThreadId) -> None:
    fits = exec_thread(engine(ledger, _talking(3), max_turns=3), thread, count=1)
    other = begin(ledger, Path(record_of(ledger, thread).start.cwd)).thread
    report = exec_thread(engine(ledger, _talking(4), max_turns=3), other, count=1)

    state = state_of(ledger.store, other)
    attempt = report.steps[0].hash
    assert attempt is not None
    output = record_of(ledger, other).step(attempt, 1).output
    assert (fits.end, report.end) == ("done", "agent-failed")
    assert (state.status, output["phase"]) == ("suspended", "budget")
    assert "limits.maxTurns" in str(output["error"])
    check_thread(ledger.store, other)


def test_what_a_run_says_it_costs_ends_it(ledger: Ledger, thread: ThreadId) -> None:
    def act(request: AgentRequest) -> AgentReply:
        assert request.on_usage is not None
        for spent in (0.5, 0.9, 1.2):
            request.on_usage(used(cost_usd=spent))
        return costing()

    report = exec_thread(engine(ledger, act, max_cost_usd=1.0), thread, count=1)

    assert report.end == "agent-failed"
    assert report.problem is not None
    assert "1.2 of 1 USD" in report.problem
    usage = state_of(ledger.store, thread).usage
    assert usage is not None
    assert usage.cost_usd == 1.2
    with pytest.raises(BudgetError):
        resume_thread(engine(ledger, saying(DONE), max_cost_usd=1.0), thread)
    raised = engine(ledger, saying(DONE), max_cost_usd=2.0)
    assert resume_thread(raised, thread).end == "done"
    check_thread(ledger.store, thread)


def _streaming(**total: Any) -> Any:  # noqa: ANN401 - an act
    """Tell in ten parts what the run costs in all, a minute of the clock a part."""

    def act(request: AgentRequest) -> AgentReply:
        assert request.on_turn is not None
        for part in range(1, 11):
            at_ms = request.now_ms()
            turn = Turn(index=part, role="assistant", content="…", at_ms=at_ms)
            request.on_turn(turn)
            share = {key: value * part // 10 for key, value in total.items()}
            if request.on_usage is not None:
                spent = used(turns=part, duration_ms=part * 60_000, **share)
                request.on_usage(spent)
        return AgentReply(text=DONE, usage=used(turns=10, duration_ms=600_000, **total))

    return act


@pytest.mark.parametrize(
    ("limits", "words", "told"),
    [
        pytest.param({"max_cost_usd": 5.0}, "5 of 5 USD", 5, id="cost"),
        pytest.param({"max_tokens": 500}, "500 of 500 tokens", 5, id="tokens"),
        pytest.param({"max_turns": 5}, "6 of 5 turns", 6, id="turns"),
        pytest.param({"max_minutes": 5.0}, "5 of 5 minutes", 5, id="minutes"),
    ],
)
def test_one_step_is_ended_where_it_goes_over_and_what_it_took_counts(
    ledger: Ledger, thread: ThreadId, limits: dict[str, Any], words: str, told: int
) -> None:
    act = _streaming(cost_usd=10.0, input_tokens=600, output_tokens=400)

    report = exec_thread(engine(ledger, act, **limits), thread, count=None)
    usage = state_of(ledger.store, thread).usage
    with pytest.raises(BudgetError) as caught:
        resume_thread(engine(ledger, act, **limits), thread)
    rest = resume_thread(engine(ledger, act), thread)

    assert (report.end, report.code, len(report.steps)) == ("agent-failed", None, 1)
    assert report.problem is not None
    assert words in report.problem
    assert usage is not None
    assert (usage.turns, usage.duration_ms) == (told, 300_000)
    assert words in caught.value.message
    assert rest.end == "done"
    assert names(ledger.store, thread) == ["start", "attempt", "resume"]
    check_thread(ledger.store, thread)


def test_a_correction_is_not_counted_twice(ledger: Ledger, thread: ThreadId) -> None:
    def act(request: AgentRequest) -> AgentReply:
        assert request.on_turn is not None
        for number in range(2):
            at_ms = request.now_ms()
            turn = Turn(index=number, role="assistant", content="…", at_ms=at_ms)
            request.on_turn(turn)
        text = DONE if request.correction else "no block"
        return AgentReply(text=text, usage=used(turns=2, duration_ms=0))

    report = exec_thread(engine(ledger, act, max_turns=4), thread, count=1)

    assert report.end == "done"
    usage = state_of(ledger.store, thread).usage
    assert usage is not None
    assert usage.turns == 4


@pytest.mark.parametrize("wall", [None, 3_600.0])
def test_an_agent_that_says_nothing_is_ended_by_the_clock(
    ledger: Ledger, thread: ThreadId, wall: float | None
) -> None:
    limits = Limits(max_minutes=0.005, wall_seconds=wall)
    able = make_engine(
        replace(ledger, now_ms=lambda: time.time_ns() // 1_000_000),
        settings=Settings(limits=limits),
    )
    began = time.monotonic()

    report = exec_thread(able, thread, count=1, agent="stdio:sleep 60")

    assert time.monotonic() - began < 30
    state = state_of(ledger.store, thread)
    attempt = report.steps[0].hash
    assert attempt is not None
    output = record_of(ledger, thread).step(attempt, 1).output
    assert (state.status, output["phase"]) == ("suspended", "budget")
    assert "limits.maxMinutes" in str(output["error"])
    assert state.usage is not None
    assert state.usage.duration_ms >= 300
    with pytest.raises(BudgetError):
        resume_thread(able, thread, agent="stdio:sleep 60")
    check_thread(ledger.store, thread)


def test_time_counts_of_agents_too_that_tell_nothing(
    ledger: Ledger, thread: ThreadId
) -> None:
    able = make_engine(
        replace(ledger, now_ms=lambda: time.time_ns() // 1_000_000),
        settings=Settings(limits=Limits(max_minutes=0.01)),
    )

    first = exec_thread(able, thread, count=1, agent="stdio:sleep 60")
    with pytest.raises(BudgetError) as caught:
        resume_thread(able, thread, agent="stdio:sleep 60")

    assert first.end == "agent-failed"
    assert "limits.maxMinutes" in caught.value.message
    check_thread(ledger.store, thread)


def test_time_of_steps_that_tell_nothing_adds_up(
    ledger: Ledger, thread: ThreadId
) -> None:
    now, walls = [1_800_000_000_000], list[float | None]()
    replies = iter([DONE, BAD])

    def act(request: AgentRequest) -> AgentReply:
        walls.append(request.wall_seconds)
        now[0] += 40_000
        return AgentReply(text=next(replies))

    timed = replace(ledger, now_ms=lambda: now[0])
    report = exec_thread(engine(timed, act, max_minutes=1.0), thread, count=9)

    assert (report.code, len(report.steps)) == ("budget", 3)
    assert walls == [60.0, 20.0]
    assert state_of(ledger.store, thread).usage is None
    check_thread(ledger.store, thread)


def test_an_agent_that_fails_in_time_has_gone_over_nothing(
    ledger: Ledger, thread: ThreadId
) -> None:
    able = make_engine(ledger, settings=Settings(limits=Limits(max_minutes=60.0)))

    exec_thread(able, thread, count=1, agent="stdio:false")

    (event,) = _attempts(ledger, thread)
    assert event["phase"] == "agent"


def _attempts(ledger: Ledger, thread: ThreadId) -> list[Any]:
    record = record_of(ledger, thread)
    return [
        record.step(event.node, 1).output
        for event in iter_events(ledger.store, record.tip.commit)
        if event.name == "attempt" and event.node is not None
    ]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_child_that_goes_over_inside_a_step_ends_both(
    ledger: Ledger, tmp_path: Path, number: int
) -> None:
    """The parent's step of one turn, then a child that streams ten in one step."""
    thread = start(ledger, tmp_path, parent(), child())
    texts = {
        "preparer": reply("ready"),
        "coder": reply("coded", what="c"),
        "tester": reply("built", what="t"),
        "sender": reply("sent"),
    }
    stream = _streaming(cost_usd=10.0, input_tokens=600, output_tokens=400)

    def act(request: AgentRequest) -> AgentReply:
        if request.role != "coder":
            return AgentReply(text=texts[request.role], usage=used())
        said: AgentReply = stream(request)
        return replace(said, text=texts["coder"])

    limits: Any = [{"max_turns": 4}, {"max_tokens": 450}, {"max_cost_usd": 3.5}]
    able = engine(ledger, act, **limits[number - 1])

    report = exec_thread(able, thread, count=None)
    (made,) = children_of(ledger, thread)
    with pytest.raises(BudgetError):
        resume_thread(able, thread)

    assert report.end == "agent-failed"
    assert report.problem is not None
    assert report.problem.startswith(f"child {made}: ")
    assert "are used (limits.max" in report.problem
    assert names(ledger.store, made) == ["start", "attempt"]
    assert names(ledger.store, thread) == ["start", "step", "attempt"]
    whole, below = (state_of(ledger.store, each).usage for each in (thread, made))
    assert whole == add_usage(used(), below)
    assert resume_thread(engine(ledger, act), thread).end == "done"
    check_thread(ledger.store, thread)
    check_thread(ledger.store, made)


def test_a_childs_budget_is_what_its_parent_has_left(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = start(ledger, tmp_path, parent(), child())
    texts = {
        "preparer": reply("ready"),
        "coder": reply("coded", what="c"),
        "tester": reply("built", what="t"),
    }

    def act(request: AgentRequest) -> AgentReply:
        return AgentReply(text=texts[request.role], usage=used())

    few = engine(ledger, act, max_tokens=200)
    report = exec_thread(few, thread, count=None)

    (made,) = children_of(ledger, thread)
    assert report.end == "refused"
    assert report.problem is not None
    assert "100 of 100 tokens" in report.problem
    assert names(ledger.store, thread) == ["start", "step"]
    assert names(ledger.store, made) == ["start", "step"]
    more = engine(ledger, act, max_tokens=301)
    assert exec_thread(more, thread, count=1).end == "done"
    usage = state_of(ledger.store, thread).usage
    assert usage is not None
    assert usage.input_tokens + usage.output_tokens == 300
    check_thread(ledger.store, thread)


def test_no_limit_is_no_excess() -> None:
    assert find_excess(Limits(), used(turns=10**6)) is None
    assert find_excess(Limits(max_turns=1), None) is None
