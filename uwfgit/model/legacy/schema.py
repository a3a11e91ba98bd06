"""Older ways to say how a role can end: ``status``, ``_``, or nothing (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import compress
from typing import Final

from msgspec.structs import replace

from uwfgit.constants import STATUS, SUSPEND
from uwfgit.model.findings import is_free
from uwfgit.model.legacy.graph import UNIT
from uwfgit.model.legacy.parts import (
    BRANCHES,
    MAX_DEPTH,
    Notes,
    RoleEnds,
    branches_of,
    declares,
    each_branch,
    objects_of,
    properties_of,
)
from uwfgit.model.schema.variants import find_variants
from uwfgit.model.yaml.edit_marks import (
    MarkedEntry,
    drop,
    entries,
    is_list,
    is_map,
    items,
    make_mark,
    map_entries,
    map_items,
    put,
    put_after,
    put_first,
    rename,
    text_of,
    update,
    with_items,
    with_text,
)
from uwfgit.model.yaml.located import Mark, ValuePath
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
    schema = _drop_statuses(role.schema, names)
    text = text_of(role.output)
    first = waiting[0]
    path: ValuePath = (*role.node_path, first.name)
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
    if output is not None:
        said = [_sentence(entry.name, entry.value.value) for entry in waiting]
        ending = "\n" if output.value.endswith("\n") else ""
        output = with_text(output, "\n\n".join((text.rstrip(), *said)) + ending)
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


def _drop_own(schema: Mark, names: Collection[str]) -> Mark | None:
    """Take statuses out of what a schema itself lists; ``None``: it has no other."""

    def is_kept(status: Json) -> bool:
        return not isinstance(status, str) or status not in names

    own = properties_of(schema.value).get(STATUS)
    own = own if isinstance(own, dict) else {}
    listed = own.get("enum")
    kept = [*map(is_kept, listed)] if isinstance(listed, list) else []
    if not is_kept(own.get("const")) or (kept and not any(kept)):
        return None
    if all(kept):
        return schema
    path: ValuePath = ("properties", STATUS, "enum")
    return update(
        schema, path, lambda enum: with_items(enum, compress(items(enum), kept))
    )


def _drop_statuses(schema: Mark, names: Collection[str]) -> Mark | None:
    """Take statuses out of a schema; ``None`` when nothing would be left of it."""
    left_of_own = _drop_own(schema, names)
    if left_of_own is None:
        return None
    schema = left_of_own
    for key in BRANCHES:
        branches = schema.child(key)
        if branches is None or not is_list(branches):
            continue
        kept = [
            _drop_statuses(each, names) if is_map(each) else each
            for each in items(branches)
        ]
        left = [each for each in kept if each is not None]
        if not left or (key == "allOf" and len(left) < len(kept)):
            return None
        if any(a is not b for a, b in zip(kept, items(branches), strict=True)):
            schema = put(schema, key, with_items(branches, left))
    return schema


PLAIN: Final = "status"
DONE: Final = "done"


def mend_statuses(root: Mark, notes: Notes) -> tuple[Mark, frozenset[str]]:
    """Let every role report its end as ``$status``.

    Returns:
        The document, and the roles whose ``status`` was renamed.
    """
    graph = root.child("graph")
    renamed: set[str] = set()
    nodes: dict[str, Mark] = {}

    def mend(entry: MarkedEntry) -> Mark:
        fields = entry.value
        schema = fields.child("frontmatter") if is_map(fields) else None
        if schema is None or not is_map(schema) or is_free(entry.name):
            return fields
        old = RoleEnds(
            name=entry.name,
            schema=schema,
            schema_path=("roles", entry.name, _schema_name(notes, entry.name)),
            node=graph.child(entry.name) if graph is not None else None,
            output=fields.child("output"),
        )
        new = _mend_role(old, notes)
        if declares(schema.value, PLAIN) and not declares(new.schema.value, PLAIN):
            renamed.add(entry.name)
        if new.node is not None and new.node is not old.node:
            nodes[entry.name] = new.node
        fields = update(fields, ("frontmatter",), lambda _: new.schema)
        output = new.output
        if output is None:
            return fields
        return update(fields, ("output",), lambda _: output)

    root = update(root, ("roles",), lambda mark: map_entries(mark, mend))
    root = update(
        root,
        ("graph",),
        lambda mark: map_entries(mark, lambda each: nodes.get(each.name, each.value)),
    )
    return root, frozenset(renamed)


def _schema_name(notes: Notes, name: str) -> str:
    """Return the key of the schema as the file has it."""
    role = notes.found.doc.find(("roles", name))
    names = ("frontmatter", "meta", "outputSchema")
    own = role.value if is_map(role) and role is not None else {}
    return next((each for each in names if each in own), "frontmatter")


def _mend_role(role: RoleEnds, notes: Notes) -> RoleEnds:
    listed = is_list(role.node)
    role = _rename_status(role, listed=listed, notes=notes)
    if listed or not is_map(role.node):
        return role
    role = mend_suspend(role, notes)
    return _mend_single(role, notes)


# --- status becomes $status ---


def _rename_status(role: RoleEnds, *, listed: bool, notes: Notes) -> RoleEnds:
    found: list[tuple[ValuePath, Mark]] = []
    schema = _rename_in(role.schema, role.schema_path, found, listed=listed)
    if not found:
        return role
    action = f"write '{STATUS}'"
    form = f"'{PLAIN}' in a schema"
    for path, key in found:
        notes.tell(form, path, key, action=action)
    return replace(role, schema=schema)


def _rename_in(
    schema: Mark, path: ValuePath, found: list[tuple[ValuePath, Mark]], *, listed: bool
) -> Mark:
    """Rename ``status`` wherever nothing around it has a ``$status``."""
    if not declares(schema.value, STATUS):
        objects = map(properties_of, objects_of(schema.value))
        plain = [each[PLAIN] for each in objects if PLAIN in each]
        if not any(_is_status(each, listed=listed) for each in plain):
            return schema
        return _rename_all(schema, path, found)
    if len(path) > MAX_DEPTH or STATUS in properties_of(schema.value):
        return schema
    for key in ("anyOf", "oneOf"):
        # Only alternatives that tell the status apart are older in part.
        if any(declares(each, STATUS) for each in branches_of(schema.value, key)):
            schema = each_branch(
                schema,
                lambda own, each: _rename_in(each, (*path, *own), found, listed=listed),
                keys=(key,),
            )
    return schema


def _is_status(value: Json, *, listed: bool) -> bool:
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("const"), str):
        return True
    if isinstance(value.get("enum"), list):
        return all(isinstance(each, str) for each in value["enum"])
    # The edges of a list ask for no status, so there a text may be any text.
    return not listed and value.get("type") == "string"


def _rename_all(
    schema: Mark, path: ValuePath, found: list[tuple[ValuePath, Mark]]
) -> Mark:
    if len(path) > MAX_DEPTH:
        return schema
    properties = schema.child("properties")
    if properties is not None and PLAIN in properties_of(schema.value):
        key = properties.key(PLAIN)
        if key is not None:
            found.append(((*path, "properties", PLAIN), key))
        schema = put(schema, "properties", rename(properties, PLAIN, STATUS))
        schema = _require(schema)
    required = schema.child("required")
    if required is not None and is_list(required) and PLAIN in required.value:
        others = (
            with_text(item, STATUS) if item.value == PLAIN else item
            for item in items(required)
        )
        schema = put(schema, "required", with_items(required, others))
    return each_branch(
        schema, lambda own, each: _rename_all(each, (*path, *own), found)
    )


def _require(schema: Mark) -> Mark:
    """Let a schema require ``$status``, or what will be renamed to it."""
    required = schema.child("required")
    if required is None:
        made = make_mark([STATUS], schema)
        return put_after(schema, "required", made, after="properties")
    if not is_list(required) or {STATUS, PLAIN} & set(map(str, required.value)):
        return schema
    first = make_mark(STATUS, required)
    return put(schema, "required", with_items(required, (first, *items(required))))


# --- a role with one way to end ---


def _mend_single(role: RoleEnds, notes: Notes) -> RoleEnds:
    node = role.node
    if node is None:
        return role
    unit = node.key(UNIT)
    if unit is None and len(role.drawn) != 1:
        return role
    known = {variant.status for variant in find_variants(role.schema.value)}
    if unit is not None and (len(role.drawn) > 1 or len(known) > 1):
        beside = "edges" if len(role.drawn) > 1 else "statuses"
        message = f"status '{UNIT}' of role '{role.name}' stands beside other {beside}"
        hint = "name the status, in the graph and as $status const"
        notes.fail(message, (*role.node_path, UNIT), unit, hint=hint)
        return role
    status = role.drawn[0]
    if unit is not None:
        status = next(iter(known - {UNIT}), DONE)
        form, action = f"status '{UNIT}'", f"name the status: '{status}'"
        notes.tell(form, (*role.node_path, UNIT), unit, action=action)
        schema = _rename_unit(role.schema, status) if UNIT in known else role.schema
        role = replace(role, node=rename(node, UNIT, status), schema=schema)
    if known or not _may_gain_status(role):
        return role
    return _gain_status(role, status, notes, has_unit=unit is not None, at=node)


def _gain_status(
    role: RoleEnds, status: str, notes: Notes, *, has_unit: bool, at: Mark
) -> RoleEnds:
    before = notes.found.doc.find(role.schema_path)
    was_plain = before is not None and declares(before.value, PLAIN)
    if not has_unit and not was_plain:
        if declares(role.schema.value, STATUS):
            return role
        form = f"a role without '{STATUS}'"
        action = f"add '{STATUS}: {{ const: {status} }}' to its properties"
        holder = notes.found.doc.find(role.schema_path[:-1])
        key = holder.key(role.schema_path[-1]) if holder is not None else None
        notes.tell(form, role.schema_path, key or role.schema, action=action)
    return replace(role, schema=_add_status(role.schema, status, at=at))


def _rename_unit(schema: Mark, status: str, depth: int = 0) -> Mark:
    """Name the status where the schema itself says ``_``."""
    if depth > MAX_DEPTH:
        return schema
    schema = update(
        schema,
        ("properties", STATUS),
        lambda own: map_entries(
            own,
            lambda entry: (
                map_items(entry.value, lambda _, item: _named(item, status))
                if entry.name == "enum" and is_list(entry.value)
                else _named(entry.value, status)
                if entry.name in {"const", "default"}
                else entry.value
            ),
        ),
    )
    return each_branch(schema, lambda _, each: _rename_unit(each, status, depth + 1))


def _named(mark: Mark, status: str) -> Mark:
    return with_text(mark, status) if mark.value == UNIT else mark


def _may_gain_status(role: RoleEnds) -> bool:
    """Whether a ``$status`` beside the properties would let a reply through."""
    value = role.schema.value
    if value.get("type", "object") != "object":
        return False
    if not isinstance(value.get("properties", {}), dict):
        return False
    return not any(
        each.get("additionalProperties") is False for each in objects_of(value)[1:]
    )


def _add_status(schema: Mark, status: str, *, at: Mark) -> Mark:
    made = make_mark({STATUS: {"const": status}}, at)
    properties = schema.child("properties")
    if properties is None:
        schema = put(schema, "properties", made)
    else:
        const = made.child(STATUS) or made
        schema = put(schema, "properties", _with_const(properties, const))
    return _require(schema)


def _with_const(properties: Mark, made: Mark) -> Mark:
    own = properties.child(STATUS)
    if own is None or not is_map(own):
        return put_first(drop(properties, STATUS), STATUS, made)
    const = made.child("const") or made
    return put(properties, STATUS, put(own, "const", const))
