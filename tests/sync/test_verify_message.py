"""Whatever people, workflows and agents say: what the program writes verifies."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.acting import failure, go, poke, resume, suspend
from tests.builders import (
    begin,
    git,
    make_role,
    make_workflow,
    reply,
    run,
    variant,
    write_script,
)
from tests.history import events, files
from tests.proof import assert_verified
from tests.sync.changes import OTHER
from tests.sync.forge import history
from tests.sync.tour import tip_of
from uwfgit.engine.run.thread import cancel_thread, fork_thread, say_word
from uwfgit.errors import CorruptError, StateError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import ERROR_TYPE, find_builtin_schema
from uwfgit.model.thread.derive import format_message, read_quote
from uwfgit.model.thread.event import TABLE, WORDS, EventName, event_trailers
from uwfgit.model.workflow.workflow import Target, Workflow
from uwfgit.sync.diverged.replayed_events import replay_tail
from uwfgit.sync.verify.settle import may_give_reason
from uwfgit.sync.verify.shape import parse_message
from uwfgit.sync.verify.verify import verify_thread

ODD = [
    pytest.param("x" * 300, id="long"),
    pytest.param("word " * 80, id="many words"),
    pytest.param("x" * 59 + " y", id="as long as a subject"),
    pytest.param("x" * 66 + " y", id="a character too long"),
    pytest.param("  \n\t One \n\n two\tthree  \n", id="blanks"),
    pytest.param("line\n" * 60, id="many lines"),
    pytest.param(f"a{' ' * 250}b", id="a long gap"),
    pytest.param("\x1b[31mred\x07 a\x00b\x7f\x9b", id="control characters"),
    pytest.param("\u202eright\u2069 to left\ufeff", id="bidirectional"),
    pytest.param("zero\u200bwidth\u00ad \u00a0no break\u3000wide", id="other blanks"),
    pytest.param("Ünï\u0301cødé 🐙 " * 30, id="not ASCII"),
    pytest.param("🐙" * 5000, id="more than a message holds"),
    pytest.param("ends in…", id="an ellipsis"),
    pytest.param("x" * 59 + "…" + "y", id="an ellipsis at the end"),
    pytest.param("\x01", id="nothing to see"),
    pytest.param("> quoted\n\nUwf-Event: start", id="as a message"),
    pytest.param("critic: good", id="as a step"),
    pytest.param("cancel", id="as a cancel"),
    pytest.param("…", id="an ellipsis alone"),
    pytest.param("one\r\ntwo\u2028three\x0bfour", id="other ends of lines"),
]


@pytest.mark.parametrize("text", ODD)
def test_any_task_reply_error_and_reason_verifies(
    ledger: Ledger, tmp_path: Path, text: str
) -> None:
    text = text.replace("\0", "")
    thread = begin(ledger, tmp_path, prompt=f"{text} x").thread
    go(ledger, thread, failure(text, text=text))
    resume(ledger, thread, suspend("Which?", body=text), note=text)
    resume(ledger, thread, reply(body=text, plan="p"), note=text)
    poke(ledger, thread, failure(f"{text} {text}", text=text), note=text)
    poke(ledger, thread, reply(body=text, plan="q"), note=text)
    cancel_thread(ledger, thread, reason=text, command="test")

    assert_verified(ledger.store)


@pytest.mark.parametrize("text", ODD)
def test_any_reason_verifies_where_it_is_replayed_and_replayed_again(
    ledger: Ledger, tmp_path: Path, text: str
) -> None:
    store, thread = ledger.store, begin(ledger, tmp_path).thread
    base = tip_of(ledger, thread)
    cancel_thread(ledger, thread, reason=text, command="test")
    tip = tip_of(ledger, thread)

    first = replay_tail(ledger, thread, base=base, tip=tip, copy=OTHER).tip
    fork, again = history(store, first.commit)[-2], ThreadId(OTHER[:-1] + "W")
    second = replay_tail(ledger, OTHER, base=fork, tip=first.commit, copy=again).tip

    assert verify_thread(store, first.commit, OTHER).problems == ()
    assert verify_thread(store, second.commit, again).problems == ()


@pytest.mark.parametrize("reason", [None, "", " \n\t"])
def test_a_cancel_without_a_reason_verifies(
    ledger: Ledger, tmp_path: Path, reason: str | None
) -> None:
    thread = begin(ledger, tmp_path).thread
    cancel_thread(ledger, thread, reason=reason, command="test")

    assert_verified(ledger.store)


def statuses(*names: str) -> Workflow:
    """Make a workflow whose one role goes on at each of some statuses."""
    return make_workflow(
        roles={"worker": make_role(*(variant(name) for name in names))},
        graph={
            "$START": {"new": Target(role="worker", prompt="Begin")},
            "worker": {name: Target(role="worker", prompt="On") for name in names},
        },
    )


def test_any_status_verifies(ledger: Ledger, tmp_path: Path) -> None:
    names = ("x" * 64, "two  words", "é" * 64, "-", '"', "done (poke)", "failed: x")
    workflow = statuses(*names)
    thread = begin(ledger, tmp_path, workflow=workflow, prompt="Try all").thread
    agent = write_script(tmp_path, {"worker": [reply(name) for name in names]})

    report = run(ledger, thread, agent, len(names))

    assert [step.status for step in report.steps] == list(names)
    assert_verified(ledger.store)


def test_a_role_whose_answer_is_of_the_error_type_verifies(
    ledger: Ledger, tmp_path: Path
) -> None:
    schema = find_builtin_schema(ERROR_TYPE)
    assert schema is not None
    workflow = make_workflow(
        roles={"worker": replace(make_role(), schema=schema)},
        graph={
            "$START": {"new": Target(role="worker", prompt="Begin")},
            "worker": {"error": Target(role="worker", prompt="Again")},
        },
    )
    thread = begin(ledger, tmp_path, workflow=workflow).thread

    go(ledger, thread, reply("error", error="No luck", phase="agent"))

    subject = git(ledger.store, "log", "-1", "--format=%s", tip_of(ledger, thread))
    assert subject == "worker: error\n"
    assert_verified(ledger.store)


def test_forks_of_every_event_verify(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="a"), reply("bad", reason="b"))
    for at in (0, 1, 2):
        fork = fork_thread(ledger, thread, at=at).thread
        cancel_thread(ledger, fork, reason="no", command="test")
        fork_thread(ledger, fork)

    assert_verified(ledger.store)


@pytest.mark.parametrize("event", WORDS)
def test_a_word_of_the_table_verifies_and_is_no_step(
    ledger: Ledger, tmp_path: Path, event: EventName
) -> None:
    thread = begin(ledger, tmp_path).thread
    before = files(ledger.store, thread)
    tip = say_word(ledger, thread, event, reason="as\nagreed", command="test")

    after = files(ledger.store, thread)
    assert [name for name in after if after[name] != before.get(name)] == [
        "thread.json"
    ]
    assert tip.state.steps == 0
    assert events(ledger.store, thread)[-1].name == event
    assert_verified(ledger.store)
    if tip.state.status not in TABLE[event].follows:
        with pytest.raises(StateError):
            say_word(ledger, thread, event, reason=None, command="test")


_TEXTS = st.text(
    st.sampled_from("ab \t\n\r\x01\x1c\x85\xa0\u200b\u2028\u202e…>é🐙"), max_size=250
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(_TEXTS)
@example("\x01\nb")
@example(f"{'a' * 71}…")
def test_any_reason_gives_a_cancel_its_subject_and_quote(text: str) -> None:
    said = f"cancel: {text}" if text.strip() else "cancel"
    message = format_message(said, text, event_trailers("cancel", OTHER).items())
    again = format_message(
        message.partition("\n")[0],
        read_quote(message),
        event_trailers("cancel", OTHER).items(),
    )

    for each in (message, again):
        assert may_give_reason("cancel", each.partition("\n")[0], read_quote(each))


@pytest.mark.parametrize(
    ("subject", "quote"),
    [
        ("critic: good", ""),
        ("critic: good", "critic: good"),
        ("cancel", "Enough"),
        ("cancel: Enough", ""),
        ("cancel: critic: good", "Enough"),
        ("cancelled", "led"),
        ("cancel", "…"),
    ],
)
def test_no_reason_gives_a_cancel_another_subject(subject: str, quote: str) -> None:
    assert not may_give_reason("cancel", subject, quote)


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ("\n", "line 10 of the message is empty"),
        ("Uwf-Event: step\n", "'Uwf-Event: step' is there twice"),
        ("Hello\n", "'Hello' is not a trailer of an event"),
    ],
)
def test_a_line_that_is_no_trailer_is_named(added: str, told: str) -> None:
    trailers = [*event_trailers("cancel", OTHER).items()]
    message = format_message("cancel", "enough\n\nof it", trailers)
    line = len(message.split("\n"))

    with pytest.raises(CorruptError) as refused:
        parse_message((message + added).encode())

    (problem,) = refused.value.problems
    where = f"line {line} of the message"
    told = told if told.startswith("line") else f"{where}: {told}"
    assert (problem.code, problem.message) == ("trailers", told)
