"""Threads that did steps of others, between people: sent, brought, trusted, removed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders import git
from tests.cli.family import Family, make_family
from tests.cli.seats import Seat, make_seat
from tests.code.repo import Repo
from tests.program import wait_until
from tests.sync.people import make_bare, refs_of

RUN = ("--agent", "scripted:answering.yaml", "--cwd", ".", "--trust")


@dataclass(frozen=True, slots=True, kw_only=True)
class Two:
    """A family that waits for an answer, at Ada's; and Bob, who has the same remote."""

    family: Family
    bob: Seat

    @property
    def ada(self) -> Seat:
        return self.family.uwf


@pytest.fixture
def two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Two:
    bare = make_bare(tmp_path / "between.git")
    ada = make_seat(tmp_path, "Ada", monkeypatch, capsys)
    family = make_family(ada, replies="asking.yaml")
    bob = make_seat(tmp_path, "Bob", monkeypatch, capsys)
    bob.do("init", "--user")
    for seat in (ada, bob):
        seat.do("remote", "add", "origin", str(bare))
    return Two(family=family, bob=bob)


def answer(seat: Seat) -> None:
    """Put the replies there that answer what was asked."""
    said = "---\\n$status: built\\nwhat: a tool\\n---\\nAll green."
    asked = "---\\n$status: $SUSPEND\\nreason: Which?\\n---\\nI ask."
    (seat.folder / "answering.yaml").write_text(
        f'replies:\n  prober: ["{asked}", "{said}", "{said}"]\n'
        '  sender: ["---\\n$status: sent\\n---\\nOff."]\n'
    )


def pushed(two: Two) -> None:
    two.ada.do("push", "origin", two.family.parent)
    two.bob.do("pull")


def bring(two: Two, *threads: str) -> None:
    """Fetch some threads as plain git does, and nothing else."""
    two.ada.do("push", "origin", two.family.parent)
    store = Path(two.bob.do("store", "path").out.strip())
    url = two.bob.do("remote", "list", "--json").json["items"][0]["url"]
    refs = [f"refs/heads/thread/{thread}" for thread in threads]
    git(store, "fetch", "-q", url, *(f"{ref}:{ref}" for ref in refs))


def test_a_parent_takes_its_children_along_and_they_are_folded_there(two: Two) -> None:
    pushed(two)

    listed = two.bob.do("thread", "list", "--json").json["items"]
    two.bob.do("verify", "--children")

    assert [(item["threadId"], item["children"]) for item in listed] == [
        (two.family.parent, [two.family.child])
    ]


@pytest.mark.slow
def test_a_pull_tells_what_came_by_whom_and_what_waits(two: Two) -> None:
    two.ada.do("push", "origin", two.family.parent)

    lines = two.bob.do("pull").out.splitlines()

    mine = next(line for line in lines if two.family.parent in line)
    what = mine.partition(two.family.parent)[2]
    assert mine.startswith("new ")
    assert what.startswith("  deliver, suspended, by Ada  builder waits: ")
    assert what.endswith("Which?")


@pytest.mark.slow
def test_one_thread_is_brought_with_what_did_its_steps(two: Two) -> None:
    two.ada.do("push", "origin", two.family.parent)
    threads = [two.family.parent, two.family.child, two.family.grandchild]

    first = two.bob.do("pull", two.family.parent, "--json").json["items"]
    answer(two.ada)
    two.ada.do("thread", "resume", two.family.parent, "-p", "This", "--agent", RUN[1])
    two.ada.do("push", "origin", two.family.parent)
    then = two.bob.do("pull", two.family.parent, "--json").json["items"]

    assert [item["threadId"] for item in first] == threads
    assert [(item["threadId"], item["result"]) for item in then] == [
        (thread, "updated") for thread in threads
    ]
    two.bob.do("verify", "--children")


