"""Odd but legal workflow files, and files made at random."""

from __future__ import annotations

import contextlib
import random

import pytest

from tests.model.workflow_text import GOOD, WORKER_SCHEMA, change, check
from uwfgit.errors import InvalidError
from uwfgit.model.rules.check import RULES
from uwfgit.model.yaml.core import parse_yaml

GOOD_EDITS = [
    ("version: 1", "version: 0x1", "hex-version"),
    ("name: solve", "name: 'solve'  # quoted", "quoted-name"),
    ("goal: Plan.", "goal: ''", "empty-goal"),
    ("goal: Plan.", "goal: yes", "goal-that-1.1-takes-for-a-boolean"),
    ("goal: Plan.", "goal: 2026-01-01", "goal-that-1.1-takes-for-a-date"),
    ("description: Solve it", "description: >-\n  Solve\n  it", "folded"),
    ("description: Solve it", "description: a\nx-owner: {team: [1]}", "own-field"),
    ("graph:\n", "  x-roles: 1\ngraph:\n  x-note: 2\n", "own-fields-inside"),
    ("    goal: Plan.", "    x-model: big\n    goal: Plan.", "own-role-field"),
    ("prompt: Blocked. }", "prompt: Blocked., x-colour: red }", "own-edge-field"),
    ("prompt: Blocked. }", "prompt: Blocked., location: null }", "no-location"),
    ("prompt: Blocked. }", "prompt: Blocked., location: '{{_prompt}}' }", "location"),
    ("prompt: Blocked.", "prompt: '{{$status}} {{_body}} {{_thread}}'", "injected"),
    ("Do {{plan}}.", "{{{plan}}} {{&plan}} {{! x }}", "braces"),
    (
        "Do {{plan}}.",
        "{{#steps}}{{title}}{{plan}}{{.}}{{steps}}{{/steps}}{{.}}",
        "item-then-output",
    ),
    ("Do {{plan}}.", "{{#steps}}{{steps.0.title}}{{/steps}}", "index"),
    ("Do {{plan}}.", "{{#note}}{{note}}{{/note}}{{^note}}none{{/note}}", "guarded"),
    (
        "Do {{plan}}.",
        "{{#site}}{{any.thing}}{{site.any.thing}}{{/site}}",
        "undeclared-object",
    ),
    ("Done: {{files}}", "{{ files | join: ', ' }}".replace("'", '\\"'), "join"),
    ("$status: { const: done }", "$status: { enum: [done] }", "enum-of-one"),
    ("      type: object\n", "      type: [object]\n", "list-of-types"),
    ("      type: object\n", "      title: x\n", "no-type"),
    ("    blocked: {", "    'blocked': {", "quoted-status"),
    ("type: array, items: { type: string }", "x-ui: 1", "own-schema-keyword"),
    ("Do {{plan}}.", "{{plan}}{{#by}}{{/by}}".replace("by", "steps"), "empty-section"),
    ("Done: {{files}}", "{{#files}}{{.}}{{$status}}{{/files}}", "items-that-are-text"),
    ("Done: {{files}}", "{{files.0}}", "item-by-index"),
]


@pytest.mark.parametrize(
    ("old", "new"), [pytest.param(*case[:2], id=case[2]) for case in GOOD_EDITS]
)
def test_odd_but_legal_files_have_no_problem(old: str, new: str) -> None:
    assert check(change(old, new)) == ()


PATHS = """\
      properties:
        $status: { const: done }
        files: { prefixItems: [ { properties: { a: {} } } ], items: false }
        deep: { type: object, properties: { in: { properties: { x: {} } } } }
        free: { type: object, additionalProperties: true, properties: { k: {} } }
        any: true
        maybe: { anyOf: [ { type: "null" }, { properties: { y: {} } } ] }
        shut: { type: object, additionalProperties: false }
      required: [$status, files, deep, free, any, maybe, shut]
"""


@pytest.mark.parametrize(
    ("template", "known"),
    [
        pytest.param("{{deep.in.x}}", True, id="declared-deep"),
        pytest.param("{{deep.in.y}}", False, id="not-declared-deep"),
        pytest.param("{{deep.in.x.any}}", True, id="below-what-declares-nothing"),
        pytest.param("{{#deep}}{{in.x}}{{/deep}}", True, id="inside-an-object"),
        pytest.param("{{#deep.in}}{{x}}{{/deep.in}}", True, id="section-of-a-path"),
        pytest.param("{{#deep}}{{#in}}{{z}}{{/in}}{{/deep}}", False, id="two-sections"),
        pytest.param("{{free.k}}{{free.other.x}}", True, id="additional-allowed"),
        pytest.param("{{any.thing}}{{#any}}{{x}}{{/any}}", True, id="anything"),
        pytest.param("{{maybe.y}}", True, id="through-any-of"),
        pytest.param("{{maybe.z}}", False, id="not-through-any-of"),
        pytest.param("{{files.0.a}}", True, id="prefix-item"),
        pytest.param("{{#files}}{{a}}{{/files}}", True, id="prefix-items"),
        pytest.param("{{#files}}{{b}}{{/files}}", False, id="not-in-prefix-items"),
        pytest.param("{{shut.x}}", False, id="closed-object"),
        pytest.param("{{#shut}}{{x}}{{/shut}}", False, id="inside-a-closed-object"),
        pytest.param("{{$status.x}}", False, id="below-the-status"),
        pytest.param("{{_body.x}}", False, id="below-an-injected-name"),
    ],
)
def test_a_path_goes_as_deep_as_the_schema_declares(
    template: str, *, known: bool
) -> None:
    text = change(WORKER_SCHEMA, PATHS).replace("Done: {{files}}", template)

    assert [each.code for each in check(text)] == ([] if known else ["T2"])


def test_the_good_file_is_good() -> None:
    assert check(GOOD) == ()


# fmt: off
PIECES = [
    "{", "}", "[", "]", ":", "-", "&a", "*a", "!x", '"', "'", "|", "#", "%", "{{", "}}",
    "{{#x}}", "\t", "\n", "  ", "null", "1", "oneOf", "$status", "$START", "$END", "x-",
    "<<:", "\0", "\u2028", "type: 1", "const:", "?", "enum: 1", "[[[[", "{}", "[]", "~",
]
# fmt: on


def mutate(lines: list[str], rng: random.Random) -> str:
    """Give the lines with a few of them damaged."""
    mutated = list(lines)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(mutated))
        line = mutated[at]
        cut = rng.randrange(len(line))
        mutated[at] = rng.choice(
            [
                line[:cut] + rng.choice(PIECES) + line[cut:],
                line[:cut] + line[cut + rng.randint(1, 6) :],
                rng.choice(lines),
                line + rng.choice(lines),
                f"{line.partition(':')[0]}: {rng.choice(PIECES)}\n",
            ]
        )
    return "".join(mutated)


@pytest.mark.parametrize("seed", range(8))
def test_nothing_in_a_file_raises_anything_but_invalid_input(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a fixed walk, no secret
    lines = GOOD.splitlines(keepends=True)
    for _ in range(60):
        text = mutate(lines, rng)
        with contextlib.suppress(InvalidError):
            parse_yaml(text)
        for each in check(text):
            assert each.code in RULES
            assert each.line
            assert each.column
            assert each.hint
