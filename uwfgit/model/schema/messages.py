"""What is wrong with a value, in words for those who have to mend it (pure).

The only place that reads jsonschema's errors. Messages are short whatever the
value holds, and say what was found and what is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from traceback import walk_tb
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from uwfgit.errors import OverrunError, Severity
from uwfgit.model.schema.subschema import SchemaPath
from uwfgit.model.wording import count_of
from uwfgit.store.canonical import Json, format_path

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MESSAGE_CHARS: Final = 200
MAX_VIOLATIONS: Final = 100
_VALUE_CHARS: Final = 60
_CHOICES: Final = 20

_WALKING: Final = ("iter_errors", "descend")
_MATCHING: Final = ("patternProperties", "matches")
"""Functions of jsonschema, and of our own, that say what they are at in variables."""

_TYPES: Final = {
    "string": "text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


class SchemaProblem(Struct, frozen=True, kw_only=True):
    """A place in a schema that uwf refuses (J1, J2) or warns of (J3 to J5)."""

    path: SchemaPath
    code: str
    message: str
    hint: str | None = None
    severity: Severity = "error"


class Violation(Struct, frozen=True, kw_only=True):
    """A place in a value that does not fit its schema."""

    path: SchemaPath
    message: str

    def __str__(self) -> str:
        """Write it on one line, the place first."""
        return (
            f"{format_path(self.path)}: {self.message}" if self.path else self.message
        )


def shorten(text: str, limit: int = MESSAGE_CHARS) -> str:
    """Cut a text to a length, in one line."""
    line = " ".join(text[: limit + 1].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def describe_errors(errors: Iterable[ValidationError]) -> tuple[Violation, ...]:
    """Say what jsonschema's errors mean; stops at ``MAX_VIOLATIONS``."""
    found: dict[Violation, None] = {}
    for error in errors:
        found |= dict.fromkeys(_describe_error(error))
        if len(found) >= MAX_VIOLATIONS:
            break
    return tuple(found)[:MAX_VIOLATIONS]


def describe_overrun(error: OverrunError) -> Violation:
    """Say where in a value endless work was, and at what of its schema."""
    path: list[str | int] = []
    at = ""
    cause = error.__cause__
    for frame, _ in walk_tb(cause.__traceback__ if cause else None):
        # Nothing else knows the way to a place while the check is at work there.
        name, known = frame.f_code.co_name, frame.f_locals
        if name in _WALKING and "k" in known:
            at = f" against '{known['k']}'"
            at += f" {_quote(known['v'])}" if isinstance(known["v"], str) else ""
            path += [known["path"]] if known.get("path") is not None else []
        elif name in _MATCHING and "pattern" in known:
            at = f" against 'patternProperties' {_quote(known['pattern'])}"
    message = shorten(f"takes more than {error.limit} to check{at}")
    return Violation(path=tuple(path), message=message)


def _describe_error(error: ValidationError) -> Iterator[Violation]:
    path = tuple(error.absolute_path)
    if error.validator in {"anyOf", "oneOf"}:
        yield from _describe_alternatives(error, path)
    elif error.validator == "required":
        # jsonschema gives one error for each, and names it in the message only.
        for name in _wanted(error):
            if name not in _found(error):
                yield Violation(path=(*path, name), message="is required but missing")
    else:
        describe = _DESCRIBERS.get(str(error.validator), _describe_other)
        yield Violation(path=path, message=shorten(describe(error)))


def _describe_alternatives(
    error: ValidationError, path: SchemaPath
) -> Iterator[Violation]:
    if not error.context:
        message = "fits more than one of the allowed forms"
        yield Violation(path=path, message=message)
        return
    by_branch: dict[object, list[ValidationError]] = {}
    for each in error.context:
        # A branch that is false allows nothing, and its error is of no place in it.
        if each.schema_path:
            by_branch.setdefault(each.schema_path[0], []).append(each)
    branches = list(by_branch.values()) or [error.context[:1]]
    types = [_wrong_type(errors) for errors in branches]
    if all(types):
        allowed = [name for names in types for name in names]
        message = _type_message(allowed, _found(error))
        yield Violation(path=path, message=shorten(message))
        return
    closest = min(
        (errors for errors, names in zip(branches, types, strict=True) if not names),
        key=len,
    )
    for inner in closest:
        yield from _describe_error(inner)


