from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders import begin, reply, run, write_script
from tests.proof import assert_verified, verify_threads
from tests.sync.changes import (
    ONES,
    author,
    header,
    message,
    parents,
    put,
    signed,
    trailer,
)
from tests.sync.forge import Change, codes, forge, resolve
from tests.sync.forged_histories import swap, take_the_other_tree
from tests.sync.tour import set_tip, tip_of
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.sync.verify.report import ThreadReport
from uwfgit.sync.verify.verify import verify_thread


def agent_of(folder: Path, **replies: object) -> str:
    return write_script(folder, replies)


@dataclass(frozen=True)
class Diverged:
    """A thread that two people drove on from one commit."""

    store: Store
    thread: ThreadId
    base: Oid
    mine: Oid
    theirs: Oid

    def verify(self, tip: Oid) -> ThreadReport:
        return verify_thread(self.store, tip, self.thread)


@pytest.fixture
def diverged(ledger: Ledger, tmp_path: Path) -> Diverged:
    thread = begin(ledger, tmp_path).thread
    base = tip_of(ledger, thread)
    run(ledger, thread, agent_of(tmp_path, worker=[reply(plan="Theirs")]))
    theirs = tip_of(ledger, thread)
    set_tip(ledger.store, thread, base)
    agent = agent_of(tmp_path, worker=[reply(plan="Mine")], critic=[reply("good")])
    run(ledger, thread, agent, 2)
    return Diverged(ledger.store, thread, base, tip_of(ledger, thread), theirs)


def test_a_resolve_verifies_and_the_thread_goes_on(
    ledger: Ledger, diverged: Diverged, tmp_path: Path
) -> None:
    tip = resolve(ledger.store, diverged.theirs, diverged.mine)
    set_tip(ledger.store, diverged.thread, tip)
    run(ledger, diverged.thread, agent_of(tmp_path, critic=[reply("good")]))

    assert_verified(ledger.store)
    (report,) = verify_threads(ledger.store)
    assert (report.resolves, report.status, report.steps) == (1, "end", 2)


def test_a_resolve_of_two_resolves_that_took_in_the_same_end_verifies(
    ledger: Ledger, diverged: Diverged, tmp_path: Path
) -> None:
    set_tip(ledger.store, diverged.thread, diverged.base)
    run(ledger, diverged.thread, agent_of(tmp_path, worker=[reply(plan="Third")]))
    third = tip_of(ledger, diverged.thread)
    sides = [
        resolve(ledger.store, kept, diverged.theirs) for kept in (third, diverged.mine)
    ]

    tip = resolve(ledger.store, *sides)

    assert diverged.verify(tip).problems == ()


RESOLVES: list[tuple[str, Change, str]] = [
    ("parents swapped", swap, "path"),
    ("takes the other tip's tree", take_the_other_tree, "path"),
    ("takes neither tip's tree", put("notes.md"), "path"),
    ("signed badly", header(b"gpgsig U1NI"), "commit"),
    ("by a person", author("Ada <ada@example.com> 1800000099 +0000"), "author"),
    ("subject", message("resolve: keep", "resolve: take"), "message"),
    ("signed well", signed(b"U1NI"), "resolve"),
    ("replayed", trailer("Uwf-Replayed-From", ONES), "trailers"),
    ("trailer too many", trailer("Uwf-Node", "0" * 13), "trailers"),
    ("three parents", parents(GENESIS_OID), "parents"),
]


@pytest.mark.parametrize(
    ("change", "code"), [pytest.param(*facts, id=name) for name, *facts in RESOLVES]
)
def test_a_forged_resolve_is_refused(
    diverged: Diverged, change: Change, code: str
) -> None:
    tip = resolve(diverged.store, diverged.mine, diverged.theirs, change=change)

    assert code in codes(diverged.verify(tip).problems)


def test_a_resolve_with_a_tip_that_had_not_diverged_is_refused(
    diverged: Diverged,
) -> None:
    tip = resolve(diverged.store, diverged.mine, diverged.base)

    assert codes(diverged.verify(tip).problems) == {"resolve"}


def test_a_resolve_with_a_forged_tip_is_refused(diverged: Diverged) -> None:
    forged = forge(diverged.store, diverged.theirs, {1: put("notes.md")})

    tip = resolve(diverged.store, diverged.mine, forged)

    assert codes(diverged.verify(tip).problems) == {"resolve"}


def test_a_resolve_with_another_thread_is_refused(
    ledger: Ledger, diverged: Diverged, tmp_path: Path
) -> None:
    other = begin(ledger, tmp_path)

    tip = resolve(diverged.store, diverged.mine, other.commit)

    assert codes(diverged.verify(tip).problems) == {"resolve"}
