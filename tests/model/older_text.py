"""Two workflows in the current form, and edits that write them in older ones."""

from __future__ import annotations

from typing import NamedTuple

from uwfgit.model.legacy.read import Normalised, normalise_document
from uwfgit.model.yaml.core import read_yaml
from uwfgit.store.canonical import Json

STATUSES = """\
# Solves things.
version: 1
name: solve  # as the file
description: Solve it

roles:
  planner:  # comes first
    description: Plans
    # who it is
    goal: You plan.
    capabilities: []
    # how it goes
    procedure: |
      Read.

      # Think
      Plan.
    output: |
      The plan.
    # its answer
    frontmatter:
      oneOf:
        # all is well
        - properties:
            $status: { const: ready }  # go on
            plan: { type: string }
            note: { type: string }
            steps:
              type: array
              items: { type: object, properties: { title: { type: string } } }
          required: [$status, plan, note, steps]
        - properties:
            $status: { const: failed }
            why: { type: string }
          required: [$status, why]

  worker:
    description: Works
    goal: "You work."
    capabilities: []
    procedure: ""
    output: ""
    frontmatter:
      type: object
      properties:
        $status: { const: done }
        summary: { type: string }  # in words
      required: [$status, summary]

graph:
  $START:
    # both ways in
    new: { role: planner, prompt: "Plan it." }
    resume: { role: planner, prompt: "Plan it." }
  planner:
    ready:
      role: worker
      # what to do
      prompt: |
        Do {{plan}} ({{$status}}):
        {{#steps}}- {{title}}
        {{/steps}}
        {{#note}}Note: {{note}}{{/note}}{{^note}}No note.{{/note}}
    failed: { role: $END, prompt: "No: {{why}}" }
  worker:
    done: { role: $END, prompt: "Done: {{summary}}" }
"""

LISTS = """\
# Goes on until it is good.
version: 1
name: solve
description: Solve it
roles:
  coder:
    description: Codes
    goal: You code.
    capabilities: []
    procedure: Code.
    output: The code.
    frontmatter:
      properties:
        $status: { enum: [more, ready] }
      required: [$status]
  reviewer:
    description: Reviews
    goal: You review.
    capabilities: [reviewing]
    procedure: Review.
    output: The verdict.
    frontmatter: { properties: { approved: { type: boolean } } }
graph:
  $START:
    - role: coder
      prompt: Continue with your part of the task.
  coder:
    # not yet
    - role: coder
      when: steps[-1].output.status = 'more'  # loop
      prompt: "Go on after {{$status}}."
    - { role: reviewer, prompt: Continue with your part of the task. }
  reviewer:
    - role: coder
      when: $last('reviewer').approved = false
      prompt: Fix it.
    # good
    - role: $END
      prompt: Done.
"""


class Edit(NamedTuple):
    """A change of a current text into an older one that means the same."""

    name: str
    changes: tuple[tuple[str, str], ...]


_CONDITIONS = """\
conditions:
  # someone said no
  rejected:
    description: The reviewer said no
    expression: $last('reviewer').approved = false
  again: steps[-1].output.status = 'more'
graph:
"""

_RULES = """\
rules:
  # the way in
  - { from: __start__, to: coder, when: null }
  - from: coder
    to: coder
    when: steps[-1].output.status = 'more'  # loop
    prompt: "Go on after {{$status}}."
  - { from: coder, to: reviewer }
  - from: reviewer
    to: coder
    when: $last('reviewer').approved = false
    prompt: Fix it.
  - { from: reviewer, to: __end__, prompt: Done. }
"""

_PHASES = """\
    prepare: |
      Read.
    # then
    execute: |
      # Think
"""

_EMPTY_TEXTS = """\
    goal: "You work."
    capabilities: []
    procedure: ""
    output: ""
"""

_LIQUID = """\
        Do {{plan}} ({{$status}}):
        {% for each in steps %}- {{ each.title }}
        {% endfor %}
        {% if note %}Note: {{note}}{% else %}No note.{% endif %}
"""

