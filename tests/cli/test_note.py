"""``thread note``: what is said now and told with the next run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import Uwf

SCRIPTED = ("--agent", "scripted:replies.yaml")


def step(uwf: Uwf, thread: str, number: int) -> dict[str, Any]:
    found: dict[str, Any] = uwf("step", "show", f"{thread}:{number}", "--json").json
    return found


def kept(uwf: Uwf, thread: str) -> str | None:
    note: str | None = uwf("thread", "note", thread, "--json").json["note"]
    return note


def test_a_note_is_told_with_the_next_step_and_used_up(uwf: Uwf, thread: str) -> None:
    uwf("thread", "note", thread, "-p", "be brief")
    added = uwf("thread", "note", thread, "-p", "no jokes")

    assert (added.code, added.out) == (0, "be brief\n\nno jokes\n")
    assert "be brief" in uwf("thread", "show", thread).out
    assert uwf("thread", "exec", thread, "-c", "2", *SCRIPTED).code == 0
    first = step(uwf, thread, 1)
    assert first["note"] == "be brief\n\nno jokes"
    assert "no jokes" in first["detail"]["assembledPrompt"]
    assert step(uwf, thread, 2)["note"] is None
    assert kept(uwf, thread) is None
    assert uwf("verify", thread).code == 0


def test_a_note_goes_before_what_a_poke_or_resume_says(uwf: Uwf, ended: str) -> None:
    uwf("thread", "note", ended, "-p", "be brief")
    uwf("thread", "poke", ended, "-p", "look again", *SCRIPTED)
    uwf("thread", "note", ended, "-p", "and kind")

    assert uwf("thread", "resume", ended, *SCRIPTED).code == 0

    assert step(uwf, ended, 4)["note"] == "be brief\n\nlook again"
    assert step(uwf, ended, 5)["note"] == "and kind"
    assert uwf("verify", ended).code == 0


def test_a_note_stays_where_nothing_ran(uwf: Uwf, thread: str) -> None:
    uwf("thread", "note", thread, "-p", "be brief")

    assert uwf("thread", "exec", thread, "--agent", "nobody").code == 1

    assert kept(uwf, thread) == "be brief"


def test_a_failed_try_has_the_note_and_the_next_is_told_it(
    uwf: Uwf, thread: str
) -> None:
    uwf("thread", "note", thread, "-p", "be brief")

    assert uwf("thread", "exec", thread, "--agent", "stdio:false").code == 5
    assert kept(uwf, thread) is None
    assert uwf("thread", "resume", thread, *SCRIPTED).code == 0

    assert "be brief" in step(uwf, thread, 1)["detail"]["assembledPrompt"]
    assert uwf("verify", thread).code == 0


def test_what_is_said_while_it_runs_is_for_the_run_after(
    uwf: Uwf, thread: str, work: Path
) -> None:
    uwf("thread", "note", thread, "-p", "one")
    (work / "agent.sh").write_text(
        "uwf thread note $UWF_THREAD -p two >&2\n"
        "printf -- '---\\n$status: stuck\\n---\\n'\n"
    )

    assert uwf("thread", "exec", thread, "--agent", "stdio:sh agent.sh").code == 0

    assert step(uwf, thread, 1)["note"] == "one"
    assert kept(uwf, thread) == "two"


def test_a_note_can_be_taken_back(uwf: Uwf, thread: str) -> None:
    uwf("thread", "note", thread, "-p", "be brief")

    dropped = uwf("thread", "note", thread, "--drop")

    assert (dropped.code, dropped.out) == (0, "")
    assert kept(uwf, thread) is None


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        pytest.param(["-p", "  "], 1, "the note is empty", id="empty"),
        pytest.param(["-p", "x", "--drop"], 2, "exclude each other", id="both"),
        pytest.param(["-p", "x" * 1024 * 1025], 1, "the limit is", id="long"),
    ],
)
def test_what_is_no_note_is_refused(
    uwf: Uwf, thread: str, words: list[str], code: int, told: str
) -> None:
    refused = uwf("thread", "note", thread, *words)

    assert (refused.code, told in refused.err) == (code, True)


def test_a_cancelled_thread_takes_no_note(uwf: Uwf, thread: str) -> None:
    uwf("thread", "cancel", thread)

    refused = uwf("thread", "note", thread, "-p", "x")

    assert (refused.code, "uwf thread fork" in refused.err) == (1, True)
