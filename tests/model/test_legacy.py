"""Older forms alone and combined: each is one warning, read as if migrated."""

from __future__ import annotations

import time
from itertools import combinations

import pytest

from tests.model.older_text import (
    LISTS,
    OF_LISTS,
    OF_STATUSES,
    STATUSES,
    Edit,
    make_older,
    normalise,
    older,
    value_of,
)
from tests.model.workflow_text import GOOD, WORKER_NODE, change, check, places_of
from uwfgit.model.legacy.read import normalise_document
from uwfgit.model.workflow.pinned import workflow_from_document
from uwfgit.model.workflow.workflow import Choice
from uwfgit.model.yaml.core import parse_yaml

_CLASHES = ({"conditions", "rules"}, {"prompts", "rules"})


def _sets(edits: tuple[Edit, ...]) -> list[tuple[Edit, ...]]:
    """Give each edit alone, all pairs, and as many as go together."""
    found = [(edit,) for edit in edits] + list(combinations(edits, 2))
    whole: list[Edit] = []
    for edit in edits:
        if not _clash((*whole, edit)):
            whole.append(edit)
    found = [each for each in found if not _clash(each)]
    return [*found, tuple(whole)]


def _clash(edits: tuple[Edit, ...]) -> bool:
    names = {edit.name for edit in edits}
    return any(clash <= names for clash in _CLASHES)


CASES = [
    pytest.param(text, edits, id="+".join(edit.name for edit in edits))
    for text, forms in ((STATUSES, OF_STATUSES), (LISTS, OF_LISTS))
    for edits in _sets(forms)
    if edits
]


@pytest.mark.parametrize("text", [STATUSES, LISTS], ids=["statuses", "lists"])
def test_a_current_file_stays_as_it_is(text: str) -> None:
    found = normalise(text)

    assert check(text) == ()
    assert not found.is_older
    assert found.doc.value == value_of(text)


@pytest.mark.parametrize(("text", "edits"), CASES)
def test_older_forms_are_read_as_if_migrated(
    text: str, edits: tuple[Edit, ...]
) -> None:
    written = make_older(text, *edits)

    found = normalise(written)

    assert value_of(written) != value_of(text)
    if edits == (next(e for e in OF_STATUSES if e.name == "version"),):
        assert not found.is_older
        return
    assert found.doc.value == value_of(text)
    assert {p.severity for p in found.problems} == {"warning"}


@pytest.mark.parametrize(("text", "edits"), CASES)
def test_older_forms_are_warnings_and_nothing_else(
    text: str, edits: tuple[Edit, ...]
) -> None:
    problems = check(make_older(text, *edits))

    expected = {"S10"} if [e.name for e in edits] == ["version"] else {"L1"}
    assert {problem.code for problem in problems} == expected
    assert all(problem.severity == "warning" for problem in problems)
    assert all(problem.hint for problem in problems)


@pytest.mark.parametrize(("text", "edits"), CASES)
def test_normalising_twice_changes_nothing(text: str, edits: tuple[Edit, ...]) -> None:
    once = normalise(make_older(text, *edits)).doc

    again = normalise_document(once)

    assert again.doc is once
    assert not again.is_older


SUSPENDING = STATUSES.replace(
    'failed: { role: $END, prompt: "No: {{why}}" }',
    'failed: { role: $SUSPEND, prompt: "Say: {{why}}" }',
)


