"""``uwf log``: what the program noted of its own doings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from uwfgit.store.locks.flock import lock


@pytest.fixture
def folder(uwf: Uwf, ended: str) -> Path:
    """The log of a store in which a thread ran to its end."""
    assert ended
    return Path(uwf("store", "path").out.strip()) / "uwf" / "logs"


def test_each_step_has_a_line_at_its_beginning_and_its_end(
    uwf: Uwf, folder: Path, ended: str
) -> None:
    assert folder.is_dir()

    events = uwf("log", "show", "--thread", ended, "--json").json["items"]

    assert [event["event"] for event in events] == ["step-begun", "step-ended"] * 4
    first, second = events[:2]
    assert (first["number"], first["role"], first["kind"]) == (1, "writer", "scripted")
    assert second["status"] == "done"
    assert second["ms"] >= 0


def test_events_are_chosen_by_name_and_number(uwf: Uwf, folder: Path) -> None:
    assert folder.is_dir()

    lines = uwf("log", "show", "--event", "step-ended", "--limit", "1").out.splitlines()

    assert len(lines) == 1
    assert "step-ended" in lines[0]
    assert "role=checker" in lines[0]
    assert uwf("log", "show", "--event", "nothing", "--json").json == {"items": []}


def test_a_line_that_is_no_event_is_passed_over(uwf: Uwf, folder: Path) -> None:
    day = folder / "2020-01-01.jsonl"
    day.write_text(
        '{"event": "first"}\nnot json\n[1]\n{"event": 3}\n{"event": "last"}\n'
    )

    items = uwf("log", "show", day.stem, "--json").json["items"]

    assert items == [{"event": "first"}, {"event": "last"}]


def leave_log(folder: Path, thread: str) -> Path:
    worker = folder / f"{thread}.log"
    worker.write_text("step 1 was here\n")
    os.utime(worker, (0, 0))
    return worker


def test_files_are_listed_shown_and_cleaned_by_age(
    uwf: Uwf, folder: Path, ended: str
) -> None:
    worker = leave_log(folder, ended)
    (folder / "other.txt").write_text("not ours")
    (folder / "2020-01-01.jsonl").symlink_to("/etc/passwd")

    listed = uwf("log", "list", "--json").json["items"]
    shown = uwf("log", "show", ended)
    cleaned = uwf("log", "clean", "--json").json["items"]

    # At midnight a second day begins.
    assert [item["kind"] for item in listed] in (
        ["day", "worker"],
        ["day", "day", "worker"],
    )
    assert shown.out == "step 1 was here\n"
    assert [item["name"] for item in cleaned] == [ended]
    assert not worker.exists()
    assert (folder / "other.txt").exists()
    assert uwf("log", "clean", "--before", "soon").code == 2


def test_a_log_that_is_not_there_is_named(uwf: Uwf, folder: Path) -> None:
    assert folder.is_dir()

    assert uwf("log", "show", "2020-01-01").err.startswith(
        "error: log '2020-01-01' not found"
    )


def test_the_file_of_a_worker_at_work_is_not_cleaned_away(
    uwf: Uwf, folder: Path, ended: str
) -> None:
    worker = leave_log(folder, ended)

    with lock(folder.parent / "locks" / ended, command="uwf thread exec"):
        kept = uwf("log", "clean", "--json").json["items"]
    gone = uwf("log", "clean", "--json").json["items"]

    assert ([each["name"] for each in kept], worker.exists()) == ([], False)
    assert [each["name"] for each in gone] == [ended]
