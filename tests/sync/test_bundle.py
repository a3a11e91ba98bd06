from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.builders import git
from tests.history import names
from tests.proof import assert_verified, verify_threads
from tests.sync.forge import forge
from tests.sync.people import DONE, GOOD, WIRE, Person, make_person, refs_of, results
from uwfgit.errors import InvalidError, NotFoundError, RemoteError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.tip import find_sharing
from uwfgit.store.layout import thread_ref
from uwfgit.sync.exchange.bundle import create_bundle, open_bundle
from uwfgit.sync.exchange.pull import PullReport
from uwfgit.sync.exchange.transport import list_bundle


@pytest.fixture
def ada(tmp_path: Path) -> Person:
    return make_person(tmp_path, "ada")


@pytest.fixture
def bob(tmp_path: Path) -> Person:
    return make_person(tmp_path, "bob", hours=5)


def bundle(person: Person, *threads: ThreadId) -> Path:
    file = person.folder / "threads.bundle"
    create_bundle(
        person.ledger,
        file,
        threads,
        wire=WIRE,
        verify=verify_threads,
        scan=person.scan,
    )
    return file


def unpack(person: Person, file: Path) -> PullReport:
    return open_bundle(
        person.ledger, file, wire=WIRE, verify=verify_threads, command="test"
    )


def test_threads_travel_in_a_file(ada: Person, bob: Person) -> None:
    threads = [ada.begin(DONE), ada.begin(DONE, GOOD)]
    ada.begin()

    report = unpack(bob, bundle(ada, *threads))

    assert results(report.outcomes) == dict.fromkeys(threads, "new")
    assert [bob.tip(each) for each in threads] == [ada.tip(each) for each in threads]
    assert_verified(bob.store)
    bob.go(threads[0], GOOD)
    assert results(unpack(ada, bundle(bob, threads[0])).outcomes) == {
        threads[0]: "updated"
    }


def test_plain_git_reads_a_bundle(ada: Person, tmp_path: Path) -> None:
    thread = ada.begin(DONE)
    file = bundle(ada, thread)

    git(tmp_path / "x", "clone", "--quiet", "--bare", str(file), str(tmp_path / "x"))

    assert refs_of(tmp_path / "x")[thread_ref(thread)] == ada.tip(thread)


def test_a_bad_thread_in_a_bundle_keeps_no_other_out(
    ada: Person, bob: Person, tmp_path: Path
) -> None:
    good, bad = ada.begin(DONE), ada.begin(DONE, GOOD)
    tip = forge(ada.store, Oid(str(ada.tip(bad))), {1: lambda d: d.state(steps=3)})
    git(ada.store, "update-ref", thread_ref(bad), tip)
    file = tmp_path / "x.bundle"
    git(
        ada.store,
        *("bundle", "create", "--quiet", str(file)),
        *(thread_ref(good), thread_ref(bad), "refs/heads/main"),
    )

    report = unpack(bob, file)

    assert results(report.outcomes) == {good: "new", bad: "refused"}
    with pytest.raises(InvalidError):
        bundle(ada, bad)


def test_threads_that_diverged_through_bundles_can_be_resolved(
    ada: Person, bob: Person
) -> None:
    thread = ada.begin(DONE)
    unpack(bob, bundle(ada, thread))
    ada.go(thread, GOOD)
    bob.poke(thread, DONE)

    report = unpack(bob, bundle(ada, thread))

    assert results(report.outcomes) == {thread: "diverged"}
    tip = Oid(str(bob.tip(thread)))
    sharing = find_sharing(bob.store, thread, tip)
    assert (sharing.shared, sharing.diverged) == ("never", ("bundle",))
    bob.resolve(thread, "mine")
    assert names(bob.store, thread)[-1] == "resolve"
    assert results(unpack(ada, bundle(bob, thread)).outcomes) == {thread: "updated"}


