"""Approvals that come from elsewhere: the name tells the step, all is plain text."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pygit2.enums import ObjectType

from tests.builders import git
from tests.keys import Keys, make_keys, needs_ssh, signing
from tests.proof import verify_threads
from tests.sync.changes import OTHER
from tests.sync.forge import write
from tests.sync.people import BAD, DONE, GOOD, Person, results, smuggle
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.ids import Oid, ThreadId
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import MEMORY_PREFIX, THREAD_PREFIX
from uwfgit.store.refs import find_ref
from uwfgit.sync.exchange.signatures import check_approval
from uwfgit.sync.receive import ZERO, Push, check_pushes
from uwfgit.sync.review.review import approve

TAGGER = "Ada <ada@example.com> 1800000099 +0000"
SIGNATURE = "-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----\n"

TAGS: list[tuple[str, str, str]] = [
    ("escapes in the name", "\x1b[2JEve <a@b> 1800000099 +0000", "ok\n"),
    ("a C1 control in the name", "E\u009bve <a@b> 1800000099 +0000", "ok\n"),
    ("a bidi override in the name", "E\u202eve <a@b> 1800000099 +0000", "ok\n"),
    ("no name", "<a@b> 1800000099 +0000", "ok\n"),
    ("no address", "Ada <> 1800000099 +0000", "ok\n"),
    ("a name of 30 kB", f"{'A' * 30_000} <a@b> 1800000099 +0000", "ok\n"),
    ("a time in the year 3 trillion", "Ada <a@b> 99999999999999999999 +0000", "ok\n"),
    ("a time after 2106", "Ada <a@b> 4294967297 +0000", "ok\n"),
    ("no time", "Ada <a@b>", "ok\n"),
    ("a zone of 99 hours", "Ada <a@b> 1800000099 +9999", "ok\n"),
    ("nothing", "", "ok\n"),
    ("OSC in the message", TAGGER, "\x1b[31m\x1b]0;pwned\x07ok\n"),
    ("CR in the message", TAGGER, "good\rbad\n"),
    ("NUL in the message", TAGGER, "good\0bad\n"),
    ("a bidi override in the message", TAGGER, "good \u202ebad\n"),
    ("a message of 17 KiB", TAGGER, "x" * 17_000),
    ("text after the signature", TAGGER, f"ok\n{SIGNATURE}and more\n"),
    ("text in the signature", TAGGER, f"ok\n{SIGNATURE.replace('U1NI', 'a lie')}"),
    ("a signature twice", TAGGER, f"ok\n{SIGNATURE}{SIGNATURE}"),
    ("a signature of 60 kB", TAGGER, SIGNATURE.replace("U1NI", "U1NI" * 15_000)),
]


def make_tag(
    person: Person,
    thread: ThreadId,
    name: str,
    *,
    commit: Oid | None = None,
    tagger: str = TAGGER,
    text: str = "ok\n",
) -> tuple[str, Oid]:
    """Write a tag as bytes; give the ref it is for."""
    tag = f"approved/{thread}/{name}"
    data = (
        f"object {commit or person.tip(thread)}\ntype commit\ntag {tag}\n"
        f"tagger {tagger}\n\n{text}"
    )
    return f"refs/tags/{tag}", write(person.store, ObjectType.TAG, data.encode())


def check(person: Person, thread: ThreadId, ref: str, oid: Oid) -> str | None:
    tip = person.tip(thread)
    assert tip is not None
    return check_approval(person.store, ref, oid, [tip])


def commit_at(person: Person, thread: ThreadId, back: int) -> Oid:
    return Oid(git(person.store, "rev-parse", f"thread/{thread}~{back}").strip())


@pytest.mark.parametrize(
    ("tagger", "text"), [pytest.param(*facts, id=name) for name, *facts in TAGS]
)
def test_a_tag_that_git_would_not_write_is_refused(
    ada: Person, tagger: str, text: str
) -> None:
    thread = ada.begin(DONE)

    ref, oid = make_tag(ada, thread, "1", tagger=tagger, text=text)

    assert check(ada, thread, ref, oid)


@pytest.mark.parametrize(
    ("tagger", "text"),
    [
        pytest.param(TAGGER, "", id="no message"),
        pytest.param(TAGGER, "One\n\n\tzwei ß drei 🐙\n", id="a longer message"),
        pytest.param(TAGGER, f"ok\n{SIGNATURE}", id="signed"),
        pytest.param(TAGGER, SIGNATURE, id="signed, without a message"),
        pytest.param("Åsa <å@b> 0 -0330", "ok", id="another person"),
    ],
)
def test_a_tag_as_git_writes_one_is_taken(ada: Person, tagger: str, text: str) -> None:
    thread = ada.begin(DONE)

    ref, oid = make_tag(ada, thread, "1", tagger=tagger, text=text)

    assert check(ada, thread, ref, oid) is None


@pytest.mark.parametrize(
    ("name", "back", "is_right"),
    [
        pytest.param("3", 0, True, id="the newest"),
        pytest.param("2", 1, True, id="an earlier one"),
        pytest.param("1", 2, True, id="the first"),
        pytest.param("4", 0, False, id="one more than there are"),
        pytest.param("2", 0, False, id="an earlier one on the newest"),
        pytest.param("3", 1, False, id="the newest on an earlier one"),
        pytest.param("99999", 0, False, id="one of many"),
        pytest.param("03", 0, False, id="written otherwise"),
        pytest.param("0", 3, False, id="the start"),
    ],
)
def test_an_approval_s_number_is_that_of_its_commit(
    ada: Person, name: str, back: int, *, is_right: bool
) -> None:
    thread = ada.begin(DONE, BAD, DONE)
    commit = commit_at(ada, thread, back)

    ref, oid = make_tag(ada, thread, name, commit=commit)

    assert (check(ada, thread, ref, oid) is None) == is_right


def test_an_approval_s_hash_is_that_of_its_commit(ada: Person) -> None:
    thread = ada.begin(DONE, BAD)
    commits = [commit_at(ada, thread, back) for back in range(3)]
    lines = (git(ada.store, "log", "-1", "--format=%B", oid) for oid in commits)
    steps = [text.partition("Uwf-Node: ")[2].split("\n")[0] for text in lines]

    tags = [
        [make_tag(ada, thread, step, commit=commit) for commit in commits]
        for step in steps
    ]

    assert [
        [check(ada, thread, ref, oid) is None for ref, oid in row] for row in tags
    ] == [[True, False, False], [False, True, False], [False, False, False]]


def approve_step(person: Person, thread: ThreadId, step: int | None = None) -> None:
    approve(
        person.ledger,
        thread,
        verify=verify_threads,
        step=step,
        message=None,
        sign=None,
        environment=os.environ,
    )


@pytest.mark.parametrize(
    "then",
    [
        pytest.param(lambda ada, thread: ada.poke(thread, DONE), id="poked"),
        pytest.param(
            lambda ada, thread: cancel_thread(
                ada.ledger, thread, reason="x", command="test"
            ),
            id="cancelled",
        ),
        pytest.param(lambda ada, thread: ada.go(thread, GOOD), id="gone on with"),
    ],
)
def test_every_approval_that_the_program_makes_travels(
    ada: Person, bob: Person, then: Callable[[Person, ThreadId], None]
) -> None:
    thread = ada.begin(DONE, BAD, DONE)
    fork = fork_thread(ada.ledger, thread, at=2).thread
    for step in (1, 2, 3):
        approve_step(ada, thread, step)
    then(ada, thread)
    ada.go(fork, DONE)
    for step in (1, 2, 3):
        approve_step(ada, fork, step)
    tags = git(ada.store, "tag").split()

    ada.push(thread, fork)
    report = bob.pull()

    assert results(report.outcomes) == {
        thread: "new",
        fork: "new",
        **dict.fromkeys((f"refs/tags/{tag}" for tag in tags), "new"),
    }
    assert len(tags) == 6


@needs_ssh
def test_a_signed_approval_travels(ada: Person, bob: Person, tmp_path: Path) -> None:
    keys: Keys = make_keys(tmp_path / "keys", ada="ada@example.com")
    thread = ada.begin(DONE)
    options = signing("steps", key=keys.make("ada")).signing().options
    name = f"approved/{thread}/1"
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    text = "Good.\n\nAs agreed."
    git(ada.store, *who, *options, "tag", "-s", "-m", text, name, f"thread/{thread}")
    oid = find_ref(ada.store, f"refs/tags/{name}")
    assert oid is not None
    assert "BEGIN SSH SIGNATURE" in git(ada.store, "cat-file", "tag", oid)

    ada.push(thread)

    assert results(bob.pull().outcomes)[f"refs/tags/{name}"] == "new"


def test_a_bad_approval_is_not_pulled(ada: Person, bob: Person, bare: Path) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    made = [
        make_tag(ada, thread, f"{number}", tagger=tagger, text=text)
        for number, (_, tagger, text) in enumerate(TAGS, 1)
        if "\0" not in text
    ]
    for ref, oid in made:
        smuggle(ada, bare, oid, ref)

    report = bob.pull()

    refused = {ref: "refused" for ref, _ in made}
    assert results(report.outcomes) == {thread: "new", **refused}
    assert git(bob.store, "tag") == ""


def test_a_server_takes_no_other_approval_under_a_name_it_has(ada: Person) -> None:
    thread = ada.begin(DONE)
    ref, old = make_tag(ada, thread, "1")
    other = make_tag(ada, thread, "1", text="not so\n")[1]

    def ask(old: str, new: str) -> str | None:
        pushed = [Push(old=old, new=new, ref=ref)]
        (problem,) = check_pushes(ada.store, pushed, shared=False, now=0)
        return problem

    assert ask(old, other) == "an approval is not changed; delete it first"
    assert [ask(ZERO, old), ask(old, ZERO), ask(old, old)] == [None] * 3


@pytest.mark.parametrize(
    ("ref", "problem"),
    [
        (f"{THREAD_PREFIX}{OTHER}", "a thread is not deleted"),
        (f"refs/uwf/thread/{OTHER}", "a thread is not deleted"),
        (f"{MEMORY_PREFIX}{OTHER}", "a memory is not deleted"),
        ("refs/heads/main", "it is what all reviews start from"),
        ("refs/heads/uwf/main", "it is what all reviews start from"),
        ("refs/heads/workflow/work", None),
        (f"refs/heads/uwf/{OTHER}", None),
    ],
)
def test_what_others_go_on_from_is_not_deleted(
    ada: Person, ref: str, problem: str | None
) -> None:
    gone = [Push(old=GENESIS_OID, new=ZERO, ref=ref)]

    assert list(check_pushes(ada.store, gone, shared=False, now=0)) == [problem]