def _found(error: ValidationError) -> Json:
    return error.instance


def _wanted(error: ValidationError) -> Json:
    return error.validator_value


def _wrong_type(errors: Iterable[ValidationError]) -> list[str]:
    """Return the types a branch wanted, if the value's type was what failed."""
    for error in errors:
        if error.validator == "type" and not error.path:
            return _names(_wanted(error))
    return []


def _names(types: str | Sequence[str]) -> list[str]:
    return [types] if isinstance(types, str) else list(types)


def _type_message(types: Iterable[str], found: Json) -> str:
    names = list(dict.fromkeys(types))
    wanted = " or ".join(_TYPES.get(name, name) for name in names)
    quotes = "string" in names and isinstance(found, (int, float))
    tail = "; put it in quotes" if quotes else ""
    return f"must be {wanted}, found {name_value(found)}{tail}"


def name_value(value: Json) -> str:
    """Say what a value is, briefly."""
    if isinstance(value, str):
        return f"the text {_quote(value)}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    number = "the number " if type(value) in {int, float} else ""
    return number + json.dumps(value)


def _quote(value: Json) -> str:
    if isinstance(value, str):
        value = value[: _VALUE_CHARS + 1]
    return shorten(json.dumps(value, ensure_ascii=False), _VALUE_CHARS)


def _describe_enum(error: ValidationError) -> str:
    values = list(_wanted(error))
    shown = ", ".join(_quote(value) for value in values[:_CHOICES])
    more = ", …" if len(values) > _CHOICES else ""
    # What was found comes first: a long list of values may be cut off.
    return f"found {name_value(_found(error))}, must be one of {shown}{more}"


def _describe_extra(error: ValidationError) -> str:
    schema: Json = error.schema
    declared = schema.get("properties", {})
    names = [name for name in _found(error) if name not in declared]
    shown = ", ".join(_quote(name) for name in names[:_CHOICES])
    return f"has a field that is not allowed: {shown}"


def _describe_format(error: ValidationError) -> str:
    if _wanted(error) == "ocas_ref":
        return f"{_quote(_found(error))} is not the hash of a node that is known here"
    return f"{_quote(_found(error))} is not a valid {_wanted(error)}"


def _bound(words: str, noun: str | None = None) -> Callable[[ValidationError], str]:
    def describe(error: ValidationError) -> str:
        wanted = _wanted(error) if noun is None else count_of(_wanted(error), noun)
        counted = isinstance(_found(error), (str, list, tuple, Mapping))
        found = len(_found(error)) if counted else json.dumps(_found(error))
        return f"must {words.format(wanted)}, found {found}"

    return describe


def _say(words: str) -> Callable[[ValidationError], str]:
    return lambda _: words


def _describe_other(error: ValidationError) -> str:
    # The message of jsonschema starts with the whole value.
    return f"{name_value(_found(error))} does not satisfy '{error.validator}'"


_DESCRIBERS: Final[Mapping[str, Callable[[ValidationError], str]]] = {
    "type": lambda error: _type_message(_names(_wanted(error)), _found(error)),
    "const": lambda error: (
        f"must be {_quote(_wanted(error))}, found {name_value(_found(error))}"
    ),
    "enum": _describe_enum,
    "format": _describe_format,
    "pattern": lambda error: (
        f"{_quote(_found(error))} does not match {_quote(_wanted(error))}"
    ),
    "additionalProperties": _describe_extra,
    "None": _say("is not allowed here"),
    "not": _say("is what the schema rules out here"),
    "uniqueItems": _say("must not have the same item twice"),
    "minimum": _bound("be at least {}"),
    "maximum": _bound("be at most {}"),
    "exclusiveMinimum": _bound("be more than {}"),
    "exclusiveMaximum": _bound("be less than {}"),
    "multipleOf": _bound("be a multiple of {}"),
    "minLength": _bound("have at least {}", "character"),
    "maxLength": _bound("have at most {}", "character"),
    "minItems": _bound("have at least {}", "item"),
    "maxItems": _bound("have at most {}", "item"),
    "minProperties": _bound("have at least {}", "field"),
    "maxProperties": _bound("have at most {}", "field"),
}
