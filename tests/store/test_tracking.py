from __future__ import annotations

import pytest

from tests.builders import git
from uwfgit.ids import Oid, ThreadId
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.refs import find_tracked, list_tracked, scan_refs, tracking_ref

ONE = ThreadId("01M8FV0G61K8RNY396JMTGNRK5")
TWO = ThreadId("01M8FV0G61K8RNY396JMTGNRK6")


def set_ref(store: Store, name: str) -> None:
    git(store, "update-ref", name, GENESIS_OID)


def test_refs_are_read_whether_loose_or_packed(store: Store) -> None:
    set_ref(store, f"refs/remotes/o/thread/{ONE}")
    git(store, "pack-refs", "--all")
    set_ref(store, f"refs/remotes/o/thread/{TWO}")
    set_ref(store, "refs/heads/other")

    found = scan_refs(store, "refs/remotes/")

    assert found == {
        f"refs/remotes/o/thread/{ONE}": GENESIS_OID,
        f"refs/remotes/o/thread/{TWO}": GENESIS_OID,
    }
    assert scan_refs(store, "refs/nothing/") == {}


def test_a_loose_ref_beats_the_packed_one(store: Store) -> None:
    ref = f"refs/remotes/o/thread/{ONE}"
    set_ref(store, ref)
    git(store, "pack-refs", "--all")
    tree = git(store, "rev-parse", f"{GENESIS_OID}^{{tree}}").strip()
    git(store, "update-ref", ref, tree)

    assert scan_refs(store, "refs/remotes/") == {ref: Oid(tree)}
    assert find_tracked(store, ONE) == {"o": Oid(tree)}


@pytest.mark.parametrize("data", ["", "ref: refs/heads/main\n", "x" * 40])
def test_a_loose_ref_without_an_oid_is_left_out(store: Store, data: str) -> None:
    path = store.path / f"refs/remotes/o/thread/{ONE}"
    path.parent.mkdir(parents=True)
    path.write_text(data)

    assert scan_refs(store, "refs/remotes/") == {}


def test_what_remotes_had_is_listed_by_thread(store: Store) -> None:
    set_ref(store, f"refs/remotes/o/thread/{ONE}")
    set_ref(store, f"refs/remotes/p/thread/{ONE}")
    set_ref(store, f"refs/remotes/p/thread/{TWO.lower()}")
    set_ref(store, "refs/remotes/p/main")

    assert list_tracked(store) == {ONE: {"o": GENESIS_OID, "p": GENESIS_OID}}
    assert find_tracked(store, ONE) == {"o": GENESIS_OID, "p": GENESIS_OID}
    assert find_tracked(store, TWO) == {}


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_one_thread_and_all_are_read_by_one_rule(store: Store, *, packed: bool) -> None:
    names = ["gone", "bundle", "-x", "a/b", "dot.ted"]
    for name in names:
        set_ref(store, f"refs/remotes/{name}/thread/{ONE}")
    set_ref(store, f"refs/remotes/o/thread/{TWO}")
    set_ref(store, f"refs/heads/thread/{ONE}")
    if packed:
        git(store, "pack-refs", "--all")
    set_ref(store, f"refs/remotes/late/thread/{ONE}")
    damaged = store.path / f"refs/remotes/damaged/thread/{ONE}"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("garbage\n")
    # What cannot be in a ref's name, and a remote that was never fetched.
    for name in ("a b", "^", "new"):
        git(store, "config", f"remote.{name}.url", "/x")

    listed = list_tracked(store)

    assert listed[ONE].keys() == {"gone", "bundle", "-x", "dot.ted", "late"}
    assert find_tracked(store, ONE) == listed[ONE]
    assert find_tracked(store, TWO) == listed[TWO] == {"o": GENESIS_OID}


def test_the_newer_of_two_tips_counts(store: Store) -> None:
    ref = f"refs/remotes/o/thread/{ONE}"
    set_ref(store, ref)
    git(store, "pack-refs", "--all")
    tree = Oid(git(store, "rev-parse", f"{GENESIS_OID}^{{tree}}").strip())
    git(store, "update-ref", ref, tree)

    assert find_tracked(store, ONE) == list_tracked(store)[ONE] == {"o": tree}


def test_a_branchs_tracking_ref_is_called_like_gits() -> None:
    assert tracking_ref("o", "refs/heads/thread/X") == "refs/remotes/o/thread/X"
