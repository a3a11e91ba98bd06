"""What the rules see in whole files: several problems, and causes told once."""

from __future__ import annotations

import pytest

from tests.model.workflow_text import (
    GOOD,
    WORKER_NODE,
    WORKER_SCHEMA,
    change,
    check,
    expect,
    places_of,
    take_carets,
)
from uwfgit.model.rules.check import RULES
from uwfgit.model.yaml.core import parse_yaml
from uwfgit.model.yaml.cut_text import find_cuts

ROLE = """\
  NAME:
    description: x
    goal: x
    capabilities: []
    procedure: x
    output: x
    frontmatter: { properties: { $status: { const: done } }, required: [$status] }
"""


def add_role(text: str, name: str, *, target: str = "$END") -> str:
    """Give a file with another role and its node; carets mark the role."""
    role = ROLE.replace("NAME", name)
    bare = name.replace("‸", "")
    node = f"  {bare}:\n    done: {{ role: {target}, prompt: x }}\n"
    return text.replace("graph:\n", f"{role}graph:\n") + node


def lead_worker_to(text: str, role: str) -> str:
    return text.replace(
        'done: { role: $END, prompt: "Done', f'done: {{ role: {role}, prompt: "Done'
    )


def test_role_names_that_differ_in_case_only_are_refused() -> None:
    expect(lead_worker_to(add_role(GOOD, "‸Worker"), "Worker"), "S9")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("1st", id="digit-first"),
        pytest.param("a.b", id="dot"),
        pytest.param("rôle", id="not-ascii"),
        pytest.param("a" * 65, id="too-long"),
        pytest.param('"a b"', id="blank"),
        pytest.param('"a\\n"', id="line-break"),
    ],
)
def test_a_role_name_has_a_form(name: str) -> None:
    expect(lead_worker_to(add_role(GOOD, f"‸{name}"), name), "S7")


@pytest.mark.parametrize(
    "status",
    [
        pytest.param('" done"', id="blank-first"),
        pytest.param('""', id="empty"),
        pytest.param('"a\\tb"', id="control-character"),
        pytest.param("a" * 65, id="too-long"),
    ],
)
def test_a_status_has_a_form_and_is_told_once(status: str) -> None:
    text = change("const: done", f"const: {status}")
    text = text.replace("    done: {", f"    ‸{status}: {{")
    text, ((line, column),) = take_carets(text)

    assert places_of(check(text)) == [("S8", line, column)]


def test_a_status_of_a_schema_alone_has_a_form() -> None:
    text = change("const: blocked", 'const: ‸"blocked "')
    text = text.replace("  planner:\n    ready", "  ‸planner:\n    ready")
    text = text.replace("    blocked: {", "    ‸blocked: {")
    text, places = take_carets(text)

    assert places_of(check(text)) == [("S8", *places[0]), ("C4", *places[2])]


def test_roles_that_nothing_leads_to_are_told_with_what_they_lead_to() -> None:
    text = add_role(GOOD, "‸lost", target="behind")
    text = add_role(text, "behind")
    text, ((line, column),) = take_carets(text)

    (problem,) = check(text)

    assert (problem.code, problem.line, problem.column) == ("G7", line, column)
    assert "'behind'" in problem.message


def test_a_circle_that_nothing_leads_to_is_one_problem() -> None:
    expect(add_role(GOOD, "‸lost", target="lost"), "G7")


def test_a_circle_without_a_way_out_is_a_warning() -> None:
    text = lead_worker_to(GOOD, "worker").replace(
        "  worker:\n    done", "  ‸worker:\n    done"
    )
    text, ((line, column),) = take_carets(text)

    (problem,) = check(text)

    assert (problem.code, problem.line, problem.column) == ("G8", line, column)
    assert problem.severity == "warning"


def test_error_as_a_status_is_a_warning() -> None:
    text = change("const: done", "const: ‸error").replace("    done: {", "    error: {")
    text, ((line, column),) = take_carets(text)

    (problem,) = check(text)

    assert (problem.code, problem.severity) == ("C8", "warning")
    assert (problem.line, problem.column) == (line, column)


