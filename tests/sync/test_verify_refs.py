from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import begin
from tests.proof import verify_threads
from tests.sync.changes import OTHER
from tests.sync.forge import codes
from uwfgit.errors import NotFoundError
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(f"thread/{OTHER.lower()}", id="lower case"),
        pytest.param(f"thread/{OTHER}x", id="too long"),
        pytest.param(f"thread/{OTHER}/x", id="below a thread"),
    ],
)
def test_a_branch_that_is_named_wrongly_is_refused(
    ledger: Ledger, tmp_path: Path, name: str
) -> None:
    tip = begin(ledger, tmp_path)
    ledger.store.repo.references.create(f"refs/heads/{name}", tip.commit)

    reports = verify_threads(ledger.store)

    assert [codes(each.problems) for each in reports if not each.ok] == [{"ref"}]


def test_a_branch_named_thread_is_refused(store: Store) -> None:
    store.repo.references.create("refs/heads/thread", GENESIS_OID)

    assert [codes(each.problems) for each in verify_threads(store)] == [{"ref"}]


def test_a_symbolic_ref_is_refused(store: Store) -> None:
    store.repo.references.create(f"refs/heads/thread/{OTHER}", "refs/heads/main")

    assert [codes(each.problems) for each in verify_threads(store)] == [{"ref"}]


def test_a_thread_that_is_named_but_missing_is_an_error(store: Store) -> None:
    with pytest.raises(NotFoundError):
        verify_threads(store, [OTHER])
