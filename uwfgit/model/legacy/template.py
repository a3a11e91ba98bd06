"""Older templates: Liquid, and ``status`` where it is ``$status`` now (pure)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Final

from msgspec import Struct

from uwfgit.constants import STATUS
from uwfgit.model.findings import is_free
from uwfgit.model.legacy.parts import Notes
from uwfgit.model.legacy.schema import PLAIN
from uwfgit.model.schema.subschema import may_be
from uwfgit.model.schema.variants import find_variants, merge_forms
from uwfgit.model.template.liquid import Describe, Known, is_liquid, write_as_mustache
from uwfgit.model.yaml.edit_marks import (
    MarkedEntry,
    is_list,
    is_map,
    map_entries,
    map_items,
    put,
    update,
    with_text,
)
from uwfgit.model.yaml.located import Mark, ValuePath
from uwfgit.store.canonical import Json

_STATUS_TAG = re.compile(r"(\{\{\{?[#^/&]?\s*)" + PLAIN + r"(?=\s*(?:\}\}|\|))")
_BODY_TAG = re.compile(r"(\{\{\{?[#^/&]?\s*)\$body(?=\s*(?:\}\}|\|))")
_LIQUID_TAG = re.compile(r"\{%|\{\{-?[^{}]*\|\s*default|\{\{-|-\}\}")


_PARTS: Final = ("prompt", "location")


class _Node(Struct, frozen=True, kw_only=True):
    """What the templates of one node are read against."""

    path: ValuePath
    describe: Callable[[str | None], Describe]
    is_renamed: bool
    notes: Notes


def mend_templates(root: Mark, renamed: Collection[str], notes: Notes) -> Mark:
    """Write the prompts and locations of the graph as Mustache.

    Args:
        root: The document.
        renamed: Roles whose ``status`` became ``$status``.
        notes: What was met.
    """

    def mend(entry: MarkedEntry) -> Mark:
        if is_free(entry.name):
            return entry.value
        schema: Json = root.value.get("roles")
        for part in (entry.name, "frontmatter"):
            schema = schema.get(part) if isinstance(schema, dict) else None
        node = _Node(
            path=("graph", entry.name),
            describe=_describer(schema),
            is_renamed=entry.name in renamed,
            notes=notes,
        )
        return _mend_node(entry.value, node)

    return update(root, ("graph",), lambda graph: map_entries(graph, mend))


def _mend_node(mark: Mark, node: _Node) -> Mark:
    if is_list(mark):
        return map_items(mark, lambda at, edge: _mend_edge(edge, at, None, node))
    return map_entries(
        mark,
        lambda each: (
            each.value
            if is_free(each.name)
            else _mend_edge(each.value, each.name, each.name, node)
        ),
    )


def _mend_edge(edge: Mark, key: str | int, status: str | None, node: _Node) -> Mark:
    for part in _PARTS:
        mark = edge.child(part) if is_map(edge) else None
        if mark is None or not isinstance(mark.value, str):
            continue
        text = mark.value
        if node.is_renamed:
            text = _STATUS_TAG.sub(rf"\g<1>{STATUS}", text)
        path = (*node.path, key, part)
        if _BODY_TAG.search(text):
            tag = _BODY_TAG.search(mark.value)
            place = mark.place_of(tag.start() if tag else 0)
            form, action = "'$body' in a template", "write {{_body}}"
            node.notes.tell(form, path, mark, action=action, place=place)
            text = _BODY_TAG.sub(r"\g<1>_body", text)
        if is_liquid(text):
            text = _mend_liquid(path, mark, text, node.describe(status), node.notes)
        if text != mark.value:
            edge = put(edge, part, with_text(mark, text))
    return edge


def _mend_liquid(
    path: ValuePath, mark: Mark, text: str, describe: Describe, notes: Notes
) -> str:
    written = write_as_mustache(text, describe)
    if written != text:
        tag = _LIQUID_TAG.search(mark.value)
        place = mark.place_of(tag.start() if tag else 0)
        notes.tell(
            "Liquid in a template",
            path,
            mark,
            action="write {{#name}}…{{/name}} and {{^name}}…{{/name}}",
            place=place,
        )
    return written


def _describer(schema: Json) -> Callable[[str | None], Describe]:
    """Return what describes the values of a status; each is worked out once."""

    @cache
    def variants() -> Mapping[str, Mapping[str, Json]]:
        found = find_variants(schema) if isinstance(schema, dict) else ()
        return {variant.status: variant.properties for variant in found}

    @cache
    def any_fields() -> Mapping[str, Json]:
        return merge_forms(schema).properties if isinstance(schema, dict) else {}

    def describe(status: str | None) -> Describe:
        @cache
        def describe_path(path: tuple[str, ...]) -> Known:
            own = variants().get(status) if status is not None else None
            return _describe(any_fields() if own is None else own, path)

        return lambda path: describe_path(tuple(path))

    return describe


def _describe(fields: Mapping[str, Json], path: Sequence[str]) -> Known:
    schema: Json = fields.get(path[0])
    for part in path[1:]:
        if not isinstance(schema, Mapping):
            return Known("other")
        if part.isdigit() and "items" in schema:
            schema = schema["items"]
        else:
            schema = merge_forms(schema).properties.get(part)
    if not isinstance(schema, Mapping):
        return Known("other")
    if "items" in schema or ("type" in schema and may_be(schema, "array")):
        return Known("list", _names(schema.get("items")))
    names = _names(schema)
    return Known("mapping", names) if names else Known("other")


def _names(schema: Json) -> frozenset[str]:
    if not isinstance(schema, Mapping):
        return frozenset()
    return frozenset(merge_forms(schema).properties)