def test_suspend_among_other_statuses_is_one_problem() -> None:
    expect(
        change(
            "          required: [$status]\n",
            "          required: [$status]\n"
            "        - properties: { $status: { const: ‸$SUSPEND } }\n"
            "          required: [$status]\n",
        ),
        "C8",
    )


def test_all_problems_are_told_together_in_order() -> None:
    text = change("goal: Plan.", "goal: ‸1").replace("{ role: worker,", "{ role: ‸x,")
    text = text.replace("Done: {{files}}", "Done: ‸{{fils}}")
    text = text.replace("name: solve", "name: ‸other")

    expect(text, "S6", "S3", "G6", "T2")


def test_a_value_that_cannot_be_read_is_told_once_and_the_rest_is_checked() -> None:
    text = change(
        "frontmatter:\n      type: object", "frontmatter: ‸!no\n      type: object"
    )
    text = text.replace("{ role: worker,", "{ role: ‸wroker,")

    expect(text, "Y5", "G6")


def test_a_shared_schema_is_told_once() -> None:
    text = GOOD.replace(
        "    frontmatter:\n      type", "    frontmatter: &s\n      type"
    )
    text = lead_worker_to(add_role(text, "other"), "other")
    own = ROLE[ROLE.index("    frontmatter") :]
    text = text.replace(own, "    frontmatter: *s\n")
    text = text.replace("files: { type", "files: { format: ‸odd, type")

    expect(text, "J4")


def test_a_list_node_is_checked_by_its_shape_only() -> None:
    node = """\
  worker:
    - { role: planner, when: "$count(steps) < 3", prompt: "Again: {{files}}" }
    - { role: $END, when: null, prompt: Done., location: null }
"""
    text = change(WORKER_NODE, node).replace("$status: { const: done }", "$status: {}")

    expect(text)


@pytest.mark.parametrize(
    ("code", "node"),
    [
        pytest.param("S12", "  worker: ‸[]\n", id="empty-list"),
        pytest.param("S1", "  worker:\n    - ‸prompt: x\n", id="no-role"),
        pytest.param(
            "S1", "  worker:\n    - {role: $END, ‸promt: x}\n", id="misspelt-prompt"
        ),
        pytest.param(
            "S3", "  worker:\n    - {role: $END, prompt: x, when: ‸1}\n", id="when"
        ),
        pytest.param("G6", "  worker:\n    - {role: ‸lost, prompt: x}\n", id="target"),
        pytest.param("S3", "  worker:\n    - ‸planner\n", id="text-for-a-target"),
        pytest.param(
            "T2", "  worker:\n    - {role: $END, prompt: 'a ‸{{b}}'}\n", id="variable"
        ),
        pytest.param(
            "L1",
            "  worker:\n    - {role: $END, prompt: x, condition: ‸y}\n",
            id="named-condition",
        ),
    ],
)
def test_a_list_node_has_a_shape(code: str, node: str) -> None:
    expect(change(WORKER_NODE, node), code)


def test_each_older_form_is_told_once() -> None:
    text = GOOD.replace("    frontmatter:", "    meta:").replace(
        "    meta:", "    ‸meta:", 1
    )

    expect(text, "L1")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("# only a comment\n", id="comment"),
        pytest.param("- a\n", id="list"),
        pytest.param("text", id="text"),
    ],
)
def test_a_document_that_is_no_mapping_is_one_problem(text: str) -> None:
    assert [each.code for each in check(text)] == ["S3"]


def test_roles_and_graph_of_the_wrong_type_are_one_problem_each() -> None:
    text = GOOD[: GOOD.index("roles:")] + "roles: ‸[]\ngraph: ‸1\n"

    expect(text, "S3", "S3")


def test_a_workflow_needs_a_role() -> None:
    text = GOOD[: GOOD.index("roles:")] + (
        "‸roles: {}\ngraph: {$START: {new: &e {role: $END, prompt: x}, resume: *e}}\n"
    )

    expect(text, "S12")


def test_inputs_are_schemas() -> None:
    text = GOOD + "inputs:\n  a: ‸1\n  b: { type: ‸lost }\n  c: ‸true\n"

    expect(text, "S3", "J1", "S3")


def test_a_place_in_a_block_is_that_of_the_tag() -> None:
    text = change(
        'ready: { role: worker, prompt: "Do {{plan}}." }',
        "ready:\n      role: worker\n      prompt: |\n        Do {{plan}},\n\n"
        "          then ‸{{lost}}.\n",
    )

    expect(text, "T2")


