"""What every command says goes on with a thread; it is never one that refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.program import write_dead_record

FAILING = ("--agent", "stdio:false")


@pytest.fixture
def lost(uwf: Uwf, work: Path) -> str:
    """A thread of two steps; the second one's answer leads to no role."""
    name = (work / "ping.yaml").read_text().replace("name: ping", "name: lost")
    (work / "lost.yaml").write_text(name.replace("Fix: {{{why}}}", "{{{why}}}"))
    (work / "lost.replies.yaml").write_text(
        "replies:\n"
        '  writer: ["---\\n$status: done\\ntext: one\\n---\\n"]\n'
        "  checker: [\"---\\n$status: bad\\nwhy: ' '\\n---\\n\"]\n"
    )
    started = uwf("thread", "start", "lost.yaml", "-p", "the task", "--json")
    thread: str = started.json["threadId"]
    agent = ("--agent", "scripted:lost.replies.yaml")
    done = uwf("thread", "exec", thread, "--all", *agent)
    assert done.code == 1, done.err
    assert _ways(done.err) == _detour(thread)
    return thread


def _detour(thread: str) -> str:
    return (
        "the prompt of role 'checker' on 'bad' to 'writer' renders blank: '{{{why}}}'; "
        f"have the step done again: uwf thread poke {thread} -p TEXT; "
        f"or branch off before it: uwf thread fork {thread} --at 1"
    )


def _ways(text: str) -> str:
    """Give what the one line that names a command says, without its first word."""
    (line,) = (each for each in text.splitlines() if "uwf thread" in each)
    return line.removeprefix("hint: ").removeprefix("go on: ")


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["show"], id="show"),
        pytest.param(["join"], id="join"),
        pytest.param(["exec"], id="exec"),
        pytest.param(["exec", "--background"], id="exec-in-the-background"),
        pytest.param(["resume"], id="resume"),
        pytest.param(["resume", "-p", "on", "--background"], id="resume-there"),
    ],
)
def test_all_name_the_same_ways_on_where_the_graph_gives_no_role(
    uwf: Uwf, lost: str, words: list[str]
) -> None:
    verb, *flags = words

    done = uwf("thread", verb, lost, *flags)

    assert _ways(done.err) == _detour(lost)


def test_a_poke_that_failed_leaves_the_ways_on_as_they_were(
    uwf: Uwf, lost: str
) -> None:
    failed = uwf("thread", "poke", lost, "-p", "mend", *FAILING)
    shown = uwf("thread", "show", lost)

    assert failed.code == 5
    assert _ways(failed.err) == _detour(lost)
    assert _ways(shown.err) == _detour(lost)


def test_a_fork_of_a_thread_without_a_next_role_has_its_ways_on(
    uwf: Uwf, lost: str
) -> None:
    forked = uwf("thread", "fork", lost)

    fork = forked.out.split()[1]
    assert _ways(forked.err) == _detour(fork)


def test_a_dead_runner_changes_nothing_about_the_way_on(uwf: Uwf, lost: str) -> None:
    store = Path(uwf("store", "path").out.strip())
    write_dead_record(store / "uwf" / "locks" / lost)

    joined = uwf("thread", "join", lost, "--json")

    assert joined.json["error"]["code"] == "killed"
    assert joined.json["error"]["hint"] == _detour(lost)


def test_a_question_that_reads_like_a_lost_thread_is_answered(
    uwf: Uwf, work: Path, thread: str
) -> None:
    (work / "asking.yaml").write_text(
        "replies:\n"
        "  writer: [\"---\\n$status: $SUSPEND\\nreason: 'routing: which?'\\n---\\n\"]\n"
    )

    asked = uwf("thread", "exec", thread, "--agent", "scripted:asking.yaml")
    shown = uwf("thread", "show", thread)
    waited_for = [uwf("thread", word, thread) for word in ("exec", "join")]

    assert asked.code == 3
    told = f"thread {thread} waits for a person: routing: which?"
    assert [(each.code, told in each.err) for each in waited_for] == [(3, True)] * 2
    assert _ways(asked.err) == f"uwf thread resume {thread} -p TEXT"
    assert _ways(shown.err) == f"uwf thread resume {thread} -p TEXT"