OF_STATUSES = (
    Edit("meta", (("    frontmatter:\n      oneOf", "    meta:\n      oneOf"),)),
    Edit(
        "output-schema",
        (("    frontmatter:\n      type", "    outputSchema:\n      type"),),
    ),
    Edit(
        "phases",
        (
            (
                "    goal: You plan.\n    capabilities: []\n",
                "    identity: You plan.\n",
            ),
            (
                "    procedure: |\n      Read.\n\n      # Think\n",
                _PHASES,
            ),
            ("    output: |\n      The plan.", "    report: |\n      The plan."),
        ),
    ),
    Edit(
        "system-prompt",
        (
            (
                _EMPTY_TEXTS,
                '    systemPrompt: "You work."\n',
            ),
        ),
    ),
    Edit(
        "liquid",
        (
            (
                STATUSES[
                    STATUSES.index("        Do {{plan}}") : STATUSES.index(
                        "    failed: { r"
                    )
                ],
                _LIQUID,
            ),
        ),
    ),
    Edit(
        "status",
        (
            ("$status: { const: ready }", "status: { const: ready }"),
            ("$status: { const: failed }", "status: { const: failed }"),
            ("[$status, plan, note, steps]", "[status, plan, note, steps]"),
            ("[$status, why]", "[status, why]"),
            ("{{$status}}", "{{status}}"),
        ),
    ),
    Edit(
        "no-status",
        (
            ("        $status: { const: done }\n", ""),
            ("[$status, summary]", "[summary]"),
        ),
    ),
    Edit("unit", (("    done: {", "    _: {"),)),
    Edit(
        "start",
        (
            ('    new: { role: planner, prompt: "Plan it." }\n', ""),
            ("    resume: {", "    _: {"),
        ),
    ),
    Edit("version", (("version: 1\n", ""),)),
)

OF_LISTS = (
    Edit(
        "capabilities",
        (("    goal: You code.\n    capabilities: []\n", "    goal: You code.\n"),),
    ),
    Edit("rules", ((LISTS[LISTS.index("graph:\n") :], _RULES),)),
    Edit(
        "plain-status",
        (
            ("$status: { enum: [more, ready] }", "status: { enum: [more, ready] }"),
            ("required: [$status]", "required: [status]"),
            ("{{$status}}", "{{status}}"),
        ),
    ),
    Edit(
        "conditions",
        (
            ("graph:\n", _CONDITIONS),
            ("when: steps[-1].output.status = 'more'", "condition: again"),
            (
                "when: $last('reviewer').approved = false",
                "condition: rejected",
            ),
            (
                "    - role: $END\n",
                "    - role: $END\n      condition: null  # else\n",
            ),
        ),
    ),
    Edit(
        "prompts",
        (
            ("      prompt: Continue with your part of the task.\n", ""),
            (", prompt: Continue with your part of the task. }", " }"),
        ),
    ),
)


def older(*names: str) -> str:
    """Write the one of the two that has these edits in the older forms named."""
    for text, edits in ((STATUSES, OF_STATUSES), (LISTS, OF_LISTS)):
        chosen = [edit for edit in edits if edit.name in names]
        if chosen:
            assert len(chosen) == len(names)
            return make_older(text, *chosen)
    raise LookupError(names)


def make_older(text: str, *edits: Edit) -> str:
    """Write a text in older forms."""
    for edit in edits:
        for old, new in edit.changes:
            assert text.count(old) == 1, (edit.name, old, text.count(old))
            text = text.replace(old, new)
    return text


def normalise(text: str) -> Normalised:
    located, problems = read_yaml(text, file="solve.yaml")
    assert located is not None
    assert problems == ()
    return normalise_document(located)


def value_of(text: str) -> Json:
    located, _ = read_yaml(text)
    assert located is not None
    return located.value
