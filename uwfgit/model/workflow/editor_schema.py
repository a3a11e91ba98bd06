"""The JSON Schema of a workflow file, for editors (pure).

It tells the structural half of the rules as one types, and what each field is
for; ``rules.py`` alone decides what is valid. It is written in draft 7, the
newest that the YAML language servers know, and refers to nothing else. Older forms,
which are read all the same, are told as such and are no mistakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uwfgit.constants import END, NEW, RESUME, START, STATUS, SUSPEND, WORKFLOW_VERSION
from uwfgit.store.canonical import Json

_UNIT: Final = "_"
"""The one status of a role, or of the start, in older files."""
_FREE: Final[dict[str, Json]] = {"^x-": {}}
_ROLE_NAME: Final = "^[A-Za-z][A-Za-z0-9_-]{0,63}$"
_STATUS: Final = r"^\S(.{0,62}\S)?$"
_NOT_BLANK: Final = r"\S"
_OLDER: Final = "An older form; `uwf workflow migrate FILE` writes the one of today: "
_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_RULES: Final[dict[str, Json]] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["from", "to"],
        "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
    },
}


def editor_schema() -> dict[str, Json]:
    """Return the schema of a workflow file in its current form."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "uwf workflow",
        "description": "Roles, and a graph of which role comes next for which status.",
        **_closed(
            {
                "version": {
                    "const": WORKFLOW_VERSION,
                    "description": "The form of this file.",
                },
                "name": {
                    "type": "string",
                    "pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$",
                    "description": "The file's own name, without .yaml.",
                },
                "description": _text("What the workflow is for, in one line."),
                "roles": {
                    "description": "Who takes part, by name.",
                    "type": "object",
                    "minProperties": 1,
                    "patternProperties": {
                        **_FREE,
                        "^(?!x-)[A-Za-z]": {"$ref": "#/definitions/role"},
                    },
                    "propertyNames": {
                        "anyOf": [{"pattern": _ROLE_NAME}, {"pattern": "^x-"}]
                    },
                },
                "graph": {"$ref": "#/definitions/graph"},
                "conditions": _older(
                    {
                        "type": ["object", "null"],
                        "additionalProperties": {
                            "type": ["object", "string"],
                            "required": ["expression"],
                        },
                    },
                    "each expression as 'when' where it is used.",
                ),
                "rules": _older(_RULES, "a graph of lists."),
                "inputs": {
                    "description": "Schemas of what a run is given; reserved.",
                    "type": "object",
                    "additionalProperties": {"$ref": "#/definitions/schema"},
                },
            },
            optional=("version", "inputs", "graph", "conditions", "rules"),
        ),
        "anyOf": _any_of("graph", "rules"),
        "definitions": {
            "role": _role(),
            "graph": _graph(),
            "edges": _edges(),
            "target": _closed(_target_fields(), optional=("location",)),
            "edge": _edge(),
            "listedTarget": _listed_target(),
            "schema": _schema(),
        },
    }


def _closed(
    properties: dict[str, Json], *, optional: tuple[str, ...]
) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": dict(_FREE),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _text(description: str) -> dict[str, Json]:
    return {"type": "string", "description": description}


def _older(schema: Mapping[str, Json], current: str) -> dict[str, Json]:
    return {**schema, "description": f"{_OLDER}{current}", "deprecated": True}


def _any_of(*names: str) -> list[Json]:
    return [{"required": [name]} for name in names]


def _role() -> Json:
    asked = ("goal", "capabilities", "procedure", "output")
    schema: dict[str, Json] = {"$ref": "#/definitions/schema"}
    older: dict[str, Json] = {
        "meta": _older(schema, "'frontmatter'."),
        "outputSchema": _older(schema, "'frontmatter'."),
        "systemPrompt": _older(_text(""), "'goal', 'procedure' and 'output'."),
        "identity": _older(_text(""), "'goal'."),
        "prepare": _older(_text(""), "'procedure'."),
        "execute": _older(_text(""), "'procedure'."),
        "report": _older(_text(""), "'output'."),
    }
    role = _closed(
        {
            "workflow": _text("The workflow that does the role, in an agent's place."),
            "inputs": {
                "type": "object",
                "description": "What that workflow is given for its inputs.",
            },
            "description": _text("What the role does, in one line."),
            "goal": _text("Who the agent is and what it is after."),
            "capabilities": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What it must be able to do; may be empty.",
            },
            "procedure": _text("How to do the work, step by step; !include FILE."),
            "output": _text("What to report, in prose."),
            "frontmatter": {
                "description": "JSON Schema of the structured answer. Each variant "
                f"fixes {STATUS} with a const.",
                "allOf": [{"type": "object"}, schema],
            },
            **older,
        },
        optional=("workflow", "inputs", *asked, "frontmatter", *older),
    )
    texts: list[Json] = [
        {"anyOf": _any_of("goal", "identity")},
        {"anyOf": _any_of("procedure", "prepare", "execute")},
        {"anyOf": _any_of("output", "report")},
    ]
    return {
        **role,
        "allOf": [
            {"anyOf": [*_any_of("workflow", "systemPrompt"), {"allOf": texts}]},
            {"anyOf": _any_of("frontmatter", "meta", "outputSchema")},
        ],
    }