def test_an_edge_to_suspend_becomes_a_sentence_of_the_output() -> None:
    found = normalise(SUSPENDING)
    workflow = workflow_from_document(found.doc)

    planner = workflow.roles["planner"]
    assert set(workflow.graph["planner"]) == {"ready"}
    assert planner.output == (
        "The plan.\n\nIn the case of `failed`, answer with `$status: $SUSPEND` and "
        "a `reason` instead: Say: <why>\n"
    )
    assert [v["properties"]["$status"] for v in planner.schema["oneOf"]] == [
        {"const": "ready"}
    ]
    assert {p.code for p in check(SUSPENDING)} == {"L1"}


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        pytest.param(
            "properties: { $status: { enum: [done, wait] } }",
            {"properties": {"$status": {"enum": ["done"]}}, "required": ["$status"]},
            id="enum",
        ),
        pytest.param(
            "anyOf: [ { properties: { $status: { const: done } } }, "
            "{ properties: { $status: { const: wait } } } ]",
            {
                "anyOf": [{"properties": {"$status": {"const": "done"}}}],
                "required": ["$status"],
            },
            id="any-of",
        ),
    ],
)
def test_a_status_that_suspended_leaves_the_schema(
    schema: str, left: dict[str, object]
) -> None:
    text = GOOD[: GOOD.index("      type: object\n")] + (
        f"      {schema.replace(': ', ':§', 1).replace('§', ' ')}\n"
        "      required: [$status]\n"
    )
    text += GOOD[GOOD.index("graph:") : GOOD.index(WORKER_NODE)] + (
        "  worker:\n    done: { role: $END, prompt: x }\n"
        "    wait: { role: $SUSPEND, prompt: x }\n"
    )

    assert normalise(text).doc.value["roles"]["worker"]["frontmatter"] == left


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(
            "    goal: Plan.", "    goal: Plan.\n    systemPrompt: x", "goal", id="goal"
        ),
        pytest.param(
            "    goal: Plan.\n    capabilities: [planning]\n    procedure: Think.\n",
            "    systemPrompt: x\n    identity: x\n",
            "beside 'identity'",
            id="two-generations-of-texts",
        ),
        pytest.param(
            "    goal: Plan.\n    capabilities: [planning]\n    procedure: Think.\n"
            "    output: The plan.\n",
            "    identity: x\n    prepare: [a]\n    execute: b\n    report: c\n",
            "not both text",
            id="phase-that-is-no-text",
        ),
        pytest.param(
            "    frontmatter:\n      type",
            "    meta: {}\n    frontmatter:\n      type",
            "'meta' stands beside",
            id="two-schemas",
        ),
        pytest.param(
            "    done: { role: $END",
            "    done: { role: $SUSPEND",
            "can only lead to",
            id="only-suspends",
        ),
        pytest.param(
            "    blocked: { role: $END",
            "    _: { role: $END",
            "beside other edges",
            id="unit-beside-another",
        ),
        pytest.param(
            "graph:\n", "rules: []\ngraph:\n", "'rules' stands beside", id="two-graphs"
        ),
        pytest.param(
            GOOD[GOOD.index("graph:") :],
            "rules: [{from: __start__}]\n",
            "no 'to'",
            id="rule-without-target",
        ),
        pytest.param(
            GOOD[GOOD.index("graph:") :],
            "rules: [{from: __start__, to: planner, if: x}]\n",
            "'if', which is not known",
            id="rule-with-another-field",
        ),
        pytest.param(
            "graph:\n", "conditions: [a]\ngraph:\n", "not a mapping", id="conditions"
        ),
        pytest.param(
            "graph:\n",
            "conditions: {a: {description: x}}\ngraph:\n",
            "'a' has no expression",
            id="condition-without-expression",
        ),
        pytest.param(
            "prompt: Blocked. }",
            "prompt: Blocked., condition: a }",
            "has a condition",
            id="condition-of-a-status",
        ),
        pytest.param(
            WORKER_NODE,
            "  worker: [{role: $END, prompt: x, when: a, condition: null}]\n",
            "beside 'when'",
            id="two-conditions",
        ),
    ],
)
def test_what_cannot_be_normalised_is_one_error_that_names_it(
    old: str, new: str, words: str
) -> None:
    errors = [p for p in check(change(old, new)) if p.severity == "error"]

    assert [p.code for p in errors] == ["L1"]
    assert words in errors[0].message
    assert errors[0].hint


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "files: { type: array, items: { type: string } }",
            "files: { type: array, items: { type: string } }\n"
            "        status: { type: string }",
            id="a-field-of-that-name",
        ),
        pytest.param("prompt: Blocked.", "prompt: x by default", id="the-word-default"),
        pytest.param("procedure: Think.", 'procedure: "{% if x %}"', id="no-template"),
        pytest.param(
            WORKER_NODE,
            "  worker: [{role: $END, prompt: x}]\n",
            id="a-list-without-conditions",
        ),
    ],
)
def test_what_only_looks_old_is_left_alone(old: str, new: str) -> None:
    text = change(old, new)

    assert not normalise(text).is_older
    assert check(text) == ()


