"""Code and JSON in quiet colours, by class names alone (pure)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from uwfgit.model.wording import shown_lines
from uwfgit.web.render.markup import Html, join, span, tag

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_COLORED: Final = 60_000
"""Characters that are coloured; more is shown plain, and at once."""
_CLASSES: Final = (
    (("Comment",), "co"),
    (("Keyword",), "kw"),
    (("Name", "Tag"), "na"),
    (("Name", "Function"), "fn"),
    (("Name", "Class"), "fn"),
    (("Name", "Attribute"), "na"),
    (("Literal", "Number"), "nu"),
    (("Literal", "String"), "st"),
    (("Generic", "Inserted"), "in"),
    (("Generic", "Deleted"), "de"),
    (("Generic", "Subheading"), "co"),
)
"""By types of pygments and all below them."""


def code_block(source: str, language: str) -> Html:
    """Show code; a language nobody knows is shown plain."""
    plain = shown_lines(source)
    lexer = _find_lexer(language.lower()) if len(plain) <= _COLORED else None
    if lexer is None:
        return tag("pre", tag("code", plain), tabindex=0)
    colored = (
        span(found, value) if (found := _class_of(kind)) else value
        for kind, value in lexer.get_tokens(plain)
    )
    return tag("pre", tag("code", join(*colored)), tabindex=0)


@lru_cache(maxsize=64)
def _find_lexer(name: str) -> Lexer | None:
    if not name or not name.replace("+", "").replace("-", "").isalnum():
        return None
    # A server that only lists threads does not need them.
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 - see above
    from pygments.util import ClassNotFound  # noqa: PLC0415 - see above

    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _class_of(kind: Sequence[str]) -> str | None:
    return next((name for top, name in _CLASSES if kind[: len(top)] == top), None)


def json_block(value: Any) -> Html:  # noqa: ANN401 - a JSON value
    """Show a JSON value on lines of its own."""
    return code_block(json.dumps(value, indent=2, ensure_ascii=False), "json")