def test_a_name_from_the_file_cannot_break_the_line_of_a_message() -> None:
    (problem,) = check(change("name: solve", 'name: "a\\nb\\e[31m"'))

    assert problem.message == "name 'a\\nb\\x1b[31m' has the wrong form"


def test_every_code_is_documented() -> None:
    assert all(line and not line.endswith(".") for line in RULES.values())


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(
            "{ allOf: [ { properties: { $status: { const: done } } }, "
            "{ properties: { files: {} } } ], required: [$status, files] }",
            id="all-of",
        ),
        pytest.param(
            "{ properties: { files: {} }, required: [$status, files], "
            "anyOf: [ { properties: { $status: { const: done } } } ] }",
            id="any-of-with-shared-properties",
        ),
        pytest.param(
            "{ properties: { $status: { const: done }, files: {} }, "
            "required: [$status, files], "
            "oneOf: [ { properties: { a: {} } }, { properties: { b: {} } } ] }",
            id="alternatives-beside-the-status",
        ),
        pytest.param(
            "{ allOf: [ { oneOf: [ { properties: { $status: { const: done }, "
            "files: {} }, required: [$status, files] } ] } ] }",
            id="one-of-in-all-of",
        ),
        pytest.param(
            "{ properties: { $status: { const: done } }, required: [$status], "
            "additionalProperties: true }",
            id="open-schema-declares-everything",
        ),
        pytest.param(
            "{ properties: { $status: { const: done } }, required: [$status, files], "
            "patternProperties: { ^fi: {} } }",
            id="pattern-declares-names",
        ),
    ],
)
def test_schemas_that_fix_the_status_in_other_ways(schema: str) -> None:
    text = change(WORKER_SCHEMA, f"      {schema}\n")

    assert [each for each in check(text) if each.severity == "error"] == []


@pytest.mark.slow
def test_a_schema_that_cannot_be_checked_in_time_is_one_problem() -> None:
    endless = "a" * 60 + "_"
    text = GOOD.replace("Done: {{files}}", f"Done: {{{{{endless}}}}}").replace(
        "      required: [$status, files]\n",
        '      required: [$status]\n      patternProperties: { "^(a|a)*$": {} }\n',
    )

    [problem] = check(text)

    assert (problem.code, problem.path) == ("J1", "roles")
    assert problem.message == (
        "a schema takes more than 5 seconds to check against "
        "'patternProperties' \"^(a|a)*$\""
    )


def test_of_many_roles_that_nothing_leads_to_each_is_told_alone() -> None:
    names = [f"r{number}" for number in range(150)]
    roles = "".join(f"  {name}: {{}}\n" for name in names)
    chain = zip(names, [*names[1:], "$END"], strict=True)
    edges = "".join(f"  {a}: {{ done: {{ role: {b} }} }}\n" for a, b in chain)
    start = "  $START: { new: { role: $END } }\n"

    found = check(f"roles:\n{roles}graph:\n{start}{edges}")

    lost = [each.message for each in found if each.code == "G7"]
    assert lost == [f"role '{name}' cannot be reached from $START" for name in names]


def test_a_value_of_a_start_prompt_is_told_once_whatever_is_read_of_it() -> None:
    many = "{{repo.name}} {{repo.name}} {{repo.owner}}"

    found = check(change("prompt: Plan it.", f'prompt: "{many}"'))

    assert [each.code for each in found] == ["T4"]


def test_many_names_in_a_start_prompt_are_checked_in_time() -> None:
    many = "".join(f"{{{{a{number}}}}}" for number in range(50_000))

    found = check(change("prompt: Plan it.", f'prompt: "{many}"'))

    assert {each.code for each in found} == {"T4"}


def test_what_follows_a_value_is_told_once_however_many_aliases_name_it() -> None:
    aliases = ", ".join(["*goal"] * 1_000)

    text = change("goal: Work.", f"goal: &goal Fix #12\n    x-a: [{aliases}]")

    found = check(text)

    assert [each.code for each in found] == ["Y16"]
    assert len(list(find_cuts(parse_yaml(text).mark))) == 1
