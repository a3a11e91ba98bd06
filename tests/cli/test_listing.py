"""Which threads a list shows, of some that did steps of others."""

from __future__ import annotations

from typing import Any

import pytest

from uwfgit.cli.thread.listing import _choose, _Known, _Tree, read_filters
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import ThreadRow
from uwfgit.store.handle import Store

STATUSES = {"A": "idle", "B": "end", "C": "end", "D": "end", "E": "cancelled"}
PARENTS = {"B": "A", "C": "B", "E": "D"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param({}, "ABC", id="what an open thread began stays with it"),
        pytest.param({"show_all": True}, "ABCDE", id="all"),
        pytest.param({"trash": True}, "ABCDE", id="the trash hides nothing"),
    ],
)
def test_what_has_ended_is_hidden_unless_it_did_a_step_of_what_goes_on(
    store: Store, words: dict[str, Any], expected: str
) -> None:
    names = {name: ThreadId(name) for name in STATUSES}
    known = {
        names[name]: _Known(
            ThreadRow(thread=names[name], commit=Oid("a" * 40), state=None),
            status,
            "never",
        )
        for name, status in STATUSES.items()
    }
    tree = _Tree({names[child]: names[parent] for child, parent in PARENTS.items()})

    kept = _choose(store, known, tree, read_filters(status=None, **words))

    assert "".join(kept) == expected
