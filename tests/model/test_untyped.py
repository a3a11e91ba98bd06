"""Threads of a store that nobody verified: a payload may be anything at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acting import NO_BLOCK, go
from tests.builders import begin, record_of, reply
from uwfgit.code.blame.steps import index_steps
from uwfgit.errors import CorruptError
from uwfgit.ids import Oid
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.prices import thread_cost
from uwfgit.model.node.node import START_TYPE, STEP_TYPE, make_node
from uwfgit.model.thread.attempts import list_attempts
from uwfgit.model.thread.family import named_children
from uwfgit.model.thread.record import Record, open_record
from uwfgit.store.canonical import Json
from uwfgit.store.objects import write_blob

OID = Oid("0" * 40)


@pytest.fixture
def record(ledger: Ledger, tmp_path: Path) -> Record:
    """A thread of a step and a try that failed."""
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, reply(plan="x"), NO_BLOCK)
    return open_record(ledger.store, record_of(ledger, thread).tip, checked=False)


@pytest.mark.parametrize("read", [named_children, list_attempts, thread_cost])
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param([1], id="list"),
        pytest.param({"child": 5}, id="number"),
        pytest.param({"child": {"oid": OID}}, id="nameless"),
        pytest.param({"child": {"thread": "../x", "oid": OID}}, id="elsewhere"),
    ],
)
def test_a_try_that_is_none_is_corrupt_to_whoever_reads_it(
    record: Record, read: Callable[[Record], object], payload: Json
) -> None:
    blob = write_blob(record.store, make_node(STEP_TYPE, payload).data)
    for node, (kind, _) in record.places.items():
        if kind == STEP_TYPE and node != record.tip.state.head:
            record.places[node] = (kind, blob)

    with pytest.raises(CorruptError):
        read(record)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param([1], id="list"),
        pytest.param({}, id="empty"),
        pytest.param({"output": []}, id="output"),
        pytest.param({"output": "x", "code": 5}, id="code"),
    ],
)
def test_a_step_that_is_none_has_no_code(record: Record, payload: Json) -> None:
    node = make_node(STEP_TYPE, payload)
    record.places[node.hash] = (STEP_TYPE, write_blob(record.store, node.data))

    with pytest.raises(CorruptError) as caught:
        index_steps(record)

    assert caught.value.message == f"node {node.hash} lacks what its type requires"


@pytest.mark.parametrize(
    "parent", [5, {"thread": "../x", "step": "y"}, {"thread": 5, "step": 5}]
)
def test_a_parent_that_is_no_thread_is_corrupt(record: Record, parent: Json) -> None:
    start = record.tip.state.start
    payload = record.node(start).payload | {"parent": parent}
    blob = write_blob(record.store, make_node(START_TYPE, payload).data)
    record.places[start] = (START_TYPE, blob)

    with pytest.raises(CorruptError) as caught:
        _ = record.start

    assert caught.value.message == f"node {start} lacks what its type requires"
