"""What a run is given: declared, checked, pinned, told and verified."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.builders import (
    begin,
    make_workflow,
    record_of,
    reply,
    run,
    write_script,
)
from tests.engine.nested import BUILT, Play, by, child, children_of, line, start
from tests.history import check_thread, paths
from tests.sync.changes import restart
from tests.sync.forge import Draft, forge
from tests.sync.tour import tip_of
from uwfgit.errors import InvalidError
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import JSON_TYPES, make_node
from uwfgit.model.workflow.document import workflow_document
from uwfgit.model.workflow.inputs import complete_inputs
from uwfgit.model.workflow.source import read_workflow
from uwfgit.model.workflow.workflow import Target, Workflow
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.sync.secrets.redact import redact_thread
from uwfgit.sync.verify.verify import verify_thread

INPUTS: Final[dict[str, Any]] = {
    "url": {"type": "string", "minLength": 1, "description": "Where it is"},
    "depth": {"type": "integer", "minimum": 1, "default": 2},
    "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "default": []},
    "mode": {"enum": ["fast", "slow"], "default": "fast"},
    "more": {"type": ["object", "null"], "default": None},
}


def asking(**changes: Any) -> Workflow:  # noqa: ANN401 - schemas
    workflow = make_workflow(inputs={**INPUTS, **changes})
    graph = {
        **workflow.graph,
        "$START": {
            "new": Target(role="worker", prompt="Look at {{{_inputs.url}}}."),
            "resume": Target(role="worker", prompt="Go on."),
        },
        "worker": {
            "done": Target(role="critic", prompt="Judge {{plan}}, {{_inputs.depth}}.")
        },
    }
    return replace(workflow, graph=graph)


def data(workflow: Workflow) -> bytes:
    return dump_yaml(workflow_document(workflow)).encode()


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"url": "x"}, {"depth": 2, "tags": [], "mode": "fast", "more": None}),
        ({"url": "x", "depth": 5}, {"depth": 5}),
        ({"url": "x", "depth": 5.0}, {"depth": 5}),
        ({"url": "x", "tags": ["a", "b"]}, {"tags": ["a", "b"]}),
        ({"url": "x", "mode": "slow"}, {"mode": "slow"}),
        (
            {"url": "x", "more": {"a": [1, {"b": None}]}},
            {"more": {"a": [1, {"b": None}]}},
        ),
        ({"url": "{{_prompt}}"}, {"url": "{{_prompt}}"}),
        ({"url": "é\n#"}, {"url": "é\n#"}),
    ],
)
def test_what_fits_is_taken_and_the_rest_filled_in(
    given: dict[str, Any], values: dict[str, Any]
) -> None:
    found, problems = complete_inputs(INPUTS, given)

    assert problems == ()
    assert found.keys() == INPUTS.keys()
    assert {key: found[key] for key in values} == values


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "url"),
        ({"url": ""}, "url"),
        ({"url": None}, "url"),
        ({"url": 5}, "url"),
        ({"url": ["x"]}, "url"),
        ({"url": "x", "depth": 0}, "depth"),
        ({"url": "x", "depth": 1.5}, "depth"),
        ({"url": "x", "depth": "2"}, "depth"),
        ({"url": "x", "depth": True}, "depth"),
        ({"url": "x", "tags": "a"}, "tags"),
        ({"url": "x", "tags": ["a", "c"]}, "tags[1]"),
        ({"url": "x", "mode": "FAST"}, "mode"),
        ({"url": "x", "more": []}, "more"),
        ({"url": "x", "other": 1}, "other"),
        ({"url": "x", "ur1": 1}, "ur1"),
        ({"URL": "x"}, "URL"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(
    given: dict[str, Any], path: str
) -> None:
    _, problems = complete_inputs(INPUTS, given)

    assert path in {problem.path for problem in problems}


def test_a_near_name_is_suggested_and_a_missing_one_described() -> None:
    _, problems = complete_inputs(INPUTS, {"ur1": "x"})

    assert [problem.hint for problem in problems] == [
        "did you mean 'url'?",
        "give it with -i url=VALUE",
    ]
    assert "Where it is" in problems[1].message


def test_inputs_are_pinned_and_said_in_prompts(ledger: Ledger, tmp_path: Path) -> None:
    workflow = asking()
    thread = begin(
        ledger,
        tmp_path,
        workflow=workflow,
        data=data(workflow),
        inputs={"url": "https://x", "depth": 3},
    ).thread
    agent = write_script(
        tmp_path, {"worker": [reply(plan="p")], "critic": [reply("good")]}
    )
    run(ledger, thread, agent, 2)

    record = record_of(ledger, thread)
    one, two = record.steps()
    told = record.node(one.detail_hash).payload["assembledPrompt"]
    assert record.start.values is not None
    assert dict(record.start.values)["depth"] == 3
    assert one.edge_prompt == "Look at https://x."
    assert two.edge_prompt == "Judge p, 3."
    assert 'url: "https://x"' in told
    assert told.index("# The task") < told.index("# What this run was given")
    assert any(
        JSON_TYPES["object"] in path
        for path in paths(ledger.store, thread, "nodes/start")
    )
    check_thread(ledger.store, thread)


def test_a_start_without_what_it_needs_writes_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    workflow = asking()
    before = len(ledger.lookup.list_threads())

    with pytest.raises(InvalidError) as caught:
        begin(ledger, tmp_path, workflow=workflow, data=data(workflow))

    assert [problem.path for problem in caught.value.problems] == ["url"]
    ledger.lookup.refresh()
    assert len(ledger.lookup.list_threads()) == before


def test_a_workflow_without_inputs_takes_none(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(InvalidError) as caught:
        begin(ledger, tmp_path, inputs={"url": "x"})

    assert caught.value.hint == "inputs: it has none"


def test_a_role_gives_its_workflow_what_that_asks_for(
    ledger: Ledger, tmp_path: Path
) -> None:
    inner = replace(child(), inputs={"size": {"type": "integer"}})
    outer = line(
        "deliver",
        ("builder", replace(by("develop", BUILT), inputs={"size": 4}), "built"),
    )
    thread = start(ledger, tmp_path, outer, inner)
    replies = {
        "coder": [reply("coded", what="c")],
        "tester": [reply("built", what="t")],
    }

    Play(ledger, tmp_path, thread, replies).go()

    (made,) = children_of(ledger, thread)
    assert record_of(ledger, made).start.values == {"size": 4}
    check_thread(ledger.store, thread)
    check_thread(ledger.store, made)


def _given(values: dict[str, Any]) -> Any:  # noqa: ANN401 - a change
    def change(draft: Draft) -> None:
        node = make_node(JSON_TYPES["object"], values)
        old = draft.find(rf"\w+\.{JSON_TYPES['object']}\.json")
        del draft.files[old]
        draft.put_node(draft.path("nodes/start"), node)
        restart(draft, lambda payload: {**payload, "inputs": node.hash})

    return change


def _without(draft: Draft) -> None:
    del draft.files[draft.find(rf"\w+\.{JSON_TYPES['object']}\.json")]
    del draft.files[draft.find(rf"{JSON_TYPES['object']}\.\w+\.json")]
    restart(draft, lambda p: {key: p[key] for key in p if key != "inputs"})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param(_given({"url": "https://x"}), "inputs", id="no default filled in"),
        pytest.param(
            _given({**{k: v.get("default") for k, v in INPUTS.items()}, "url": 5}),
            "inputs",
            id="of another type",
        ),
        pytest.param(
            _given({**{k: v.get("default") for k, v in INPUTS.items()}, "x": 1}),
            "inputs",
            id="one that nothing declares",
        ),
        pytest.param(_without, "inputs", id="none at all"),
    ],
)
def test_forged_inputs_are_refused(
    ledger: Ledger,
    tmp_path: Path,
    change: Any,  # noqa: ANN401 - a change
    code: str,
) -> None:
    workflow = asking()
    thread = begin(
        ledger, tmp_path, workflow=workflow, data=data(workflow), inputs={"url": "x"}
    ).thread
    tip = forge(ledger.store, tip_of(ledger, thread), {0: change})

    report = verify_thread(ledger.store, tip, thread)

    assert code in {problem.code for problem in report.problems}, report.problems


def test_inputs_are_redacted_with_the_rest(ledger: Ledger, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    workflow = asking()
    thread = begin(
        ledger,
        tmp_path,
        workflow=workflow,
        data=data(workflow),
        inputs={"url": f"https://x/{token}"},
    ).thread

    environment = {"PATH": os.environ["PATH"]}
    done = redact_thread(ledger, thread, environment=environment, command="test")

    values = record_of(ledger, done.tip.thread).start.values
    assert values is not None
    assert token not in json.dumps(dict(values))
    check_thread(ledger.store, done.tip.thread)


def _file(
    tmp_path: Path, inputs: str, prompt: str = "Look at {{_inputs.url}}."
) -> Path:
    workflow = make_workflow()
    text = dump_yaml(workflow_document(workflow)).replace("Judge {{plan}}.", prompt)
    path = tmp_path / "work.yaml"
    path.write_text(f"{text}inputs:\n{inputs}")
    return path


@pytest.mark.parametrize(
    ("inputs", "prompt", "code"),
    [
        ("  url: 5\n", "x", "S3"),
        ("  url: true\n", "x", "S3"),
        ("  a-b: {type: string}\n", "x", "S7"),
        ("  url: {type: strin}\n", "x", "J1"),
        ("  key: {type: string, writeOnly: true}\n", "x", "J2"),
        ("  n: {type: integer, default: many}\n", "x", "J1"),
        ("  url: {type: string}\n", "{{_inputs.uri}}", "T2"),
        ("  url: {$ref: '#'}\n", "x", "J2"),
    ],
)
def test_rules_tell_what_is_wrong_with_inputs(
    tmp_path: Path, inputs: str, prompt: str, code: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        read_workflow(_file(tmp_path, inputs, prompt))

    found = {problem.code: problem for problem in caught.value.problems}
    assert code in found, found
    assert found[code].line is not None


def test_a_template_may_name_what_is_declared(tmp_path: Path) -> None:
    path = _file(tmp_path, "  url: {type: string}\n", "Judge {{_inputs.url}}.")

    workflow = read_workflow(path).workflow

    assert workflow.inputs == {"url": {"type": "string"}}
