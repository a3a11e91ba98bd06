"""Rules J* and C*: the roles' schemas, and how they fit the graph."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from msgspec import Struct

from uwfgit.constants import ERROR_STATUS, INJECTED, STATUS, SUSPEND
from uwfgit.model.findings import RuleFindings, kind_of, list_names
from uwfgit.model.rules.shape import Draft, describe_bad_status, is_status
from uwfgit.model.schema.check import check_schema, validate_value
from uwfgit.model.schema.subschema import may_be
from uwfgit.model.schema.variants import Form, Variant, find_forms, find_variants
from uwfgit.model.yaml.located import ValuePath
from uwfgit.store.canonical import Json

_BRANCHES: Final = ("allOf", "anyOf", "oneOf")
_PARTS: Final = ("if", "then", "else")
_MAX_DEPTH: Final = 40


class _Status(Struct, frozen=True, kw_only=True):
    """One ``$status`` a schema names, and where it does."""

    value: Json
    path: ValuePath


_INPUT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


def check_schemas(found: RuleFindings, draft: Draft) -> dict[str, tuple[Variant, ...]]:
    """Report rules J* and C*.

    Returns:
        The variants of each role whose statuses are certain.
    """
    _check_inputs(found)
    variants: dict[str, tuple[Variant, ...]] = {}
    for role, fields in draft.roles.items():
        schema = fields.get("frontmatter")
        if not isinstance(schema, dict):
            continue
        path: ValuePath = ("roles", role, "frontmatter")
        if not _check_validity(found, path, schema):
            continue
        _check_injected(found, path, schema)
        _check_declared(found, path, schema, drawn=_drawn(draft, role))
        if role not in draft.listed and _check_statuses(found, path, schema):
            own = find_variants(schema)
            # With nothing but a status no role may declare, nothing is certain.
            if any(variant.status != SUSPEND for variant in own):
                variants[role] = own
    return variants


def check_edges(
    found: RuleFindings, draft: Draft, variants: Mapping[str, tuple[Variant, ...]]
) -> set[str]:
    """Report rules C4 and C5; give the roles that lack an edge."""
    incomplete = set()
    for role, own in variants.items():
        is_drawn = role in draft.nodes
        if not is_drawn or not isinstance(found.doc.value["graph"][role], dict):
            continue
        drawn = _drawn(draft, role)
        known = {variant.status for variant in own}
        missing = [s for s in sorted(known - {SUSPEND}) if s not in drawn]
        path: ValuePath = ("graph", role)
        for status in (each for each in drawn if each not in known):
            similar = found.find_similar(status, missing)
            if similar is not None:
                missing.remove(similar)
            hint = f"did you mean '{similar}'?" if similar else "remove the edge"
            message = f"'{role}' cannot report '{status}'"
            found.add("C4", (*path, status), message, hint=hint, key=True)
        for status in missing:
            incomplete.add(role)
            message = f"'{role}' can report '{status}', which has no edge"
            hint = f"add '{status}: {{ role: …, prompt: … }}'"
            found.add("C5", (*path, status), message, hint=hint)
    return incomplete


def _check_inputs(found: RuleFindings) -> None:
    inputs = found.doc.value.get("inputs")
    for name, schema in (inputs if isinstance(inputs, dict) else {}).items():
        path: ValuePath = ("inputs", name)
        if not _INPUT_NAME.fullmatch(str(name)):
            message = f"'{name}' cannot be the name of an input"
            hint = "use letters, digits and '_', a letter first: templates say its name"
            found.add("S7", path, message, hint=hint, key=True)
        if not isinstance(schema, dict):
            message = f"'{name}' is {kind_of(schema)}, not a JSON Schema"
            found.add("S3", ("inputs", name), message, hint="write a JSON Schema")
            continue
        if not _check_validity(found, path, schema):
            continue
        if schema.get("writeOnly"):
            message = "a 'writeOnly' input: what a run is given is kept for good"
            hint = "let the agent read the secret from its environment"
            found.add("J2", (*path, "writeOnly"), message, hint=hint, key=True)
        default = schema.get("default")
        for each in validate_value(schema, default) if "default" in schema else ():
            message = f"the default does not fit its own schema: {each.message}"
            own = (*path, "default", *each.path)
            found.add("J1", own, message, hint="give a default that fits")


def _check_validity(found: RuleFindings, path: ValuePath, schema: Json) -> bool:
    """Report rules J*; tell whether the schema can be judged further."""
    sound = True
    for each in check_schema(schema):
        sound = sound and each.severity != "error"
        if each.code == "J3" and _at(schema, each.path) == STATUS:
            # A schema that does not declare it is rule C2's or C6's.
            continue
        hint = each.hint or "see the JSON Schema draft 2020-12"
        found.add(
            each.code,
            (*path, *each.path),
            each.message,
            hint=hint,
            key=each.code == "J2",
            severity=each.severity,
        )
    return sound


def _iter_objects(
    schema: Json, path: ValuePath = (), depth: int = 0
) -> Iterator[tuple[ValuePath, Mapping[str, Json]]]:
    """Yield the schema and the subschemas that describe the same object."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return
    yield path, schema
    for key in _BRANCHES:
        branches = schema.get(key)
        for index, branch in enumerate(branches if isinstance(branches, list) else ()):
            yield from _iter_objects(branch, (*path, key, index), depth + 1)
    for key in _PARTS:
        yield from _iter_objects(schema.get(key), (*path, key), depth + 1)


