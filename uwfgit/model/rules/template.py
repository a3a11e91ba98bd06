"""Rules T*: what the graph's prompts and locations may name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from uwfgit.constants import INJECTED, INPUTS, START, STATUS
from uwfgit.model.findings import RuleFindings, list_names
from uwfgit.model.rules.shape import Draft
from uwfgit.model.schema.subschema import may_be
from uwfgit.model.schema.variants import Form, Variant, is_named, merge_forms
from uwfgit.model.template.render import (
    Part,
    Section,
    TemplateError,
    Variable,
    parse_template,
)
from uwfgit.model.yaml.located import ValuePath
from uwfgit.store.canonical import Json

_LIQUID = re.compile(r"\{%-?\s*(\w*).*?(?:%\}|$)", re.DOTALL | re.MULTILINE)
_LIQUID_HINTS: Final = {
    "for": "write {{#items}}…{{/items}} for a loop",
    "if": "write {{#name}}…{{/name}} for a condition",
    "unless": "write {{^name}}…{{/name}} for what is absent",
    "else": "write {{^name}}…{{/name}} for the other case",
    "comment": "write {{! … }} for a comment",
    "assign": "name the property itself, templates assign nothing",
}

_DECLARING: Final = frozenset(("properties", "oneOf", "anyOf", "allOf", "type"))
"""Keywords without any of which a schema says nothing of a value."""

Fields: TypeAlias = Variant | Form
Scopes: TypeAlias = tuple["_Scope", ...]
"""Innermost first."""


class _Use(NamedTuple):
    """A name in a template, with the sections it stands in."""

    name: str
    offset: int
    is_section: bool
    sections: tuple[Section, ...]


class _Scope(Struct, frozen=True, kw_only=True):
    """What names mean in some place: a step's output, or an item of it.

    ``anything`` is for an item whose schema names no property at all.
    """

    fields: Fields
    anything: bool = False

    def has(self, path: Sequence[str]) -> bool:
        first = path[0]
        if first == STATUS:
            return len(path) == 1
        if self.anything:
            return True
        if not is_named(self.fields, first):
            return False
        schema = self.fields.properties.get(first)
        return schema is None or any(True for _ in _descend(schema, path[1:]))

    def find(self, path: Sequence[str]) -> tuple[Json, ...]:
        """Find the schemas of what a path names."""
        schema = self.fields.properties.get(path[0])
        return () if schema is None else tuple(_descend(schema, path[1:]))


def check_templates(
    found: RuleFindings, draft: Draft, variants: Mapping[str, tuple[Variant, ...]]
) -> None:
    """Report rules T*.

    Args:
        found: Where problems go.
        draft: The document's parts.
        variants: Those of each role whose statuses are certain.
    """
    for source, edges in draft.nodes.items():
        schema = draft.roles.get(source, {}).get("frontmatter")
        # The edges of a list may follow any variant.
        merged: Form | None = None
        if source in draft.listed and isinstance(schema, dict):
            merged = merge_forms(schema)
        by_status: dict[str | None, list[Variant]] = {}
        for variant in variants.get(source, ()):
            by_status.setdefault(variant.status, []).append(variant)
        for edge in edges:
            texts = {"prompt": edge.prompt, "location": edge.location}
            uses = [
                ((*edge.path, name), use)
                for name, text in texts.items()
                if text is not None
                for use in _read(found, (*edge.path, name), text)
            ]
            _check_inputs(found, uses)
            if source == START:
                _check_start(found, uses)
                continue
            own = by_status.get(edge.status, ())
            if len(own) == 1:
                _check_uses(found, uses, own[0])
            elif merged is not None and merged.properties:
                _check_uses(found, uses, merged)


def _read(found: RuleFindings, path: ValuePath, template: str) -> tuple[_Use, ...]:
    """Return the names a template uses; report T1 and T5, then there are none."""
    liquid = False
    for match in _LIQUID.finditer(template):
        liquid = True
        place = found.doc.place_of(path, match.start())
        hint = _LIQUID_HINTS.get(match[1].removeprefix("end"), "write it as Mustache")
        message = f"'{{% {match[1]} %}}' is Liquid, not Mustache"
        if not match[1].startswith("end"):
            found.add("T5", path, message, hint=hint, place=place)
    try:
        parts = parse_template(template)
    except TemplateError as exc:
        if not (liquid and exc.rule == "T1"):
            place = found.doc.place_of(path, exc.offset)
            hint = exc.hint or "see the Mustache manual: {{name}}, {{#name}}…{{/name}}"
            found.add(exc.rule, path, exc.problems[0].message, hint=hint, place=place)
        return ()
    return () if liquid else tuple(_iter_uses(parts, ()))


def _iter_uses(parts: Iterable[Part], outer: tuple[Section, ...]) -> Iterator[_Use]:
    for part in parts:
        if isinstance(part, Variable):
            yield _Use(part.name, part.offset, is_section=False, sections=outer)
        elif isinstance(part, Section):
            yield _Use(part.name, part.offset, is_section=True, sections=outer)
            yield from _iter_uses(part.children, (*outer, part))


def _check_start(found: RuleFindings, uses: Iterable[tuple[ValuePath, _Use]]) -> None:
    known = {*INJECTED, ""}
    for path, use in uses:
        first = use.name.partition(".")[0]
        if first in known:
            continue
        known.add(first)
        found.add(
            "T4",
            path,
            f"'{use.name}' is always empty in a $START prompt",
            hint="use {{_prompt}} for the task",
            severity="warning",
            place=found.doc.place_of(path, use.offset),
        )


def _check_inputs(found: RuleFindings, uses: Iterable[tuple[ValuePath, _Use]]) -> None:
    """Report rule T2 for inputs that the workflow does not declare, each once."""
    declared = found.doc.value.get("inputs")
    known = declared if isinstance(declared, dict) else {}
    seen: set[str] = set()
    for path, use in uses:
        first, _, rest = use.name.partition(".")
        name = rest.partition(".")[0]
        if first != INPUTS or not name or name in known or name in seen:
            continue
        seen.add(name)
        near = found.find_similar(name, known)
        hint = f"did you mean '{near}'?" if near else "declare it below 'inputs:'"
        place = found.doc.place_of(path, use.offset)
        message = f"'{name}' is not an input of this workflow"
        found.add("T2", path, message, hint=hint, place=place)


def _check_uses(
    found: RuleFindings, uses: Sequence[tuple[ValuePath, _Use]], fields: Fields
) -> None:
    """Report rule T2, each name once, and rule T3, once for the variant."""
    seen: set[str] = set()
    optional: dict[str, tuple[ValuePath, int]] = {}
    # The first use of each name in each section; uses in one share the tuple.
    distinct: dict[tuple[str, bool, int], tuple[ValuePath, _Use]] = {}
    for path, use in uses:
        key = (use.name, use.is_section, id(use.sections))
        distinct.setdefault(key, (path, use))
    for path, use in distinct.values():
        scopes = _scopes(use.sections, fields)
        if not _is_known(use.name, scopes):
            if use.name not in seen:
                seen.add(use.name)
                _report_unknown(found, path, use, fields)
        elif isinstance(fields, Variant) and _may_be_absent(use, scopes, fields):
            optional.setdefault(use.name.split(".")[0], (path, use.offset))
    if optional:
        path, offset = next(iter(optional.values()))
        names = list_names(optional)
        first = next(iter(optional))
        found.add(
            "T3",
            path,
            f"{names} may be absent: this variant does not require it",
            hint=f"add it to 'required', or write {{{{#{first}}}}}…{{{{/{first}}}}}",
            severity="warning",
            place=found.doc.place_of(path, offset),
        )


def _report_unknown(
    found: RuleFindings, path: ValuePath, use: _Use, fields: Fields
) -> None:
    known = [*fields.properties, *INJECTED]
    similar = found.find_similar(use.name, known)
    declared = list_names(n for n in fields.properties if n != STATUS)
    hint = f"did you mean '{similar}'?" if similar else "declare it in this variant"
    if similar is None and declared:
        hint = f"{hint}, or use one of {declared}"
    message = f"'{use.name}' is not declared for this status"
    place = found.doc.place_of(path, use.offset)
    found.add("T2", path, message, hint=hint, place=place)


def _is_known(name: str, scopes: Scopes) -> bool:
    path = name.split(".")
    if name == "." or name in INJECTED or path[0] == INPUTS:
        return True
    return any(scope.has(path) for scope in scopes)


def _may_be_absent(use: _Use, scopes: Scopes, fields: Fields) -> bool:
    """Whether a top-level property is used that no section guards."""
    first = use.name.partition(".")[0]
    if (
        use.is_section
        or not first
        or first in fields.required
        or first in (STATUS, *INJECTED)
    ):
        return False
    guards = [s.name.split(".")[0] for s in use.sections if not s.inverted]
    if first in guards:
        return False
    # An item's own property comes before the output's.
    path = use.name.split(".")
    return not any(scope.has(path) for scope in scopes[:-1])


def _scopes(sections: Iterable[Section], fields: Fields) -> Scopes:
    scopes: Scopes = (_Scope(fields=fields),)
    for section in sections:
        if not section.inverted:
            scopes = (*_item_scopes(section.name, scopes), *scopes)
    return scopes


def _item_scopes(name: str, scopes: Scopes) -> Scopes:
    """Return what a section adds: its item's fields, or its own."""
    path = name.split(".")
    if name == ".":
        return ()
    for scope in scopes:
        if scope.has(path):
            schemas = scope.find(path)
            items = [item for schema in schemas for item in _items(schema)]
            forms = [merge_forms(item) for item in items if _may_be(item, "object")]
            return tuple(
                _Scope(fields=form, anything=not (form.properties or form.closed))
                for form in forms
            )
    return ()


