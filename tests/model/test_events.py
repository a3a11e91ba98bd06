from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acting import go
from tests.builders import begin, reply
from tests.history import tip_oid
from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.event import iter_events, read_event
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.objects import Commit, Person, read_commit, write_commit

THREAD: Final = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
ADA: Final = Person(name="Ada", email="ada@example.com", time=1)


def _commit(*trailers: str) -> Commit:
    return Commit(
        oid=GENESIS_OID,
        tree=GENESIS_OID,
        parents=(),
        author=ADA,
        committer=ADA,
        message="\n".join(["x", "", *trailers, ""]),
    )


def test_an_event_is_what_its_trailers_tell() -> None:
    commit = _commit(
        "Uwf-Format: 1",
        "Uwf-Event: step",
        f"Uwf-Thread: {THREAD}",
        "Uwf-Node: 0123456789ABC",
        "Uwf-Prev: -",
        "Uwf-Role: dev",
        'Uwf-Status: "fertig \\u2713"',
        "Uwf-Next: -",
    )

    event = read_event(commit)

    assert event.commit == commit
    assert (event.name, event.thread, event.role) == ("step", THREAD, "dev")
    assert (event.node, event.prev) == ("0123456789ABC", None)
    assert (event.status, event.next) == ("fertig ✓", None)


def test_what_an_event_does_not_have_is_none() -> None:
    event = read_event(_commit("Uwf-Event: cancel", f"Uwf-Thread: {THREAD}"))

    assert (event.node, event.prev, event.role) == (None, None, None)
    assert (event.status, event.next) == (None, None)


@pytest.mark.parametrize(
    "trailers",
    [
        pytest.param([], id="none"),
        pytest.param(["Uwf-Event: step"], id="no-thread"),
        pytest.param([f"Uwf-Thread: {THREAD}"], id="no-event"),
        pytest.param(["Uwf-Event: keep", f"Uwf-Thread: {THREAD}"], id="no-such-event"),
        pytest.param(
            ["Uwf-Event: step", f"Uwf-Thread: {THREAD.lower()}"], id="lower-case-thread"
        ),
        pytest.param(
            ["Uwf-Event: step", "Uwf-Event: step", f"Uwf-Thread: {THREAD}"], id="twice"
        ),
    ],
)
def test_a_commit_without_an_event_is_corrupt(trailers: list[str]) -> None:
    with pytest.raises(CorruptError):
        read_event(_commit(*trailers))


@pytest.mark.parametrize("status", ['"', '"x', '"\\ud800"', "[1]", '{"a": 1}'])
def test_a_malformed_status_is_some_text(status: str) -> None:
    event = read_event(
        _commit("Uwf-Event: step", f"Uwf-Thread: {THREAD}", f"Uwf-Status: {status}")
    )

    assert isinstance(event.status, str)


def test_events_come_newest_first_down_to_genesis(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"), reply("good"))

    found = list(iter_events(ledger.store, tip_oid(ledger.store, thread)))

    assert [(e.name, e.role, e.status, e.next) for e in found] == [
        ("step", "critic", "good", "$END"),
        ("step", "worker", "done", "critic"),
        ("start", None, None, "worker"),
    ]
    assert found[-1].commit.parents == (GENESIS_OID,)
    assert [event.prev for event in found] == [found[1].node, None, None]


def test_genesis_itself_has_no_events(store: Store) -> None:
    assert list(iter_events(store, GENESIS_OID)) == []


def test_a_history_that_does_not_start_at_genesis_is_corrupt(store: Store) -> None:
    oid = write_commit(
        store,
        tree=read_commit(store, GENESIS_OID).tree,
        parents=(),
        author=ADA,
        committer=ADA,
        message=_commit("Uwf-Event: start", f"Uwf-Thread: {THREAD}").message,
    )

    with pytest.raises(CorruptError):
        list(iter_events(store, oid))


def test_a_missing_commit_is_corrupt(store: Store) -> None:
    with pytest.raises(CorruptError):
        list(iter_events(store, Oid("12" * 20)))
