"""Supervisor and summary against the fake API: every way they can answer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.acting import BAD, DONE, ActingAgent, saying, suspend
from tests.agents.fake_api import Fail, FakeApi, Hang, Move, Request, modes
from tests.builders import begin, make_engine, record_of, reply, run, write_script
from tests.history import check_thread, files, names, state_of
from uwfgit.agents.builtin.judge import AgentJudge, ModelJudge
from uwfgit.agents.http.chat import ChatModel, Patience
from uwfgit.agents.http.client import Endpoint, HttpBounds
from uwfgit.agents.registry import choose_agent
from uwfgit.config import Limits, Settings
from uwfgit.engine.judge.judging import Supervisor, fit_summary, read_decision
from uwfgit.engine.judge.supervise import summarise
from uwfgit.engine.run.executor import Engine, exec_thread, resume_thread
from uwfgit.engine.run.thread import cancel_thread
from uwfgit.errors import AgentError, StateError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.prices import cost_of, thread_cost
from uwfgit.model.mask import NO_MASK
from uwfgit.model.thread.summary import find_summary, return_code
from uwfgit.model.thread.tip import load_tip

ROUND = {"worker": [reply(plan="x")] * 9, "critic": [reply("bad", reason="no")] * 9}


def judge(url: str, name: str = "m") -> ModelJudge:
    endpoint = Endpoint(base_url=f"{url}/v1")
    return ModelJudge(
        model=ChatModel(endpoint=endpoint, name=name),
        label="judge",
        now_ms=lambda: 1_800_000_000_000,
        patience=Patience(sleep=lambda _: None),
    )


def supervised(
    ledger: Ledger,
    folder: Path,
    url: str,
    told: list[str],
    *,
    every: int = 2,
    name: str = "m",
) -> Engine:
    agent = write_script(folder, ROUND)
    plain = make_engine(ledger)
    return make_engine(
        ledger,
        choose=lambda _, workflow, role: plain.choose(agent, workflow, role),
        supervisor=Supervisor(every=every, judge=judge(url, name)),
        tell=told.append,
    )


def decides(decision: str) -> Any:  # noqa: ANN401 - a script
    said = {"decision": decision, "reason": "It goes in circles."}
    return modes.answer(json.dumps(said))


@pytest.fixture
def thread(ledger: Ledger, tmp_path: Path) -> ThreadId:
    return begin(ledger, tmp_path).thread


def test_continue_is_not_recorded(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    told: list[str] = []
    with FakeApi(decides("continue")) as api:
        report = exec_thread(
            supervised(ledger, tmp_path, api.url, told), thread, count=5
        )

    assert (report.end, len(report.steps)) == ("done", 5)
    assert len(api.requests) == 2
    assert names(ledger.store, thread) == ["start", *["step"] * 5]
    assert told == []


def test_stop_holds_the_thread_and_a_person_goes_on(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    told: list[str] = []
    with FakeApi(decides("stop")) as api:
        engine = supervised(ledger, tmp_path, api.url, told)
        report = exec_thread(engine, thread, count=9)
    (request,) = api.requests
    state = state_of(ledger.store, thread)

    assert (report.end, len(report.steps)) == ("waiting", 2)
    assert names(ledger.store, thread) == ["start", "step", "step", "hold"]
    assert state.suspend_message == "supervisor: It goes in circles."
    assert state.usage is not None
    assert state.usage.input_tokens == 100
    assert "Fix the bug" in request.text
    assert "Step 1, worker" in request.text
    resumed = resume_thread(engine, thread, note="Go on")
    assert resumed.end == "done"
    check_thread(ledger.store, thread)


def going_on(looks: int) -> Callable[[Request], Move]:
    """Let a run go on for so many looks, and stop it at the next."""
    answers = itertools.chain(["continue"] * looks, itertools.repeat("stop"))

    def answer(request: Request) -> Move:
        move: Move = decides(next(answers))(request)
        return move

    return answer


def test_a_hold_tells_what_all_the_looks_of_the_run_cost(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    with FakeApi(going_on(2)) as api:
        engine = supervised(ledger, tmp_path, api.url, [], name="gpt-5")
        exec_thread(engine, thread, count=9)

    usage = state_of(ledger.store, thread).usage
    assert usage is not None
    assert usage.input_tokens == 300
    check_thread(ledger.store, thread)
    # By list price, as the words of any model are.
    told = {"kind": "supervisor", "model": "gpt-5"}
    cost = thread_cost(record_of(ledger, thread))
    assert cost == cost_of(usage, told)
    assert cost is not None
    assert cost.usd


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"max_tokens": 200}, id="tokens"),
        pytest.param({"max_turns": 2}, id="turns"),
        pytest.param({"max_cost_usd": 0.0001}, id="money"),
    ],
)
def test_looks_count_against_the_budgets_of_their_run(
    ledger: Ledger, thread: ThreadId, tmp_path: Path, limits: dict[str, Any]
) -> None:
    with FakeApi(decides("continue")) as api:
        plain = supervised(ledger, tmp_path, api.url, [], every=1, name="gpt-5")
        agent = ActingAgent(act=saying(*[DONE, BAD] * 4), tells_cost=True)
        engine = replace(
            plain,
            choose=lambda *_: agent,
            settings=Settings(limits=Limits(**limits)),
        )
        report = exec_thread(engine, thread, count=8)

    assert (report.code, report.end) == ("budget", "refused")
    assert len(report.steps) < 4
    assert len(api.requests) <= 2
    # Nobody recorded them, so the next run begins with what the thread tells.
    assert state_of(ledger.store, thread).usage is None
    check_thread(ledger.store, thread)


def test_a_summary_costs_what_its_model_costs(ledger: Ledger, thread: ThreadId) -> None:
    cancel_thread(ledger, thread, reason=None, command="test")
    with FakeApi(modes.answer("Given up.")) as api:
        for _ in range(2):
            by = judge(api.url, name="gpt-5")
            summarise(ledger, thread, by, masker=NO_MASK)

    usage = state_of(ledger.store, thread).usage
    assert usage is not None
    assert usage.input_tokens == 200
    cost = thread_cost(record_of(ledger, thread))
    assert cost == cost_of(usage, {"kind": "summary", "model": "gpt-5"})


@pytest.mark.parametrize(
    ("script", "words"),
    [
        pytest.param(modes.answer("I think so."), "not a decision", id="nonsense"),
        pytest.param(
            modes.answer('{"decision": "perhaps"}'), "not a decision", id="odd"
        ),
        pytest.param(modes.answer('{"decision": "stop"}'), "no reason", id="no-reason"),
        pytest.param(modes.answer(""), "did not judge", id="silent"),
        pytest.param(
            lambda _: Fail(status=500, message="oops"), "did not judge", id="500"
        ),
        pytest.param(
            lambda _: Fail(status=401, message="who"), "did not judge", id="401"
        ),
    ],
)
def test_a_supervisor_that_fails_stops_no_run(
    ledger: Ledger,
    thread: ThreadId,
    tmp_path: Path,
    script: Any,  # noqa: ANN401 - a script
    words: str,
) -> None:
    told: list[str] = []
    with FakeApi(script) as api:
        engine = supervised(ledger, tmp_path, api.url, told)
        report = exec_thread(engine, thread, count=3)

    assert (report.end, len(report.steps)) == ("done", 3)
    assert words in told[0]
    assert names(ledger.store, thread) == ["start", *["step"] * 3]


def test_one_that_is_not_there_stops_no_run(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    told: list[str] = []
    engine = supervised(ledger, tmp_path, "http://127.0.0.1:9", told)

    assert exec_thread(engine, thread, count=2).end == "done"
    assert told[0].startswith("warning: the supervisor did not judge: ")


def test_a_slow_one_is_not_waited_for(
    ledger: Ledger, thread: ThreadId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = HttpBounds(idle_seconds=0.2, total_seconds=0.4)
    monkeypatch.setattr("uwfgit.agents.builtin.judge._BOUNDS", quick)
    told: list[str] = []

    def hang(_: Request) -> Move:
        return Hang()

    with FakeApi(hang) as api:
        engine = supervised(ledger, tmp_path, api.url, told)
        report = exec_thread(engine, thread, count=2)

    assert report.end == "done"
    assert told[0].startswith("warning: the supervisor did not judge: ")


def test_a_long_reason_is_cut() -> None:
    found = read_decision(json.dumps({"decision": "stop", "reason": "x" * 9_000}))

    assert not isinstance(found, str)
    assert len(found.reason) == 1_000
    fenced = read_decision('```json\n{"decision": "continue", "reason": ""}\n```')
    assert not isinstance(fenced, str)
    assert not fenced.stops


def _summed(ledger: Ledger, thread: ThreadId, said: str) -> str:
    with FakeApi(modes.answer(said)) as api:
        _, text = summarise(ledger, thread, judge(api.url), masker=NO_MASK)
    return text


def test_a_thread_is_summarised_again_and_again(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    agent = write_script(tmp_path, {"worker": [DONE], "critic": [reply("good")]})
    run(ledger, thread, agent, 2)

    _summed(ledger, thread, "It was fixed.")
    _summed(ledger, thread, "It was fixed, and tested.")

    tip = load_tip(ledger.store, thread)
    found = find_summary(ledger.store, tip)
    assert found is not None
    assert (found.text, found.by) == ("It was fixed, and tested.\n", "m")
    assert names(ledger.store, thread)[-2:] == ["summary", "summary"]
    assert return_code(tip.state.status) == 0
    check_thread(ledger.store, thread)


def test_what_waits_and_what_is_given_up_can_be_summarised(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    run(ledger, thread, write_script(tmp_path, {"worker": [suspend()]}))
    _summed(ledger, thread, "It asks.")
    resumed = make_engine(ledger)
    resume_thread(resumed, thread, agent=write_script(tmp_path, {"worker": ["", DONE]}))
    cancel_thread(ledger, thread, reason=None, command="test")
    _summed(ledger, thread, "It was given up.")

    assert return_code(state_of(ledger.store, thread).status) == 130
    assert files(ledger.store, thread)["SUMMARY.md"] == b"It was given up.\n"
    check_thread(ledger.store, thread)


def test_what_can_run_is_not_summarised(ledger: Ledger, thread: ThreadId) -> None:
    with pytest.raises(StateError):
        _summed(ledger, thread, "Too soon.")

    assert names(ledger.store, thread) == ["start"]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(modes.answer(""), id="silent"),
        pytest.param(lambda _: Fail(status=500, message="oops"), id="500"),
    ],
)
def test_a_summary_that_fails_leaves_the_thread_as_it_was(
    ledger: Ledger,
    thread: ThreadId,
    script: Any,  # noqa: ANN401 - a script
) -> None:
    cancel_thread(ledger, thread, reason=None, command="test")
    before = load_tip(ledger.store, thread).commit

    with FakeApi(script) as api, pytest.raises(AgentError):
        summarise(ledger, thread, judge(api.url), masker=NO_MASK)

    assert load_tip(ledger.store, thread).commit == before


def test_a_summary_that_is_too_long_is_cut(ledger: Ledger, thread: ThreadId) -> None:
    cancel_thread(ledger, thread, reason=None, command="test")

    text = _summed(ledger, thread, "é" * 20_000)

    assert len(text.encode()) < 16 * 1024
    assert text == fit_summary("é" * 20_000)
    check_thread(ledger.store, thread)


def test_an_agent_can_judge_in_an_empty_folder(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    cancel_thread(ledger, thread, reason=None, command="test")
    agent = choose_agent(
        "stdio:ls -A",
        settings=Settings(),
        workflow="",
        role="",
        base_dir=tmp_path,
        environment={"PATH": "/usr/bin:/bin"},
    )
    by = AgentJudge(
        agent=agent,
        environment={"PATH": "/usr/bin:/bin"},
        now_ms=lambda: 1_800_000_000_000,
        idle_seconds=30,
    )

    # An empty folder is listed as nothing, which is no summary.
    with pytest.raises(AgentError) as caught:
        summarise(ledger, thread, by, masker=NO_MASK)

    assert "said nothing" in caught.value.message
    assert record_of(ledger, thread).tip.state.status == "cancelled"