def _items(schema: Json) -> Iterator[Json]:
    """Yield the schemas a section over a value sees: a list's items, or itself."""
    if _may_be(schema, "array") and ("items" in schema or "prefixItems" in schema):
        prefix = schema.get("prefixItems")
        yield from prefix if isinstance(prefix, list) else ()
        yield schema.get("items", True)
    elif isinstance(schema, Mapping) and _DECLARING.isdisjoint(schema):
        yield True
    else:
        yield from (schema,) if _may_be(schema, "object") else ()


def _may_be(schema: Json, kind: str) -> bool:
    if not isinstance(schema, Mapping):
        return kind == "object" and schema is not False
    return may_be(schema, kind)


def _descend(schema: Json, path: Sequence[str]) -> Iterator[Json]:
    """Yield the schemas at a path, as deep as the schema declares."""
    if not path:
        yield schema
        return
    first, rest = path[0], path[1:]
    if _may_be(schema, "array") and first.isdigit() and isinstance(schema, Mapping):
        for item in _items(schema):
            yield from _descend(item, rest)
        return
    if not _may_be(schema, "object"):
        return
    fields = merge_forms(schema)
    if first in fields.properties:
        yield from _descend(fields.properties[first], rest)
    elif is_named(fields, first) or not (fields.properties or fields.closed):
        # Nothing is declared, so anything may be there, however deep.
        yield True
