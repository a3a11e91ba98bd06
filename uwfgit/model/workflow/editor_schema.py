"""The JSON Schema of a workflow file, for editors (pure).

It tells the structural half of the rules as one types, and what each field is
for; ``rules.py`` alone decides what is valid. It is written in draft 7, the
newest that the YAML language servers know, and refers to nothing else.
"""

from __future__ import annotations

from typing import Final

from uwfgit.constants import END, NEW, RESUME, START, STATUS, SUSPEND, WORKFLOW_VERSION
from uwfgit.store.canonical import Json

MODELINE: Final = "# yaml-language-server: $schema={}"
"""The comment that makes a YAML language server use a schema."""

_FREE: Final[dict[str, Json]] = {"^x-": {}}
_ROLE_NAME: Final = "^[A-Za-z][A-Za-z0-9_-]{0,63}$"
_STATUS: Final = r"^\S(.{0,62}\S)?$"
_NOT_BLANK: Final = r"\S"
_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")


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
                "inputs": {
                    "description": "Schemas of what a run is given; reserved.",
                    "type": "object",
                    "additionalProperties": {"$ref": "#/definitions/schema"},
                },
            },
            optional=("version", "inputs"),
        ),
        "definitions": {
            "role": _role(),
            "graph": _graph(),
            "edges": _edges(),
            "target": _target(),
            "listedTarget": _listed_target(),
            "schema": _schema(),
        },
    }


def _closed(
    properties: dict[str, Json], *, optional: tuple[str, ...] = ()
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


def _role() -> Json:
    asked = ("goal", "capabilities", "procedure", "output")
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
                "allOf": [{"type": "object"}, {"$ref": "#/definitions/schema"}],
            },
        },
        optional=("workflow", "inputs", *asked),
    )
    return {**role, "anyOf": [{"required": ["workflow"]}, {"required": list(asked)}]}


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
                        "required": [NEW],
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
                "additionalProperties": {"$ref": "#/definitions/target"},
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


def _target_fields() -> dict[str, Json]:
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


def _target() -> Json:
    return _closed(_target_fields(), optional=("location",))


def _listed_target() -> Json:
    when = {
        "type": ["string", "null"],
        "description": "A JSONata condition; the first that holds is taken.",
    }
    return _closed({**_target_fields(), "when": when}, optional=("location", "when"))


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
            "anyOf": [{"required": [name]} for name in ("$ref", "$dynamicRef", "$defs")]
        },
    }
