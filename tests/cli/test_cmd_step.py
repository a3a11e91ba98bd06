from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from uwfgit.model.node import STEP_TYPE, find_builtin_schema


def test_list_has_one_item_a_step(uwf: Uwf, ended: str) -> None:
    shown = uwf("step", "list", ended, "--json").json

    assert shown["threadId"] == ended
    assert [list(item) for item in shown["items"]] == [
        [
            *("number", "hash", "role", "status", "agent", "child"),
            *("durationMs", "usage", "cost", "warnings"),
        ]
    ] * 4
    assert [(item["number"], item["role"]) for item in shown["items"]] == [
        (1, "writer"),
        (2, "checker"),
        (3, "writer"),
        (4, "checker"),
    ]


def test_list_for_people(uwf: Uwf, ended: str) -> None:
    lines = uwf("step", "list", ended).out.splitlines()

    assert lines[0].split() == ["STEP", "HASH", "ROLE", "STATUS", "AGENT", "DURATION"]
    assert lines[2].split()[2:5] == ["checker", "bad", "scripted"]


def test_warnings_are_seen_where_one_looks_after_a_step(
    uwf: Uwf, work: Path, thread: str
) -> None:
    (work / "r.yaml").write_text(
        "replies:\n  writer:\n  - |-\n    Well:\n\n    ---\n    $status: done\n"
        "    text: one\n    $odd: 2\n    ---\n"
        '  checker: ["---\\n$status: good\\n---\\n"]\n'
    )
    agent = ("--agent", "scripted:r.yaml")

    ran = uwf("thread", "exec", thread, *agent)
    shown = uwf("thread", "show", thread)
    payload = uwf("thread", "show", thread, "--json").json
    uwf("thread", "exec", thread, *agent)
    listed = uwf("step", "list", thread).out.splitlines()
    after = uwf("thread", "show", thread, "--json").json
    read = uwf("thread", "read", thread).out

    first, second = payload["warnings"]
    assert f"warning: step 1: {first} (and 1 more)" in ran.err.splitlines()
    assert f"step 1: {first} (and 1 more)" in shown.out
    assert [line.split()[-1] for line in listed] == ["WARNINGS", "2", "-"]
    assert after["warnings"] == []
    assert f"*warning: {first}*\n\n*warning: {second}*" in read


def test_a_thread_without_steps_says_so(uwf: Uwf, thread: str) -> None:
    shown = uwf("step", "list", thread)

    assert (shown.code, shown.out, shown.err) == (0, "", "no steps yet\n")
    assert uwf("step", "list", thread, "--json").json["items"] == []


def test_show_expands_output_and_detail(uwf: Uwf, ended: str) -> None:
    step = uwf("step", "show", f"{ended}:2", "--json").json

    assert step["output"] == {"$status": "bad", "why": "too short"}
    assert step["body"].strip() == "No."
    assert step["edgePrompt"] == "Check one"
    assert step["detail"]["kind"] == "scripted"
    assert "Check one" in step["detail"]["assembledPrompt"]
    assert step["prev"] == uwf("step", "list", ended, "--json").json["items"][0]["hash"]
    assert uwf("step", "show", step["hash"], "--json").json == step


def test_show_has_every_field_that_a_step_must_have(uwf: Uwf, ended: str) -> None:
    step = uwf("step", "show", f"{ended}:2", "--json").json
    schema = find_builtin_schema(STEP_TYPE)

    assert isinstance(schema, dict)
    assert set(schema["required"]) - step.keys() == set()
    assert step["previousAttempts"] == []


def test_show_for_people(uwf: Uwf, ended: str) -> None:
    text = uwf("step", "show", f"{ended}:2").out

    assert f"step      {ended}:2" in text
    assert '"why": "too short"' in text
    assert text.endswith("No.\n")


def test_read_is_markdown_and_prompt_the_whole_prompt(uwf: Uwf, ended: str) -> None:
    read = uwf("step", "read", f"{ended}:2").out
    prompt = uwf("step", "read", f"{ended}:2", "--prompt").out
    step = uwf("step", "show", f"{ended}:2", "--json").json

    assert read.startswith(f"# Step {ended}:2: checker `{step['hash']}`\n")
    assert '$status: "bad"' in read
    assert prompt == step["detail"]["assembledPrompt"].rstrip("\n") + "\n"
    assert uwf("step", "read", f"{ended}:2", "--json").json["text"] == read


def test_turns_are_numbered_through_the_thread(uwf: Uwf, ended: str) -> None:
    items = uwf("step", "turns", ended, "--json").json["items"]
    text = uwf("step", "turns", ended).out

    assert [(item["number"], item["step"], item["of"]) for item in items] == [
        (1, 1, "writer"),
        (2, 2, "checker"),
        (3, 3, "writer"),
        (4, 4, "checker"),
    ]
    assert "## Step 3: writer (1 turn)" in text
    assert "**3. assistant**" in text


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        pytest.param(("--role", "checker"), [2, 4], id="role"),
        pytest.param(("--limit", "2"), [1, 2], id="limit"),
        pytest.param(("--offset", "3"), [4], id="offset"),
        pytest.param(("--limit", "0"), [], id="none"),
        pytest.param(("--role", "nobody"), [], id="no-such-role"),
    ],
)
def test_turns_are_chosen(
    uwf: Uwf, ended: str, words: tuple[str, ...], steps: list[int]
) -> None:
    items = uwf("step", "turns", ended, *words, "--json").json["items"]

    assert [item["step"] for item in items] == steps
    if not steps:
        assert "no turns recorded" in uwf("step", "turns", ended, *words).out


@pytest.mark.parametrize(
    ("name", "code"),
    [
        pytest.param("0000000000000", 1, id="unknown-hash"),
        pytest.param("@last:9", 1, id="beyond"),
        pytest.param("@last:x", 2, id="no-number"),
        pytest.param("zzz", 1, id="nothing"),
    ],
)
def test_unknown_steps_are_one_line(uwf: Uwf, ended: str, name: str, code: int) -> None:
    assert ended

    shown = uwf("step", "show", name)

    assert (shown.code, shown.out) == (code, "")
    assert shown.err.startswith("error: ")


def test_a_step_before_a_poke_is_still_there_by_its_hash(uwf: Uwf, thread: str) -> None:
    script = ("--agent", "scripted:replies.yaml")
    uwf("thread", "exec", thread, *script)
    old = uwf("step", "show", f"{thread}:1", "--json").json
    uwf("thread", "poke", thread, "-p", "again", *script)

    assert uwf("step", "show", old["hash"], "--json").json == old
    assert uwf("step", "show", f"{thread}:1", "--json").json["hash"] != old["hash"]
