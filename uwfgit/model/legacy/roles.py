"""Older fields of a role: other names for its texts and its schema (pure)."""

from __future__ import annotations

from typing import Final

from uwfgit.model.findings import is_free
from uwfgit.model.legacy.parts import Notes
from uwfgit.model.yaml.edit_marks import (
    MarkedEntry,
    drop,
    entries,
    is_map,
    make_mark,
    put_after,
    rename,
    text_of,
    with_entries,
    with_text,
)
from uwfgit.model.yaml.located import Mark, ValuePath

CURRENT: Final = (
    "description",
    "goal",
    "capabilities",
    "procedure",
    "output",
    "frontmatter",
)
_SCHEMA: Final = "frontmatter"
_SCHEMAS: Final = ("meta", "outputSchema")
_SYSTEM: Final = "systemPrompt"
_PHASES: Final = {
    "identity": "goal",
    "prepare": "procedure",
    "execute": "procedure",
    "report": "output",
}
_FORM_OF_PHASES: Final = "a role of identity, prepare, execute and report"


def mend_role(entry: MarkedEntry, notes: Notes) -> Mark:
    """Give a role the fields of today."""
    role = entry.value
    if not is_map(role):
        return role
    path: ValuePath = ("roles", entry.name)
    role = _mend_schema(role, path, notes)
    older = [each for each in (_SYSTEM, *_PHASES) if each in role.value]
    role = _mend_texts(role, path, older, notes)
    texts = ("goal", "procedure", "output")
    if "capabilities" in role.value or any(name not in role.value for name in texts):
        return role
    unknown = [n for n in role.value if n not in CURRENT and not is_free(n)]
    if older or not notes.is_misspelt("capabilities", unknown):
        if not older:
            form, action = "a role without 'capabilities'", "add 'capabilities: []'"
            holder = notes.found.doc.find(path[:-1])
            key = holder.key(entry.name) if holder is not None else None
            notes.tell(form, path, key or role, action=action)
        return put_after(role, "capabilities", make_mark([], role), after="goal")
    return role


def _mend_schema(role: Mark, path: ValuePath, notes: Notes) -> Mark:
    for name, key, _ in entries(role):
        if name not in _SCHEMAS:
            continue
        if _SCHEMA in role.value:
            hint = f"keep '{_SCHEMA}' and remove '{name}'"
            message = f"'{name}' stands beside '{_SCHEMA}'"
            notes.fail(message, (*path, name), key, hint=hint)
            return role
        action = f"name the schema '{_SCHEMA}'"
        notes.tell(f"'{name}'", (*path, name), key, action=action)
        role = rename(role, name, _SCHEMA)
    return role


def _mend_texts(role: Mark, path: ValuePath, older: list[str], notes: Notes) -> Mark:
    if not older:
        return role
    by_name = {entry.name: entry for entry in entries(role)}
    first = by_name[older[0]]
    if _SYSTEM in older and len(older) > 1:
        other = by_name[older[1]]
        message = f"'{_SYSTEM}' stands beside '{other.name}'"
        hint = "write 'goal', 'procedure' and 'output'"
        notes.fail(message, (*path, other.name), other.key, hint=hint)
        return role
    for name in older:
        current = _PHASES.get(name, "goal")
        if current in role.value:
            message = f"'{name}' stands beside '{current}'"
            hint = f"move what it says into '{current}'"
            notes.fail(message, (*path, name), by_name[name].key, hint=hint)
            return role
    if _SYSTEM in older:
        action = "write it as 'goal', with 'capabilities', 'procedure' and 'output'"
        notes.tell(f"'{_SYSTEM}'", (*path, _SYSTEM), first.key, action=action)
        return _mend_system(role)
    mended = _mend_phases(role, by_name)
    if mended is None:
        message = "'prepare' and 'execute' are not both text"
        hint = "write 'procedure'"
        notes.fail(message, (*path, first.name), first.key, hint=hint)
        return role
    action = (
        "name identity 'goal', prepare and execute 'procedure', and report 'output'"
    )
    notes.tell(_FORM_OF_PHASES, (*path, first.name), first.key, action=action)
    return mended


def _mend_system(role: Mark) -> Mark:
    role = rename(role, _SYSTEM, "goal")
    before = "goal"
    for name in ("procedure", "output"):
        if name not in role.value:
            role = put_after(role, name, make_mark("", role), after=before)
        before = name
    return role


def _mend_phases(role: Mark, by_name: dict[str, MarkedEntry]) -> Mark | None:
    prepare, execute = by_name.get("prepare"), by_name.get("execute")
    if prepare is not None and execute is not None:
        joined = _join(prepare.value, execute.value)
        if joined is None:
            return None
        # The one with text keeps its place; of two texts, the first.
        role = with_entries(
            role,
            (
                entry._replace(value=joined) if entry.name == "prepare" else entry
                for entry in entries(drop(role, "execute"))
            ),
        )
    for name, current in _PHASES.items():
        if name in role.value:
            role = rename(role, name, current)
    return role


def _join(prepare: Mark, execute: Mark) -> Mark | None:
    first, second = text_of(prepare), text_of(execute)
    if first is None or second is None:
        return None
    if not first.strip():
        return execute
    if not second.strip():
        return prepare
    return with_text(prepare, f"{first.rstrip()}\n\n{second}")
