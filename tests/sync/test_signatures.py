"""Signatures of threads that two people wrote, and of what is written again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.builders import git
from tests.keys import Keys, make_keys, needs_ssh, signing
from tests.planted import GITHUB
from tests.proof import verify_threads
from tests.sync.people import BAD, DONE, GOOD, Person
from uwfgit.engine.run.thread import fork_thread
from uwfgit.errors import StoreError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.git.reading import copy_history
from uwfgit.store.git.signing import Mode
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_ref
from uwfgit.store.local import Agreed
from uwfgit.sync.diverged.diverge import Way
from uwfgit.sync.exchange.foreign import find_voucher, list_unagreed
from uwfgit.sync.exchange.signatures import (
    check_approvals,
    check_signatures,
    find_approvals,
)
from uwfgit.sync.review.review import approve
from uwfgit.sync.secrets.redact import redact_thread
from uwfgit.sync.verify.report import ThreadReport

pytestmark = needs_ssh

ADA, BOB = "ada@example.com", "bob@example.com"


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return make_keys(tmp_path / "keys", ada=ADA, bob=BOB)


def sign(person: Person, keys: Keys, mode: Mode) -> None:
    """Let a person sign with their own key."""
    name = person.ledger.identity.email.partition("@")[0]
    signer = signing(mode, key=keys.make(name))
    person.ledger = replace(person.ledger, signer=signer)


def diverge(ada: Person, bob: Person) -> ThreadId:
    """Let both go on with Ada's thread; hers is pushed, Bob has pulled."""
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    ada.go(thread, GOOD)
    bob.go(thread, BAD, DONE)
    ada.push(thread)
    bob.pull()
    return thread


def signers(store: Store, thread: ThreadId) -> list[str]:
    """Give who signed each event, the oldest first; "" for nobody."""
    ref = thread_ref(thread)
    told = git(store, "log", "--first-parent", "--reverse", "--format=%GS", ref)
    return told.split("\n")[1:-1]


def check(store: Store, thread: ThreadId) -> ThreadReport:
    (report,) = verify_threads(store, [thread])
    assert report.ok, report.problems
    return check_signatures(store, report, environment=os.environ)


def vouchers(person: Person, thread: ThreadId) -> list[str]:
    """Give each of the two for whose signature a thread could run."""
    tip = load_tip(person.store, thread)
    return [
        found
        for name in (ADA, BOB)
        if (
            found := find_voucher(
                person.ledger,
                list_unagreed(person.ledger, tip),
                [name],
                environment=os.environ,
            )
        )
    ]


def test_what_was_agreed_to_is_one_workflow(ada: Person, bob: Person) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    tip = load_tip(bob.store, thread)

    def unagreed(workflow: Oid) -> int:
        bob.ledger.local.set_trusted(thread, Agreed(workflow=workflow, tip=tip.commit))
        return len(list_unagreed(bob.ledger, tip))

    assert unagreed(tip.state.workflow_oid) == 0
    assert unagreed(Oid("a" * 40)) == 2


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        pytest.param("steps", ["", "", BOB, BOB, BOB], id="steps"),
        pytest.param("tip", ["", "", "", "", BOB], id="tip"),
        pytest.param("never", ["", "", "", "", ""], id="never"),
    ],
)
def test_a_tail_that_is_written_again_is_signed_by_who_made_it(
    ada: Person, bob: Person, keys: Keys, mode: Mode, wanted: list[str]
) -> None:
    thread = diverge(ada, bob)
    sign(bob, keys, mode)

    copy = bob.resolve(thread, "both").copy

    assert copy is not None
    assert signers(bob.store, copy.thread) == wanted
    assert check(bob.store, copy.thread).ok == (mode != "never")


def test_nobody_signs_an_event_of_somebody_else_s(
    ada: Person, bob: Person, keys: Keys
) -> None:
    thread = diverge(ada, bob)
    eve = replace(bob.ledger.identity, name="Eve")
    bob.ledger = replace(bob.ledger, identity=eve)
    sign(bob, keys, "steps")

    copy = bob.resolve(thread, "both").copy

    # Of the fork and the two steps, only the fork is the one's who resolves.
    assert copy is not None
    assert signers(bob.store, copy.thread) == ["", "", BOB, "", ""]


@pytest.mark.parametrize("way", ["mine", "theirs"])
def test_a_resolve_is_never_signed_and_counts_as_the_side_it_keeps(
    ada: Person, bob: Person, keys: Keys, way: Way
) -> None:
    for person in (ada, bob):
        sign(person, keys, "tip")
    thread = diverge(ada, bob)

    bob.resolve(thread, way)

    kept = BOB if way == "mine" else ADA
    assert signers(bob.store, thread)[-2:] == [kept, ""]
    assert check(bob.store, thread).ok
    assert vouchers(bob, thread) == [ADA]
    bob.push(thread)
    ada.pull()
    assert vouchers(ada, thread) == ([BOB] if way == "mine" else [])


