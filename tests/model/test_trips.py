from __future__ import annotations

from pathlib import Path

import pytest

from tests.acting import BAD, DONE, GOOD, acting, go, saying
from tests.builders import begin, make_workflow, record_of, reply
from uwfgit.engine.run.executor import resume_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.picture.chart import chart_of
from uwfgit.model.picture.edge_counts import Trips, trips_of
from uwfgit.model.workflow.workflow import Choice, Target, Workflow

WAIT = "---\n$status: $SUSPEND\nreason: which one\n---\n"


@pytest.fixture
def thread(ledger: Ledger, tmp_path: Path) -> ThreadId:
    return begin(ledger, tmp_path).thread


def trips(ledger: Ledger, thread: ThreadId, workflow: Workflow | None = None) -> Trips:
    record = record_of(ledger, thread)
    shown = workflow or record.workflow
    return trips_of(shown, record.tip.state, record.steps())


def taken(found: Trips) -> dict[str, int]:
    return {
        f"{source} {key} {target}": count
        for ((source, key), target), count in found.edges.items()
    }


def test_a_new_thread_is_on_its_way_to_the_first_role(
    ledger: Ledger, thread: ThreadId
) -> None:
    found = trips(ledger, thread)

    assert taken(found) == {"$START new worker": 1}
    assert (found.here, found.mark) == ("worker", "next")


def test_each_edge_is_counted_and_each_role(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, DONE, BAD, DONE, GOOD)

    found = trips(ledger, thread)

    assert taken(found) == {
        "$START new worker": 1,
        "worker done critic": 2,
        "critic bad worker": 1,
        "critic good $END": 1,
    }
    assert dict(found.visits) == {"worker": 2, "critic": 2}
    assert (found.here, found.mark) == ("$END", "reached")


def test_a_wait_is_counted_and_the_edge_before_it_once(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE, WAIT)

    found = trips(ledger, thread)

    assert taken(found)["worker done critic"] == 1
    assert taken(found)["critic $SUSPEND $SUSPEND"] == 1
    assert (found.here, found.mark) == ("critic", "waits")


def test_a_thread_taken_up_after_its_end_goes_through_resume(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE, GOOD)
    resume_thread(acting(ledger, saying(DONE)), thread, note="more")

    found = trips(ledger, thread)

    assert taken(found) == {
        "$START new worker": 1,
        "worker done critic": 2,
        "critic good $END": 1,
        "$START resume worker": 1,
    }


def test_an_edge_that_the_graph_does_not_have_is_extra(
    ledger: Ledger, thread: ThreadId
) -> None:
    go(ledger, thread, DONE, BAD)
    workflow = make_workflow()
    other = make_workflow(
        graph={
            **workflow.graph,
            "critic": {"good": Target(role="$END", prompt="Over.")},
        }
    )

    drawn = chart_of(other, trips(ledger, thread, other))

    extra = [(a.source, a.label, a.target, a.count) for a in drawn.arrows if a.extra]
    assert extra == [("critic", "bad", "worker", 1)]


def test_the_entry_of_a_list_is_told_by_what_it_said(
    ledger: Ledger, tmp_path: Path
) -> None:
    said = Choice(role="critic", prompt="Judge {{plan}} with {{_body}}.")
    other = Choice(role="critic", prompt="Never said.")
    graph = {**make_workflow().graph, "worker": (said, other)}
    turned = {**graph, "worker": (other, said)}
    thread = begin(ledger, tmp_path, workflow=make_workflow(graph=graph)).thread
    go(ledger, thread, reply(plan="x"), BAD)

    found = trips(ledger, thread, make_workflow(graph=turned))

    assert taken(found)["worker 1 critic"] == 1


def test_a_list_of_first_targets_is_no_edge_beside_the_graph(
    ledger: Ledger, tmp_path: Path
) -> None:
    first = (
        Choice(role="critic", prompt="x", when="false"),
        Choice(role="worker", prompt="a", when="false"),
        Choice(role="worker", prompt="Begin."),
    )
    listed = make_workflow(graph={**make_workflow().graph, "$START": first})
    thread = begin(ledger, tmp_path, workflow=listed).thread
    assert "$START 1 worker" in taken(trips(ledger, thread))
    go(ledger, thread, DONE, GOOD)
    resume_thread(acting(ledger, saying(DONE)), thread)

    found = trips(ledger, thread)

    assert taken(found)["$START 2 worker"] == 2
    chart = chart_of(listed, found)
    assert [arrow for arrow in chart.arrows if arrow.extra] == []
