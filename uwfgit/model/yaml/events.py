"""Parser events of a text; the only user of PyYAML (its C parser, if there)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import yaml

from uwfgit.constants import YAML_MAX_BYTES, YAML_MAX_DEPTH
from uwfgit.errors import InvalidError, Problem
from uwfgit.model.yaml.located import SourcePlace, SourceText

_REFUSED = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


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


def decode_text(text: str | bytes, file: str | None) -> SourceText:
    """Check size and characters, so that the parser meets clean text only.

    Raises:
        InvalidError: Too large, not UTF-8, or a character YAML refuses.
    """
    data = text.encode(errors="replace") if isinstance(text, str) else text
    if len(data) > YAML_MAX_BYTES:
        start = SourcePlace(file=file, line=1, column=1)
        hint = "keep long texts in files of their own"
        raise _refusal("Y3", start, "larger than 1 MiB", hint)
    decoded = text if isinstance(text, str) else _decode_bytes(text, file)
    source = SourceText(file=file, text=decoded.removeprefix("\ufeff"))
    refused = _REFUSED.search(source.text)
    if refused:
        place = source.place_at(refused.start())
        message = f"character U+{ord(refused[0]):04X} is not allowed"
        hint = "remove it, or write it as an escape in double quotes"
        raise _refusal("Y2", place, message, hint)
    return source


def _decode_bytes(data: bytes, file: str | None) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        before = data[: exc.start].decode().removeprefix("\ufeff")
        place = SourceText(file=file, text=before).place_at(len(before))
        message = f"not UTF-8: byte 0x{data[exc.start]:02x}"
        raise _refusal("Y2", place, message, "save the file as UTF-8") from exc


def _refusal(code: str, place: SourcePlace, message: str, hint: str) -> InvalidError:
    return InvalidError([make_problem(code, place, message, hint)])


_LOADER: Final[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# Line breaks of YAML 1.1, still so for the parser; plain characters in 1.2.
_OLD_BREAKS: Final = "\x85\u2028\u2029"
_PRIVATE: Final = range(0xE000, 0xF8FF)
_IN_KEY: Final = "while scanning a simple key"


def iter_events(text: str, source: SourceText) -> Iterator[yaml.Event]:
    """Yield the events of a text, whose characters are the source's or stand-ins.

    Raises:
        InvalidError: The text is not YAML, or another document follows.
    """
    loader = _LOADER(text)
    event: yaml.Event | None = None
    while not isinstance(event, yaml.StreamEndEvent):
        ended = isinstance(event, yaml.DocumentEndEvent)
        try:
            event = loader.get_event()
        except yaml.MarkedYAMLError as exc:
            raise _syntax_error(exc, source, ended=ended) from exc
        except (yaml.YAMLError, ValueError, OverflowError) as exc:
            # The parser in Python lets a number of an escape through to chr().
            place = SourcePlace(file=source.file, line=1, column=1)
            message = "not YAML: it holds an escape of no character"
            hint = "fix the escape"
            raise InvalidError([make_problem("Y1", place, message, hint)]) from exc
        if event is None:
            return
        yield event


def _syntax_error(
    exc: yaml.MarkedYAMLError, source: SourceText, *, ended: bool
) -> InvalidError:
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


def hide_old_breaks(text: str) -> tuple[str, dict[int, str]]:
    """Let private characters stand for old line breaks; say how to undo it."""
    present = [char for char in _OLD_BREAKS if char in text]
    if not present:
        return text, {}
    lower = text.lower()
    # An escape could give the stand-in too, so its number may not occur either.
    free = (
        chr(code)
        for code in _PRIVATE
        if chr(code) not in text and f"{code:x}" not in lower
    )
    pairs = dict(zip(present, free, strict=False))
    hidden = text.translate({ord(char): stand_in for char, stand_in in pairs.items()})
    return hidden, {ord(stand_in): char for char, stand_in in pairs.items()}
