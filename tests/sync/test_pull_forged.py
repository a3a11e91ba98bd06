"""No forged history comes in by a pull, and none leaves anything behind."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import git, make_role, make_workflow, reply, variant
from tests.proof import assert_verified, verify_threads
from tests.sync.forge import amend_step, forge
from tests.sync.forged_histories import HISTORIES, UNSENDABLE
from tests.sync.people import (
    BAD,
    DONE,
    WIRE,
    Person,
    make_bare,
    objects_of,
    refs_of,
    results,
    smuggle,
)
from tests.sync.tour import make_tour, tip_of
from uwfgit.cli.check import limited
from uwfgit.cli.check.limited import CheckLimits, verify_limited
from uwfgit.ids import Oid, ThreadId
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_ref
from uwfgit.sync.exchange.exchange import ExchangeSource, RefOutcome, Verify
from uwfgit.sync.exchange.incoming import bring_in
from uwfgit.sync.verify.report import ThreadReport


def take(
    person: Person,
    thread: ThreadId,
    origin: Person,
    tip: Oid,
    verify: Verify = verify_threads,
) -> RefOutcome:
    """Let somebody pull a commit as a thread; give what becomes of it."""
    git(origin.store, "update-ref", "refs/forged/x", tip)
    source = ExchangeSource(
        url=str(origin.store.path),
        name="origin",
        names={thread_ref(thread): "refs/forged/x"},
        is_remote=True,
    )
    (outcome,) = bring_in(
        person.ledger, source, wire=WIRE, verify=verify, command="test"
    )
    return outcome


def kept_of(person: Person) -> dict[str, object]:
    """Give all that a store keeps: objects, refs, rows, and files beside them."""
    person.ledger.lookup.refresh()
    state = person.store.state_dir
    return {
        "objects": objects_of(person.store),
        "refs": refs_of(person.store),
        "rows": {
            f"{file}: {table}": rows
            for file in ("lookup.sqlite3", "local.sqlite3")
            for table, rows in _rows(state / file)
        },
        "files": {
            str(path.relative_to(person.store.path))
            for folder in (person.store.path / "objects", state / "scratch")
            for path in folder.rglob("*")
        },
    }


def _rows(file: Path) -> Iterable[tuple[str, list[object]]]:
    if not file.exists():
        return
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as base:
        tables = base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            rows = base.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 - its own names
            if rows:
                yield table, sorted(rows, key=repr)


@pytest.mark.slow
def test_every_forged_history_is_refused_and_leaves_nothing(
    ada: Person, bob: Person
) -> None:
    own = bob.begin(DONE)
    thread = make_tour(ada.ledger, ada.folder)
    tip = tip_of(ada.ledger, thread)
    before = kept_of(bob)

    became = {
        name: (code, take(bob, thread, ada, make(ada.store, tip)))
        for name, make, code in HISTORIES
    }

    assert {each.result for _, each in became.values()} == {"refused"}
    told = {
        name: each.message
        for name, (code, each) in became.items()
        if f"[{code}]" not in (each.message or "")
    }
    # Whatever git itself cannot send, or one problem of several stands first.
    assert not [
        name
        for name, text in told.items()
        if not text or ("]" not in text and "git cannot fetch it" not in text)
    ], told
    assert kept_of(bob) == before
    assert take(bob, thread, ada, tip).result == "new"
    assert bob.tip(own) is not None


@pytest.mark.slow
def test_the_good_of_a_pull_are_adopted_and_the_bad_leave_nothing(
    ada: Person, bob: Person, bare: Path
) -> None:
    chosen = [each for each in HISTORIES if each[0] not in UNSENDABLE][::9]
    good = [ada.begin(DONE) for _ in range(3)]
    bad = [make_tour(ada.ledger, ada.folder) for _ in chosen]
    ada.push(*good)
    honest = make_bare(bare.parent / "honest.git")
    ada.join(honest, name="honest")
    ada.push(*good, to="honest")
    for thread, (_, make, _) in zip(bad, chosen, strict=True):
        forged = make(ada.store, tip_of(ada.ledger, thread))
        smuggle(ada, bare, forged, thread_ref(thread))

    report = bob.pull()

    assert results(report.outcomes) == {
        **dict.fromkeys(good, "new"),
        **dict.fromkeys(bad, "refused"),
    }
    held = git(bob.store, "rev-list", "--objects", "--all", GENESIS_OID)
    assert objects_of(bob.store) == {line.split()[0] for line in held.splitlines()}
    again = kept_of(bob)
    assert results(bob.pull().outcomes) == dict.fromkeys(bad, "refused")
    assert kept_of(bob) == again


def graft(bare: Path, tip: Oid) -> Path:
    (bare / "info" / "grafts").write_text(f"{tip} {GENESIS_OID}\n")
    return bare


def replace(bare: Path, tip: Oid) -> Path:
    git(bare, "update-ref", f"refs/replace/{tip}", GENESIS_OID)
    return bare


def cut(bare: Path, _: Oid) -> Path:
    path = bare.with_name("shallow.git")
    options = ("--bare", "--depth=1", "--no-single-branch")
    git(bare, "clone", "--quiet", *options, f"file://{bare}", str(path))
    return path


def borrow(bare: Path, _: Oid) -> Path:
    path = bare.with_name("borrows.git")
    git(bare, "clone", "--quiet", "--bare", "--shared", str(bare), str(path))
    return path


@pytest.mark.parametrize(
    ("change", "result"),
    [
        pytest.param(graft, "refused", id="grafts"),
        pytest.param(cut, "refused", id="shallow"),
        pytest.param(replace, "new", id="replace"),
        pytest.param(borrow, "new", id="alternates"),
    ],
)
def test_a_remote_that_shows_another_history_gives_the_true_one_or_nothing(
    ada: Person,
    bob: Person,
    bare: Path,
    change: Callable[[Path, Oid], Path],
    result: str,
) -> None:
    thread = ada.begin(DONE, BAD)
    ada.push(thread)
    tip = tip_of(ada.ledger, thread)
    bob.join(change(bare, tip), name="there")
    before = kept_of(bob)

    report = bob.pull(of="there")

    assert results(report.outcomes) == {thread: result}
    assert bob.tip(thread) == (tip if result == "new" else None)
    if result == "refused":
        assert kept_of(bob)["objects"] == before["objects"]
    assert not (bob.store.path / "shallow").exists()
    assert_verified(bob.store)


def test_a_schema_that_never_comes_to_an_end_holds_up_no_other_thread(
    ada: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine a second of work takes many by the clock.
    monkeypatch.setattr(limited, "_PATIENCE", 120)
    text = {"type": "string", "pattern": "^(a|aa|a*)+$"}
    worker = make_role(variant("done", ["plan"], plan=text))
    roles = {**make_workflow().roles, "worker": worker}
    bad = ada.begin(reply(plan="a"), workflow=make_workflow(roles=roles))
    endless = amend_step(output={"plan": "a" * 60 + "b"})
    tip = forge(ada.store, tip_of(ada.ledger, bad), {1: endless})
    good = ada.begin(DONE)
    before = kept_of(bob)

    def verify(store: Store, threads: Sequence[ThreadId]) -> Iterable[ThreadReport]:
        limits = CheckLimits(seconds=1)
        return verify_limited(store, threads, environment=os.environ, limits=limits)

    refused = take(bob, bad, ada, tip, verify)

    assert (refused.result, "limits" in (refused.message or "")) == ("refused", True)
    assert kept_of(bob) == before
    assert take(bob, good, ada, tip_of(ada.ledger, good), verify).result == "new"
