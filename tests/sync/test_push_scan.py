"""What a push looks through, and what it may leave out because it is there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.builders import git, make_workflow, reply, workflow_data
from tests.sync.people import DONE, Person, approve, make_bare, refs_of, results
from uwfgit.engine.run.thread import fork_thread
from uwfgit.ids import Oid
from uwfgit.model.ledger.registering import add_workflow
from uwfgit.store.layout import thread_ref, workflow_ref
from uwfgit.sync.secrets.scan import find_blocked

TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN0pQ2rS4tU6vW8xY1zAc"
LEAK = reply("done", plan=f"use {TOKEN}")


@pytest.fixture
def ann(ada: Person) -> Person:
    """Somebody whose pushes are scanned."""

    def scan(leaving: Sequence[tuple[str, Oid, Oid | None]]) -> Mapping[str, str]:
        return find_blocked(ada.store, leaving, environment=os.environ)

    ada.scan = scan
    return ada


def test_an_approval_carries_no_step_away_that_was_held_back(
    ann: Person, bare: Path
) -> None:
    thread = ann.begin(DONE)
    good = approve(ann, thread, "1")
    ann.push(thread)
    ann.go(thread, LEAK)
    bad = approve(ann, thread, "2")

    report = ann.push()

    assert results(report.outcomes) == {thread: "refused"}
    assert good in refs_of(bare)
    assert bad not in refs_of(bare)
    assert results(ann.push(thread).outcomes) == {thread: "refused"}
    assert bad not in refs_of(bare)


@pytest.mark.parametrize("how", ["named", "all"])
def test_a_remote_whose_address_leads_elsewhere_now_has_nothing(
    ann: Person, tmp_path: Path, how: str
) -> None:
    thread = ann.begin(LEAK)
    ann.push(thread, scan=lambda _: {})
    other = make_bare(tmp_path / "other.git")
    git(ann.store, "remote", "set-url", "origin", str(other))

    report = ann.push(thread) if how == "named" else ann.push(send_all=True)

    assert results(report.outcomes) == {thread: "refused"}
    assert thread_ref(thread) not in refs_of(other)


def test_a_fork_is_looked_through_from_what_the_remote_has_of_its_origin(
    ann: Person, bare: Path
) -> None:
    thread = ann.begin(LEAK)
    ann.push(thread, scan=lambda _: {})
    fork = fork_thread(ann.ledger, thread).thread
    again = fork_thread(ann.ledger, fork).thread
    leaky = fork_thread(ann.ledger, thread).thread
    ann.go(leaky, reply("good", body=f"It was {TOKEN[:-1]}9"))

    report = ann.push(fork, again, leaky)

    assert results(report.outcomes) == {fork: "new", again: "new", leaky: "refused"}
    assert thread_ref(leaky) not in refs_of(bare)


def test_a_dry_run_of_what_is_there_tells_of_nothing_new(
    ada: Person, bare: Path
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    before = refs_of(bare)

    report = ada.push(thread, dry_run=True)

    assert (report.outcomes, report.up_to_date) == ((), 1)
    assert refs_of(bare) == before


def test_one_ref_that_a_server_names_costs_one_push_more(
    ada: Person, bare: Path
) -> None:
    threads = [ada.begin(DONE) for _ in range(6)]
    log = bare / "pushes"
    for name, script in {
        "pre-receive": f"echo . >> {log}; cat > /dev/null",
        "update": f"case $1 in *{threads[1]} | *{threads[4]}) exit 1;; esac",
    }.items():
        (bare / "hooks" / name).write_text(f"#!/bin/sh\n{script}\n")
        (bare / "hooks" / name).chmod(0o755)

    report = ada.push(*threads)

    wanted = dict.fromkeys(threads, "new")
    wanted |= dict.fromkeys((threads[1], threads[4]), "rejected")
    assert results(report.outcomes) == wanted
    assert len(log.read_text().splitlines()) <= 3


def test_a_secret_in_a_registered_workflow_has_its_own_way_out(ann: Person) -> None:
    workflow = make_workflow(description=f"uses {TOKEN}")
    add_workflow(ann.ledger, workflow, workflow_data(workflow))

    (told,) = ann.push(send_all=True).outcomes

    assert told.ref == workflow_ref("work")
    assert "take it out: uwf workflow rm work, then add its file" in str(told.message)
