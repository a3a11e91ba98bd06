"""Mustache templates: the only place that renders them (pure).

Nothing is escaped, and nothing reaches a Python attribute. chevron's renderer
does both and cannot be bounded, so the tests alone use it, as the measure for
lookup. What a template renders to is part of the format (a step's edge prompt
is proved by rendering it again): a change here is a new rules version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from uwfgit.constants import MAX_SAFE_INTEGER, TEMPLATE_MAX_BYTES, TEMPLATE_MAX_TAGS
from uwfgit.model.template.parse import (
    Part,
    Section,
    TemplateError,
    Text,
    Variable,
    parse_template,
)
from uwfgit.store.canonical import Json

__all__ = [
    "Part",
    "Rendered",
    "Section",
    "TemplateError",
    "Text",
    "Variable",
    "format_value",
    "parse_template",
    "render",
]

_INDEX = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A rendered template, and the variables for which there was no value."""

    text: str
    missing: tuple[str, ...] = ()


def render(source: str, values: Mapping[str, Json]) -> Rendered:
    """Fill a template with values.

    Names are looked up in mappings and lists only. A value is never read as a
    template, whatever it looks like.

    Raises:
        TemplateError: The template does not parse, or the result has more than
            100,000 tags or 1 MiB.
    """
    state = _Rendering()
    _render_parts(parse_template(source), (values,), state)
    return Rendered(text="".join(state.output), missing=tuple(state.missing))


@dataclass(slots=True)
class _Rendering:
    """What one rendering has used up and put out so far."""

    output: list[str] = field(default_factory=list)
    missing: dict[str, None] = field(default_factory=dict)
    tags: int = 0
    size: int = 0
    formatted: dict[tuple[int, str | None], str] = field(default_factory=dict)
    """Text of lists and mappings by identity: they outlive the rendering."""

    def write(self, text: str, *, offset: int = 0) -> None:
        self.size += _byte_length(text)
        if self.size > TEMPLATE_MAX_BYTES:
            raise TemplateError("template renders to more than 1 MiB", offset=offset)
        self.output.append(text)

    def count(self, part: Variable | Section) -> None:
        self.tags += 1
        if self.tags > TEMPLATE_MAX_TAGS:
            raise TemplateError(
                f"template renders more than {TEMPLATE_MAX_TAGS:,} tags",
                offset=part.offset,
            )

    def text_of(self, value: Json, separator: str | None) -> str:
        if not isinstance(value, (list, tuple, Mapping)):
            return format_value(value)
        key = (id(value), separator)
        if key not in self.formatted:
            self.formatted[key] = format_value(value, separator=separator)
        return self.formatted[key]


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


_Scopes: TypeAlias = tuple[Json, ...]
"""Innermost first."""


def _render_parts(parts: Sequence[Part], scopes: _Scopes, state: _Rendering) -> None:
    for part in parts:
        if isinstance(part, Text):
            state.write(part.text)
            continue
        state.count(part)
        if isinstance(part, Section):
            _render_section(part, scopes, state)
            continue
        found, value = _look_up(part.name, scopes)
        if not found:
            state.missing[part.name] = None
        state.write(state.text_of(value, part.separator), offset=part.offset)


def _render_section(section: Section, scopes: _Scopes, state: _Rendering) -> None:
    value = _look_up(section.name, scopes)[1]
    # A section without parts could walk a long list for nothing.
    if not section.children or _is_empty(value) is not section.inverted:
        return
    if section.inverted:
        _render_parts(section.children, scopes, state)
        return
    for item in value if isinstance(value, (list, tuple)) else (value,):
        _render_parts(section.children, (item, *scopes), state)


def _is_empty(value: Json) -> bool:
    """Tell whether a section sees nothing: 0 and an empty mapping are values."""
    return (
        value is None
        or value is False
        or (isinstance(value, (str, list, tuple)) and not value)
    )


def _look_up(name: str, scopes: _Scopes) -> tuple[bool, Json]:
    """Find a dotted name, whole, in the innermost scope that has it."""
    if name == ".":
        return True, scopes[0]
    path = name.split(".")
    for scope in scopes:
        found, value = _descend(scope, path)
        if found:
            return True, value
    return False, None


def _descend(scope: Json, path: Sequence[str]) -> tuple[bool, Json]:
    for key in path:
        if isinstance(scope, Mapping):
            if key not in scope:
                return False, None
            scope = scope[key]
        elif isinstance(scope, (list, tuple)):
            if not _INDEX.fullmatch(key) or int(key) >= len(scope):
                return False, None
            scope = scope[int(key)]
        else:
            return False, None
    return _is_json(scope), scope


def _is_json(value: Json) -> bool:
    return value is None or isinstance(value, (str, int, float, list, tuple, Mapping))


def format_value(value: Json, *, separator: str | None = None) -> str:
    """Write a value as a template shows it: text as it is, null as nothing.

    Args:
        value: A JSON value.
        separator: What stands between the items of a list; without it a list
            of scalars has ``, `` and any other list is compact JSON.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)):
        if separator is None and not all(map(_is_scalar, value)):
            return _compact(value)
        between = ", " if separator is None else separator
        return between.join(format_value(item) for item in value)
    return _compact(value)


def _is_scalar(value: Json) -> bool:
    return value is None or isinstance(value, (str, int, float))


def _compact(value: Json) -> str:
    if (
        isinstance(value, float)
        and value.is_integer()
        and abs(value) <= MAX_SAFE_INTEGER
    ):
        value = int(value)
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_plain
    )


def _plain(value: object) -> Json:
    return dict(value) if isinstance(value, Mapping) else None
