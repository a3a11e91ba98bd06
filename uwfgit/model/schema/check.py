"""JSON Schemas and the values they describe: the only user of jsonschema (pure).

A schema is draft 2020-12 without references: it fetches nothing and cannot
recurse. jsonschema is imported at the first use, since starting up counts.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeAlias

from uwfgit.constants import WORK_SECONDS
from uwfgit.errors import OverrunError
from uwfgit.ids import Hash, is_hash
from uwfgit.model.bounded import run_bounded
from uwfgit.model.schema.declared import find_closed_out, find_undeclared
from uwfgit.model.schema.fit import Test, compile_fit, mentions_refs
from uwfgit.model.schema.messages import (
    SchemaProblem,
    Violation,
    describe_errors,
    describe_overrun,
    shorten,
)
from uwfgit.model.schema.plain import is_plainly_valid
from uwfgit.model.schema.subschema import (
    MAX_SCHEMA_DEPTH,
    SchemaPath,
    iter_subschemas,
    matches,
    measure_depth,
)
from uwfgit.store.canonical import Json

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, FormatChecker, ValidationError
    from jsonschema.protocols import Validator

_NAME: Final = "rfc3987_syntax"


def defer_iri_grammar() -> None:
    """Put the stand-in in place, unless the grammar is loaded already."""
    if _NAME not in sys.modules:
        stand_in = ModuleType(_NAME, "Loads the real module at the first call.")
        vars(stand_in)["is_valid_syntax"] = _is_valid_syntax
        sys.modules[_NAME] = stand_in


def _is_valid_syntax(term: str, text: str) -> bool:
    if getattr(sys.modules.get(_NAME), "is_valid_syntax", None) is _is_valid_syntax:
        del sys.modules[_NAME]
    return bool(importlib.import_module(_NAME).is_valid_syntax(term, text))


__all__ = [
    "SchemaPath",
    "SchemaProblem",
    "Violation",
    "check_schema",
    "find_refs",
    "schema_violations",
    "validate_payload",
    "validate_value",
]

# Before the first import of jsonschema, wherever in this module that is.
defer_iri_grammar()

REF_FORMAT: Final = "ocas_ref"

_REFUSED: Final = ("$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions")
_FORMATS: Final = frozenset(
    "date date-time time duration email idn-email hostname idn-hostname ipv4 ipv6 uri "
    "uri-reference iri iri-reference uuid uri-template json-pointer "
    f"relative-json-pointer regex {REF_FORMAT}".split()
)
_SLOW_FORMATS: Final = frozenset(
    ("iri", "iri-reference", "uri-template", "regex", "idn-hostname", "idn-email")
)
_SLOW_CHARS: Final = 4_096
"""No text of these formats is longer; checking takes seconds for one that is."""
_NODE_SECONDS: Final = 4 * WORK_SECONDS
"""A node may be many times as large as an answer, and is checked once."""
_UNFIT: Final = (ValueError, OverflowError, RecursionError, re.error)
"""What checking a hostile string may raise beside what jsonschema expects."""


def check_schema(schema: Json) -> tuple[SchemaProblem, ...]:
    """Check a schema as draft 2020-12 and by uwf's own rules.

    Fetches nothing; equal schemas are checked once.
    """
    try:
        return run_bounded(lambda: _check(_canonical(schema)), "checking a schema")
    except OverrunError as exc:
        found = describe_overrun(exc)
        return (SchemaProblem(path=(), code="J1", message=found.message),)


def validate_value(
    schema: Json, value: Json, *, is_link: Callable[[str], bool] | None = None
) -> tuple[Violation, ...]:
    """Check a value, formats included; at most 100 violations are told.

    A schema that :func:`check_schema` refuses is one violation, never an
    exception, and so is one that a value cannot be checked against within limits.
    Nothing is coerced.

    Args:
        schema: The schema.
        value: The value.
        is_link: Tells which strings a ``format: ocas_ref`` accepts; without it
            any that has the shape of a hash.
    """
    key = _canonical(schema)
    fit = _find_fit(key, has_links=is_link is not None)
    if fit is not None and fit(value):
        return ()
    return _bounded(lambda: _validate(_compile(key, is_trusted=False), value, is_link))


@lru_cache(maxsize=256)
def _find_fit(key: str, *, has_links: bool) -> Test | None:
    """Make what tells at a glance, so that nobody has to import jsonschema."""
    schema = json.loads(key)
    if not is_plainly_valid(schema) or (has_links and mentions_refs(schema)):
        return None
    return compile_fit(schema)


def validate_payload(
    schema: Json, payload: Json, *, is_packaged: bool
) -> tuple[Violation, ...]:
    """Check the payload of a node against the schema of its type.

    Args:
        schema: The schema.
        payload: The payload.
        is_packaged: Whether the schema came with uwf: checking that one would take
            longer than the rest of a step, and most that is put fits at a glance.
    """
    if not is_packaged:
        return _bounded(lambda: validate_value(schema, payload), _NODE_SECONDS)
    fit = compile_fit(schema)
    if fit is not None and fit(payload):
        return ()
    compiled = _compile(_canonical(schema), is_trusted=True)
    found = _validate(compiled, payload, None)
    # jsonschema takes a line break behind an oid for no part of it.
    return found or (Violation(path=(), message="does not fit its type"),)


def _bounded(
    work: Callable[[], tuple[Violation, ...]], seconds: float = WORK_SECONDS
) -> tuple[Violation, ...]:
    try:
        return run_bounded(work, "checking a value", seconds=seconds)
    except OverrunError as exc:
        return (describe_overrun(exc),)


def _canonical(schema: Json) -> str:
    return json.dumps(schema, sort_keys=True)


@lru_cache(maxsize=256)
def _check(key: str) -> tuple[SchemaProblem, ...]:
    schema = json.loads(key)
    if measure_depth(schema) > MAX_SCHEMA_DEPTH:
        message = f"schemas are nested deeper than {MAX_SCHEMA_DEPTH}"
        return (SchemaProblem(path=(), code="J1", message=message),)
    return (
        *_find_invalid(schema),
        *_find_refused(schema),
        *find_undeclared(schema),
        *find_closed_out(schema),
        *_find_unknown_formats(schema),
    )


def _find_invalid(schema: Json) -> Iterator[SchemaProblem]:
    if is_plainly_valid(schema):
        return
    for violation in describe_errors(_meta_validator().iter_errors(schema)):
        yield SchemaProblem(
            path=violation.path,
            code="J1",
            message=f"not a valid JSON Schema: {violation.message}",
            hint="write it as JSON Schema draft 2020-12",
        )


def _find_refused(schema: Json) -> Iterator[SchemaProblem]:
    for path, inner in iter_subschemas(schema):
        for key in _REFUSED:
            if key in inner:
                yield SchemaProblem(
                    path=(*path, key),
                    code="J2",
                    message=f"'{key}' is not allowed in a schema",
                    hint="write the schema out, or use a YAML anchor and alias",
                )


def _find_unknown_formats(schema: Json) -> Iterator[SchemaProblem]:
    for path, inner in iter_subschemas(schema):
        name = inner.get("format")
        if isinstance(name, str) and name not in _FORMATS:
            yield SchemaProblem(
                path=(*path, "format"),
                code="J4",
                message=shorten(f"unknown format '{name}' is not checked"),
                hint=f"known are {', '.join(sorted(_FORMATS))}",
                severity="warning",
            )


@cache
def _meta_validator() -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - see above

    checkers = {"regex": _formats()["regex"]}
    return Draft202012Validator(
        Draft202012Validator.META_SCHEMA, format_checker=_format_checker(checkers)
    )


_Raises: TypeAlias = type[Exception] | tuple[type[Exception], ...]
_Checkers: TypeAlias = dict[str, tuple[Callable[[object], bool], _Raises]]


@cache
def _formats() -> _Checkers:
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - see above

    known = Draft202012Validator.FORMAT_CHECKER.checkers
    formats: _Checkers = {REF_FORMAT: (_is_ref(is_hash), ())}
    for name in _FORMATS.intersection(known):
        check, raises = known[name]
        expected = raises if isinstance(raises, tuple) else (raises,)
        own = _short_only(check) if name in _SLOW_FORMATS else check
        formats[name] = (own, (*expected, *_UNFIT))
    return formats


def _short_only(check: Callable[[object], bool]) -> Callable[[object], bool]:
    """Let no text through that is far longer than any of its format."""
    return lambda value: (
        not (isinstance(value, str) and len(value) > _SLOW_CHARS) and check(value)
    )


def _is_ref(is_link: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or is_link(value)


def _format_checker(checkers: _Checkers) -> FormatChecker:
    from jsonschema import FormatChecker  # noqa: PLC0415 - see above

    checker = FormatChecker(formats=())
    # The class's own table must stay as it is: this one is per instance.
    checker.checkers = checkers
    return checker


@lru_cache(maxsize=256)
def _compile(
    key: str, *, is_trusted: bool
) -> Draft202012Validator | tuple[Violation, ...]:
    """Make a validator, or say why the schema gives none."""
    from referencing import Registry  # noqa: PLC0415 - see above

    violations = () if is_trusted else schema_violations(_check(key))
    return violations or _validator_class()(
        json.loads(key),
        registry=Registry(),
        format_checker=_format_checker(_formats()),
    )


@cache
def _validator_class() -> type[Draft202012Validator]:
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - see above

    changed: type[Draft202012Validator] = validators.extend(  # type: ignore[no-untyped-call]  # its stubs lack it
        Draft202012Validator, {"uniqueItems": _check_unique}
    )
    return changed


def _check_unique(
    _validator: Validator, wanted: Json, instance: Json, _schema: Json
) -> Iterator[ValidationError]:
    """Find equal items in one pass; the library compares each with each."""
    from jsonschema import ValidationError  # noqa: PLC0415 - see above

    if not wanted or not isinstance(instance, list):
        return
    # As JSON: there 1 and 1.0 are equal, and 1 and true are not.
    written = {_canonical(_as_json(item)) for item in instance}
    if len(written) < len(instance):
        yield ValidationError("has items that are equal")


def _as_json(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value


def schema_violations(problems: tuple[SchemaProblem, ...]) -> tuple[Violation, ...]:
    """Return the errors among a schema's problems as violations."""
    return tuple(
        Violation(path=problem.path, message=problem.message)
        for problem in problems
        if problem.severity == "error"
    )