def _graph() -> Json:
    begin = {"$ref": "#/definitions/target"}
    return {
        "description": f"For {START} and each role: status -> the next role.",
        "type": "object",
        "properties": {
            START: {
                "description": f"Where a thread begins ({NEW}), and where it goes on "
                f"after its end ({RESUME}).",
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {NEW: begin, RESUME: begin},
                        "patternProperties": dict(_FREE),
                        "additionalProperties": begin,
                        "anyOf": _any_of(NEW, _UNIT),
                    },
                    _listed(),
                ],
            },
        },
        "patternProperties": {
            **_FREE,
            "^(?!x-)[A-Za-z]": {"$ref": "#/definitions/edges"},
        },
        "required": [START],
        # $END has no edges, and a role emits $SUSPEND without any.
        "additionalProperties": False,
    }


def _edges() -> Json:
    return {
        "description": "Which role comes next: by status, or a list of conditions.",
        "anyOf": [
            {
                "type": "object",
                "patternProperties": dict(_FREE),
                "propertyNames": {"pattern": _STATUS},
                "additionalProperties": {"$ref": "#/definitions/edge"},
            },
            _listed(),
        ],
    }


def _listed() -> Json:
    return {
        "type": "array",
        "minItems": 1,
        "items": {"$ref": "#/definitions/listedTarget"},
    }


def _target_fields() -> dict[str, dict[str, Json]]:
    return {
        "role": {
            "type": "string",
            "not": {"enum": [START, SUSPEND]},
            "description": f"The next role, or {END}.",
        },
        "prompt": {
            "type": "string",
            "pattern": _NOT_BLANK,
            "description": "What the next role is told: a Mustache template over "
            "the answer, with _body, _prompt and _thread.",
        },
        "location": {
            "type": ["string", "null"],
            "description": "The folder to work in: a template, too.",
        },
    }


def _edge() -> Json:
    """Return what a status leads to; in older files also to being suspended."""
    suspends = _closed(
        {**_target_fields(), "role": _older({"const": SUSPEND}, "no edge at all.")},
        optional=("location", "prompt"),
    )
    return {"anyOf": [{"$ref": "#/definitions/target"}, suspends]}


def _listed_target() -> Json:
    when = {
        "type": ["string", "null"],
        "description": "A JSONata condition; the first that holds is taken.",
    }
    fields = _target_fields()
    prompt = {**fields["prompt"], "type": ["string", "null"]}
    named = {"type": ["string", "null"]}
    condition = _older(named, "the expression itself as 'when'.")
    return _closed(
        {**fields, "prompt": prompt, "when": when, "condition": condition},
        optional=("location", "prompt", "when", "condition"),
    )


def _schema() -> Json:
    """Return what a JSON Schema looks like, as far as a slip of the pen shows."""
    inner = {"$ref": "#/definitions/schema"}
    several = {"type": "array", "minItems": 1, "items": inner}
    named = {"type": "object", "additionalProperties": inner}
    number = {"type": "integer", "minimum": 0}
    any_number = {"type": "number"}
    text = {"type": "string"}
    return {
        "type": ["object", "boolean"],
        "properties": {
            "type": {
                "anyOf": [
                    {"enum": list(_TYPES)},
                    {"type": "array", "minItems": 1, "items": {"enum": list(_TYPES)}},
                ]
            },
            "properties": named,
            "patternProperties": named,
            "dependentSchemas": named,
            **dict.fromkeys(
                (
                    "additionalProperties",
                    "contains",
                    "else",
                    "if",
                    "items",
                    "not",
                    "propertyNames",
                    "then",
                    "unevaluatedItems",
                    "unevaluatedProperties",
                ),
                inner,
            ),
            **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several),
            **dict.fromkeys(
                (
                    "maxItems",
                    "maxLength",
                    "maxProperties",
                    "minItems",
                    "minLength",
                    "minProperties",
                ),
                number,
            ),
            **dict.fromkeys(("maximum", "minimum"), any_number),
            **dict.fromkeys(("description", "format", "pattern", "title"), text),
            "enum": {"type": "array"},
            "examples": {"type": "array"},
            "required": {"type": "array", "items": {"type": "string"}},
        },
        # YAML anchors do what these would do, and nothing is fetched.
        "not": {
            "type": "object",
            "anyOf": [
                {"required": [name]} for name in ("$ref", "$dynamicRef", "$defs")
            ],
        },
    }
