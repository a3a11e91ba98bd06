"""The tool a model answers with, made from its role's schema (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from uwfgit.constants import STATUS, SUSPEND
from uwfgit.model.schema.variants import find_variants, merge_forms
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.canonical import Json

NAME: Final = "answer"
_REPORT: Final = "report"
_REASON: Final = "reason"
_NAME_CHARS: Final = 60
_PLAIN: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{_NAME_CHARS}}}")
"""The names of parameters that every server takes."""
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_DESCRIPTION: Final = """\
Finish your work with your answer. Call it once, when everything is done. It stands
for the YAML block and the markdown below it: give the fields of the one form that
fits, and your report in markdown."""


class AnswerTool(Struct, frozen=True, kw_only=True):
    """The tool's definition, and how its arguments are called in the schema."""

    parameters: Mapping[str, Any]
    names: Mapping[str, str]
    """Parameter → field; servers refuse a ``$`` in a parameter's name."""
    report: str

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as a request offers it."""
        function = {
            "name": NAME,
            "description": _DESCRIPTION,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}

    @property
    def fields(self) -> dict[str, Any]:
        """The schema of its arguments without the report."""
        properties = dict(self.parameters["properties"])
        del properties[self.report]
        return {**self.parameters, "properties": properties}

    def write(self, arguments: Mapping[str, Json]) -> str:
        """Write arguments as the reply they stand for."""
        report = arguments.get(self.report, "")
        fields = {
            self.names.get(name, name): value
            for name, value in arguments.items()
            if name != self.report
        }
        if fields.get(STATUS) == SUSPEND:
            fields = {key: fields[key] for key in (STATUS, _REASON) if key in fields}
        body = report if isinstance(report, str) else ""
        return f"---\n{dump_yaml(fields)}---\n\n{body}"


def make_answer_tool(schema: Json) -> AnswerTool:
    """Make the tool of a role's schema: the fields of all its forms, and a report.

    It says what may be given; whether an answer holds is for extract alone.
    """
    form = merge_forms(schema)
    statuses = list(dict.fromkeys(each.status for each in find_variants(schema)))
    declared: dict[str, Any] = {"type": "string", "description": "Which form fits."}
    if statuses:
        declared["enum"] = [*statuses, SUSPEND]
    fields = {**form.properties, STATUS: declared}
    fields.setdefault(_REASON, _text(f"With {SUSPEND}: what you need, and of whom."))
    properties: dict[str, Any] = {}
    names: dict[str, str] = {}
    # Plain names first, so that none of them is taken by a changed one.
    for field in sorted(fields, key=lambda name: _PLAIN.fullmatch(name) is None):
        parameter = _free(_ODD.sub("", field) or "field", properties)
        properties[parameter] = fields[field]
        names[parameter] = field
    report = _free(_REPORT, properties)
    properties[report] = _text("Your report, in markdown.")
    is_fixed = bool(statuses) or STATUS in form.properties
    needed = [name for name, field in names.items() if is_fixed and field == STATUS]
    return AnswerTool(
        parameters={"type": "object", "properties": properties, "required": needed},
        names=names,
        report=report,
    )


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _free(name: str, taken: Mapping[str, object]) -> str:
    name = name[:_NAME_CHARS]
    while name in taken:
        name += "_"
    return name
