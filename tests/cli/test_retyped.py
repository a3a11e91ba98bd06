"""Whatever a node holds under a hash that is right, every reader ends in its error."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders import (
    TEXT,
    Clock,
    begin,
    make_engine,
    make_ledger,
    make_workflow,
    record_of,
    reply,
    run,
    write_script,
)
from tests.cli.calls import Uwf
from tests.sync.judged import hold
from tests.sync.retyped import GONE, iter_places, put_at, retype
from tests.sync.tour import set_tip, suspend
from uwfgit.cli.frame.world import now_ms
from uwfgit.engine.run.executor import resume_thread
from uwfgit.model.node import (
    DETAIL_TYPE,
    FORMAT_TYPES,
    START_TYPE,
    STEP_TYPE,
    Node,
)
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.canonical import Json
from uwfgit.store.repository import open_store

VALUES: Final[tuple[Json, ...]] = (
    *(None, True, 5, -1, 2**53 - 1, 1e300, 0.5, "x", "", "0" * 13, "a" * 40 + "\n"),
    *("--output=x", [], [1], ["x"], {}, {"a": 1}, GONE),
)
OID: Final = "a" * 40
THREAD: Final = "01J00000000000000000000001"
OPTIONAL: Final[Mapping[str, Mapping[str, Any]]] = {
    START_TYPE: {"parent": {"thread": THREAD, "step": "0" * 13}, "depth": 1},
    STEP_TYPE: {
        "child": {"thread": THREAD, "oid": OID},
        "code": {
            "before": OID,
            "after": OID,
            "snapshot": {"before": OID, "after": OID},
            "shared": [THREAD],
        },
        "warnings": ["Look"],
    },
    DETAIL_TYPE: {
        "session": {"id": "s", "size": 1, "commit": OID},
        "evidence": [1],
        "turns": [
            {
                "index": 0,
                "role": "assistant",
                "content": "Hm",
                "toolCalls": [{"name": "sh", "arguments": {"a": 1}, "result": "x"}],
                "reasoning": "So",
                "atMs": 1,
            }
        ],
    },
}
"""Parts of payloads that a plain run does not have."""
READERS: Final = tuple(
    line.split()
    for line in (
        "thread show T",
        "thread show T --json",
        "thread list --all -v",
        "thread read T --start --quota 90000",
        "thread log T --stat",
        "thread diff T OTHER",
        "thread check T",
        "thread live T",
        "thread code T",
        "thread fork T --at 1",
        "thread rewind T --at 1",
        "thread redact T",
        "thread exec T",
        "thread resume T",
        "step list T --json",
        "step show T:1",
        "step show T:2 --json",
        "step read T:1 --prompt",
        "step turns T",
        "step diff T:1",
        "step fork T:1",
        "verify T",
        "workflow graph --thread T",
        "workflow show WORKFLOW",
        "workflow simulate WORKFLOW --all-paths",
        "cas walk WORKFLOW",
        "export html pages T",
        "bundle create threads.bundle T",
        "why ping.yaml:1",
        "doctor",
    )
)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A thread with every type of node, and another one beside it."""

    uwf: Uwf
    record: Record
    other: str
    nodes: tuple[Node, ...]

    def forge(self, node: Node, payload: Json) -> None:
        """Move the thread to a history with another payload for one node."""
        tip = retype(self.record, node.hash, payload)
        set_tip(self.record.store, self.record.tip.thread, tip)

    def read(self, words: list[str]) -> None:
        """Run a reader, which may refuse and never break."""
        thread = self.record.tip.thread
        pinned = load_tip(self.record.store, thread).state.workflow_hash
        names = {"T": thread, "OTHER": self.other, "WORKFLOW": pinned}
        called = [names.get(w, w.replace("T:", f"{thread}:")) for w in words]
        result = self.uwf(*called, "--debug")
        assert result.code in {0, 1, 3}, (called, result.err)


@pytest.fixture
def bench(uwf: Uwf, work: Path, tmp_path: Path) -> Bench:
    assert uwf("init").code == 0
    path = Path(uwf("store", "path", "--json").json["store"])
    store = open_store(path, home=path.parent, write=True, fsync=False)
    ledger = make_ledger(store, Clock(iter(now_ms, None)), random=os.urandom)
    who = {"type": "string", "description": "Who", "default": "me"}
    workflow = make_workflow(inputs={"who": {**TEXT, **who}})
    other, thread = (
        begin(ledger, work, workflow=workflow, inputs={"who": "you"}).thread
        for _ in range(2)
    )
    replies = {"worker": [reply(plan="x"), "No block."], "critic": [suspend()]}
    agent = write_script(tmp_path, replies)
    run(ledger, thread, agent, 2)
    resume_thread(make_engine(ledger), thread, note="Again", agent=agent)
    hold(ledger, thread, "It goes in circles.")
    record = record_of(ledger, thread)
    own = [name for name in record.places if name not in FORMAT_TYPES.values()]
    nodes = tuple(record.node(name) for name in own)
    return Bench(uwf=uwf, record=record, other=other, nodes=nodes)


def check(bench: Bench, data: st.DataObject) -> None:
    """Ask a reader of a thread that is wrong in one place."""
    node = data.draw(st.sampled_from(bench.nodes))
    payload = node.payload
    if data.draw(st.booleans()):
        payload = {**payload, **OPTIONAL.get(node.type, {})}
    place = data.draw(st.sampled_from([*iter_places(payload)]))
    changed = put_at(payload, place, data.draw(st.sampled_from(VALUES)))
    bench.forge(node, changed)
    bench.read(data.draw(st.sampled_from(READERS)))


FIXTURE: Final = [HealthCheck.function_scoped_fixture]


@settings(max_examples=20, suppress_health_check=FIXTURE)
@given(data=st.data())
def test_no_reader_breaks_on_a_node_that_is_wrong_in_one_place(
    bench: Bench, data: st.DataObject
) -> None:
    check(bench, data)


@pytest.mark.slow
@settings(max_examples=400, suppress_health_check=FIXTURE)
@given(data=st.data())
def test_no_reader_breaks_on_many_such_nodes(bench: Bench, data: st.DataObject) -> None:
    check(bench, data)
