"""What a cycle finds out before it asks: where, with what, after how many replies."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.acting import (
    BAD,
    DONE,
    GOOD,
    NO_BLOCK,
    acting,
    failure,
    go,
    poke,
    saying,
    steps_of,
)
from tests.builders import (
    begin,
    make_engine,
    make_workflow,
    record_of,
    reply,
    write_script,
)
from tests.history import (
    check_thread,
    names,
    state_of,
    tip_oid,
)
from uwfgit.agents.base import AgentRequest
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.executor import exec_thread, resume_thread
from uwfgit.engine.run.thread import fork_thread
from uwfgit.errors import StateError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.workflow.workflow import Target, Workflow

# --- where it runs ---


def test_a_step_runs_where_the_thread_started(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    seen: list[AgentRequest] = []

    def act(request: AgentRequest) -> str:
        seen.append(request)
        return DONE

    exec_thread(acting(ledger, act), thread, count=1)

    assert seen[0].cwd == tmp_path


def _located(location: str) -> Workflow:
    base = make_workflow()
    edge = Target(role="critic", prompt="Judge.", location=location)
    return replace(base, graph={**base.graph, "worker": {"done": edge}})


@pytest.mark.parametrize("kind", ["relative", "absolute", "blank", "with a line end"])
def test_an_edge_names_the_folder_of_its_step(
    ledger: Ledger, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "sub").mkdir()
    plan = {"relative": "sub", "absolute": str(tmp_path / "sub"), "blank": " "}.get(
        kind, "sub"
    )
    # As a block of YAML ends.
    end = "\r\n" if kind == "with a line end" else ""
    thread = begin(ledger, tmp_path, workflow=_located("{{{plan}}}" + end)).thread

    go(ledger, thread, reply(plan=plan), GOOD)

    expected = tmp_path if kind == "blank" else tmp_path / "sub"
    assert steps_of(ledger, thread)[1].cwd == str(expected)
    check_thread(ledger.store, thread)


def test_a_folder_that_an_edge_names_must_exist(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path, workflow=_located("not/there")).thread
    go(ledger, thread, DONE)
    before = tip_oid(ledger.store, thread)

    with pytest.raises(StateError) as caught:
        go(ledger, thread, GOOD)

    assert "not/there" in str(caught.value)
    assert tip_oid(ledger.store, thread) == before


@pytest.mark.parametrize("location", ["~/code", "~", "~ada/code\n"])
def test_a_tilde_is_told_to_be_a_shell_s(
    ledger: Ledger, tmp_path: Path, location: str
) -> None:
    thread = begin(ledger, tmp_path, workflow=_located(location)).thread
    go(ledger, thread, DONE)

    with pytest.raises(StateError) as caught:
        go(ledger, thread, GOOD)

    assert "write the whole path" in (caught.value.hint or "")
    assert location.strip() in caught.value.message


def test_a_chosen_folder_wins(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path, workflow=_located("not/there")).thread
    go(ledger, thread, DONE)
    (tmp_path / "chosen").mkdir()

    exec_thread(acting(ledger, saying(GOOD)), thread, count=1, cwd=tmp_path / "chosen")

    assert steps_of(ledger, thread)[1].cwd == str(tmp_path / "chosen")


def test_a_thread_whose_folder_vanished_runs_nothing_until_one_is_chosen(
    ledger: Ledger, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    thread = begin(ledger, folder).thread
    folder.rmdir()
    before = tip_oid(ledger.store, thread)

    with pytest.raises(StateError) as caught:
        go(ledger, thread, DONE)

    assert str(folder) in str(caught.value)
    assert caught.value.hint is not None
    assert "--cwd" in caught.value.hint
    assert tip_oid(ledger.store, thread) == before
    report = exec_thread(acting(ledger, saying(DONE)), thread, count=1, cwd=tmp_path)
    assert report.end is RunEnd.DONE


def test_a_poke_runs_where_the_old_step_ran_if_that_is_still_there(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    exec_thread(acting(ledger, saying(DONE)), thread, count=1, cwd=other)

    poke(ledger, thread, DONE)
    there = steps_of(ledger, thread)[0].cwd
    other.rmdir()
    poke(ledger, thread, DONE)

    assert there == str(other)
    assert steps_of(ledger, thread)[0].cwd == str(tmp_path)


# --- what the agent gets ---


def test_an_agent_is_told_where_it_stands(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    go(ledger, thread, DONE)
    seen: list[tuple[AgentRequest, str]] = []

    def act(request: AgentRequest) -> str:
        file = Path(request.environment["UWF_PROMPT_FILE"])
        seen.append((request, file.read_text(encoding="utf-8")))
        return GOOD

    exec_thread(acting(ledger, act, environment={"LANG": "C"}), thread, count=1)

    request, prompt = seen[0]
    first, state = steps_of(ledger, thread)[0], state_of(ledger.store, thread)
    step = request.environment["UWF_STEP"]
    token = step.removeprefix(f"{thread}:2:")
    assert prompt == request.prompt
    assert len(token) == 16
    assert {k: v for k, v in request.environment.items() if "PROMPT_F" not in k} == {
        "LANG": "C",
        "UWF_AGENT": "acting",
        "UWF_CWD": str(tmp_path),
        "UWF_EDGE_PROMPT": "Judge x.",
        "UWF_HOME": str(ledger.store.path),
        "UWF_OUTPUT_TYPE": make_output_type(ledger, thread),
        "UWF_PREV": first.hash,
        "UWF_ROLE": "critic",
        "UWF_START": state.start,
        # What is told was written a moment, by this clock a second, before.
        "UWF_STARTED_AT_MS": str(steps_of(ledger, thread)[1].started_at_ms - 1000),
        "UWF_STEP": step,
        "UWF_STORE": str(ledger.store.path),
        "UWF_THREAD": thread,
    }
    assert not Path(request.environment["UWF_PROMPT_FILE"]).exists()


def make_output_type(ledger: Ledger, thread: ThreadId) -> str:
    record = record_of(ledger, thread)
    return record.node(steps_of(ledger, thread)[1].output_hash).type


def test_every_run_has_a_token_of_its_own(ledger: Ledger, thread: ThreadId) -> None:
    seen: list[str] = []

    def act(request: AgentRequest) -> str:
        seen.append(request.environment["UWF_STEP"])
        return NO_BLOCK

    exec_thread(acting(ledger, act), thread, count=1)
    resume_thread(acting(ledger, act), thread)

    assert len(seen) == 6
    assert len(set(seen)) == 2


# --- scripted replies follow the record ---


def test_scripted_replies_follow_the_record(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    agent = write_script(
        tmp_path,
        {"worker": [NO_BLOCK, DONE, reply(plan="z")], "critic": [BAD, GOOD]},
    )
    engine = make_engine(ledger)

    first = exec_thread(engine, thread, count=9, agent=agent)
    resume_thread(engine, thread, agent=agent)
    exec_thread(engine, thread, count=1, agent=agent)
    fork = fork_thread(ledger, thread).thread
    last = exec_thread(engine, fork, count=None, agent=agent)

    assert first.end is RunEnd.AGENT_FAILED
    assert [s.output.get("plan") for s in steps_of(ledger, fork)] == [
        "x",
        None,
        "z",
        None,
    ]
    assert last.status == "end"


def test_an_attempt_without_a_reply_uses_up_no_scripted_one(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    agent = write_script(tmp_path, {"worker": [DONE]})
    go(ledger, thread, failure("crashed"))

    report = resume_thread(make_engine(ledger), thread, agent=agent)

    assert report.end is RunEnd.DONE


def test_a_script_that_has_run_out_is_an_attempt(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    agent = write_script(tmp_path, {"worker": [DONE], "critic": []})

    report = exec_thread(make_engine(ledger), thread, count=9, agent=agent)

    assert (report.end, len(report.steps)) == (RunEnd.AGENT_FAILED, 2)
    assert names(ledger.store, thread)[-1] == "attempt"