@pytest.mark.slow
def test_without_its_children_a_thread_says_what_is_missing_and_how_to_get_it(
    two: Two,
) -> None:
    bring(two, two.family.parent)

    text = two.bob.do("verify")
    lacking = two.bob.do("verify", "--children", "--json", code=1).json["items"][0]
    shown = two.bob.do("thread", "show", two.family.parent).out
    checked = two.bob.do("thread", "check", two.family.parent, "--json", code=1).json

    assert "children 0 of 1 here" in text.out
    assert [each["code"] for each in lacking["problems"]] == ["child"]
    assert f"child     {two.family.child} not here" in shown
    (child,) = (each for each in checked["checks"] if each["what"] == "child")
    assert child["command"] == f"uwf pull {two.family.child}"
    two.bob.do(*child["command"].split()[1:])
    two.bob.do("verify", "--children")


@pytest.mark.slow
def test_a_child_whose_own_child_is_missing_is_not_whole(two: Two) -> None:
    bring(two, two.family.parent, two.family.child)

    found = two.bob.do("verify", two.family.parent, "--children", "--json", code=1)

    assert found.json["items"][0]["childrenHere"] == 0


def test_one_question_covers_all_that_a_thread_of_others_runs(two: Two) -> None:
    pushed(two)
    answer(two.bob)
    words = ("thread", "resume", two.family.parent, "-p", "This")

    refused = two.bob.do(*words, "--agent", "scripted:answering.yaml", code=1)
    quiet = two.bob.do(*words, *RUN[:4], "--json", code=1)
    done = two.bob.do(*words, *RUN)
    again = two.bob.do("thread", "exec", two.family.parent, "--all", *RUN[:2])

    for line in (
        f"  child:     {two.family.child} build, suspended",
        f"  child:     {two.family.grandchild} probe, suspended",
        "  through:   build, coder: scripted",
        "  through:   build, tester: workflow probe",
        "  through:   probe, prober: scripted",
        "none yet: choose one with --cwd DIR",
    ):
        assert line in refused.err
    assert "--trust --cwd DIR" in refused.err
    assert quiet.json["error"]["code"] == "untrusted"
    assert done.err.count("was not made on this machine alone") == 1
    assert "  child:" not in again.err
    two.bob.do("verify", "--children")


@pytest.mark.slow
def test_what_others_did_to_a_child_is_asked_for_by_an_own_parent(two: Two) -> None:
    pushed(two)
    answer(two.bob)
    two.bob("thread", "resume", two.family.grandchild, "-p", "This", *RUN)
    two.bob.do("push", "origin", two.family.grandchild)
    two.ada.do("pull")
    answer(two.ada)
    words = ("thread", "resume", two.family.parent, "--agent", RUN[1])

    refused = two.ada.do(*words, code=1)

    assert "others had a hand in what does steps of" in refused.err
    assert f"  child:     {two.family.grandchild} probe, end" in refused.err
    assert "by Bob" in refused.err
    two.ada.do(*words, "--trust")
    two.ada.do("verify", "--children")


@pytest.mark.slow
def test_a_side_that_a_parent_names_stays_in_its_childs_history(two: Two) -> None:
    pushed(two)
    for seat in (two.ada, two.bob):
        answer(seat)
        seat("thread", "resume", two.family.parent, "-p", seat.name, *RUN)
    two.ada.do("push")
    two.bob.do("pull", code=1)
    family, resolve = two.family, ("thread", "resolve")
    check = two.bob("thread", "check", family.parent)

    shown = two.bob.do(*resolve, family.child)
    refused = two.bob.do(*resolve, family.child, "--keep-both", code=1)
    two.bob.do(*resolve, family.parent, "--keep-both")
    for each in (family.child, family.grandchild):
        two.bob.do(*resolve, each, "--keep-theirs")
    two.bob.do("gc", "--prune=now", "--yes")

    assert (
        f"diverged from origin\n{'':18}uwf thread resolve {family.parent}" in check.out
    )
    assert "--keep-both" not in shown.out
    assert f"your side of thread {family.child} did a step of" in refused.err
    assert "--keep-theirs" in refused.err
    two.bob.do("verify", "--children")
    two.bob.do("push", "--all")
    two.ada.do("pull")
    two.ada.do("verify", "--children")


