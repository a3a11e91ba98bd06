"""Threads of a store that nobody verified: a payload may be anything at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acting import NO_BLOCK, go
from tests.builders import begin, record_of, reply
from tests.sync.retyped import GONE, Place, put_at
from uwfgit.code.blame.steps import index_steps
from uwfgit.errors import CorruptError
from uwfgit.ids import Hash, Oid
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.prices import thread_cost
from uwfgit.model.node import (
    DETAIL_TYPE,
    ERROR_TYPE,
    START_TYPE,
    STEP_TYPE,
    WORKFLOW_TYPE,
    make_node,
)
from uwfgit.model.thread.attempts import list_attempts
from uwfgit.model.thread.family import named_children
from uwfgit.model.thread.record import Record, open_record
from uwfgit.store.canonical import Json, format_path
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

    assert caught.value.message.startswith(f"node {node.hash}: ")


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        pytest.param(STEP_TYPE, ("usage",), {"turns": "x"}, id="usage"),
        pytest.param(STEP_TYPE, ("completedAtMs",), 1e300, id="count"),
        pytest.param(STEP_TYPE, ("previousAttempts",), [5], id="attempts"),
        pytest.param(STEP_TYPE, ("code", "before"), "--output=x", id="code"),
        pytest.param(STEP_TYPE, ("code", "before"), OID + "\n", id="break"),
        pytest.param(STEP_TYPE, ("extractedBy",), "me", id="enum"),
        pytest.param(STEP_TYPE, ("role",), GONE, id="gone"),
        pytest.param(START_TYPE, ("inputs",), 5, id="inputs"),
        pytest.param(START_TYPE, ("cwd",), None, id="folder"),
        pytest.param(WORKFLOW_TYPE, ("roles",), [], id="roles"),
        pytest.param(
            WORKFLOW_TYPE, ("roles", "worker", "capabilities"), 5, id="capabilities"
        ),
        pytest.param(
            WORKFLOW_TYPE, ("graph", "worker", "done", "role"), 5, id="target"
        ),
        pytest.param(DETAIL_TYPE, ("turns",), [5], id="turns"),
        pytest.param(ERROR_TYPE, ("error",), {}, id="error"),
    ],
)
def test_a_node_that_does_not_fit_its_type_is_told_with_the_place(
    record: Record, kind: Hash, place: Place, value: Json
) -> None:
    name = next(name for name, (each, _) in record.places.items() if each == kind)
    payload = put_at(record.node(name).payload, place, value)
    blob = write_blob(record.store, make_node(kind, payload).data)
    record.places[name] = (kind, blob)

    read = record.step if kind == STEP_TYPE else record.node
    second: Any = 1 if kind == STEP_TYPE else kind
    with pytest.raises(CorruptError) as caught:
        read(name, second)

    told = str(caught.value)
    assert told.startswith(f"node {name}")
    if value != 1e300 and value != OID + "\n":
        assert format_path(place) in told
    assert caught.value.hint == (
        f"uwf verify {record.tip.thread} says more; uwf doctor names what may fix it"
    )


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

    assert caught.value.message.startswith(f"node {start}: parent")
