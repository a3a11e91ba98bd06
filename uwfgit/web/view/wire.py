"""Views as JSON and back, each value checked against its type (pure).

What a page shows of a store on another machine comes this way: whatever was sent, what
is read of it is a view, or an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct
from msgspec.structs import fields

from uwfgit.constants import MAX_DEPTH
from uwfgit.errors import InvalidError
from uwfgit.ids import Hash, Oid, ThreadId, is_hash, is_oid, is_thread_id

T = TypeVar("T")
Json = Any
Reader = Callable[[Json, str], Any]

_LARGEST: Final = 2**53


def pack_view(value: Any) -> Json:  # noqa: ANN401 - any view
    """Return a view as a JSON value."""
    if isinstance(value, Struct):
        names = value.__struct_fields__
        return {name: pack_view(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(key): pack_view(each) for key, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [pack_view(each) for each in value]
    return value


def read_view(kind: type[T], value: Json) -> T:
    """Read a view of a type.

    Raises:
        InvalidError: The value is not one; says where.
    """
    return cast("T", _reader(cast("Any", kind))(value, "view"))


@cache
def _reader(kind: Any) -> Reader:  # noqa: ANN401 - a type, in any of its forms
    if kind in _SINGLE:
        return _checked(_SINGLE[kind])
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _record(kind)
    make = _COMPOSED.get(get_origin(kind), _mapping)
    return make(get_args(kind))


def _checked(is_fit: Callable[[Json], bool]) -> Reader:
    def read(value: Json, place: str) -> Json:
        if not is_fit(value):
            raise _misfit(place)
        return value

    return read


def _misfit(place: str) -> InvalidError:
    return InvalidError(f"'{place}' is missing, or is something else")


def _is_sound(value: Json, depth: int = 0) -> bool:
    """Whether a value of no fixed type is one that a store could hold."""
    if isinstance(value, str):
        return _is_text(value)
    if isinstance(value, (dict, list)):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        return depth < MAX_DEPTH and all(_is_sound(part, depth + 1) for part in parts)
    return True


def _is_text(value: str) -> bool:
    # JSON can spell half a character, which cannot be written to a page.
    return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def _is_name(is_name: Callable[[str], bool]) -> Callable[[Json], bool]:
    return lambda value: isinstance(value, str) and is_name(value)


def _is_number(*kinds: type) -> Callable[[Json], bool]:
    return lambda value: type(value) in kinds and abs(value) < _LARGEST


_SINGLE: Final[Mapping[Any, Callable[[Json], bool]]] = {
    ThreadId: _is_name(is_thread_id),
    Oid: _is_name(is_oid),
    Hash: _is_name(is_hash),
    str: _is_name(_is_text),
    int: _is_number(int),
    float: _is_number(int, float),
    bool: lambda value: type(value) is bool,
    Any: _is_sound,
}


def _record(kind: Any) -> Reader:  # noqa: ANN401 - a class of data
    hints = get_type_hints(kind)
    needed = {each.name: each.required for each in fields(kind)}

    def read(value: Json, place: str) -> Any:  # noqa: ANN401 - of that class
        if not isinstance(value, dict):
            raise _misfit(place)
        given = {}
        for name, is_needed in needed.items():
            if name in value:
                part = f"{place}.{name}"
                given[name] = _reader(hints[name])(value[name], part)
            elif is_needed:
                raise _misfit(f"{place}.{name}")
        return kind(**given)

    return read


def _union(parts: tuple[Any, ...]) -> Reader:
    def read(value: Json, place: str) -> Json:
        if value is None and NoneType in parts:
            return None
        problem = _misfit(place)
        for part in parts:
            if part is not NoneType:
                try:
                    return _reader(part)(value, place)
                except InvalidError as exc:
                    problem = exc
        raise problem

    return read


def _literal(parts: tuple[Any, ...]) -> Reader:
    return _checked(lambda value: isinstance(value, str) and value in parts)


def _tuple(parts: tuple[Any, ...]) -> Reader:
    def read(value: Json, place: str) -> tuple[Json, ...]:
        many = len(parts) == 2 and parts[1] is Ellipsis  # noqa: PLR2004 - tuple[X, ...]
        if not isinstance(value, list) or (not many and len(value) != len(parts)):
            raise _misfit(place)
        kinds = [parts[0]] * len(value) if many else parts
        return tuple(
            _reader(kind)(each, f"{place}.{number}")
            for number, (kind, each) in enumerate(zip(kinds, value, strict=True))
        )

    return read


def _mapping(parts: tuple[Any, ...]) -> Reader:
    name, kind = parts

    def read(value: Json, place: str) -> dict[Any, Json]:
        if not isinstance(value, dict):
            raise _misfit(place)
        return {
            _reader(name)(key, place): _reader(kind)(each, f"{place}.{key}")
            for key, each in value.items()
        }

    return read


_COMPOSED: Final[Mapping[Any, Callable[[tuple[Any, ...]], Reader]]] = {
    Union: _union,
    UnionType: _union,
    Literal: _literal,
    tuple: _tuple,
}
