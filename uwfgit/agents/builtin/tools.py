"""The builtin agent's tools: what each is called, takes and does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn

from msgspec import Struct

from uwfgit.agents.base import Failure
from uwfgit.agents.builtin import children, files
from uwfgit.agents.builtin.children import Shell
from uwfgit.agents.builtin.files import Workplace
from uwfgit.agents.foreign_json import clean_text, clean_value
from uwfgit.model.schema.check import validate_value

Arguments = Mapping[str, Any]


class Bench(Struct, frozen=True, kw_only=True):
    """What tools work on."""

    place: Workplace
    shell: Shell


class Tool(Struct, frozen=True, kw_only=True):
    """One tool; what it gives is text for the model, or that it was interrupted."""

    name: str
    description: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    run: Callable[[Bench, Arguments], str | Failure]

    @property
    def parameters(self) -> dict[str, Any]:
        """The schema of its arguments."""
        return {
            "type": "object",
            "properties": dict(self.properties),
            "required": list(self.required),
            "additionalProperties": False,
        }

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as a request offers it."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


_PATH: Final = _text("Relative to the folder you work in.")

TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            name="read_file",
            description="Read a text file, or list a folder.",
            properties={
                "path": _PATH,
                "start": {"type": "integer", "description": "First line, from 1."},
                "count": {"type": "integer", "description": "How many lines."},
            },
            required=("path",),
            run=lambda bench, given: files.read_file(
                bench.place,
                given["path"],
                start=given.get("start", 1),
                count=given.get("count"),
            ),
        ),
        Tool(
            name="write_file",
            description="Write a whole file; folders above it are made.",
            properties={"path": _PATH, "content": _text("The whole new content.")},
            required=("path", "content"),
            run=lambda bench, given: files.write_file(
                bench.place, given["path"], given["content"]
            ),
        ),
        Tool(
            name="patch_file",
            description="Replace a text that stands exactly once in a file.",
            properties={
                "path": _PATH,
                "old": _text("The text as it stands, with enough around it."),
                "new": _text("What takes its place."),
            },
            required=("path", "old", "new"),
            run=lambda bench, given: files.patch_file(
                bench.place, given["path"], given["old"], given["new"]
            ),
        ),
        Tool(
            name="run_command",
            description="Run a shell command in the folder you work in.",
            properties={
                "command": _text("For /bin/sh."),
                "seconds": {
                    "type": "number",
                    "description": "Longest it may take; 120 unless given.",
                },
            },
            required=("command",),
            run=lambda bench, given: children.run_command(
                bench.shell,
                given["command"],
                seconds=given.get("seconds", children.COMMAND_SECONDS),
            ),
        ),
        Tool(
            name="cas_get",
            description="Show the value that a hash names.",
            properties={"hash": {"type": "string", "pattern": "^[0-9A-Za-z]{13}$"}},
            required=("hash",),
            run=lambda bench, given: children.cas_get(bench.shell, given["hash"]),
        ),
        Tool(
            name="cas_put",
            description="Store a text; gives its hash, 13 characters.",
            properties={"text": _text("The text.")},
            required=("text",),
            run=lambda bench, given: children.cas_put(bench.shell, given["text"]),
        ),
    )
}
"""Every tool there is."""

DEFAULT_TOOLS: Final = ("read_file", "write_file", "patch_file", "cas_get", "cas_put")
"""Those an agent has when its ``tools`` are not configured: no commands."""


def use_tool(
    bench: Bench, names: Iterable[str], name: str, arguments: str
) -> str | Failure:
    """Use a tool as the model asks; whatever is wrong with that is told to it."""
    if name not in names:
        return f"error: there is no tool '{name}'; there are: {', '.join(names)}"
    tool, given = TOOLS[name], parse_arguments(arguments)
    if isinstance(given, str):
        return given
    # Some models say null for what they leave out.
    given = {name: value for name, value in given.items() if value is not None}
    found = validate_value(tool.parameters, given)
    if found:
        return f"error: {'; '.join(map(str, found))}"
    return tool.run(bench, given)


def parse_arguments(text: str) -> dict[str, Any] | str:
    """Read a call's arguments, or say what is wrong with them."""
    try:
        given = json.loads(text or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError) as exc:
        return f"error: the arguments are not JSON: {exc}"
    if not isinstance(given, dict):
        return "error: the arguments must be a JSON object"
    return {clean_text(name): clean_value(value) for name, value in given.items()}


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
