"""Parser events of a text; the only user of PyYAML (its C parser, if there).

Size and characters are checked before the parser sees the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.model.yaml.located import SourcePlace, SourceText
from uwfgit.model.yaml.problems import refusal, syntax_error

_REFUSED = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_LOADER: Final[Any] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# Line breaks of YAML 1.1, still so for the parser; plain characters in 1.2.
_OLD_BREAKS: Final = "\x85\u2028\u2029"
_PRIVATE: Final = range(0xE000, 0xF8FF)


def decode_text(text: str | bytes, file: str | None) -> SourceText:
    """Check size and characters, so that the parser meets clean text only.

    Raises:
        InvalidError: Too large, not UTF-8, or a character YAML refuses.
    """
    data = text.encode(errors="replace") if isinstance(text, str) else text
    if len(data) > YAML_MAX_BYTES:
        start = SourcePlace(file=file, line=1, column=1)
        hint = "keep long texts in files of their own"
        raise refusal("Y3", start, "larger than 1 MiB", hint)
    try:
        decoded = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError as exc:
        before = data[: exc.start].decode().removeprefix("\ufeff")
        place = SourceText(file=file, text=before).place_at(len(before))
        message = f"not UTF-8: byte 0x{data[exc.start]:02x}"
        raise refusal("Y2", place, message, "save the file as UTF-8") from exc
    source = SourceText(file=file, text=decoded.removeprefix("\ufeff"))
    refused = _REFUSED.search(source.text)
    if refused:
        place = source.place_at(refused.start())
        message = f"character U+{ord(refused[0]):04X} is not allowed"
        hint = "remove it, or write it as an escape in double quotes"
        raise refusal("Y2", place, message, hint)
    return source


def iter_events(source: SourceText) -> Iterator[yaml.Event]:
    """Yield the events of a text.

    Raises:
        InvalidError: The text is not YAML, or another document follows.
    """
    text, restored = source.text, dict[int, str]()
    present = [char for char in _OLD_BREAKS if char in text]
    if present:
        text, restored = _hide_old_breaks(text, present)
    loader = _LOADER(text)
    event: yaml.Event | None = None
    while not isinstance(event, yaml.StreamEndEvent):
        ended = isinstance(event, yaml.DocumentEndEvent)
        try:
            event = loader.get_event()
        except yaml.MarkedYAMLError as exc:
            raise syntax_error(exc, source, ended=ended) from exc
        except (yaml.YAMLError, ValueError, OverflowError) as exc:
            # The parser in Python lets a number of an escape through to chr().
            place = SourcePlace(file=source.file, line=1, column=1)
            message = "not YAML: it holds an escape of no character"
            raise refusal("Y1", place, message, "fix the escape") from exc
        if event is None:
            return
        if restored and isinstance(event, yaml.ScalarEvent):
            event.value = event.value.translate(restored)
        yield event


def _hide_old_breaks(text: str, present: list[str]) -> tuple[str, dict[int, str]]:
    """Let private characters stand for old line breaks; say how to undo it."""
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
