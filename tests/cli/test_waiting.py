"""``exec --wait``: a vendor's limit is waited for, and told of meanwhile."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Final

import pytest

from tests.cli.calls import Uwf
from tests.cli.test_cli_modes import WORKFLOW, use_replay
from uwfgit.model.wording import format_time

_SESSION: Final = "3b241101-e2bb-4255-8caf-4136c566a962"


@pytest.fixture
def limited(
    uwf: Uwf, home: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Uwf:
    """Claude Code, as recorded; ``limit`` is a recording of the test's own."""
    (work / "build.yaml").write_text(WORKFLOW)
    replay = use_replay("claude-code", home, tmp_path, monkeypatch)
    replay.write_text("limit\nanswer\n")
    return uwf


def set_limit(folder: Path, *, seconds: int | None) -> int:
    """Let the vendor's limit end so many seconds from now; gives when.

    Without a number it ends soon after it is told; ``ended_limit`` gives when.
    """
    until = int(time.time()) + (seconds or 0)
    end_at = "@SOON@" if seconds is None else until
    info = {"status": "rejected", "resetsAt": end_at, "rateLimitType": "five_hour"}
    end = {"subtype": "success", "is_error": True, "result": "limit reached"}
    events = (
        {"type": "system", "subtype": "init", "session_id": _SESSION},
        {"type": "rate_limit_event", "rate_limit_info": info},
        {"type": "result", **end, "api_error_status": 429, "session_id": _SESSION},
    )
    (folder / "limit.out").write_text("".join(f"{json.dumps(e)}\n" for e in events))
    (folder / "limit.err").write_text("")
    (folder / "limit.code").write_text("1")
    return until * 1000


def ended_limit(replay: Path) -> int:
    """Return when the limit that ended soon did so, in seconds."""
    return int(replay.with_name(f"{replay.name}.soon").read_text())


def start(uwf: Uwf) -> str:
    started = uwf("thread", "start", "build.yaml", "-p", "Fix it.", "--json")
    thread: str = started.json["threadId"]
    return thread


@pytest.mark.slow
def test_a_short_limit_is_waited_for(limited: Uwf, tmp_path: Path) -> None:
    thread = start(limited)
    set_limit(tmp_path, seconds=None)

    done = limited("thread", "exec", thread, "--wait")

    assert (done.code, "waiting for the limit to end at" in done.err) == (0, True)
    assert time.time() >= ended_limit(tmp_path / "replay")
    shown = limited("thread", "show", thread, "--json").json
    assert (shown["status"], shown["steps"], shown["retryAtMs"]) == ("end", 1, None)
    assert limited("verify", thread).code == 0


def test_a_long_limit_is_told_and_stands_in_the_listing(
    limited: Uwf, tmp_path: Path
) -> None:
    thread = start(limited)
    until = set_limit(tmp_path, seconds=7200)

    done = limited("thread", "exec", thread, "--wait=1h")

    assert (done.code, "not waited for" in done.err) == (5, True)
    shown = limited("thread", "show", thread)
    when = format_time(until) or "never"
    assert when in shown.out
    (row,) = limited("thread", "list", "--json").json["items"]
    assert row["retryAtMs"] == until
    day, _, hour = when.partition(" ")
    listed = limited("thread", "list").out
    assert f"suspended until {hour}" in listed or f"suspended until {day}" in listed
    again = limited("thread", "exec", thread)
    assert (again.code, "--wait" in again.err) == (3, True)
    for told in (done, shown, again):
        assert f"{when}, wait for it: uwf thread exec {thread} --wait\n" in told.err
        assert "thread resume" not in told.err


def test_a_limit_of_a_day_is_waited_for_with_more_than_the_usual_hours(
    limited: Uwf, tmp_path: Path
) -> None:
    thread = start(limited)
    set_limit(tmp_path, seconds=24 * 3600 + 60)

    done = limited("thread", "exec", thread)

    assert f"uwf thread exec {thread} --wait=25h\n" in done.err
