from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import TEXT, make_role, make_workflow, variant
from uwfgit.engine.simulate.coverage import Coverage, cover_edges
from uwfgit.model.workflow.source import read_workflow
from uwfgit.model.workflow.workflow import Choice, Target

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKFLOWS = [
    file
    for file in sorted(EXAMPLES.glob("*.yaml"))
    if not file.stem.endswith(".replies")
]


def edges(found: Coverage) -> list[tuple[str, str] | None]:
    return [step.edge for step in found.steps]


def test_every_edge_is_taken_with_made_up_values() -> None:
    found = cover_edges(make_workflow(), task="the task")

    assert edges(found) == [
        ("$START", "new"),
        ("worker", "done"),
        ("critic", "good"),
        ("$START", "resume"),
        ("worker", "done"),
        ("critic", "bad"),
    ]
    assert [step.prompt for step in found.steps] == [
        "Begin: the task",
        "Judge <plan>.",
        "Over.",
        "Go on.",
        "Judge <plan>.",
        "Fix it: <reason>",
    ]
    assert [step.status for step in found.steps] == [
        "done",
        "good",
        None,
        "done",
        "bad",
        None,
    ]
    assert (found.edges, found.left) == (5, ())


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_every_edge_of_every_example_is_taken_and_lacks_nothing(file: Path) -> None:
    workflow = read_workflow(file).workflow

    found = cover_edges(workflow, task="x")

    assert found.left == ()
    assert found.edges == sum(len(node) for node in workflow.graph.values())
    assert len(set(edges(found))) == found.edges
    assert [s for s in found.steps if s.missing or s.optional or s.error] == []


def test_each_step_leads_where_the_next_one_comes_from() -> None:
    workflow = read_workflow(EXAMPLES / "solve-issue.yaml").workflow

    found = cover_edges(workflow, task="x")

    for one, other in zip(found.steps, found.steps[1:], strict=False):
        if one.walk == other.walk:
            assert other.edge is not None
            source = "$START" if one.role == "$END" else one.role
            assert other.edge[0] == source


def test_a_dead_end_begins_another_walk() -> None:
    role = make_role(variant("on"), variant("stop"))
    trap = make_role(variant("again"))
    workflow = make_workflow(
        roles={"a": role, "trap": trap},
        graph={
            "$START": {"new": Target(role="a", prompt="x")},
            "a": {
                "on": Target(role="trap", prompt="x"),
                "stop": Target(role="$END", prompt="x"),
            },
            "trap": {"again": Target(role="trap", prompt="x")},
        },
    )

    found = cover_edges(workflow, task="x")

    assert found.left == ()
    assert {step.walk for step in found.steps} == {1, 2}


def test_an_edge_that_no_walk_reaches_is_named() -> None:
    graph = {
        **make_workflow().graph,
        "critic": {"bad": Target(role="worker", prompt="x")},
    }

    found = cover_edges(make_workflow(graph=graph), task="x")

    assert found.left == ("$START resume",)


def test_what_only_an_optional_field_gives_is_told() -> None:
    roles = {
        **make_workflow().roles,
        "worker": make_role(variant("done", ["plan"], plan=TEXT, note=TEXT)),
    }
    graph = {
        **make_workflow().graph,
        "worker": {"done": Target(role="critic", prompt="{{plan}} {{note}} {{lost}}")},
    }

    found = cover_edges(make_workflow(roles=roles, graph=graph), task="x")

    step = next(step for step in found.steps if step.edge == ("worker", "done"))
    assert step.prompt == "<plan> <note> "
    assert (step.missing, step.optional) == (("lost",), ("note",))


def test_a_blank_prompt_ends_a_walk_with_an_error() -> None:
    graph = {
        **make_workflow().graph,
        "worker": {"done": Target(role="critic", prompt="{{lost}}")},
    }

    found = cover_edges(make_workflow(graph=graph), task="x")

    assert found.steps[1].error is not None
    assert "renders blank" in found.steps[1].error
    assert found.left == ("$START resume", "critic good", "critic bad")


def test_each_entry_of_a_list_is_an_edge() -> None:
    graph = {
        **make_workflow().graph,
        "worker": (
            Choice(role="critic", prompt="A {{plan}}", when="$count(steps) < 3"),
            Choice(role="$END", prompt="B"),
        ),
    }

    found = cover_edges(make_workflow(graph=graph), task="x")

    assert ("worker", "$count(steps) < 3") in edges(found)
    assert ("worker", "otherwise") in edges(found)
    assert found.left == ()


def test_each_entry_of_a_list_of_first_targets_is_taken() -> None:
    first = (
        Choice(role="critic", prompt="Judge first.", when="depth > 0"),
        Choice(role="worker", prompt="Begin."),
    )
    workflow = make_workflow(graph={**make_workflow().graph, "$START": first})

    found = cover_edges(workflow, task="x")

    assert (found.edges, found.left) == (5, ())
    assert edges(found)[:2] == [("$START", "depth > 0"), ("critic", "good")]
    assert ("$START", "otherwise") in edges(found)
