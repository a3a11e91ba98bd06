from __future__ import annotations

import pytest

from uwfgit.cli.thread.reading import check_quota, step_markdown, turn_markdown
from uwfgit.errors import UsageError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.thread.step import Step

THREAD = ThreadId("01J00000000000000000000000")
NODE = Hash("22Q90W9A5THH6")


def make_step() -> Step:
    return Step(
        number=2,
        hash=NODE,
        start=NODE,
        prev=None,
        role="writer",
        output_hash=NODE,
        output={"$status": "done"},
        body="The body.",
        detail_hash=NODE,
        agent="mine",
        edge_prompt="Write it.\n\nWell.",
        note="shorter",
        cwd="/",
        started_at_ms=1_000,
        completed_at_ms=3_000,
        usage=None,
        previous_attempts=(),
        extracted_by="frontmatter",
        warnings=("a \x1b[1mwarning",),
    )


def turn(content: str, *tools: str) -> dict[str, object]:
    calls = [{"name": name, "arguments": {"path": "x"}} for name in tools]
    return {"role": "assistant", "content": content, "toolCalls": calls or None}


def test_a_turn_shows_who_what_and_the_tools() -> None:
    text = turn_markdown(turn("Look\x1b[2J.", "read", "write"), 3)

    assert text.splitlines() == [
        "**3. assistant**",
        "",
        "Look\\x1b[2J.",
        '- read: `{"path": "x"}`',
        '- write: `{"path": "x"}`',
    ]


def test_a_step_quotes_what_was_asked_and_shows_note_and_warnings() -> None:
    text = step_markdown(THREAD, make_step(), {"turns": [turn("x")]}, quota=4000)

    assert "> Write it.\n>\n> Well.\n" in text
    assert "<note>\nshorter\n</note>" in text
    assert "*warning: a \\x1b[1mwarning*" in text
    assert "## Turns" not in text


def test_turns_beyond_the_quota_are_left_out_with_the_command_for_them() -> None:
    turns = [turn("a" * 500, "ls"), turn("b" * 500), turn("c" * 500)]

    text = step_markdown(THREAD, make_step(), {"turns": turns}, quota=1000)

    assert "*2 earlier turns left out; see all with* " in text
    assert f"`uwf step turns {THREAD} --role writer`" in text
    assert "**3. assistant**" in text
    assert "aaa" not in text


def test_a_quota_is_at_least_one() -> None:
    assert check_quota(1) == 1
    with pytest.raises(UsageError):
        check_quota(0)