def test_a_list_role_keeps_a_status_of_any_text() -> None:
    text = LISTS.replace("approved: { type: boolean }", "status: { type: string }")

    assert not normalise(text).is_older


def test_a_problem_of_an_older_file_is_told_where_it_stands() -> None:
    text = older("meta", "output-schema", "phases", "system-prompt", "liquid")
    broken = text.replace("- {{ each.title }}", "- {{ each.titel }}")
    line = broken.splitlines().index(
        "        {% for each in steps %}- {{ each.titel }}"
    )

    errors = [p for p in check(broken) if p.severity == "error"]

    assert places_of(tuple(errors)) == [("T2", line + 1, 34)]


def test_a_type_error_of_an_older_field_is_told_where_it_stands() -> None:
    broken = older("phases").replace(
        "    report: |\n      The plan.\n", "    report: [1]\n"
    )
    line = broken.splitlines().index("    report: [1]")

    errors = [p for p in check(broken) if p.severity == "error"]

    assert places_of(tuple(errors)) == [("S3", line + 1, 13)]


def test_rules_without_a_way_out_end() -> None:
    text = older("rules")
    text = text.replace("  - { from: reviewer, to: __end__, prompt: Done. }\n", "")
    text = text.replace("  - { from: coder, to: reviewer }\n", "")

    workflow = workflow_from_document(normalise(text).doc)

    end = Choice(role="$END", prompt="Continue with your part of the task.")
    assert isinstance(workflow.graph["coder"], tuple)
    assert isinstance(workflow.graph["reviewer"], tuple)
    assert workflow.graph["coder"][-1] == end
    assert workflow.graph["reviewer"][-1] == end


def test_a_role_that_no_rule_names_ends() -> None:
    text = older("rules")
    text = text[: text.index("  - from: reviewer")]

    workflow = workflow_from_document(normalise(text).doc)

    assert workflow.graph["reviewer"] == (
        Choice(role="$END", prompt="Continue with your part of the task."),
    )


def test_the_only_status_of_a_schema_names_the_only_edge() -> None:
    text = change("    done: {", "    _: {").replace("const: done", "const: finished")

    assert list(normalise(text).doc.value["graph"]["worker"]) == ["finished"]


def test_a_status_of_any_text_becomes_that_of_the_only_edge() -> None:
    text = change("$status: { const: done }", "status: { type: string }")

    schema = normalise(text).doc.value["roles"]["worker"]["frontmatter"]

    assert schema["properties"]["$status"] == {"type": "string", "const": "done"}
    assert {p.code for p in check(text)} == {"L1"}


def test_no_version_is_no_warning_of_its_own_in_an_older_file() -> None:
    text = older("meta").replace("version: 1\n", "")

    assert [p.code for p in check(text)] == ["L1"]


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param("{ oneOf: [{ type: 5 }] }", id="a number as type"),
        pytest.param("{ anyOf: [{ type: null }] }", id="no type"),
        pytest.param("{ properties: { a: { type: 5 } } }", id="of a property"),
    ],
)
def test_a_schema_that_is_none_is_told_of_an_older_form_too(schema: str) -> None:
    text = f"""\
roles:
  worker:
    frontmatter: {schema}
graph:
  worker:
    _: {{ role: $END, prompt: "{{% for x in a.b %}}{{{{x.c}}}}{{% endfor %}}" }}
"""

    found = check(text)

    assert "J1" in {each.code for each in found}


def test_many_edges_to_suspend_are_taken_out_in_time() -> None:
    names = [f"s{number}" for number in range(4_000)]
    edges = "".join(f"    {name}: {{ role: $SUSPEND, prompt: x }}\n" for name in names)
    text = f"""\
roles:
  worker:
    output: Say it.
    frontmatter:
      properties: {{ $status: {{ enum: [{", ".join(names)}, done] }} }}
graph:
  worker:
    done: {{ role: $END, prompt: x }}
{edges}"""
    doc = parse_yaml(text)
    before = time.process_time()

    found = normalise_document(doc).doc.value

    # By the square of their number it took minutes.
    assert time.process_time() - before < 3
    worker = found["roles"]["worker"]
    assert worker["frontmatter"]["properties"] == {"$status": {"enum": ["done"]}}
    assert list(found["graph"]["worker"]) == ["done"]
    assert worker["output"].count("\n\n") == len(names)
