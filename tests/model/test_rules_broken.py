"""Broken workflow files: every rule at its exact place."""
# ruff: noqa: E501, ERA001 - a table, one case a line

from __future__ import annotations

import pytest

from tests.model.workflow_text import (
    CARET,
    GOOD,
    WORKER_NODE,
    WORKER_SCHEMA,
    change,
    check,
    places_of,
    take_carets,
)
from uwfgit.model.rules.check import RULES

# fmt: off
BROKEN = [
    # Y: the text
    ("Y1", "goal: Plan.", "goal: Plan‸: it.", "colon-in-text"),
    ("Y1", "    goal: Plan.", "‸\tgoal: Plan.", "tab"),
    ("Y1", "version: 1\n", "version: 1\n‸verbose\n", "key-without-colon"),
    ("Y4", "graph:\n", "‸---\ngraph:\n", "second-document"),
    ("Y5", "goal: Plan.", "goal: ‸!secret Plan.", "unknown-tag"),
    ("Y6", "    goal: Plan.", "    goal: Plan.\n    ‸goal: Other.", "duplicate-field"),
    ("Y6", "  worker:\n    desc", "  ‸planner: {}\n  worker:\n    desc", "duplicate-role"),
    ("Y7", "    blocked: {", "    ‸1: {role: $END, prompt: x}\n    blocked: {", "status-is-a-number"),
    ("Y8", "goal: Plan.", "goal: ‸*nothing", "undefined-alias"),
    ("Y8", "capabilities: [planning]", "capabilities: &a [‸*a]", "alias-cycle"),
    ("Y11", "version: 1", "version: ‸.inf", "infinite-version"),
    ("Y16", "goal: Plan.", "goal: Plan‸ #12 first.", "text-like-a-comment"),
    # S: fields
    ("S1", "name: solve\n", "", "no-name"),
    ("S1", "description: Solve it\n", "", "no-description"),
    ("S1", "    goal: Plan.\n", "", "role-without-goal"),
    ("S1", "goal: Plan.", "‸gaol: Plan.", "misspelt-field-is-one-problem"),
    ("S1", "{ role: worker, prompt", "{ ‸rolle: worker, prompt", "edge-role"),
    ("S1", ', prompt: "Do {{plan}}."', "", "edge-without-prompt"),
    ("S1", "    frontmatter:\n      oneOf", "    ‸schema:\n      oneOf", "another-word-is-one-problem"),
    ("S1", "goal: Plan.", "‸<<: {goal: Plan.}", "what-a-merge-key-lacks-is-one-problem"),
    ("S2", "goal: Plan.", "goal: Plan.\n    ‸colour: red", "unknown-field"),
    ("S2", "description: Solve it", "description: Solve it\n‸author: me", "top-level"),
    ("S2", "{ role: $END, prompt: Blocked. }", "{ role: $END, prompt: B., ‸to: x }", "e"),
    ("S2", "goal: Plan.", "goal: Plan.\n    ‸<<: {a: b}", "merge-key"),
    ("S3", "goal: Plan.", "goal: ‸12", "number-for-text"),
    ("S3", "goal: Plan.", "goal: ‸true", "boolean-for-text"),
    ("S3", "goal: Plan.", "goal:‸", "nothing-for-text"),
    ("S3", "goal: Plan.", "goal: ‸[a]", "list-for-text"),
    ("S3", "capabilities: [planning]", "capabilities: ‸planning", "text-for-list"),
    ("S3", "capabilities: [planning]", "capabilities: [a, ‸1]", "number-in-list"),
    ("S3", "version: 1", 'version: ‸"1"', "version-is-text"),
    ("S3", "version: 1", "version: ‸true", "version-is-boolean"),
    ("S3", "    blocked: { role: $END, prompt: Blocked. }", "    blocked: ‸$END", "edge"),
    ("S3", "prompt: Blocked. }", "prompt: Blocked., location: ‸3 }", "location"),
    ("S3", WORKER_SCHEMA, "      ‸- type: object\n", "schema-is-a-list"),
    ("S3", WORKER_NODE, "  worker: ‸done\n", "graph-node-is-text"),
    ("S4", "prompt: Plan it.", 'prompt: ‸" "', "blank-prompt"),
    ("S5", "name: solve", "name: ‸Solve_It", "name-pattern"),
    ("S6", "name: solve", "name: ‸other", "name-is-not-the-files"),
    ("S10", "version: 1\n", "", "no-version"),
    ("S11", "version: 1", "version: ‸2", "higher-version"),
    ("S11", "version: 1", "version: ‸0", "version-zero"),
    # R and G: roles and graph
    ("R1", "graph:\n", "  ‸$END: {}\ngraph:\n", "reserved-role-name"),
    ("R2", "  $START:", "  ‸ghost: {}\n  $START:", "node-that-is-no-role"),
    ("R2", "  worker:\n    done", "  ‸worke:\n    done", "misspelt-node"),
    ("R3", WORKER_NODE, "", "role-without-node"),
    ("G1", GOOD[GOOD.index("  $START") : GOOD.index("  planner:\n    r")], "", "no-start"),
    ("G1", "  $START:\n    new: { role: planner, prompt: Plan it. }", "  ‸$START:", "new"),
    ("G2", "    resume: { role: planner, prompt: Go on. }\n", "", "no-resume"),
    ("G3", "  $START:", "  ‸$END: {a: {role: worker, prompt: x}}\n  $START:", "end"),
    ("G4", "  $START:", "  ‸$SUSPEND: {}\n  $START:", "suspend-node"),
    ("G5", "resume: { role: planner", "resume: { role: ‸$SUSPEND", "start-to-suspend"),
    ("G5", WORKER_NODE, "  worker:\n    - { role: ‸$SUSPEND, prompt: x, when: a }\n    - { role: $END, prompt: x }\n", "list-to-suspend"),
    ("G6", "{ role: $END, prompt: Blocked", "{ role: ‸nobody, prompt: Blocked", "nobody"),
    ("G6", "{ role: $END, prompt: Blocked", "{ role: ‸$START, prompt: Blocked", "start"),
    ("G6", "{ role: worker,", "{ role: ‸wroker,", "misspelt-target-is-one-problem"),
    ("G6", "{ role: worker,", "{ role: ‸coder,", "renamed-target-is-one-problem"),
    ("G7", "{ role: worker,", "{ role: $END,", "unreachable"),
    ("G8", '{ role: $END, prompt: "Done: {{files}}" }', '{ role: worker, prompt: "Again: {{files}}" }', "for-ever"),
    # C and J: schemas
    ("C1", "            note: { t", "            ‸_body: { t", "injected-name"),
    ("C2", "            $status: { const: ready }\n", "", "variant-without-status"),
    ("C2", "$status: { const: ready }", "$status: ‸{ type: string }", "not-const"),
    ("C2", "$status: { const: ready }", "$status: ‸{ enum: [ready] }", "enum"),
    ("C2", "$status: { const: ready }", "$status: { const: ‸1 }", "const-is-a-number"),
    ("C3", "const: blocked", "const: ‸ready", "two-variants-of-one-status"),
    ("C4", "    blocked: {", "    ‸bloked: {", "misspelt-status-is-one-problem"),
    ("C4", "  worker:\n    done", "  worker:\n    ‸lost: {role: $END, prompt: x}\n    done", "stray"),
    ("C5", "    blocked: { role: $END, prompt: Blocked. }\n", "", "status-without-edge"),
    ("C6", "$status: { const: done }", "$status: ‸{ type: string }", "status-not-fixed"),
    ("C6", "type: object\n      prop", "type: ‸array\n      prop", "not-of-an-object"),
    ("C7", "required: [$status, files]", "required: ‸[files]", "status-not-required"),
    ("C7", "required: [$status, plan]", "required: ‸[plan]", "status-of-a-variant-not-required"),
    ("C8", "const: done", "const: ‸$SUSPEND", "declares-suspend"),
    ("J1", "files: { type: array,", "files: { type: ‸lost,", "unknown-type"),
    ("J1", "required: [$status, files]", "required: ‸files", "required-is-text"),
    ("J2", "files: { type: array,", "files: { ‸$ref: x,", "ref"),
    ("J3", "[$status, files]", "[$status, files, ‸lost]", "required-is-not-declared"),
    ("J4", "plan: { type: string }", "plan: { type: string, format: ‸x }", "format"),
    ("J3", "properties: { title: {}, by: {} }", "properties: { title: {} }, required: [‸by]", "of-an-item"),
    ("J4", "items: { type: string }", "items: { type: string, format: ‸url }", "format-of-an-item"),
    ("J5", "    frontmatter:\n      oneOf", "    frontmatter:\n      additionalProperties: ‸false\n      oneOf", "closed-beside-variants"),
    # T: templates
    ("T1", "Do {{plan}}.", "Do ‸{{plan.", "unclosed-tag"),
    ("T1", "Do {{plan}}.", "Do ‸{{#steps}}.", "unclosed-section"),
    ("T1", "Do {{plan}}.", "Do ‸{{> part}}", "partial"),
    ("T1", "Do {{plan}}.", "Do ‸{{=<% %>=}}", "delimiters"),
    ("T2", "Do {{plan}}.", "Do {{plan}} by ‸{{date}}.", "undeclared"),
    ("T2", "Do {{plan}}.", "‸{{plna}} {{plna}}", "named-twice-told-once"),
    ("T2", "prompt: Blocked.", 'prompt: "see ‸{{plan}}"', "of-another-variant"),
    ("T2", "Do {{plan}}.", "Do {{#steps}}{{title}}‸{{lost}}{{/steps}}", "of-an-item"),
    ("T2", "Do {{plan}}.", "Do ‸{{plan.title}}", "deeper-than-declared"),
    ("T2", "Do {{plan}}.", "Do ‸{{title}}", "item-outside-its-section"),
    ("T2", "Do {{plan}}.", "‸{{^lost}}none{{/lost}}", "inverted-section"),
    ("T3", "Do {{plan}}.", "{{#site}}a{{/site}} ‸{{note}} {{steps}}", "may-be-absent"),
    ("T3", 'prompt: "Do {{plan}}." }', 'prompt: "Do {{plan}}.", location: "‸{{{note}}}" }', "location"),
    ("T4", "prompt: Go on.", 'prompt: "Go on‸{{#plan}} with it{{/plan}}."', "section-in-start"),
    ("T4", "prompt: Plan it.", 'prompt: "Plan {{_prompt}} in ‸{{repo}}"', "start"),
    ("T5", "Do {{plan}}.", "{{plan}} ‸{% assign x = plan %}", "liquid-tag"),
    ("T5", "Do {{plan}}.", "‸{% if plan == 1 %}Do{% endif %}", "liquid-comparison"),
    ("T5", "Do {{plan}}.", "Do ‸{{ plan | upcase }}", "filter"),
    # L: older forms
    ("L1", "    frontmatter:\n      type", "    ‸meta:\n      type", "meta"),
    ("L1", "    goal: Plan.\n", "    ‸systemPrompt: Plan.\n", "system-prompt"),
    ("L1", "    goal: Plan.\n", "    ‸identity: Plan.\n", "identity"),
    ("L1", "graph:\n", "‸conditions: {}\ngraph:\n", "conditions"),
    ("L1", "    new: {", "    ‸_: {", "start-with-unit-status"),
    ("L1", "    done: {", "    ‸_: {", "unit-status"),
    ("L1", GOOD[GOOD.index("graph:") :], "‸rules: [{from: __start__, to: planner}, {from: planner, to: worker}]\n", "rules"),
    ("L1", "    capabilities: []\n", "", "capabilities"),
    ("L1", "        $status: { const: done }\n", "", "no-status"),
    ("L1", "        $status: { const: done }", "        ‸status: { const: done }", "status-without-dollar"),
    ("L1", "            $status: { const: ready }", "            ‸status: { const: ready }", "variant-with-status"),
    ("L1", "    blocked: { role: $END", "    ‸blocked: { role: $SUSPEND", "edge-to-suspend"),
    ("L1", "Do {{plan}}.", "Do ‸{% if plan %}{{plan}}{% endif %}.", "liquid"),
    ("L1", WORKER_NODE, "  worker:\n    - ‸role: $END\n", "list-edge-without-prompt"),
    ("L1", WORKER_NODE, "  worker:\n    - { role: $END, prompt: x, condition: ‸y }\n", "unknown-condition"),
    ("L1", "    goal: Plan.\n", "    goal: Plan.\n    ‸identity: Plan.\n", "two-goals"),
    ("L1", "    new: {", "    ‸_: { role: planner, prompt: x }\n    new: {", "start-with-both"),
]
# fmt: on

