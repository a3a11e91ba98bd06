"""YAML 1.2 core with places; the only place to read YAML from.

PyYAML's parser gives events; what the words mean, the limits, and every
refusal are ours. Agents' replies, workflow files and configuration go through
the same reader.
"""

from __future__ import annotations

import re
from typing import Final

from uwfgit.errors import InvalidError, Problem
from uwfgit.model.yaml.compose import Composer, Composition, Included, IncludeReader
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.model.yaml.events import decode_text, sort_problems
from uwfgit.model.yaml.located import Located
from uwfgit.store.canonical import Json

__all__ = [
    "IncludeReader",
    "Included",
    "Located",
    "dump_yaml",
    "parse_value",
    "parse_yaml",
    "read_yaml",
    "sort_problems",
]


def parse_yaml(
    text: str | bytes, *, file: str | None = None, include: IncludeReader | None = None
) -> Located:
    """Read one document; an empty one is ``None``.

    Args:
        text: The document; bytes are UTF-8.
        file: How problems name the document.
        include: Reads ``!include`` tags; without it the tag is refused.

    Raises:
        InvalidError: With every problem found (codes Y…), in order.
    """
    located, problems = read_yaml(text, file=file, include=include)
    if problems or located is None:
        raise InvalidError(problems)
    return located


_SURROGATES: Final = re.compile(
    r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
)


def parse_value(text: str) -> Json:
    """Read one document, without includes, as a plain value.

    Agents write JSON's escapes for what lies beyond the first plane: a text
    that is no YAML for that reason alone is read with YAML's own.

    Raises:
        InvalidError: The places of its problems are inside the text.
    """
    try:
        return parse_yaml(text).value
    except InvalidError:
        mended = _SURROGATES.sub(_join_surrogates, text)
        if mended == text:
            raise
        return parse_yaml(mended).value


def _join_surrogates(match: re.Match[str]) -> str:
    high, low = int(match["high"], 16), int(match["low"], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


def read_yaml(
    text: str | bytes, *, file: str | None = None, include: IncludeReader | None = None
) -> tuple[Located | None, tuple[Problem, ...]]:
    """Read one document and its problems; ``None`` when it is no YAML at all.

    With problems that concern single values, those values are ``None`` and
    their places are in ``broken``, so that the rest can be checked too.
    """
    session = Composition()
    try:
        mark = Composer(session, decode_text(text, file), include).compose()
    except InvalidError as exc:
        return None, sort_problems((*session.problems, *exc.problems))
    located = Located(
        mark=mark, includes=session.includes, broken=frozenset(session.broken)
    )
    return located, sort_problems(session.problems)