@pytest.mark.parametrize(
    ("ada_signs", "bob_signs", "wanted"),
    [
        pytest.param("tip", "tip", [BOB], id="the newest counts"),
        pytest.param("never", "tip", [BOB], id="it covers what is before"),
        pytest.param("tip", "never", [], id="nothing covers what is after"),
    ],
)
def test_who_vouches_for_what_came(
    ada: Person,
    bob: Person,
    keys: Keys,
    ada_signs: Mode,
    bob_signs: Mode,
    wanted: list[str],
) -> None:
    sign(ada, keys, ada_signs)
    sign(bob, keys, bob_signs)
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    bob.go(thread, BAD)
    bob.push(thread)
    ada.pull()
    fork = fork_thread(ada.ledger, thread).thread

    assert [vouchers(ada, each) for each in (thread, fork)] == [wanted, wanted]


def test_a_bad_signature_vouches_for_nothing(
    ada: Person, bob: Person, keys: Keys
) -> None:
    sign(ada, keys, "tip")
    thread = ada.begin(DONE)
    ada.push(thread)
    bob.pull()
    data = git(bob.store, "cat-file", "commit", thread_ref(thread))
    changed = keys.folder / "commit"
    changed.write_text(data.replace("Uwf-Status: done", "Uwf-Status: dune"))
    oid = git(bob.store, "hash-object", "-w", "-t", "commit", str(changed)).strip()
    assert vouchers(bob, thread) == [ADA]

    git(bob.store, "update-ref", thread_ref(thread), oid)

    assert vouchers(bob, thread) == []


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        pytest.param("steps", [ADA, ADA, ADA], id="steps"),
        pytest.param("tip", ["", "", ADA], id="tip"),
    ],
)
def test_a_redacted_thread_is_signed(
    ada: Person, keys: Keys, mode: Mode, wanted: list[str]
) -> None:
    thread = ada.begin(DONE, BAD, prompt=f"Use {GITHUB}")
    sign(ada, keys, mode)

    done = redact_thread(ada.ledger, thread, environment=os.environ, command="test")

    ((_, new),) = done.threads
    assert signers(ada.store, new) == wanted
    assert check(ada.store, new).ok


def test_a_redacted_thread_of_others_is_not_signed_for_them(
    ada: Person, bob: Person, keys: Keys
) -> None:
    thread = ada.begin(DONE, prompt=f"Use {GITHUB}")
    ref = thread_ref(thread)
    git(bob.store, "fetch", "-q", str(ada.store.path), f"{ref}:{ref}")
    bob.ledger.lookup.refresh()
    bob.go(thread, BAD)
    sign(bob, keys, "steps")

    done = redact_thread(bob.ledger, thread, environment=os.environ, command="test")

    ((_, new),) = done.threads
    assert signers(bob.store, new) == ["", "", BOB]


def test_what_cannot_be_signed_is_not_written_again(
    ada: Person, bob: Person, keys: Keys
) -> None:
    thread = diverge(ada, bob)
    secret = bob.begin(DONE, prompt=f"Use {GITHUB}")
    sign(bob, keys, "tip")
    keys.make("bob").unlink()
    before = git(bob.store, "for-each-ref")

    with pytest.raises(StoreError, match="cannot sign"):
        bob.resolve(thread, "both")
    with pytest.raises(StoreError, match="cannot sign"):
        redact_thread(bob.ledger, secret, environment=os.environ, command="test")

    assert git(bob.store, "for-each-ref") == before


def test_what_git_may_look_at_says_which_commits_a_thread_has(
    ada: Person, tmp_path: Path
) -> None:
    thread = ada.begin(DONE, BAD)
    tip = Oid(str(ada.tip(thread)))
    before = Oid(git(ada.store, "rev-parse", f"{tip}^").strip())
    approve(
        ada.ledger,
        thread,
        verify=verify_threads,
        step=None,
        message=None,
        sign=None,
        environment=os.environ,
    )
    tags = find_approvals(ada.store, thread)

    problems = []
    for end in (before, tip):
        place = copy_history(
            ada.store, [end, *tags.values()], folder=tmp_path / f"copy-{end}"
        )
        (found,) = check_approvals(
            ada.store, tags, [tip], place=place, environment=os.environ
        )
        problems.append(found.problem)

    assert problems == ["it approves no commit of its thread that is here", None]


@pytest.mark.parametrize(
    ("maker", "problem"),
    [
        pytest.param(ADA, None, id="the signer"),
        pytest.param(BOB, f"signed by '{ADA}', made by '{BOB}'", id="another"),
    ],
)
def test_an_approval_is_signed_by_who_made_it(
    ada: Person, keys: Keys, maker: str, problem: str | None
) -> None:
    thread = ada.begin(DONE)
    options = signing("steps", key=keys.make("ada")).signing().options
    who = ("-c", "user.name=x", "-c", f"user.email={maker}")
    name = f"approved/{thread}/1"
    git(ada.store, *who, *options, "tag", "-s", "-m", "ok", name, f"thread/{thread}")

    (found,) = check_approvals(
        ada.store,
        find_approvals(ada.store, thread),
        [Oid(str(ada.tip(thread)))],
        environment=os.environ,
    )

    signer = ADA if problem is None else None
    assert (found.by, found.signer, found.problem) == (maker, signer, problem)
