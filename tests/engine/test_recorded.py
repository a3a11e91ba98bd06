"""What an agent says is masked and trimmed before anything is made of it."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.acting import acting, failure, saying
from tests.builders import begin, git, record_of, reply
from tests.history import check_thread
from tests.planted import PASSWORD
from uwfgit.agents.base import AgentReply, AgentRequest, ToolCall, Turn
from uwfgit.config import Settings
from uwfgit.engine.ask.live import HEAD_CHARS
from uwfgit.engine.run.executor import exec_thread, poke_thread, resume_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.mask import Masker, Secret
from uwfgit.model.thread.step import Step

MASKER = Masker([Secret(name="BUILD_PASSWORD", value=PASSWORD)])
SHOWN = "[redacted:BUILD_PASSWORD]"
WARNING = f"the value of BUILD_PASSWORD was replaced by {SHOWN}"


def detail_of(ledger: Ledger, thread: ThreadId, step: Step) -> dict[str, Any]:
    payload: dict[str, Any] = record_of(ledger, thread).node(step.detail_hash).payload
    return payload


def everything(ledger: Ledger) -> str:
    """Give the content of every object of the store."""
    listed = git(
        ledger.store, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"
    )
    return "\n".join(
        ledger.store.repo.odb.read(oid)[1].decode("utf-8", "replace")
        for oid in listed.split()
    )


def test_nothing_an_agent_says_is_recorded_with_a_known_secret(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    call = ToolCall(
        name="shell",
        arguments={"command": f"curl -u x:{PASSWORD}", PASSWORD[:4]: [PASSWORD]},
        result=json.dumps({"token": PASSWORD}),
    )
    encoded = b64encode(f"x:{PASSWORD}".encode()).decode()
    said = AgentReply(
        text=reply(body=f"It is {PASSWORD}.", plan=f"use {PASSWORD}"),
        turns=(
            Turn(
                index=0,
                role="assistant",
                content=f"Basic {encoded}",
                reasoning=f"the {PASSWORD}",
                tool_calls=(call,),
                at_ms=1,
            ),
        ),
        warnings=(f"odd: {PASSWORD}",),
    )

    exec_thread(acting(ledger, saying(said), masker=MASKER), thread, count=1)

    (step,) = record_of(ledger, thread).steps()
    turn = detail_of(ledger, thread, step)["turns"][0]
    assert step.output == {"$status": "done", "plan": f"use {SHOWN}"}
    assert step.body == f"It is {SHOWN}."
    assert step.warnings == (f"odd: {SHOWN}", WARNING)
    assert turn["reasoning"] == f"the {SHOWN}"
    assert turn["toolCalls"][0]["result"] == json.dumps({"token": SHOWN})
    assert turn["toolCalls"][0]["arguments"]["command"] == f"curl -u x:{SHOWN}"
    assert PASSWORD not in everything(ledger)
    check_thread(ledger.store, thread)


def test_edge_prompts_are_rendered_from_what_was_recorded(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    asked: list[AgentRequest] = []

    def act(request: AgentRequest) -> str:
        asked.append(request)
        return reply(plan=PASSWORD) if request.role == "worker" else reply("good")

    exec_thread(acting(ledger, act, masker=MASKER), thread, count=2)

    assert asked[1].edge_prompt == f"Judge {SHOWN}."
    assert record_of(ledger, thread).steps()[1].edge_prompt == f"Judge {SHOWN}."
    check_thread(ledger.store, thread)


def test_a_failed_attempt_and_its_error_are_masked_even_where_they_were_cut(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    said = failure(f"'x' exited with 1: …{PASSWORD[5:]} / end", text=f"so {PASSWORD}")

    report = exec_thread(acting(ledger, saying(said), masker=MASKER), thread, count=1)

    assert report.steps[0].error == f"'x' exited with 1: …{SHOWN} / end"
    assert PASSWORD[5:] not in everything(ledger)
    check_thread(ledger.store, thread)


def test_a_note_is_masked_and_the_step_says_so(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    engine = acting(
        ledger,
        saying(reply("$SUSPEND", reason="How?"), reply(plan="x"), reply(plan="y")),
        masker=MASKER,
    )
    exec_thread(engine, thread, count=1)

    resume_thread(engine, thread, note=f"with {PASSWORD}")
    resumed = record_of(ledger, thread).steps()[-1]
    poke_thread(engine, thread, note=f"again with {PASSWORD}")
    poked = record_of(ledger, thread).steps()[-1]

    assert (resumed.note, resumed.warnings) == (f"with {SHOWN}", (WARNING,))
    assert (poked.note, poked.warnings) == (f"again with {SHOWN}", (WARNING,))


def test_what_was_recorded_before_a_secret_was_known_reaches_no_prompt(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path, prompt=f"Use {PASSWORD}").thread
    asked: list[AgentRequest] = []

    def act(request: AgentRequest) -> str:
        asked.append(request)
        return reply(plan="x")

    exec_thread(acting(ledger, act, masker=MASKER), thread, count=1)

    step = record_of(ledger, thread).steps()[0]
    assert PASSWORD not in asked[0].prompt
    assert detail_of(ledger, thread, step)["assembledPrompt"] == asked[0].prompt
    check_thread(ledger.store, thread)


def test_a_status_that_is_somebodys_secret_still_routes(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    masker = Masker([Secret(name="ODD_KEY", value="done")])

    report = exec_thread(
        acting(ledger, saying(reply(plan="done, say I")), masker=masker),
        thread,
        count=1,
    )

    assert report.steps[0].status == "done"
    step = record_of(ledger, thread).steps()[0]
    assert step.output["plan"] == "[redacted:ODD_KEY], say I"


@pytest.mark.parametrize(
    ("mode", "result", "content"),
    [
        pytest.param("full", "r" * 5000, "c" * 5000, id="full"),
        pytest.param(
            "head",
            "r" * HEAD_CHARS + "\n[4000 more characters]",
            "c" * HEAD_CHARS + "\n[4000 more characters]",
            id="head",
        ),
        pytest.param("none", None, "", id="none"),
    ],
)
def test_tool_results_are_recorded_as_configured(
    ledger: Ledger, tmp_path: Path, mode: str, result: str | None, content: str
) -> None:
    thread = begin(ledger, tmp_path).thread
    call = ToolCall(name="cat", arguments={}, result="r" * 5000)
    turn = Turn(index=0, role="assistant", content="w" * 5000, at_ms=1)
    said = AgentReply(
        text=reply(plan="x"),
        turns=(
            replace(turn, tool_calls=(call,)),
            replace(turn, role="tool", content="c" * 5000),
        ),
    )
    settings = Settings(tool_results=mode)

    exec_thread(acting(ledger, saying(said), settings=settings), thread, count=1)

    step = record_of(ledger, thread).steps()[0]
    first, second = detail_of(ledger, thread, step)["turns"]
    assert first["content"] == "w" * 5000
    assert first["toolCalls"][0]["result"] == result
    assert second["content"] == content
    check_thread(ledger.store, thread)
