"""Writes what is made of the code: lists of commands, modules, fields and keys.

Documents, and what completion knows of the commands.

``python scripts/write_docs.py`` writes them; a test compares them with the code.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from uwfgit.cli.words import words
from uwfgit.cli.words.reference import reference_text
from uwfgit.config.settings import DEFAULTS
from uwfgit.config.table import KEYS, Key

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "uwfgit"
_NOTICE = "<!-- Written by `python scripts/write_docs.py`; do not edit. -->"
_NODES = """\
The built-in types, from their packaged JSON Schemas. A required field is always there,
with null for nothing; any other is left out when it is not used."""


def config_text() -> str:
    """Return ``docs/config.md``: every configuration key, from the closed table."""
    head = f"""\
# Configuration

{_NOTICE}

`<UWF_HOME>/config.yaml` is the user's own (`UWF_HOME` is `~/.uwf` unless set). A
repository may add `.uwf.yaml` with the keys marked *repository*: it can choose among
the user's agents and lower the user's limits, never name a command. A flag wins over
the environment, the environment over the repository, the repository over the user.

`uwf config list --show-origin` shows what holds; `uwf config set KEY VALUE`
writes the user's file. A group of keys is set by a mapping, which takes the place of
what was there: `uwf config set agents.A '{{kind: stdio, command: my-agent}}'`. API
keys belong in the environment or in `<UWF_HOME>/.env`.

| key | value | default | repository | what it is |
|---|---|---|---|---|
"""
    return head + "".join(f"{_key_row(key)}\n" for key in KEYS)


def _key_row(key: Key) -> str:
    value = " \\| ".join(f"`{choice}`" for choice in key.choices) or key.type
    default = DEFAULTS.get(key.path)
    shown = "" if default is None else f"`{json.dumps(default)}`"
    where = "yes" if "repository" in key.layers else ""
    return f"| `{key}` | {value} | {shown} | {where} | {key.about} |"


def modules_text() -> str:
    """Return ``docs/modules.md``: every module with the first line of its docstring."""
    parts = [f"# Modules\n\n{_NOTICE}\n\nThe first line of each module's docstring.\n"]
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        name = folder.relative_to(ROOT).as_posix()
        parts.append(f"\n## {name}/\n\n{_first_line(folder / '__init__.py')}\n\n")
        parts.extend(
            f"- `{path.name}`: {_first_line(path)}\n"
            for path in sorted(folder.glob("*.py"))
            if path.name != "__init__.py"
        )
    return "".join(parts)


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return text.partition("\n")[0].replace("``", "`")


def nodes_text() -> str:
    """Return ``docs/nodes.md``: the fields of every built-in type, from its schema."""
    parts = [f"# Nodes\n\n{_NOTICE}\n\n{_NODES}\n"]
    for path in sorted((PACKAGE / "model" / "schemas").glob("*.json")):
        schema = json.loads(path.read_bytes())
        parts.append(f"\n## {path.stem}\n\n")
        rows = list(_field_rows(schema))
        if rows:
            parts.append("| field | value | required |\n|---|---|---|\n")
            parts.extend(f"{row}\n" for row in rows)
        else:
            parts.append(f"{_shape(schema)}.\n")
    return "".join(parts)


def _field_rows(schema: Mapping[str, Any], before: str = "") -> Iterator[str]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        must = "yes" if name in required else ""
        yield f"| `{before}{name}` | {_shape(field)} | {must} |"
        for variant in (field, *field.get("anyOf", ())):
            inner = variant.get("items", variant)
            if isinstance(inner, dict):
                mark = "[]" if "items" in variant else ""
                yield from _field_rows(inner, f"{before}{name}{mark}.")


def _shape(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_shape(each) for each in schema["anyOf"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    if schema.get("format") == "ocas_ref":
        return "hash of a node"
    types = schema.get("type", "any value")
    names = types if isinstance(types, list) else [types]
    if "array" in names and "items" in schema:
        return f"list of {_shape(schema['items'])}"
    return " or ".join(names)


DOCUMENTS = {
    "cli.md": reference_text,
    "config.md": config_text,
    "modules.md": modules_text,
    "nodes.md": nodes_text,
}


if __name__ == "__main__":
    for name, write in DOCUMENTS.items():
        (ROOT / "docs" / name).write_text(write(), "utf-8")
    words.FILE.write_text(words.words_text(), "utf-8")
