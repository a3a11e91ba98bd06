"""What a process killed between two moves of refs leaves is finished by the next."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.builders import git
from tests.program import write_dead_record
from uwfgit.errors import UntrustedError
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.locks.flock import read_holder
from uwfgit.store.locks.holding import (
    Moves,
    announce,
    hold_refs,
    parse_moves,
    tidy_up,
)
from uwfgit.store.objects import Person, read_commit, write_commit
from uwfgit.store.refs import find_ref, list_refs, move_ref
from uwfgit.store.repository import open_store

BRANCH: Final = "refs/heads/thread/x"
COPY: Final = "refs/heads/thread/y"
TRASH: Final = "refs/uwf/trash/x"
ABSENT: Final = Oid("1" * 40)


@pytest.fixture
def tip(store: Store) -> Oid:
    """A commit; the branch points at it."""
    person = Person(name="Ada", email="ada@example.com", time=1)
    tip = write_commit(
        store,
        tree=read_commit(store, GENESIS_OID).tree,
        parents=(GENESIS_OID,),
        author=person,
        committer=person,
        message="one",
    )
    git(store, "update-ref", BRANCH, tip)
    return tip


def _die(store: Store, moves: Moves) -> Path:
    """Leave the record of a process killed at some moves."""
    path = store.locks / "moves/1-a"
    write_dead_record(path, notes=_note(moves))
    return path


def _note(moves: Moves) -> list[str]:
    return [f"{name} {old or '-'} {new or '-'}" for name, (old, new) in moves.items()]


def _rm(tip: Oid) -> Moves:
    return {TRASH: (None, tip), BRANCH: (tip, None)}


def test_what_was_announced_can_be_read_by_others(store: Store, tip: Oid) -> None:
    moves = _rm(tip)
    with announce(store, ["packed-refs", *moves], command="test", moves=moves):
        (path,) = (store.locks / "moves").iterdir()
        holder = read_holder(path)

    assert holder is not None
    assert holder.notes[0] == "packed-refs"
    assert parse_moves(holder.notes) == moves


def test_a_move_that_began_is_finished_when_the_store_is_opened(
    store: Store, home: Path, tip: Oid
) -> None:
    git(store, "update-ref", TRASH, tip)
    record = _die(store, _rm(tip))

    opened = open_store(store.path, home=home)

    assert (find_ref(opened, BRANCH), find_ref(opened, TRASH)) == (None, tip)
    assert not record.exists()


def test_of_a_move_that_had_not_begun_nothing_moves(store: Store, tip: Oid) -> None:
    before = list_refs(store, "refs/")
    record = _die(store, _rm(tip))

    tidy_up(store)

    assert list_refs(store, "refs/") == before
    assert not record.exists()


@pytest.mark.parametrize("done", [BRANCH, COPY])
def test_two_that_are_set_are_set_both_whichever_came_first(
    store: Store, tip: Oid, done: str
) -> None:
    moves: Moves = {COPY: (None, tip), BRANCH: (tip, GENESIS_OID)}
    git(store, "update-ref", done, str(moves[done][1]))
    _die(store, moves)

    move_ref(store, "refs/heads/z", old=None, new=GENESIS_OID, reason="test")

    assert (find_ref(store, BRANCH), find_ref(store, COPY)) == (GENESIS_OID, tip)


def test_git_s_own_locks_of_the_dead_are_no_hindrance(store: Store, tip: Oid) -> None:
    git(store, "update-ref", TRASH, tip)
    _die(store, _rm(tip))
    (store.path / f"{BRANCH}.lock").touch()

    tidy_up(store)

    assert find_ref(store, BRANCH) is None
    assert not (store.path / f"{BRANCH}.lock").exists()


def test_after_a_loss_of_power_they_are_none_whatever_their_date_is(
    store: Store, home: Path, tip: Oid
) -> None:
    git(store, "update-ref", TRASH, tip)
    record = _die(store, _rm(tip))
    lock = store.path / f"{BRANCH}.lock"
    lock.touch()
    # Before this system's last start: a file system may have lost when it was made.
    os.utime(lock, (1, 1))

    opened = open_store(store.path, home=home)

    assert find_ref(opened, BRANCH) is None
    assert not lock.exists()
    assert not record.exists()


def test_while_git_holds_a_ref_the_record_stays(store: Store, tip: Oid) -> None:
    git(store, "update-ref", TRASH, tip)
    held = store.path / f"{BRANCH}.lock"
    held.touch()
    record = store.locks / "moves/1-a"
    write_dead_record(record, notes=_note(_rm(tip)), since=2**52)

    tidy_up(store)
    assert find_ref(store, BRANCH) == tip
    assert record.exists()

    held.unlink()
    tidy_up(store)
    assert find_ref(store, BRANCH) is None
    assert not record.exists()


def test_what_somebody_moved_since_stays_and_the_rest_with_it(
    store: Store, tip: Oid
) -> None:
    git(store, "update-ref", TRASH, tip)
    git(store, "update-ref", BRANCH, GENESIS_OID)
    record = _die(store, {**_rm(tip), COPY: (None, tip)})

    tidy_up(store)

    assert list_refs(store, BRANCH) == {BRANCH: GENESIS_OID}
    assert find_ref(store, COPY) is None
    assert not record.exists()


def test_no_ref_is_pointed_at_what_is_not_there(store: Store, tip: Oid) -> None:
    git(store, "update-ref", TRASH, tip)
    _die(store, {**_rm(tip), COPY: (None, ABSENT)})

    tidy_up(store)

    assert find_ref(store, BRANCH) == tip
    assert find_ref(store, COPY) is None


def test_no_ref_is_moved_through_a_link(store: Store, tip: Oid, tmp_path: Path) -> None:
    git(store, "update-ref", TRASH, tip)
    _die(store, _rm(tip))
    log = store.path / "logs" / BRANCH
    log.unlink(missing_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UntrustedError):
        tidy_up(store)

    assert not (tmp_path / "elsewhere").exists()


def test_who_takes_a_dead_one_s_lock_meets_the_move_finished(
    store: Store, tip: Oid
) -> None:
    git(store, "update-ref", TRASH, tip)
    _die(store, _rm(tip))
    write_dead_record(store.locks / "x")

    with hold_refs(store, "x", [BRANCH], command="test", what="thread x"):
        assert find_ref(store, BRANCH) is None
