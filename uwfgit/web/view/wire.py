"""Views as JSON and back, each value checked against its type (pure).

What a page shows of a store on another machine comes this way: whatever was sent, what
is read of it is a view, or an error.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final, TypeVar

from msgspec import ValidationError, convert, to_builtins

from uwfgit.constants import MAX_DEPTH
from uwfgit.errors import InvalidError

T = TypeVar("T")
Json = Any

_LARGEST: Final = 2**53
_AROUND: Final = 16
"""Levels of a view around what a store holds."""


def pack_view(value: Any) -> Json:  # noqa: ANN401 - any view
    """Return a view as a JSON value."""
    return to_builtins(value)


def read_view(kind: type[T], value: Json) -> T:
    """Read a view of a type.

    Raises:
        InvalidError: The value is not one.
    """
    if not _is_sound(value):
        raise InvalidError("the view holds what no store does")
    try:
        return convert(value, kind)
    except ValidationError as exc:
        raise InvalidError(f"the view is not one: {exc}") from exc


def _is_sound(value: Json, depth: int = 0) -> bool:
    """Whether a value is one that a store could hold, whatever its type."""
    if isinstance(value, str):
        # JSON can spell half a character, which cannot be written to a page.
        return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, (dict, list)):
        parts = [*value, *value.values()] if isinstance(value, dict) else value
        most = MAX_DEPTH + _AROUND
        return depth < most and all(_is_sound(part, depth + 1) for part in parts)
    if isinstance(value, float):
        return isfinite(value)
    return value is None or abs(value) < _LARGEST
