"""Migration edits the text: it means the same, and looks the same elsewhere."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.model.older_text import (
    LISTS,
    OF_STATUSES,
    STATUSES,
    Edit,
    make_older,
    normalise,
    older,
    value_of,
)
from tests.model.test_legacy import CASES, SUSPENDING
from tests.model.test_rules_good import mutate
from tests.model.workflow_text import check
from uwfgit.engine.decide.conditions import evaluate
from uwfgit.engine.decide.moderator import Routed, RoutingError, route
from uwfgit.errors import InvalidError, WorkflowError
from uwfgit.model.legacy.read import normalise_document
from uwfgit.model.workflow.migrate import (
    Migration,
    migrate_file,
    migrate_text,
    write_migrated,
)
from uwfgit.model.workflow.source import check_workflow_file, read_workflow
from uwfgit.model.workflow.workflow import Edges, Workflow
from uwfgit.model.yaml.core import read_yaml
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.canonical import Json

ALL_STATUSES: Final = make_older(STATUSES, *OF_STATUSES)
ALL_LISTS: Final = older("capabilities", "plain-status", "conditions", "prompts")
ALL_RULES: Final = older("capabilities", "rules", "plain-status")


def migrate(text: str) -> Migration:
    return migrate_text(text.encode(), file="solve.yaml")


def comments(text: str) -> list[str]:
    return re.findall(r"(?:^|(?<=\s))# .*$", text, re.MULTILINE)


@pytest.mark.parametrize(("text", "edits"), CASES)
def test_a_migrated_file_is_current_and_means_the_same(
    text: str, edits: tuple[Edit, ...]
) -> None:
    migration = migrate(make_older(text, *edits))

    assert migration.problems == ()
    assert value_of(migration.text) == value_of(text)
    assert check(migration.text) == ()


_KEPT: Final = [
    "# Conditions, which stand where they are used:",
    "#   rejected: The reviewer said no",
    "#   again: steps[-1].output.status = 'more'",
]


@pytest.mark.parametrize(("text", "edits"), CASES)
def test_comments_survive(text: str, edits: tuple[Edit, ...]) -> None:
    written = make_older(text, *edits)
    made = _KEPT if "\nconditions:\n" in written else []

    found = comments(migrate(written).text)

    assert sorted(found) == sorted([*comments(written), *made])


@pytest.mark.parametrize(("text", "edits"), CASES)
def test_migrating_twice_changes_nothing(text: str, edits: tuple[Edit, ...]) -> None:
    once = migrate(make_older(text, *edits))
    twice = migrate(once.text)

    assert once.changes
    assert twice.text == once.text
    assert twice.changes == ()


@pytest.mark.parametrize("text", [STATUSES, LISTS], ids=["statuses", "lists"])
def test_a_current_file_stays_byte_for_byte(text: str) -> None:
    assert migrate(text).text == text


@pytest.mark.parametrize(
    "edits",
    [pytest.param((edit,), id=edit.name) for edit in OF_STATUSES[:2]]
    + [pytest.param(tuple(e for e in OF_STATUSES if e.name == "unit"), id="unit")],
)
def test_a_renamed_key_is_the_only_thing_that_changes(edits: tuple[Edit, ...]) -> None:
    assert migrate(make_older(STATUSES, *edits)).text == STATUSES


def test_lines_that_need_no_change_stay_as_they_are() -> None:
    text = migrate(older("phases", "system-prompt")).text

    lines = text.splitlines()
    lines.remove("    # then")
    assert lines == STATUSES.splitlines()


# --- the same routes ---


def _outputs(workflow: Workflow, role: str) -> Iterator[dict[str, Json]]:
    """Make up outputs of a role: its statuses, with and without other fields."""
    edges = workflow.graph[role]
    statuses = list(edges) if isinstance(edges, Mapping) else ["more", "ready", "x"]
    for status in statuses:
        yield {"$status": status}
        yield {
            "$status": status,
            "plan": "P",
            "note": "N",
            "steps": [{"title": "a"}, {"title": "b"}],
            "why": "W",
            "summary": "S",
            "approved": status == "more",
        }


def _walk(workflow: Workflow) -> list[Routed | RoutingError]:
    found = []
    for role in sorted(workflow.graph):
        for output in _outputs(workflow, role):
            step = {"role": role, "output": {**output, "status": output["$status"]}}
            context: dict[str, Json] = {"steps": [step]}
            found.append(
                route(
                    workflow.graph,
                    role,
                    output,
                    injected={},
                    evaluate=lambda text, context=context: evaluate(text, context),  # type: ignore[misc] # bound at once
                )
            )
    return found


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ALL_STATUSES, id="statuses"),
        pytest.param(ALL_LISTS, id="lists"),
        pytest.param(ALL_RULES, id="rules"),
        pytest.param(SUSPENDING, id="suspending"),
    ],
)
def test_an_older_file_and_its_migration_route_the_same(
    text: str, tmp_path: Path
) -> None:
    path = tmp_path / "solve.yaml"
    path.write_text(text, encoding="utf-8")
    before = read_workflow(path).workflow
    write_migrated(path, migrate_file(path))
    current = read_workflow(path).workflow

    assert check_workflow_file(path) == ()
    assert current == before
    routes = _walk(before)
    assert _walk(current) == routes
    assert {each.role for each in routes if isinstance(each, Routed)} >= {"$END"}


def test_rules_lead_where_they_led(tmp_path: Path) -> None:
    path = tmp_path / "solve.yaml"
    path.write_text(ALL_RULES, encoding="utf-8")
    graph: Mapping[str, Edges] = read_workflow(path).workflow.graph

    def go(role: str, **output: Json) -> str:
        step = {"role": role, "output": output}
        found = route(
            graph,
            role,
            output,
            injected={},
            evaluate=lambda text: evaluate(text, {"steps": [step]}),
        )
        assert isinstance(found, Routed)
        return found.role

    assert go("$START") == "coder"
    assert go("coder", status="more") == "coder"
    assert go("coder", status="ready") == "reviewer"
    assert go("reviewer", approved=False) == "coder"
    assert go("reviewer", approved=True) == "$END"


# --- other layouts ---


def _styles(value: Json) -> Iterator[tuple[str, str]]:
    yield "block", dump_yaml(value)
    yield "json", json.dumps(value)
    yield "json-lines", json.dumps(value, indent=2)
    for name, options in {
        "indentless": {"width": 50},
        "flow": {"default_flow_style": True, "width": 50},
        "mixed": {"default_flow_style": None, "width": 500},
        "folded": {"default_style": ">"},
        "double": {"default_style": '"'},
        "single": {"default_style": "'"},
        "wide": {"indent": 6},
    }.items():
        yield name, str(yaml.safe_dump(value, sort_keys=False, **options))  # type: ignore[arg-type] # a table
    yield "crlf", dump_yaml(value).replace("\n", "\r\n")
    yield "bom", "\ufeff" + dump_yaml(value)
    yield "no-last-break", dump_yaml(value).rstrip("\n")


@pytest.mark.parametrize(
    ("style", "text"),
    [
        pytest.param(style, text, id=f"{name}-{style}")
        for name, written in (
            ("statuses", ALL_STATUSES),
            ("lists", ALL_LISTS),
            ("rules", ALL_RULES),
            ("suspending", SUSPENDING),
        )
        for style, text in _styles(value_of(written))
    ],
)
def test_any_layout_can_be_migrated(style: str, text: str) -> None:
    migration = migrate(text)

    assert migration.problems == ()
    assert value_of(migration.text) == normalise(text).doc.value
    assert migrate(migration.text).text == migration.text
    assert migration.text.startswith("\ufeff") is (style == "bom")
    if style == "crlf":
        assert "\n" not in migration.text.replace("\r\n", "")


def test_lines_that_are_not_migrated_end_as_they_did() -> None:
    lines = SUSPENDING.splitlines()
    ends = ["\r\n" if at % 3 else "\n" for at in range(len(lines))]
    text = "".join(map(str.__add__, lines, ends))

    after = migrate(text).text.splitlines(keepends=True)

    before = text.splitlines(keepends=True)
    plain = [line.rstrip() for line in after]
    same = SequenceMatcher(None, lines, plain).get_matching_blocks()
    assert sum(each.size for each in same) > len(lines) / 2
    for start, at, size in same:
        assert after[at : at + size] == before[start : start + size]


ANCHORS = """\
name: solve
roles:
  a:
    meta: &s
      properties: { status: { const: x }, n: {} }
      required: [status]
  b: { meta: *s }
  c: { frontmatter: *s }