def test_what_is_no_bundle_is_refused(bob: Person, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no bundle\n")

    with pytest.raises(RemoteError) as caught:
        unpack(bob, tmp_path / "x")
    assert caught.value.message == f"remote '{tmp_path / 'x'}': is not a bundle"
    assert "uwf bundle create" in (caught.value.hint or "")
    with pytest.raises(NotFoundError):
        unpack(bob, tmp_path / "y")


def test_a_folder_is_no_bundle(bob: Person, tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        unpack(bob, tmp_path)

    assert caught.value.message == f"'{tmp_path}' is not a regular file"


def test_a_bundle_takes_the_place_of_another_one_only(ada: Person) -> None:
    thread = ada.begin(DONE)
    file = ada.folder / "threads.bundle"

    file.touch()
    bundle(ada, thread)
    bundle(ada, thread)
    file.write_text("# notes of mine\n")
    with pytest.raises(InvalidError) as caught:
        bundle(ada, thread)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InvalidError):
        bundle(ada, thread)

    assert caught.value.message == f"'{file}' is there already and is not a bundle"
    assert file.is_fifo()


def test_what_the_scan_holds_back_is_in_no_bundle(ada: Person) -> None:
    thread = ada.begin(DONE)
    ada.scan = lambda leaving: {leaving[0][0]: "a key"}

    with pytest.raises(InvalidError):
        bundle(ada, thread)

    assert not (ada.folder / "threads.bundle").exists()


def tag(person: Person, thread: ThreadId, step: int, target: Oid | str) -> str:
    """Approve something as a step of a thread, by plain git."""
    name = f"approved/{thread}/{step}"
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    git(person.store, *who, "tag", "-a", "-m", "fine", name, target)
    return f"refs/tags/{name}"


def test_a_bundle_holds_what_was_scanned_though_the_refs_move_meanwhile(
    ada: Person, bob: Person
) -> None:
    thread = ada.begin(DONE)
    approval = tag(ada, thread, 1, thread_ref(thread))
    scanned: dict[str, Oid] = {}

    def scan(leaving: Sequence[tuple[str, Oid, Oid | None]]) -> Mapping[str, str]:
        scanned.update({ref: oid for ref, oid, _ in leaving})
        ada.go(thread, GOOD)
        git(ada.store, "tag", "-d", approval.removeprefix("refs/tags/"))
        tag(ada, thread, 1, thread_ref(thread))
        return {}

    ada.scan = scan

    file = ada.folder / "threads.bundle"
    told = create_bundle(
        ada.ledger, file, [thread], wire=WIRE, verify=verify_threads, scan=ada.scan
    )

    assert scanned.keys() == {thread_ref(thread), approval}
    assert told == scanned
    assert list_bundle(WIRE, file, git_dir=bob.store.path) == scanned
    assert results(unpack(bob, file).outcomes) == {thread: "new", approval: "new"}
    assert bob.tip(thread) == scanned[thread_ref(thread)]
    assert list((ada.store.state_dir / "scratch").iterdir()) == []


def test_an_approval_of_what_was_not_verified_is_in_no_bundle(
    ada: Person, bob: Person
) -> None:
    thread, other = ada.begin(DONE), ada.begin(DONE)
    good = tag(ada, thread, 1, thread_ref(thread))
    tag(ada, thread, 2, thread_ref(other))

    file = bundle(ada, thread)

    there = list_bundle(WIRE, file, git_dir=bob.store.path)
    assert there.keys() == {thread_ref(thread), good}


def test_many_threads_go_into_one_bundle(ada: Person, bob: Person) -> None:
    threads = [ada.begin() for _ in range(20)]

    report = unpack(bob, bundle(ada, *threads))

    assert results(report.outcomes) == dict.fromkeys(threads, "new")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"-" + b"1" * 40 + b" x\n", id="prerequisites"),
        pytest.param(b"1" * 40 + b" refs/heads/x\n", id="refs"),
        pytest.param(b"1" * 1000, id="one line"),
    ],
)
def test_a_bundle_whose_header_does_not_end_is_refused_at_once(
    ada: Person, tmp_path: Path, line: bytes
) -> None:
    file = tmp_path / "huge.bundle"
    with file.open("wb") as stream:
        stream.write(b"# v2 git bundle\n")
        stream.write(line * (9 * 1024 * 1024 // len(line)))

    with pytest.raises(RemoteError, match="MiB of refs"):
        list_bundle(WIRE, file, git_dir=ada.store.path)


def test_a_bundle_of_more_refs_than_git_can_fetch_is_neither_made_nor_opened(
    ada: Person, bob: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = [ada.begin() for _ in range(3)]
    file = bundle(ada, *threads[:2])
    whole = file.read_bytes()
    head, _, pack = whole.partition(b"\n\n")
    line = head.split(b"\n")[-1]
    more = [line[:-26] + f"{number:026}".encode() for number in range(5_000)]
    huge = tmp_path / "huge.bundle"
    huge.write_bytes(b"\n".join([head, *more]) + b"\n\n" + pack)

    with pytest.raises(RemoteError, match="5,002 refs, more than 5,000"):
        list_bundle(WIRE, huge, git_dir=bob.store.path)
    for module in ("bundle", "transport"):
        monkeypatch.setattr(f"uwfgit.sync.exchange.{module}.MAX_BUNDLE_REFS", 2)
    assert results(unpack(bob, file).outcomes) == dict.fromkeys(threads[:2], "new")
    with pytest.raises(InvalidError, match="3 threads"):
        bundle(ada, *threads)
