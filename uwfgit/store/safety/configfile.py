"""Read a git config file without git; the only place that parses one.

The check of a store must know its config before anything that would act on it
(or follow its includes) has read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import InvalidError, Problem

# Git's grammar less the forms that neither git nor a person at ease writes: a
# key beside its section, a value over several lines. What is not plain is
# refused rather than guessed, so nothing can hide in a reading of our own.
_SECTION = re.compile(
    r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\["\\])*)")?\][ \t]*(?:[#;].*)?'
)
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=.*)?")
_SPECIAL = re.compile(r'["\\#;]')
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}
_TRUE: Final = frozenset({"true", "yes", "on", "1"})


class ConfigEntry(Struct, frozen=True, kw_only=True):
    """One setting: its dotted key and the parts of it, its value and its line.

    Section and name are lower case, the subsection as written, as ``git
    config`` prints them; ``written`` is the key as it stands in the file. The
    value is ``None`` for a key without ``=``, which git reads as true.
    """

    key: str
    section: str
    subsection: str | None
    name: str
    written: str
    value: str | None
    line: int

    @property
    def is_true(self) -> bool:
        """Whether git would read the value as true."""
        return self.value is None or is_true(self.value)


def is_true(value: str) -> bool:
    """Whether git would read a value as true."""
    return value.lower() in _TRUE


def read_config(path: Path) -> tuple[ConfigEntry, ...]:
    """Read the settings of one file in their order; includes are entries.

    Raises:
        InvalidError: A line is not in the plain form git itself writes.
        OSError: The file cannot be read.
    """
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    return tuple(_iter_entries(text, str(path)))


def find_value(entries: Sequence[ConfigEntry], key: str) -> str | None:
    """Return the value that holds for a key (the last one), empty for none given."""
    for entry in reversed(entries):
        if entry.key == key:
            return entry.value or ""
    return None


def _dotted(section: str, subsection: str | None, name: str) -> str:
    middle = "" if subsection is None else f".{subsection}"
    return f"{section}{middle}.{name}"


def _iter_entries(text: str, file: str) -> Iterator[ConfigEntry]:
    section: tuple[str, str | None] | None = None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.removesuffix("\r").strip(" \t")
        if not line or line[0] in "#;":
            continue
        if _CONTROL.search(line):
            raise _not_plain(file, number)
        if line[0] == "[":
            section = _read_section(line, file, number)
            continue
        match = _KEY.fullmatch(line)
        if match is None or section is None:
            raise _not_plain(file, number)
        group, middle = section
        yield ConfigEntry(
            key=_dotted(group.lower(), middle, match[1].lower()),
            section=group.lower(),
            subsection=middle,
            name=match[1].lower(),
            written=_dotted(group, middle, match[1]),
            value=_read_value(match[2], file, number),
            line=number,
        )


def _read_section(line: str, file: str, number: int) -> tuple[str, str | None]:
    match = _SECTION.fullmatch(line)
    if match is None:
        raise _not_plain(file, number)
    subsection = match[2]
    if subsection is not None:
        subsection = re.sub(r"\\(.)", r"\1", subsection)
    return match[1], subsection


def _read_value(text: str | None, file: str, number: int) -> str | None:
    if text is None:
        return None
    value = text[1:].strip(" \t")
    if not _SPECIAL.search(value):
        return value
    unquoted = _unquote(value)
    if unquoted is None:
        raise _not_plain(file, number)
    return unquoted


def _unquote(value: str) -> str | None:
    """Take quotes, escapes and a comment away; ``None`` when they do not close."""
    out: list[str] = []
    quoted = False
    solid = 0  # what stands before here is no trailing white space
    chars = iter(value)
    for char in chars:
        if char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        elif char == "\\":
            escaped = _ESCAPES.get(next(chars, ""))
            if escaped is None:
                return None
            out.append(escaped)
        else:
            out.append(char)
            if char in " \t" and not quoted:
                continue
        solid = len(out)
    return None if quoted else "".join(out[:solid])


def _not_plain(file: str, line: int) -> InvalidError:
    problem = Problem(
        code="config",
        message="not a plain git config line",
        hint="write one section or 'key = value' a line",
        file=file,
        line=line,
    )
    return InvalidError((problem,))
