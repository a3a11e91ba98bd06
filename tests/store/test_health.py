from __future__ import annotations

from tests.builders import git
from uwfgit.ids import ThreadId
from uwfgit.store.care.health import check_refs, find_unshared
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store

ONE = ThreadId("01M8FV0G61K8RNY396JMTGNRK5")
TWO = ThreadId("01M8FV0G61K8RNY396JMTGNRK6")


def test_a_bundle_that_was_opened_here_shares_no_thread(store: Store) -> None:
    for thread, remotes in ((ONE, ["bundle"]), (TWO, ["bundle", "o"])):
        for prefix in ("heads", *(f"remotes/{name}" for name in remotes)):
            git(store, "update-ref", f"refs/{prefix}/thread/{thread}", GENESIS_OID)

    assert find_unshared(store) == (ONE,)


def test_refs_that_uwf_gives_are_no_problem_and_others_are(store: Store) -> None:
    names = ("keep", f"trash/{ONE}", f"memory/{ONE}", "queue/PAUSE", f"queues/o/{ONE}")
    for name in (*names, "other"):
        git(store, "update-ref", f"refs/uwf/{name}", GENESIS_OID)

    (found,) = check_refs(store)

    assert (found.level, found.message.split()[0]) == ("problem", "'refs/uwf/other'")
