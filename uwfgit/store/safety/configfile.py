"""Read a git config file without git; the only place that parses one.

The check of a store must know its config before anything that would act on it
(or follow its includes) has read it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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


def is_true(value: str | None) -> bool:
    """Whether git would read a value as true, as it does that of a key without one."""
    return value is None or value.lower() in _TRUE


def read_config(path: Path) -> tuple[ConfigEntry, ...]:
    """Read the settings of one file in their order; includes are entries.

    Raises:
        InvalidError: A line is not in the plain form git itself writes.
        OSError: The file cannot be read.
    """
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    entries: list[ConfigEntry] = []
    group = middle = None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.removesuffix("\r").strip(" \t")
        if not line or line[0] in "#;":
            continue
        match = (_SECTION if line[0] == "[" else _KEY).fullmatch(line)
        if match is None or _CONTROL.search(line):
            raise _not_plain(path, number)
        if line[0] == "[":
            group, middle = match[1], match[2]
            if middle is not None:
                middle = re.sub(r"\\(.)", r"\1", middle)
            continue
        if group is None:
            raise _not_plain(path, number)
        between = "." if middle is None else f".{middle}."
        value = match[2] and match[2][1:].strip(" \t")
        if value and _SPECIAL.search(value):
            value = _unquote(value)
            if value is None:
                raise _not_plain(path, number)
        entries.append(
            ConfigEntry(
                key=f"{group.lower()}{between}{match[1].lower()}",
                section=group.lower(),
                subsection=middle,
                name=match[1].lower(),
                written=f"{group}{between}{match[1]}",
                value=value,
                line=number,
            )
        )
    return tuple(entries)


def find_value(entries: Sequence[ConfigEntry], key: str) -> str | None:
    """Return the value that holds for a key (the last one), empty for none given."""
    for entry in reversed(entries):
        if entry.key == key:
            return entry.value or ""
    return None


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


def _not_plain(file: Path, line: int) -> InvalidError:
    problem = Problem(
        code="config",
        message="not a plain git config line",
        hint="write one section or 'key = value' a line",
        file=str(file),
        line=line,
    )
    return InvalidError((problem,))
