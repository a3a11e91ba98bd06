"""Schemas as plain predicates: a quick yes, for the keywords in daily use (pure).

jsonschema takes longer to import than a step to be recorded, and longer for one
StepNode than everything else verify does for a step. What is compiled here may only
say that a value surely fits; every other answer is left to ``check``, which also
words the violations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from itertools import chain
from typing import Final, TypeAlias

from uwfgit.ids import Hash, is_hash
from uwfgit.store.canonical import Json

Test: TypeAlias = Callable[[Json], bool]
Collect: TypeAlias = Callable[[Json], Iterable[Hash]]

_REF: Final = "ocas_ref"
_MAX_DEPTH: Final = 12
_PLAIN: Final = (str, bool, type(None))
_IGNORED: Final = frozenset(
    ("title", "description", "$comment", "default", "examples", "deprecated")
)


class _UnknownError(Exception):
    """The schema holds what is not compiled here."""


def compile_fit(schema: Json) -> Test | None:
    """Make a predicate that holds only for values the schema surely accepts.

    ``None`` when the schema uses a keyword that is left to jsonschema.
    """
    try:
        return _compile(schema, 0)
    except _UnknownError:
        return None


def _compile(schema: Json, depth: int) -> Test:
    if schema is True:
        schema = {}
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        raise _UnknownError
    tests = list(_tests(schema, depth))
    return tests[0] if len(tests) == 1 else _all_of(tests)


def _tests(schema: Mapping[str, Json], depth: int) -> Iterator[Test]:
    for key, value in schema.items():
        if key in _MAKERS:
            yield _MAKERS[key](value, depth)
        elif key not in _OBJECT_KEYS and key not in _IGNORED:
            raise _UnknownError
    if _OBJECT_KEYS & schema.keys():
        yield _object(schema, depth)


def _all_of(tests: list[Test]) -> Test:
    def fits(value: Json) -> bool:
        for test in tests:  # noqa: SIM110 - all() with a generator takes twice as long
            if not test(value):
                return False
        return True

    return fits


def _some_of(tests: list[Test]) -> Test:
    def fits(value: Json) -> bool:
        for test in tests:  # noqa: SIM110 - as above
            if test(value):
                return True
        return False

    return fits


def _is_integer(value: Json) -> bool:
    # As JSON Schema has it: 1e300 is an integer, true is none.
    return type(value) is int or (type(value) is float and value.is_integer())


def _is_number(value: Json) -> bool:
    return type(value) is int or type(value) is float


_TYPES: Final[dict[str, Test]] = {
    "string": lambda value: isinstance(value, str),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": _is_number,
}


def _type(names: Json, _depth: int) -> Test:
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, list) or not all(name in _TYPES for name in names):
        raise _UnknownError
    tests = [_TYPES[name] for name in names]
    if len(tests) == 1:
        return tests[0]
    return _some_of(tests)


def _enum(values: Json, _depth: int) -> Test:
    # 1 and 1.0 are told apart by rules that are jsonschema's to know.
    if not isinstance(values, list):
        raise _UnknownError
    if not all(isinstance(value, _PLAIN) for value in values):
        raise _UnknownError
    wanted = frozenset(values)
    # To Python, 1 and true are equal; a plain value is no number.
    return lambda value: isinstance(value, _PLAIN) and value in wanted


def _format(name: Json, _depth: int) -> Test:
    if name != _REF:
        raise _UnknownError
    return lambda value: not isinstance(value, str) or is_hash(value)


def _pattern(text: Json, _depth: int) -> Test:
    # Only the plain shapes of the packaged schemas: a regular expression of
    # unknown origin is no quick yes, and one that repeats a group may never end.
    if not isinstance(text, str) or not _PLAIN_PATTERN.fullmatch(text):
        raise _UnknownError
    # To JSON Schema the end is the end; to Python also what is before a line break.
    search = re.compile(text[:-1] + r"\Z").search
    return lambda value: not isinstance(value, str) or search(value) is not None


_PLAIN_PATTERN: Final = re.compile(
    r"\^(?:[\[\]{}0-9A-Za-z-]{1,80}|\([\[\]|{}0-9A-Za-z-]{1,80}\))\$", re.ASCII
)


def _limit(*, most: bool) -> Callable[[Json, int], Test]:
    """Make what compiles a bound on a number."""

    def compile_bound(bound: Json, _depth: int) -> Test:
        if not _is_number(bound):
            raise _UnknownError
        if most:
            return lambda value: not _is_number(value) or value <= bound
        return lambda value: not _is_number(value) or value >= bound

    return compile_bound


def _size(kind: type[Sized], *, most: bool) -> Callable[[Json, int], Test]:
    """Make what compiles a bound on the length of one kind of value."""

    def compile_bound(bound: Json, _depth: int) -> Test:
        if not _is_integer(bound):
            raise _UnknownError
        if most:
            return lambda value: not isinstance(value, kind) or len(value) <= bound
        return lambda value: not isinstance(value, kind) or len(value) >= bound

    return compile_bound


def _items(schema: Json, depth: int) -> Test:
    test = _compile(schema, depth + 1)
    return lambda value: (
        not isinstance(value, list) or all(test(item) for item in value)
    )


def _branches(schemas: Json, depth: int) -> list[Test]:
    if not isinstance(schemas, list) or not schemas:
        raise _UnknownError
    return [_compile(schema, depth + 1) for schema in schemas]


def _one_of(schemas: Json, depth: int) -> Test:
    # A branch that is not surely right may be right all the same, so exactly
    # one of several is known only where each test is exact; these are.
    tests = _branches(schemas, depth)
    return lambda value: sum(test(value) for test in tests) == 1


_MAKERS: Final[dict[str, Callable[[Json, int], Test]]] = {
    "type": _type,
    "const": lambda wanted, depth: _enum([wanted], depth),
    "enum": _enum,
    "format": _format,
    "pattern": _pattern,
    "minimum": _limit(most=False),
    "maximum": _limit(most=True),
    "minLength": _size(str, most=False),
    "maxLength": _size(str, most=True),
    "minItems": _size(list, most=False),
    "maxItems": _size(list, most=True),
    "minProperties": _size(dict, most=False),
    "maxProperties": _size(dict, most=True),
    "items": _items,
    "oneOf": _one_of,
    "anyOf": lambda schemas, depth: _some_of(_branches(schemas, depth)),
    "allOf": lambda schemas, depth: _all_of(_branches(schemas, depth)),
}
_OBJECT_KEYS: Final = frozenset(("properties", "required", "additionalProperties"))


def _object(schema: Mapping[str, Json], depth: int) -> Test:
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    rest = schema.get("additionalProperties", True)
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        raise _UnknownError
    tests = {name: _compile(inner, depth + 1) for name, inner in properties.items()}
    other = None if isinstance(rest, bool) else _compile(rest, depth + 1)
    needed = frozenset(required)

    def fits(value: Json) -> bool:
        if not isinstance(value, dict):
            return True
        if not needed <= value.keys():
            return False
        if rest is False and not value.keys() <= tests.keys():
            return False
        for name, item in value.items():
            test = tests.get(name, other)
            if test is not None and not test(item):
                return False
        return True

    return fits


def mentions_refs(schema: Json) -> bool:
    """Whether a schema may ask of a string to be the hash of a node."""
    return _mentions_ref(schema, 0)


def compile_refs(schema: Json) -> Collect | None:
    """Make what collects the refs of a payload; ``None`` when there can be none.

    Covers schemas of properties, items and anyOf, as uwf's own are; for any
    other the caller walks schema and payload with ``model.schema.find_refs``.

    Raises:
        ValueError: The schema is of another kind.
    """
    if not _mentions_ref(schema, 0):
        return None
    return _collector(schema)


def _mentions_ref(schema: Json, depth: int) -> bool:
    if depth > _MAX_DEPTH:
        return True
    if isinstance(schema, Mapping):
        return schema.get("format") == _REF or any(
            _mentions_ref(item, depth + 1) for item in schema.values()
        )
    if isinstance(schema, list):
        return any(_mentions_ref(item, depth + 1) for item in schema)
    return False


_WALKED: Final = frozenset(("properties", "items", "anyOf", "additionalProperties"))
_UNWALKED: Final = frozenset(
    ("allOf", "oneOf", "if", "then", "else", "prefixItems", "patternProperties")
)


def _collector(schema: Mapping[str, Json]) -> Collect:
    properties = schema.get("properties", {})
    if _UNWALKED & schema.keys() or not isinstance(properties, Mapping):
        raise ValueError("schema has alternatives that are not compiled")
    if schema.get("format") == _REF:
        if _WALKED & schema.keys():
            raise ValueError("a ref that has parts is not compiled")
        return lambda value: (
            (Hash(value),) if isinstance(value, str) and is_hash(value) else ()
        )
    single = _inner((key, schema.get(key)) for key in ("items", "additionalProperties"))
    parts = [_collector(s) for s in schema.get("anyOf", ()) if _mentions_ref(s, 0)]
    if (inner := single.get("items")) is not None:
        parts.append(
            lambda value: (
                chain.from_iterable(map(inner, value))
                if isinstance(value, list)
                else ()
            )
        )
    if "additionalProperties" in single:
        parts.append(_of_rest(single["additionalProperties"], frozenset(properties)))
    parts += [_of_key(*pair) for pair in _inner(properties.items()).items()]
    if len(parts) == 1:
        return parts[0]
    return lambda value: chain.from_iterable(part(value) for part in parts)


def _of_key(key: str, inner: Collect) -> Collect:
    return lambda value: (
        inner(value[key]) if isinstance(value, dict) and key in value else ()
    )


def _of_rest(inner: Collect, known: frozenset[str]) -> Collect:
    def collect(value: Json) -> Iterator[Hash]:
        if isinstance(value, dict):
            for name, item in value.items():
                if name not in known:
                    yield from inner(item)

    return collect


def _inner(pairs: Iterable[tuple[str, Json]]) -> dict[str, Collect]:
    return {
        name: _collector(inner)
        for name, inner in pairs
        if isinstance(inner, Mapping) and _mentions_ref(inner, 0)
    }
