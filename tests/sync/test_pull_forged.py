"""No forged history comes in by a pull, and none leaves anything behind."""

from __future__ import annotations

import pytest

from tests.builders import git
from tests.sync.forge import forge
from tests.sync.forgeries import FORGERIES
from tests.sync.people import WIRE, Person, objects_of, results
from tests.sync.tour import make_tour, tip_of
from uwfgit.ids import Oid, ThreadId
from uwfgit.store.layout import thread_ref
from uwfgit.sync.exchange import Source
from uwfgit.sync.incoming import bring_in
from uwfgit.sync.verify import verify_threads


def take(person: Person, thread: ThreadId, origin: Person, tip: Oid) -> str:
    """Let somebody pull a commit as a thread; give what becomes of it."""
    git(origin.store, "update-ref", "refs/forged/x", tip)
    source = Source(
        url=str(origin.store.path),
        name="origin",
        names={thread_ref(thread): "refs/forged/x"},
        is_remote=True,
    )
    outcomes = bring_in(
        person.ledger, source, wire=WIRE, verify=verify_threads, command="test"
    )
    return results(outcomes)[thread]


@pytest.mark.slow
def test_every_forged_history_is_refused_and_leaves_nothing(
    ada: Person, bob: Person
) -> None:
    thread = make_tour(ada.ledger, ada.folder)
    tip = tip_of(ada.ledger, thread)
    before = objects_of(bob.store)

    became = {
        name: take(bob, thread, ada, forge(ada.store, tip, {at: change}, upto=at))
        for name, at, change, _ in FORGERIES
    }

    assert became == dict.fromkeys(became, "refused")
    assert objects_of(bob.store) == before
    assert take(bob, thread, ada, tip) == "new"