def _properties(schema: Json) -> Mapping[str, Json]:
    own = schema.get("properties") if isinstance(schema, dict) else None
    return own if isinstance(own, dict) else {}


def _check_injected(found: RuleFindings, path: ValuePath, schema: Json) -> None:
    for inner, part in _iter_objects(schema):
        for name in INJECTED:
            if name in _properties(part):
                own = (*path, *inner, "properties", name)
                message = f"'{name}' is a name the engine gives to templates"
                found.add(
                    "C1", own, message, hint="name the property otherwise", key=True
                )


def _drawn(draft: Draft, role: str) -> Mapping[str, None]:
    """Return the statuses of a role that have an edge, in their order."""
    edges = draft.nodes.get(role, ())
    return dict.fromkeys(edge.status for edge in edges if edge.status is not None)


def _iter_statuses(schema: Json) -> Iterator[_Status]:
    for inner, part in _iter_objects(schema):
        status = _properties(part).get(STATUS)
        if not isinstance(status, dict):
            continue
        path = (*inner, "properties", STATUS)
        if "const" in status:
            yield _Status(value=status["const"], path=(*path, "const"))
        elif isinstance(status.get("enum"), list):
            for index, value in enumerate(status["enum"]):
                yield _Status(value=value, path=(*path, "enum", index))


def _check_declared(
    found: RuleFindings, path: ValuePath, schema: Json, *, drawn: Collection[str]
) -> None:
    """Report rule C8, and statuses of the wrong form that the graph has not."""
    for status in _iter_statuses(schema):
        own = (*path, *status.path)
        if status.value == SUSPEND:
            message = "'$SUSPEND' is not a status of a schema"
            hint = "remove it: any role may report it at any time"
            found.add("C8", own, message, hint=hint)
        elif status.value == ERROR_STATUS:
            message = "'error' is the status of a failed step"
            hint = "name it otherwise: failed, broken"
            found.add("C8", own, message, hint=hint, severity="warning")
        elif isinstance(status.value, str):
            if is_status(status.value) or status.value in drawn:
                continue
            message, hint = describe_bad_status(status.value)
            found.add("S8", own, message, hint=hint)


def _check_statuses(
    found: RuleFindings, path: ValuePath, schema: Mapping[str, Json]
) -> bool:
    """Report rules C2, C3, C6 and C7; tell whether the statuses are certain."""
    alternatives = _find_alternatives(schema)
    if alternatives and not _check_variants(found, path, schema, alternatives):
        return False
    forms = find_forms(schema)
    if not may_be(schema, "object") or any(form.statuses is None for form in forms):
        _report_not_fixed(found, path, schema)
        return False
    _check_required(found, path, schema, forms)
    return True