def _validate(
    compiled: Draft202012Validator | tuple[Violation, ...],
    value: Json,
    is_link: Callable[[str], bool] | None,
) -> tuple[Violation, ...]:
    if isinstance(compiled, tuple):
        return compiled
    validator: Validator = compiled
    if is_link is not None:
        checkers: _Checkers = {**_formats(), REF_FORMAT: (_is_ref(is_link), ())}
        validator = compiled.evolve(format_checker=_format_checker(checkers))
    try:
        return describe_errors(validator.iter_errors(value))
    except RecursionError:
        return (Violation(path=(), message="is nested too deeply to check"),)


def find_refs(schema: Json, payload: Json) -> tuple[Hash, ...]:
    """Find the hashes in a payload where its schema says ``format: ocas_ref``.

    Schema and payload are walked together, every alternative of the schema
    included; each hash is given once, in order.

    Raises:
        OverrunError: They cannot be found within limits.
    """
    if f'"{REF_FORMAT}"' not in _canonical(schema):
        return ()
    return run_bounded(
        lambda: tuple(dict.fromkeys(_iter_refs(schema, payload))),
        "looking for the links of a node",
    )


def _iter_refs(schema: Json, payload: Json) -> Iterator[Hash]:
    if not isinstance(schema, Mapping):
        return
    if schema.get("format") == REF_FORMAT and isinstance(payload, str):
        if is_hash(payload):
            yield Hash(payload)
        return
    for key in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(key)
        for branch in branches if isinstance(branches, list) else ():
            yield from _iter_refs(branch, payload)
    for key in ("if", "then", "else"):
        yield from _iter_refs(schema.get(key), payload)
    if isinstance(payload, Mapping):
        yield from _iter_property_refs(schema, payload)
    elif isinstance(payload, (list, tuple)):
        first = schema.get("prefixItems")
        first = first if isinstance(first, list) else []
        for index, item in enumerate(payload):
            inner = first[index] if index < len(first) else schema.get("items")
            yield from _iter_refs(inner, item)


def _iter_property_refs(
    schema: Mapping[str, Json], payload: Mapping[str, Json]
) -> Iterator[Hash]:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    patterns = schema.get("patternProperties")
    patterns = patterns if isinstance(patterns, Mapping) else {}
    for name, item in payload.items():
        inner = [properties[name]] if name in properties else []
        inner += [s for pattern, s in patterns.items() if matches(pattern, name)]
        for each in inner or [schema.get("additionalProperties")]:
            yield from _iter_refs(each, item)
