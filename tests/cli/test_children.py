"""Threads that did steps of others, as people and programs see them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.cli.family import FILES, Family, make_family, reseat
from tests.cli.screens import on_terminal
from tests.cli.seats import make_seat
from uwfgit.cli.fleet.running import start_run
from uwfgit.fleet.hands import RunResult
from uwfgit.model.picture.chart import TIMES


@pytest.fixture(scope="module")
def made() -> dict[str, Family]:
    """The family that those share who change nothing, once one has made it."""
    return {}


@pytest.fixture
def family(
    made: dict[str, Family],
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Family:
    if "family" not in made:
        folder = tmp_path_factory.mktemp("family")
        made["family"] = make_family(make_seat(folder, "Ada", monkeypatch, capsys))
    return reseat(made["family"], monkeypatch, capsys)


def test_list_folds_children_into_their_parents(family: Family) -> None:
    text = family.uwf.do("thread", "list", "--all")
    data = family.uwf.do("thread", "list", "--all", "--json").json

    lines = text.out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith(f"{family.parent} +2  deliver")
    assert "2 threads that did steps of these not shown (--children)" in text.err
    assert [item["threadId"] for item in data["items"]] == [family.parent]


def test_list_unfolds_them_below_their_parents(family: Family) -> None:
    text = family.uwf.do("thread", "list", "--all", "--children").out
    items = family.uwf.do("thread", "list", "--all", "--children", "--json").json[
        "items"
    ]

    assert [line.split("  build")[0].rstrip() for line in text.splitlines()[1:3]] == [
        next(line for line in text.splitlines() if line.startswith(family.parent)),
        f"  {family.child}",
    ]
    assert text.splitlines()[3].startswith(f"    {family.grandchild}")
    assert [(item["threadId"], item["children"]) for item in items] == [
        (family.parent, [family.child]),
        (family.child, [family.grandchild]),
        (family.grandchild, []),
    ]
    steps = family.uwf.do("step", "list", family.parent, "--json").json["items"]
    assert items[0]["parent"] is None
    assert items[1]["parent"] == {"thread": family.parent, "step": steps[0]["hash"]}


def test_a_worker_learns_how_many_steps_children_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seat = make_seat(tmp_path, "Ada", monkeypatch, capsys)
    for name, text in FILES.items():
        (seat.folder / name).write_text(text)
    started = seat.do("thread", "start", "deliver.yaml", "-p", "Again", "--json").json
    thread = started["threadId"]
    agent = ("--agent", "scripted:replies.yaml")
    seat.do("thread", "exec", thread, *agent)
    words = ("thread", "exec", thread, *agent, "--json", "--quiet")
    run = start_run(words, cwd=seat.folder, environment=dict(os.environ))
    run.process.wait(60)

    # Its own, and the two of the child, of which a grandchild did one by one.
    assert run.poll() == RunResult(ran=4)


def test_what_ended_is_counted_without_its_children(family: Family) -> None:
    told = family.uwf.do("thread", "list").err

    assert "1 ended or cancelled thread not shown" in told


def test_a_child_that_alone_is_asked_for_has_a_line_of_its_own(family: Family) -> None:
    found = family.uwf.do("thread", "list", "--all", "--workflow", "build", "--json")

    assert [item["threadId"] for item in found.json["items"]] == [family.child]


def test_show_leads_both_ways(family: Family) -> None:
    above = family.uwf.do("thread", "show", family.parent).out
    middle = family.uwf.do("thread", "show", family.child).out
    data = family.uwf.do("thread", "show", family.child, "--json").json

    assert f"child     {family.child} build, end" in above
    assert f"does      step 2 of {family.parent}" in middle
    assert f"child     {family.grandchild} probe, end" in middle
    assert data["parent"]["thread"] == family.parent
    assert data["children"] == [family.grandchild]


def test_read_leads_both_ways_and_shows_no_empty_goal(family: Family) -> None:
    above = family.uwf.do("thread", "read", family.parent).out
    middle = family.uwf.do("thread", "read", family.child).out

    assert f"*Done by a thread:* `uwf thread read {family.child}`" in above
    assert above.count("**Goal**") == 2
    assert f"\nDoes: step 2 of {family.parent}\n" in middle


def test_log_leads_both_ways(family: Family) -> None:
    text = family.uwf.do("thread", "log", family.child, "--oneline")
    items = family.uwf.do("thread", "log", family.child, "--json").json["items"]

    assert f"it does step 2 of {family.parent}" in text.err
    assert (
        f"step 2 was done by a thread: uwf thread log {family.grandchild}" in text.err
    )
    assert [item["child"] for item in items] == [family.grandchild, None, None]


def test_a_step_names_the_thread_that_did_it(family: Family) -> None:
    name = f"{family.parent}:2"
    step = family.uwf.do("step", "show", name, "--json").json
    tip = family.uwf.do("thread", "show", family.child, "--json").json["oid"]
    listed = family.uwf.do("step", "list", family.parent, "--json").json["items"]

    assert step["child"] == {"thread": family.child, "oid": tip}
    assert [item["child"] for item in listed] == [None, step["child"], None]
    assert f"done by   {family.child}" in family.uwf.do("step", "show", name).out
    read = family.uwf.do("step", "read", name).out
    assert f"`uwf thread read {family.child}`" in read
    # It and those above and below take turns.
    assert "shared" not in step["code"]


def test_diff_names_the_threads_that_did_the_steps(family: Family) -> None:
    text = family.uwf.do("thread", "diff", family.parent, family.child).out
    pairs = family.uwf.do("thread", "diff", family.parent, family.child, "--json").json[
        "steps"
    ]

    line = next(line for line in text.splitlines() if f"by {family.child}" in line)
    assert f"by {family.grandchild}" in line
    assert pairs[1]["a"]["child"]["thread"] == family.child
    assert all(len(each) <= 80 for each in text.splitlines())


def test_the_picture_of_a_thread_leads_to_its_children(family: Family) -> None:
    text = family.uwf.do("workflow", "graph", "--thread", family.parent).out
    data = family.uwf.do("workflow", "graph", "--thread", family.parent, "--json").json
    mermaid = family.uwf.do("workflow", "graph", "deliver.yaml", "--as", "mermaid").out
    dot = family.uwf.do("workflow", "graph", "deliver.yaml", "--as", "dot").out

    assert f"builder [build] 1{TIMES}" in text
    assert text.endswith(f"\nstep 2, builder: {family.child}\n")
    (node,) = (node for node in data["nodes"] if node["name"] == "builder")
    assert (node["workflow"], node["threads"]) == ("build", [family.child])
    assert '[["builder #91;build#93;"]]' in mermaid
    assert 'label="builder [build]", peripheries=2' in dot


def test_verify_counts_children_and_may_demand_them(family: Family) -> None:
    found = family.uwf.do("verify", family.parent, "--children", "--json").json

    assert (found["items"][0]["children"], found["items"][0]["childrenHere"]) == (1, 1)
    assert "children 1 of 1 here" in family.uwf.do("verify", family.parent).out


COMMANDS = (
    "thread list --all --children",
    "thread show {parent}",
    "thread show {child}",
    "thread read {child}",
    "thread log {child} --oneline",
    "thread diff {parent} {child}",
    "workflow graph --thread {parent}",
    "step list {parent}",
    "step show {parent}:2",
    "verify",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_family_fits_a_terminal_of_80_columns(family: Family, command: str) -> None:
    family.uwf("store", "path")
    words = command.format(parent=family.parent, child=family.child).split()

    seen = on_terminal(*words, columns=80)

    assert seen.code == 0, seen.out
    # Where the tests run is as long as it is; a path is never cut.
    told = seen.out.replace(str(Path.cwd()), "/here")
    assert widest(told) <= 80, seen.out


def widest(text: str) -> int:
    plain = re.sub(r"\x1b\[[0-9;]*[mK]", "", text)
    return max(len(line.rpartition("\r")[2]) for line in plain.splitlines())


@pytest.mark.slow
def test_a_long_list_goes_through_the_pager(family: Family) -> None:
    family.uwf("store", "path")
    words = ("thread", "list", "--all")
    short = on_terminal(*words, pager="sed s/^/P:/")
    for number in range(24):
        family.uwf.do("thread", "start", "probe.yaml", "-p", f"Task {number}")

    long = on_terminal(*words, pager="sed s/^/P:/")

    for thread in family.uwf.do("thread", "list", "--json").json["items"]:
        family.uwf.do("thread", "rm", thread["threadId"])
    assert "P:" not in short.out
    assert "P:THREAD" in long.out
    assert "Task 0" in long.out


def test_git_log_goes_through_the_pager_in_colours(family: Family) -> None:
    family.uwf("store", "path")
    words = ("git", "log", "-p", f"thread/{family.parent}")

    paged = on_terminal(*words, pager="sed s/^/P:/")
    plain = on_terminal(*words, "--color=never")

    tip = family.uwf.do("thread", "show", family.parent, "--json").json["oid"]
    assert f"P:\x1b[33mcommit {tip}\x1b[0m" in paged.out
    assert "P:\x1b[32m+Off it goes.\x1b[0m" in paged.out
    assert "\x1b[3" not in plain.out
