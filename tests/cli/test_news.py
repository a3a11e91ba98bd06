"""``show --new`` and ``read --new``: what happened since the user looked."""

from __future__ import annotations

import pytest

from tests.cli.calls import Uwf

SCRIPT = ("--agent", "scripted:replies.yaml")


def test_only_new_steps_are_read(uwf: Uwf, thread: str) -> None:
    uwf("thread", "exec", thread, *SCRIPT)
    first = uwf("thread", "read", thread, "--new").out
    nothing = uwf("thread", "read", thread, "--new").out
    uwf("thread", "exec", thread, *SCRIPT)
    second = uwf("thread", "read", thread, "--new").out

    assert "## Step 1" in first
    assert "*No step is new.*" in nothing
    assert "## Step 2" in second
    assert "## Step 1" not in second


def test_show_lists_the_events_since_then(uwf: Uwf, thread: str) -> None:
    uwf("thread", "read", thread, "--new")
    uwf("thread", "read", thread)
    uwf("thread", "exec", thread, *SCRIPT)
    uwf("thread", "cancel", thread)

    shown = uwf("thread", "show", thread, "--new", "--json").json

    assert [(each["event"], each["role"]) for each in shown["new"]] == [
        ("step", "writer"),
        ("cancel", None),
    ]
    assert shown["new"][1]["by"] == "Ada <ada@example.org>"
    assert uwf("thread", "show", thread, "--new", "--json").json["new"] == []
    assert "new" not in uwf("thread", "show", thread, "--json").json


def test_a_look_of_an_agent_does_not_count(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as inside:
        inside.setenv("UWF_STEP", f"{thread}:1:ab")
        uwf("thread", "read", thread, "--new")

    lines = uwf("thread", "show", thread, "--new").out.splitlines()

    assert lines[-1].startswith("new      ")
    assert lines[-1].endswith("start, by Ada")
