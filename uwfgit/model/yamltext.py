"""Text before it is YAML: size, encoding and characters, and problems at places."""

from __future__ import annotations

import re
from collections.abc import Iterable

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import InvalidError, Problem
from uwfgit.model.located import Place, Source

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


def make_problem(code: str, place: Place, message: str, hint: str | None) -> Problem:
    """Make an error at a place."""
    return Problem(
        code=code,
        message=message,
        hint=hint,
        file=place.file,
        line=place.line,
        column=place.column,
    )


def decode_text(text: str | bytes, file: str | None) -> Source:
    """Check size and characters, so that the parser meets clean text only.

    Raises:
        InvalidError: Too large, not UTF-8, or a character YAML refuses.
    """
    data = text.encode(errors="replace") if isinstance(text, str) else text
    if len(data) > YAML_MAX_BYTES:
        start = Place(file=file, line=1, column=1)
        hint = "keep long texts in files of their own"
        raise _refusal("Y3", start, "larger than 1 MiB", hint)
    decoded = text if isinstance(text, str) else _decode_bytes(text, file)
    source = Source(file=file, text=decoded.removeprefix("\ufeff"))
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
        place = Source(file=file, text=before).place_at(len(before))
        message = f"not UTF-8: byte 0x{data[exc.start]:02x}"
        raise _refusal("Y2", place, message, "save the file as UTF-8") from exc


def _refusal(code: str, place: Place, message: str, hint: str) -> InvalidError:
    return InvalidError([make_problem(code, place, message, hint)])