@pytest.mark.slow
def test_a_side_that_a_parent_names_of_others_alone_may_get_a_name_of_its_own(
    two: Two,
) -> None:
    pushed(two)
    again = ("thread", "resume", two.family.parent, "-p", "Again")
    two.ada(*again, "--agent", "scripted:asking.yaml")
    for seat in (two.ada, two.bob):
        answer(seat)
        seat(*again, *RUN)
    two.ada.do("push")
    two.bob.do("pull", code=1)
    family, resolve = two.family, ("thread", "resolve")
    two.bob.do(*resolve, family.parent, "--keep-theirs")
    store = Path(two.bob.do("store", "path").out.strip())
    # What a second remote has: Ada's side but for its newest event.
    two.bob.do("remote", "add", "other", str(store))
    git(
        *(store, "update-ref", f"refs/remotes/other/thread/{family.child}"),
        f"refs/remotes/origin/thread/{family.child}~1",
    )

    shown = two.bob.do(*resolve, family.child, "--remote", "other")

    assert "--keep-both" in shown.out


@pytest.mark.slow
def test_a_bundle_takes_children_along(two: Two) -> None:
    made = two.ada.do("bundle", "create", "family.bundle", two.family.parent)
    bundle = two.ada.folder / "family.bundle"

    two.bob.do("bundle", "open", str(bundle))

    assert made.out == f"{bundle}: 1 thread, with 2 children\n"
    two.bob.do("verify", "--children")
    items = two.bob.do("thread", "list", "--children", "--json").json["items"]
    assert [item["threadId"] for item in items] == [
        *(two.family.parent, two.family.child, two.family.grandchild)
    ]


@pytest.mark.slow
def test_removal_takes_children_along_and_brings_them_back(two: Two) -> None:
    uwf, family = two.ada, two.family
    refused = uwf.do("thread", "rm", family.child, code=1)
    removed = uwf.do("thread", "rm", family.parent, "--json").json
    listed = uwf.do("thread", "list", "--all", "--json").json["items"]
    uwf.do("gc", "--prune")
    restored = uwf.do("thread", "restore", family.parent)

    assert f"did a step of thread {family.parent}" in refused.err
    assert removed["children"] == sorted([family.child, family.grandchild])
    assert listed == []
    assert ", and 2 threads that did steps of it" in restored.out
    uwf.do("verify", "--children")


@pytest.mark.slow
def test_removal_leaves_children_that_a_fork_shares(two: Two) -> None:
    uwf, family = two.ada, two.family
    fork = uwf.do("thread", "fork", family.parent, "--json").json["threadId"]

    first = uwf.do("thread", "rm", family.parent, "--json").json
    uwf.do("verify", fork, "--children")
    last = uwf.do("thread", "rm", fork, "--json").json

    assert first["children"] == []
    assert last["children"] == sorted([family.child, family.grandchild])


@pytest.mark.slow
def test_a_fork_that_is_answered_gets_a_child_of_its_own(two: Two) -> None:
    uwf, family = two.ada, two.family
    fork = uwf.do("thread", "fork", family.parent, "--json").json["threadId"]
    answer(uwf)

    uwf.do("thread", "resume", fork, "-p", "This", "--agent", RUN[1])

    shown = uwf.do("thread", "show", fork, "--json").json
    own = [each for each in shown["children"] if each != family.child]
    tree = uwf.do("thread", "list", "--all", "--children", "--json").json["items"]
    below = {item["threadId"]: item["children"] for item in tree}
    assert len(own) == 1
    assert below[fork] == own
    assert below[family.parent] == [family.child]
    uwf.do("verify", "--children")


@pytest.mark.slow
def test_a_forks_own_child_is_no_other_thread_at_work_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code_repo = Repo.make(tmp_path / "code")
    uwf = make_seat(tmp_path, "Ada", monkeypatch, capsys, code=code_repo.root)
    family = make_family(uwf, replies="asking.yaml")
    fork = uwf.do("thread", "fork", family.parent, "--json").json["threadId"]
    answer(uwf)

    said = uwf.do("thread", "resume", fork, "-p", "This", "--agent", RUN[1])

    shown = uwf.do("thread", "show", fork, "--json").json
    ran = [fork, *(each for each in shown["children"] if each != family.child)]
    code = [uwf.do("step", "show", f"{each}:3", "--json").json["code"] for each in ran]
    assert "is at work in" not in said.err
    assert all(each["snapshot"] for each in code)
    assert [each.get("shared") for each in code] == [None] * len(ran)


