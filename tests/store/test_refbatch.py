from __future__ import annotations

import os

import pytest

from tests.builders import git
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.refbatch import move_many
from uwfgit.store.handle import Store
from uwfgit.store.locks.holding import Moves
from uwfgit.store.refs import find_ref, scan_refs

COUNTS = pytest.mark.parametrize("count", [3, 40])


def move(store: Store, moves: Moves) -> bool:
    return move_many(store, moves, reason="test", environment=os.environ)


@COUNTS
def test_many_refs_are_made_moved_and_removed_at_once(store: Store, count: int) -> None:
    names = [f"refs/heads/x{number}" for number in range(count)]
    tree = Oid(git(store, "rev-parse", "main^{tree}").strip())

    assert move(store, dict.fromkeys(names, (None, GENESIS_OID)))
    assert scan_refs(store, "refs/heads/").keys() == {"refs/heads/main", *names}
    assert not move(store, dict.fromkeys(names, (tree, GENESIS_OID)))
    assert move(store, dict.fromkeys(names, (GENESIS_OID, None)))
    assert scan_refs(store, "refs/heads/").keys() == {"refs/heads/main"}


@COUNTS
def test_one_that_is_not_as_expected_keeps_all_where_they_are(
    store: Store, count: int
) -> None:
    names = [f"refs/heads/x{number}" for number in range(count)]
    git(store, "update-ref", names[1], GENESIS_OID)

    assert not move(store, dict.fromkeys(names, (None, GENESIS_OID)))

    assert find_ref(store, names[0]) is None
    assert find_ref(store, names[1]) == GENESIS_OID


def test_moving_none_is_done(store: Store) -> None:
    assert move(store, {})
