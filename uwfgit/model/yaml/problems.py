"""What is wrong with a text that should be YAML: its refusals, worded and ordered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import yaml

from uwfgit.constants import YAML_MAX_DEPTH
from uwfgit.errors import InvalidError, Problem
from uwfgit.model.yaml.dump import TAG_PREFIX
from uwfgit.model.yaml.located import Mark, SourcePlace, SourceText

INCLUDE_TAG: Final = "!include"
_MAX_SHOWN: Final = 60


def sort_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Order problems by file, line and column, each cause once."""
    unique: dict[tuple[object, ...], Problem] = {}
    for each in problems:
        cause = (each.file, each.line, each.column, each.code, each.message)
        unique.setdefault(cause, each)
    return tuple(
        sorted(
            unique.values(),
            key=lambda each: (each.file or "", each.line or 0, each.column or 0),
        )
    )


def make_problem(
    code: str, place: SourcePlace, message: str, hint: str | None
) -> Problem:
    """Make an error at a place."""
    return Problem(
        code=code,
        message=message,
        hint=hint,
        file=place.file,
        line=place.line,
        column=place.column,
    )


def refusal(code: str, place: SourcePlace, message: str, hint: str) -> InvalidError:
    """Make the refusal of a text for one reason alone."""
    return InvalidError([make_problem(code, place, message, hint)])


_IN_KEY: Final = "while scanning a simple key"


def syntax_error(
    exc: yaml.MarkedYAMLError, source: SourceText, *, ended: bool
) -> InvalidError:
    """Make the refusal of what the parser stopped at.

    Args:
        exc: What it said.
        source: The text.
        ended: Whether a document ended just before.
    """
    mark = exc.problem_mark or exc.context_mark
    if exc.context == _IN_KEY:
        # The parser says where it gave up: a line later, or behind the file.
        mark = exc.context_mark or mark
    line, column, index = (mark.line, mark.column, mark.index) if mark else (0, 0, 0)
    place = SourcePlace(file=source.file, line=line + 1, column=column + 1)
    if index >= len(source.text):
        # Behind the last line the parser counts one more, which is not there.
        place = source.place_at(len(source.text.rstrip()))
    if ended:
        return second_document(place)
    # The parser has a limit of its own, which it may meet while looking ahead.
    before = source.text[:index]
    if sum(before.count(a) - before.count(b) for a, b in ("[]", "{}")) > YAML_MAX_DEPTH:
        return too_deep(place)
    said = " ".join(part for part in (exc.problem, exc.context) if part)
    hint = _syntax_hint(source.text[index : index + 1])
    return InvalidError([make_problem("Y1", place, f"not YAML: {said}", hint)])


def second_document(place: SourcePlace) -> InvalidError:
    """Make the refusal of a document after the first."""
    message, hint = "a second document starts here", "keep one document in the file"
    return InvalidError([make_problem("Y4", place, message, hint)])


def too_deep(place: SourcePlace) -> InvalidError:
    """Make the refusal of a structure nested too deeply."""
    message = f"nested deeper than {YAML_MAX_DEPTH} levels"
    return InvalidError([make_problem("Y10", place, message, "make it flatter")])


def _syntax_hint(at: str) -> str:
    if at == "\t":
        return "indent with spaces, not tabs"
    if at == ":":
        return "quote text that holds ': '"
    if at and at in "%@`*&!|>{[":
        return f"quote text that starts with '{at}'"
    return "check indentation, quotes and brackets near this place"


def bad_tag(tag: str, *, includes: bool) -> tuple[str, str]:
    """Say what is wrong with a tag, and what to do.

    Args:
        tag: The tag.
        includes: Whether files may be included.
    """
    shown = tag.replace(TAG_PREFIX, "!!") if tag.startswith(TAG_PREFIX) else tag
    if shown != INCLUDE_TAG:
        hint = "quote text that starts with '!'; the only tag here is !include"
        return f"unknown tag '{shorten(shown)}'", hint
    if includes:
        message = "'!include' stands for a value, and takes one path"
        return message, "write !include FILE"
    return "'!include' is not allowed here", "write the text itself"


def bad_alias(anchor: str, *, is_open: bool) -> tuple[str, str]:
    """Say what is wrong with an alias of an anchor that has no value yet.

    Args:
        anchor: Its name.
        is_open: Whether it stands inside the value of that anchor.
    """
    if is_open:
        return f"alias '*{shorten(anchor)}' holds itself", "write the value out"
    hint = "define it with '&' first, or quote the text"
    return f"alias '*{shorten(anchor)}' names no anchor above it", hint


def bad_key(mark: Mark, written: str) -> tuple[str, str]:
    """Say what is wrong with a key that is no text.

    Args:
        mark: Its mark.
        written: What stands there, of a scalar.
    """
    if isinstance(mark.value, (dict, list)):
        kind = "mapping" if isinstance(mark.value, dict) else "list"
        is_braced = mark.source.text.startswith("{{", max(mark.start - 1, 0))
        hint = "quote text that begins with '{{'" if is_braced else "use text as key"
        return f"a key is a {kind}, not text", hint
    kind = "true or false" if isinstance(mark.value, bool) else "a number"
    if mark.value is None:
        kind = "nothing"
    shown = f"key '{shorten(written)}'" if written else "an empty key"
    return f"{shown} is {kind}, not text", "quote the key"


def shorten(text: str) -> str:
    """Return a text as a message can show it: not all of it, and nothing odd."""
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
    return shown.encode("unicode_escape").decode() if not shown.isprintable() else shown