graph:
  a: { x: { role: b, prompt: x } }
  b: { x: { role: c, prompt: x } }
  c:
    - { role: $END, prompt: x }
"""


def test_what_an_anchor_shares_is_edited_once() -> None:
    migration = migrate(ANCHORS)

    assert migration.problems == ()
    assert "b: { frontmatter: *s }" in migration.text
    assert value_of(migration.text) == normalise(ANCHORS).doc.value


def test_what_an_anchor_shares_is_written_out_where_it_differs() -> None:
    text = ANCHORS.replace("status: { const: x }, ", "").replace("[status]", "[n]")
    text = text.replace("b: { x:", "b: { other:")

    migration = migrate(text)

    assert migration.problems == ()
    assert "const: other" in migration.text
    assert value_of(migration.text) == normalise(text).doc.value


def test_a_comment_inside_a_removed_value_stays_above() -> None:
    text = older("conditions")

    migrated = migrate(text).text

    assert "# someone said no\ngraph:\n" in migrated
    assert "    - role: $END\n      # else\n      prompt: Done.\n" in migrated


def test_a_hash_sign_in_a_text_is_no_comment() -> None:
    text = older("conditions")
    text = text.replace(
        "description: The reviewer said no", "description: |\n      # no\n      'a # b'"
    )

    migrated = migrate(text).text

    assert "#   rejected: # no 'a # b'\n" in migrated
    assert "\n      # no\n" not in migrated


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ('{enum: ["_"]}', '{enum: ["done"]}'),
        ('{const: "_"}', '{const: "done"}'),
        ("{type: string, const: _, default: _}", None),
    ],
)
def test_a_unit_status_that_the_schema_names_is_named_in_both(
    schema: str, named: str | None
) -> None:
    text = older("unit", "start").replace("{ const: done }", schema)
    assert schema in text

    migration = migrate(text)

    assert migration.problems == ()
    assert check(migration.text) == ()
    assert named is None or named in migration.text
    assert migrate(migration.text).changes == ()


def test_a_condition_nobody_uses_is_not_lost() -> None:
    text = older("conditions").replace(
        "graph:\n",
        '  spare: "1 = 2"\n  told: { description: "a\\tb", expression: x }\ngraph:\n',
        1,
    )

    migrated = migrate(text).text

    assert "#   spare: 1 = 2\n#   told: a b\n" in migrated


def test_a_place_in_the_text_before_is_told_though_comments_came() -> None:
    text = older("conditions")

    told = next(c for c in migrate(text).changes if c.form == "'conditions'")

    assert text.split("\n")[told.place.line - 1] == "conditions:"


def test_a_prompt_of_nothing_is_a_missing_one() -> None:
    text = older("prompts").replace(
        "role: reviewer }", "role: reviewer, prompt: null }"
    )
    assert "prompt: null" in text

    migration = migrate(text)

    assert migration.problems == ()
    assert check(migration.text) == ()
    assert value_of(migration.text) == value_of(LISTS)


def test_an_old_name_of_the_body_is_the_body() -> None:
    text = STATUSES.replace("No: {{why}}", "No: {{ $body }} {{{$body}}}")
    assert "$body" in text

    migration = migrate(text)

    assert "{{ _body }} {{{_body}}}" in migration.text
    assert [change.form for change in migration.changes] == ["'$body' in a template"]
    assert check(migration.text) == ()


# --- what cannot be done ---


def test_what_cannot_be_normalised_is_named_and_the_rest_is_done() -> None:
    text = older("meta").replace("    failed: { role", "    _: { role")

    migration = migrate(text)

    assert [p.code for p in migration.problems] == ["L1"]
    assert "beside other edges" in migration.problems[0].message
    assert "    frontmatter:\n      oneOf" in migration.text


def test_an_older_form_in_an_included_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "solve.yaml"
    text = older("meta", "status")
    at = text.index("    meta:\n") + len("    meta:")
    end = text.index("\n  worker:")
    schema = text[at:end]
    path.write_text(f"{text[:at]} !include s.yaml\n{text[end:]}", encoding="utf-8")
    (tmp_path / "s.yaml").write_text(schema, encoding="utf-8")

    migration = migrate_file(path)
    write_migrated(path, migration)

    assert len(migration.problems) == 1
    assert "s.yaml" in migration.problems[0].message
    assert "by hand: write '$status'" in str(migration.problems[0].hint)
    assert [change.form for change in migration.changes] == ["'meta'"]
    assert "    frontmatter: !include s.yaml\n" in migration.text
    told = check_workflow_file(path)
    assert {p.code for p in told} == {"L1"}
    assert all("workflow migrate" not in str(p.hint) for p in told)
    assert migrate_file(path).text == migration.text


def test_included_texts_that_are_joined_are_written_out(tmp_path: Path) -> None:
    path = tmp_path / "solve.yaml"
    path.write_text(
        older("phases").replace(
            "prepare: |\n      Read.\n", "prepare: !include p.md\n"
        ),
        encoding="utf-8",
    )
    (tmp_path / "p.md").write_text("Read.\n", encoding="utf-8")

    write_migrated(path, migrate_file(path))

    assert check_workflow_file(path) == ()
    assert "!include" not in path.read_text("utf-8")
    assert read_workflow(path).workflow.roles["planner"].procedure == (
        "Read.\n\n# Think\nPlan.\n"
    )


def test_an_included_text_keeps_its_include(tmp_path: Path) -> None:
    path = tmp_path / "solve.yaml"
    text = older("system-prompt").replace('"You work."', "!include w.md")
    path.write_text(text, encoding="utf-8")
    (tmp_path / "w.md").write_text("You work.\n", encoding="utf-8")

    write_migrated(path, migrate_file(path))

    assert "    goal: !include w.md\n" in path.read_text("utf-8")
    assert check_workflow_file(path) == ()


def test_a_file_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(WorkflowError) as raised:
        migrate("a: [\n")

    assert raised.value.problems[0].code == "Y1"


@pytest.mark.parametrize("text", ["", "- a\n", "text\n"])
def test_a_file_that_is_no_workflow_is_left_alone(text: str) -> None:
    assert migrate(text).text == text


def test_an_empty_mapping_can_be_filled() -> None:
    assert migrate("{}\n").text == "{ version: 1 }\n"


# --- the file ---


def test_writing_keeps_the_mode_and_follows_a_symlink(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_text(ALL_STATUSES, encoding="utf-8")
    real.chmod(0o640)
    link = tmp_path / "solve.yaml"
    link.symlink_to(real)

    write_migrated(link, migrate_file(link))

    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert check_workflow_file(link) == ()
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_file()) == [
        "real.yaml",
        "solve.yaml",
    ]


def test_an_older_file_is_kept_as_the_current_document(tmp_path: Path) -> None:
    path = tmp_path / "solve.yaml"
    path.write_text(ALL_STATUSES, encoding="utf-8")

    data = read_workflow(path).data.decode()

    assert data.startswith("# Written by uwf: older forms resolved from solve.yaml\n")
    assert value_of(data) == value_of(STATUSES)


@pytest.mark.parametrize("seed", range(6))
def test_nothing_in_an_older_file_raises_anything_but_invalid_input(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a fixed walk, no secret
    lines = [
        [line for line in text.splitlines(keepends=True) if line.strip()]
        for text in (ALL_STATUSES, ALL_LISTS, ALL_RULES, ANCHORS)
    ]
    for _ in range(60):
        text = mutate(rng.choice(lines), rng)
        check(text)
        try:
            migration = migrate(text)
        except InvalidError:
            continue
        located, _ = read_yaml(migration.text)
        assert located is not None
        assert migrate(migration.text).text == migration.text
        assert not normalise_document(located).sightings or migration.problems


ODD = """\
%YAML 1.2
--- # start
name: solve
roles:
  ? worker
  : description: x
    "goal": !!str "g"
    'capabilities': [ ] # none
    procedure:   # empty
    output: >
      folded
      text
    ? meta
    : properties: # what
        # first
        n:
          type: string
      required:
        # needed
        - n
  other: { description: x, goal: x, procedure: x, output: x,
    outputSchema: { oneOf: [
      { properties: { status: { const: wait } }, required: [status] },  # w
      { properties: { status: { const: go } }, required: [status] }
    ] } }
graph:
  worker:
    _:
      role: other
      prompt: &p
        x {% if n %}{{ n }}{% endif %}
  other: { wait: { role: $SUSPEND, prompt: x }, go: { role: worker, prompt: x } }
  $START: { _: &e { role: worker, prompt: x } }
...
# the end
"""


def test_odd_but_legal_yaml_can_be_migrated() -> None:
    migration = migrate(ODD)

    assert migration.problems == ()
    assert value_of(migration.text) == normalise(ODD).doc.value
    assert sorted(comments(migration.text)) == sorted(comments(ODD))
    assert migrate(migration.text).text == migration.text


def test_what_no_edit_can_do_is_named_and_nothing_changes() -> None:
    text = (
        "name: x\nroles: {a: {meta: &m {properties: {s: &a {}}}}, "
        "b: {frontmatter: {properties: {t: *a}}}}\n"
        "conditions: {c: &c {expression: e}}\nx-kept: *c\ngraph: {}\n"
    )

    migration = migrate(text)

    assert migration.text == text
    assert "by editing its text" in migration.problems[0].message
    assert migration.problems[0].hint
