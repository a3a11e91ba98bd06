"""Edges to ``$SUSPEND``, which become a sentence of the role's output (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from uwfgit.constants import STATUS, SUSPEND
from uwfgit.model.legacy_notes import Notes
from uwfgit.model.legacy_parts import BRANCHES, RoleEnds, properties_of
from uwfgit.model.located import Mark, Path
from uwfgit.model.remark import (
    drop,
    entries,
    is_list,
    is_map,
    items,
    put,
    text_of,
    update,
    with_items,
    with_text,
)
from uwfgit.store.canonical import Json

_TAG = re.compile(r"\{\{\{?[#^/&]?([^{}|]*)(?:\|[^{}]*)?\}?\}\}|\{%[^{}]*?%\}")


def mend_suspend(role: RoleEnds, notes: Notes) -> RoleEnds:
    """Take the edges to ``$SUSPEND`` out of a role's graph node and schema."""
    waiting = [
        entry
        for entry in entries(role.node)
        if is_map(entry.value) and entry.value.value.get("role") == SUSPEND
    ]
    if not waiting:
        return role
    names = {entry.name for entry in waiting}
    schema: Mark | None = role.schema
    for name in names:
        schema = _drop_status(schema, name) if schema is not None else None
    text = text_of(role.output)
    first = waiting[0]
    path: Path = (*role.node_path, first.name)
    if schema is None or text is None or names == set(role.drawn):
        message = f"role '{role.name}' can only lead to '{SUSPEND}'"
        if text is None:
            message = f"role '{role.name}' has no output to tell of '{SUSPEND}'"
        hint = f"let it report $status: {SUSPEND}, and give it another status"
        notes.fail(message, path, first.key, hint=hint)
        return role
    action = f"let its 'output' say when to report $status: {SUSPEND}"
    output = role.output
    for entry in waiting:
        form = f"an edge to '{SUSPEND}'"
        notes.tell(form, (*role.node_path, entry.name), entry.key, action=action)
        text = f"{text.rstrip()}\n\n{_sentence(entry.name, entry.value.value)}"
    if output is not None:
        ending = "\n" if output.value.endswith("\n") else ""
        output = with_text(output, text + ending)
    node = drop(role.node, *names) if role.node is not None else None
    return replace(role, schema=schema, node=node, output=output)


def _sentence(status: str, target: Mapping[str, Json]) -> str:
    answer = f"`{STATUS}: {SUSPEND}` and a `reason`"
    prompt = target.get("prompt")
    said = _TAG.sub(_placeholder, prompt).strip() if isinstance(prompt, str) else ""
    tail = f": {said}" if said else "."
    if status == SUSPEND:
        return f"When you need a person, answer with {answer}{tail}"
    return f"In the case of `{status}`, answer with {answer} instead{tail}"


def _placeholder(match: re.Match[str]) -> str:
    name = (match[1] or "").strip()
    return f"<{name}>" if name and match[0][2] not in "#^/" else ""


def _drop_status(schema: Mark, status: str) -> Mark | None:
    """Take a status out of a schema; ``None`` when nothing would be left of it."""
    own = properties_of(schema.value).get(STATUS)
    if isinstance(own, dict) and own.get("const") == status:
        return None
    if isinstance(own, dict) and status in _texts(own.get("enum")):
        if len(own["enum"]) == 1:
            return None
        path: Path = ("properties", STATUS, "enum")
        schema = update(schema, path, lambda enum: _without(enum, status))
    for key in BRANCHES:
        branches = schema.child(key)
        if branches is None or not is_list(branches):
            continue
        kept = [
            _drop_status(each, status) if is_map(each) else each
            for each in items(branches)
        ]
        left = [each for each in kept if each is not None]
        if not left or (key == "allOf" and len(left) < len(kept)):
            return None
        if any(a is not b for a, b in zip(kept, items(branches), strict=True)):
            schema = put(schema, key, with_items(branches, left))
    return schema


def _texts(value: Json) -> list[str]:
    listed = value if isinstance(value, list) else []
    return [each for each in listed if isinstance(each, str)]


def _without(enum: Mark, status: str) -> Mark:
    return with_items(enum, (item for item in items(enum) if item.value != status))