def _find_alternatives(schema: Json) -> tuple[ValuePath, ...]:
    """Return the variants of the ``oneOf`` (or ``anyOf``) that decides ``$status``.

    One decides it when a branch of it names ``$status``, or when the schema
    names it nowhere and all branches are objects with properties.
    """
    named = STATUS in _properties(schema)
    for inner, part in _iter_objects(schema):
        for key in ("oneOf", "anyOf"):
            branches = part.get(key)
            if not isinstance(branches, list):
                continue
            paths = tuple((*inner, key, index) for index in range(len(branches)))
            decides = any(STATUS in _properties(branch) for branch in branches)
            objects = bool(branches) and all(map(_properties, branches))
            if decides or (objects and not named):
                return paths
    return ()


def _check_variants(
    found: RuleFindings,
    path: ValuePath,
    schema: Json,
    alternatives: Collection[ValuePath],
) -> bool:
    seen: dict[str, ValuePath] = {}
    sound = True
    fixed = _properties(schema).get(STATUS)
    outer = isinstance(fixed, dict) and isinstance(fixed.get("const"), str)
    for inner in alternatives:
        branch = _at(schema, inner)
        status = _properties(branch).get(STATUS)
        const = status.get("const") if isinstance(status, dict) else None
        own = (*path, *inner)
        if isinstance(const, str):
            place = (*own, "properties", STATUS, "const")
            if const in seen:
                message = f"two variants report '{const}'"
                hint = "give each variant its own $status, or make them one"
                found.add("C3", place, message, hint=hint)
                sound = False
            seen[const] = inner
        # A branch may have its status from around it, or from a part of itself.
        elif STATUS in _properties(branch) or not (outer or find_variants(branch)):
            sound = False
            _report_no_const(found, own, branch, status)
    return sound


def _report_no_const(
    found: RuleFindings, own: ValuePath, branch: Json, status: Json
) -> None:
    place = (*own, "properties", STATUS) if status is not None else own
    if isinstance(status, dict) and isinstance(status.get("enum"), list):
        message = "a variant names its $status by 'enum', not 'const'"
        hint = "write one variant for each status"
    elif isinstance(status, dict) and "const" in status:
        place = (*place, "const")
        message = f"a variant's $status is {kind_of(status['const'])}, not text"
        hint = "put it in quotes"
    elif "status" in _properties(branch):
        message, hint = "a variant has no $status const", "write '$status' for 'status'"
    else:
        message = "a variant has no $status const"
        hint = "add '$status: { const: … }' to its properties"
    found.add("C2", place, message, hint=hint)


def _report_not_fixed(
    found: RuleFindings, path: ValuePath, schema: Mapping[str, Json]
) -> None:
    status = _properties(schema).get(STATUS)
    hint = "add '$status: { const: done }' to its properties"
    place = path
    message = "the schema does not fix $status"
    if not may_be(schema, "object"):
        place = (*path, "type")
        message, hint = "the schema is not of an object", "write 'type: object'"
    elif status is not None:
        place = (*path, "properties", STATUS)
        hint = "give it a 'const' of text, or an 'enum' of texts"
    elif "status" in _properties(schema):
        place = (*path, "properties", "status")
        hint = "write '$status' for 'status'"
    found.add("C6", place, message, hint=hint, key=place == path)


def _check_required(
    found: RuleFindings, path: ValuePath, schema: Json, forms: Collection[Form]
) -> None:
    for form in forms:
        if STATUS in form.required or not form.statuses:
            continue
        own = (*path, *form.path)
        part = _at(schema, form.path)
        if isinstance(part, dict) and "required" in part:
            own = (*own, "required")
        shown = list_names(form.statuses)
        message = f"$status is not required, though it is {shown}"
        found.add(
            "C7", own, message, hint="add $status to 'required'", severity="warning"
        )


def _at(schema: Json, path: ValuePath) -> Json:
    for part in path:
        schema = schema[part]
    return schema