@pytest.mark.slow
def test_gc_keeps_what_threads_name(two: Two) -> None:
    two.ada.do("gc", "--prune=now", "--yes")

    two.ada.do("verify", "--children")


def test_a_review_names_the_threads_that_are_not_in_it(
    two: Two, tmp_path: Path
) -> None:
    shared = make_bare(tmp_path / "shared.git")
    two.ada.do("remote", "add", "forge", str(shared))

    text = two.ada.do("review", "open", two.family.parent, "--remote", "forge").out
    data = two.ada.do(
        "review", "update", two.family.parent, "--remote", "forge", "--json"
    )

    assert f"not in it      {two.family.child}, which did a step" in text
    assert data.json["children"] == [two.family.child]
    assert not any(two.family.child in ref for ref in refs_of(shared))


@pytest.mark.slow
def test_a_child_at_work_is_told_of_and_goes_with_its_parent(two: Two) -> None:
    uwf = two.ada
    slow = uwf.folder / "slow.sh"
    slow.write_text("#!/bin/sh\ncat > /dev/null\ntouch begun\nsleep 60\n")
    slow.chmod(0o755)
    started = uwf.do("thread", "start", "deliver.yaml", "-p", "Slow", "--json").json
    thread = started["threadId"]
    uwf.do("thread", "exec", thread, "--agent", "scripted:asking.yaml")
    uwf.do("thread", "exec", thread, "--agent", "stdio:./slow.sh", "--background")
    wait_until((uwf.folder / "begun").exists)

    shown = uwf.do("thread", "show", thread)
    (child,) = uwf.do("thread", "show", thread, "--json").json["children"]
    removed = uwf.do("thread", "rm", thread, "--json").json
    restored = uwf.do("thread", "restore", thread, "--json").json

    assert f"child     {child} build, running" in shown.out
    assert removed["children"] == restored["children"] == [child]


def test_a_child_that_nothing_names_goes_with_its_parent_and_comes_back(
    two: Two,
) -> None:
    uwf, family = two.ada, two.family
    store = Path(uwf.do("store", "path").out.strip())
    branch = f"refs/heads/thread/{family.parent}"
    # As a kill in the middle of the child leaves it.
    git(store, "update-ref", branch, f"{branch}~1")

    shown = uwf.do("thread", "show", family.parent, "--json").json
    removed = uwf.do("thread", "rm", family.parent, "--json").json
    restored = uwf.do("thread", "restore", family.parent, "--json").json

    assert shown["children"] == [family.child]
    assert removed["children"] == sorted([family.child, family.grandchild])
    assert restored["children"] == removed["children"]


@pytest.mark.slow
def test_what_others_did_to_a_child_of_an_agent_is_asked_for(two: Two) -> None:
    uwf = two.ada
    uwf.do("workflow", "add", "probe.yaml")
    uwf.do("workflow", "add", "build.yaml")
    uwf.do("config", "set", "defaultAgent", "scripted:asking.yaml")
    played = ("--agent", "workflow:build")
    started = uwf.do("thread", "start", "probe.yaml", "-p", "It", "--json").json
    thread = started["threadId"]
    uwf("thread", "exec", thread, *played)
    (child,) = uwf.do("thread", "show", thread, "--json").json["children"]
    (below,) = uwf.do("thread", "show", child, "--json").json["children"]
    uwf.do("push", "origin", thread)
    two.bob.do("pull")
    answer(two.bob)
    two.bob("thread", "resume", below, "-p", "This", *RUN)
    two.bob.do("push", "origin", below)
    uwf.do("pull")

    refused = uwf.do("thread", "resume", thread, *played, code=1)

    assert "others had a hand in what does steps of" in refused.err
    assert f"  child:     {below} probe, end" in refused.err
