from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import make_workflow
from tests.model.drawing import chart, document
from uwfgit.model.picture.chart import chart_of, chart_of_document
from uwfgit.model.workflow.source import read_workflow
from uwfgit.model.workflow.workflow import Choice

EXAMPLES = Path(__file__).parents[2] / "examples"
LINE = {"$START": {"new": "a"}, "a": {"done": "b"}, "b": {"done": "$END"}}


def test_boxes_stand_in_the_order_a_run_meets_them() -> None:
    workflow = read_workflow(EXAMPLES / "solve-issue.yaml").workflow

    found = chart_of(workflow)

    assert [box.name for box in found.boxes] == [
        "$START",
        "planner",
        "developer",
        "reviewer",
        "tester",
        "committer",
        "$END",
    ]


def test_the_order_of_the_file_does_not_matter() -> None:
    graph = {"b": LINE["b"], "a": LINE["a"], "$START": LINE["$START"]}

    found = chart(graph)

    assert [box.name for box in found.boxes] == ["$START", "a", "b", "$END"]


def test_only_what_leads_back_is_a_loop() -> None:
    found = chart(
        {
            "$START": {"new": "a"},
            "a": {"next": "b", "skip": "c", "again": "a"},
            "b": {"next": "c", "back": "a"},
            "c": {"end": "$END"},
        }
    )

    loops = [(arrow.source, arrow.label) for arrow in found.arrows if arrow.loop]
    assert loops == [("a", "again"), ("b", "back")]


def test_what_nothing_leads_to_stands_last_and_is_told() -> None:
    found = chart(
        {**LINE, "lost": {"done": "behind"}, "behind": {"x": "a"}},
        "behind",
        "lost",
        "a",
        "b",
    )

    names = [(box.name, box.reachable) for box in found.boxes]
    assert names[-2:] == [("lost", False), ("behind", False)]
    assert not any(arrow.loop for arrow in found.arrows)


def test_a_role_without_a_way_to_the_end_is_stuck() -> None:
    found = chart(
        {"$START": {"new": "a"}, "a": {"x": "b", "y": "$END"}, "b": {"z": "b"}}
    )

    assert [box.name for box in found.boxes if box.stuck] == ["b"]


def test_an_edge_to_no_role_has_a_box_of_its_own() -> None:
    found = chart({"$START": {"new": "ghost"}}, "a")

    assert [(box.name, box.kind) for box in found.boxes] == [
        ("$START", "start"),
        ("ghost", "unknown"),
        ("a", "role"),
        ("$END", "end"),
    ]


def test_a_list_has_its_conditions_as_labels() -> None:
    workflow = make_workflow()
    listed = (
        Choice(role="critic", prompt="x", when="$count(steps) < 3"),
        Choice(role="$END", prompt="x"),
    )

    found = chart_of(make_workflow(graph={**workflow.graph, "worker": listed}))

    labels = [arrow.label for arrow in found.arrows if arrow.source == "worker"]
    assert labels == ["$count(steps) < 3", "otherwise"]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(None, id="nothing"),
        pytest.param([1], id="list"),
        pytest.param({"roles": {}}, id="no-graph"),
        pytest.param({"graph": 3}, id="graph-is-a-number"),
    ],
)
def test_without_a_graph_there_is_no_chart(value: object) -> None:
    assert chart_of_document(value) is None


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"graph": {}}, id="empty"),
        pytest.param({"graph": {"a": 1, "b": [1, {"role": 2}]}}, id="no-edges"),
        pytest.param({"graph": {"a": {"x": {"role": "a"}}}, "roles": 1}, id="roles"),
        pytest.param({"name": 1, "graph": {"x-a": {"x": {"role": "b"}}}}, id="free"),
    ],
)
def test_a_broken_graph_is_charted_as_far_as_it_goes(value: object) -> None:
    found = chart_of_document(value)

    assert found is not None
    assert "$START" in [box.name for box in found.boxes]


def test_a_long_chain_is_no_deep_recursion() -> None:
    names = [f"r{number}" for number in range(3000)]
    graph = {a: {"x": b} for a, b in zip(["$START", *names], names, strict=False)}

    found = chart_of_document(document(graph))

    assert found is not None
    assert [box.name for box in found.boxes][:3001] == ["$START", *names]