# Edits whose caret would fall outside them: the place is a key's above.
AT: dict[str, str] = {
    "no-name": "‸version: 1",
    "no-description": "‸version: 1",
    "role-without-goal": "  ‸planner:\n    desc",
    "edge-without-prompt": "    ‸ready: {",
    "no-version": "‸name: solve",
    "role-without-node": "  ‸worker:\n    desc",
    "no-start": "‸graph:",
    "no-resume": "  ‸$START:",
    "for-ever": "  ‸worker:\n    done",
    "unreachable": "  ‸worker:\n    desc",
    "variant-without-status": "        - ‸properties:\n            plan",
    "status-without-edge": "  ‸planner:\n    ready",
    "no-status": "    ‸frontmatter:\n      type",
    "capabilities": "  ‸worker:\n    desc",
}


@pytest.mark.parametrize(
    ("code", "old", "new", "name"),
    [pytest.param(*case, id=f"{case[0]}-{case[3]}") for case in BROKEN],
)
def test_one_defect_is_one_problem_at_its_place(
    code: str, old: str, new: str, name: str
) -> None:
    text = change(old, new)
    if name in AT:
        assert text.count(AT[name].replace(CARET, "")) == 1
        text = text.replace(AT[name].replace(CARET, ""), AT[name])
    text, ((line, column),) = take_carets(text)

    problems = check(text)

    assert places_of(problems) == [(code, line, column)]
    assert problems[0].hint


def test_every_rule_is_in_the_table_or_in_a_test_of_its_own() -> None:
    apart = {"Y2", "Y3", "Y9", "Y10", "Y12", "Y13", "Y14", "Y15"}
    apart |= {"Y17", "S13", "S7", "S8", "S9", "S12"}

    assert {case[0] for case in BROKEN} | apart == set(RULES)
