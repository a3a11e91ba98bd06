"""Plain coercion of option values, so that no command imports pydantic.

Newer Typer versions turn every value of a parameter into its type through
pydantic, whose import costs more than most commands run. All parameters here
are text, integers, flags or lists of text, so the few lines below do. Older
versions have no such hook and are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import typer

Click: TypeAlias = Any
"""A context, parameter or command of the click inside Typer: no public names."""
Value: TypeAlias = Any
"""What the parser gives for a parameter, or what its function gets."""


class PlainValue:
    """Stands in for a parameter's coercion: text as it is, integers parsed."""

    def __init__(self, annotation: object) -> None:
        self._is_integer = annotation is int

    def coerce(self, value: Value, param: Click, ctx: Click) -> Value:
        """Give the value as its parameter's type.

        Raises:
            typer.BadParameter: It is no integer where one is asked for.
        """
        many = param.multiple or param.nargs == -1
        if value is None:
            return [] if many else None
        if many:
            return [self._one(item, param, ctx) for item in value]
        return self._one(value, param, ctx)

    def _one(self, value: Value, param: Click, ctx: Click) -> Value:
        if not self._is_integer or isinstance(value, int):
            return value
        digits = str(value).strip()
        if not (digits.isascii() and digits.removeprefix("-").isdigit()):
            raise typer.BadParameter(
                f"'{value}' is not a whole number", ctx=ctx, param=param
            )
        return int(digits)


def use_plain_values(params: Iterable[Click]) -> None:
    """Make parameters of plain types coerce their values without pydantic."""
    for param in params:
        descriptor = getattr(param, "type_descriptor", None)
        if descriptor is None or getattr(param, "_runtime_param", None) is not None:
            continue
        annotation = descriptor.annotation
        if annotation in (str, int, bool) or annotation == list[str]:
            param._runtime_param = PlainValue(annotation)  # noqa: SLF001 - Typer has no public hook; without it the parameter works as before
