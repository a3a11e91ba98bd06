from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from uwfgit.model.picture.columns import display_width

OTHER = """\
replies:
  writer:
    - "---\\\\n$status: done\\\\ntext: one\\\\n---\\\\nFirst."
    - "---\\\\n$status: done\\\\ntext: two\\\\n---\\\\nOther."
  checker:
    - "---\\\\n$status: good\\\\n---\\\\nYes."
""".replace("\\\\", "\\")
LONG = "This sentence is the same in both and longer than a column: "


@pytest.fixture
def forked(uwf: Uwf, work: Path, ended: str) -> str:
    """A fork of the ended thread after its first step, with another verdict."""
    (work / "other.yaml").write_text(OTHER)
    made = uwf("thread", "fork", ended, "--at", "1", "--json").json
    fork: str = made["threadId"]
    done = uwf("thread", "exec", fork, "--all", "--agent", "scripted:other.yaml")
    assert done.code == 0, done.err
    return fork


def test_two_threads_stand_side_by_side_from_where_they_part(
    uwf: Uwf, ended: str, forked: str
) -> None:
    compared = uwf("thread", "diff", ended, forked)

    lines = compared.out.splitlines()
    assert compared.code == 0
    assert max(map(display_width, lines)) <= 80
    assert lines[0] == f"    A {ended}         │ B {forked}"
    assert lines[1].split("│")[0].strip() == "ping, end, 4 steps"
    assert "the same up to step 1, writer done" in lines
    heads = [line for line in lines if line[:3].strip().isdigit()]
    assert [" ".join(line.split()) for line in heads] == [
        "2 checker → bad ≠ checker → good",
        "3 writer → done │",
        "4 checker → good │",
    ]
    assert any(line.startswith("    why: too short") and "≠" in line for line in lines)
    assert lines[-1].startswith("sum 3 steps, ")


def test_json_has_both_sides_and_what_differs(
    uwf: Uwf, ended: str, forked: str
) -> None:
    compared = uwf("thread", "diff", ended, forked, "--json").json

    assert list(compared) == ["a", "b", "forkPoint", "steps", "totals"]
    assert (compared["a"]["threadId"], compared["b"]["threadId"]) == (ended, forked)
    assert compared["forkPoint"]["number"] == 1
    first, *rest = compared["steps"]
    assert first["differs"] == ["status", "output.why", "body"]
    assert (first["a"]["status"], first["b"]["status"]) == ("bad", "good")
    assert first["a"]["output"] == {"$status": "bad", "why": "too short"}
    assert [(s["number"], s["b"]) for s in rest] == [(3, None), (4, None)]
    assert list(compared["totals"]["a"]) == [
        "steps",
        "durationMs",
        "usage",
        "cost",
    ]


def test_a_thread_and_itself_have_no_difference(uwf: Uwf, ended: str) -> None:
    compared = uwf("thread", "diff", ended, ended)

    assert compared.out.endswith(
        "the same up to step 4, checker good; neither goes on from there\n"
    )


def compare_replies(uwf: Uwf, work: Path, *replies: str) -> str:
    """Begin a thread for each reply of its writer, and compare them."""
    threads = []
    for reply in replies:
        (work / "long.yaml").write_text(f'replies: {{writer: ["{reply}"]}}\n')
        begun = uwf("thread", "start", "ping.yaml", "-p", "Write.", "--json").json
        threads.append(begun["threadId"])
        uwf("thread", "exec", threads[-1], "--agent", "scripted:long.yaml")
    return uwf("thread", "diff", *threads).out


def test_long_values_are_shown_from_where_they_differ(uwf: Uwf, work: Path) -> None:
    replies = [
        f"---\\n$status: done\\ntext: '{LONG}{number}'\\n---\\n"
        for number in ("one", "two")
    ]

    compared = compare_replies(uwf, work, *replies)

    assert "no step in common" in compared
    assert "    text: …column: one                   ≠ text: …column: two\n" in compared


def test_a_field_named_text_and_the_body_are_told_apart(uwf: Uwf, work: Path) -> None:
    replies = [
        f"---\\n$status: done\\ntext: t{number}\\n---\\nb{number}"
        for number in ("one", "two")
    ]

    lines = compare_replies(uwf, work, *replies).splitlines()

    assert [line.split(":")[0].strip() for line in lines if "≠" in line] == [
        "text",
        "body",
    ]


def test_a_thread_that_is_not_there_is_named(uwf: Uwf, ended: str) -> None:
    compared = uwf("thread", "diff", ended, "01NOTHING", "--json")

    assert compared.code == 1
    assert "01NOTHING" in compared.error["message"]


@pytest.mark.compat
def test_log_is_gits_log_of_the_thread(uwf: Uwf, ended: str, forked: str) -> None:
    logged = uwf("thread", "log", forked, "--format=json")
    items = logged.json["items"]

    assert [item["event"] for item in items] == ["step", "fork", "step", "start"]
    assert [item["threadId"] for item in items] == [forked, forked, ended, ended]
    assert items[0]["subject"] == "checker: good"
    assert (items[0]["role"], items[0]["status"], items[0]["next"]) == (
        "checker",
        "good",
        "$END",
    )


@pytest.mark.compat
@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("-2", "--pretty=tformat:%s"), id="bare"),
        pytest.param(("--", "-2", "--format=%s"), id="behind-two-dashes"),
    ],
)
def test_options_of_git_log_are_gits(
    work: Path, forked: str, options: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uwfgit", "thread", "log", forked, *options],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "checker: good"
    assert done.stdout.count("\n") == 2


def test_options_of_git_log_do_not_go_with_json(uwf: Uwf, ended: str) -> None:
    logged = uwf("thread", "log", ended, "--oneline", "--json")

    assert logged.code == 2
