"""Mustache templates: the only place that renders them, with chevron (pure).

chevron gets our own tokens and our own scopes: nothing is escaped, names are
looked up in mappings and lists only, no partial is read, and what is looked up
and put out is counted. What a template renders to is part of the format (a
step's edge prompt is proved by rendering it again): a change here is a new rules
version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, TypeAlias

from msgspec import Struct, field

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

_SCALARS: Final = (str, int, float, type(None))
_INDEX = re.compile(r"[0-9]{1,9}", re.ASCII)


class Rendered(Struct, frozen=True, kw_only=True):
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
    import chevron  # noqa: PLC0415 - not for commands that only parse

    state = _Rendering()
    tokens = list(state.tokens(parse_template(source)))
    text = chevron.render(tokens, _Scope(values, state), partials_path=None)
    return Rendered(text=text, missing=tuple(state.missing))


class _Rendering(Struct):
    """What one rendering looks names up by, has used up and has found missing.

    A token names its part by the place in ``tags``: names in two sections may be
    equal, and a name may be a number. Text is one too, so that it is counted.
    """

    tags: list[Part] = field(default_factory=list)
    missing: dict[str, None] = field(default_factory=dict)
    count: int = 0
    size: int = 0
    formatted: dict[tuple[int, str | None], str] = field(default_factory=dict)
    """Text of lists and mappings by identity: they outlive the rendering. A large one
    is written once, however often it stands in a template.
    """

    def tokens(self, parts: Sequence[Part]) -> Iterator[_Token]:
        """Yield what chevron renders for some parts."""
        for part in parts:
            key = f"<{len(self.tags)}>"
            self.tags.append(part)
            if not isinstance(part, Section) or not part.children:
                # A section without parts could walk a long list for nothing.
                yield "no escape", key
                continue
            yield "inverted section" if part.inverted else "section", key
            yield from self.tokens(part.children)
            yield "end", key


_Token: TypeAlias = tuple[str, str]


class _Scope(Struct, eq=False):
    """A value as chevron sees it: what it holds is found by a tag, and nothing else."""

    _CHEVRON_return_scope_when_falsy: ClassVar[bool] = True

    value: Json
    state: _Rendering
    tag: Part | None = None

    def __getitem__(self, key: str) -> _Scope:
        """Return what a tag names in this value.

        Raises:
            KeyError: There is nothing of that name; chevron asks the next scope.
        """
        state = self.state
        tag = state.tags[int(key[1:-1])]
        if isinstance(tag, Text):
            return _Scope(tag.text, state, tag)
        found, value = True, self.value
        if tag.name != ".":
            found, value = _descend(self.value, tag.name.split("."))
        if not found and self.tag is not None:
            raise KeyError(key)
        state.count += 1
        if state.count > TEMPLATE_MAX_TAGS:
            raise TemplateError(
                f"template renders more than {TEMPLATE_MAX_TAGS:,} tags",
                offset=tag.offset,
            )
        if not found:
            # The outermost scope is asked last.
            if isinstance(tag, Variable):
                state.missing[tag.name] = None
            raise KeyError(key)
        kind = _Items if isinstance(value, (list, tuple)) else _Scope
        return kind(value, state, tag)

    def __bool__(self) -> bool:
        """Whether a section of it sees something: 0 and an empty mapping are values."""
        value = self.value
        is_sized = isinstance(value, (str, list, tuple))
        return bool(value) if is_sized else value is not None and value is not False

    def __str__(self) -> str:
        """Write it where its variable stands, and count it."""
        tag, state, offset = self.tag, self.state, 0
        if isinstance(tag, Text):
            text = tag.text
        elif isinstance(tag, Variable):
            offset, key = tag.offset, (id(self.value), tag.separator)
            if (known := state.formatted.get(key)) is None:
                known = format_value(self.value, separator=tag.separator)
                if isinstance(self.value, (list, tuple, Mapping)):
                    state.formatted[key] = known
            text = known
        else:
            return ""
        is_ascii = text.isascii()
        state.size += len(text if is_ascii else text.encode(errors="surrogatepass"))
        if state.size > TEMPLATE_MAX_BYTES:
            raise TemplateError("template renders to more than 1 MiB", offset=offset)
        return text


class _Item(_Scope):
    """An item of a list, for which a section is gone through whatever it is."""

    def __bool__(self) -> bool:
        return True


class _Items(_Scope):
    """A list, whose items a section goes through."""

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[_Scope]:
        return (_Item(item, self.state, self.tag) for item in self.value)


Sequence.register(_Items)
"""chevron goes through sequences; that of the items is all it asks for."""


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
    is_json = isinstance(scope, (*_SCALARS, list, tuple, Mapping))
    return is_json, scope


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
        if separator is None and not all(isinstance(v, _SCALARS) for v in value):
            return _compact(value)
        between = ", " if separator is None else separator
        return between.join(format_value(item) for item in value)
    return _compact(value)


def _compact(value: Json) -> str:
    if (
        isinstance(value, float)
        and value.is_integer()
        and abs(value) <= MAX_SAFE_INTEGER
    ):
        value = int(value)
    return json.dumps(
        value,
        ensure_ascii=False,
        separators=(",", ":"),
        sort_keys=True,
        default=lambda other: dict(other) if isinstance(other, Mapping) else None,
    )
