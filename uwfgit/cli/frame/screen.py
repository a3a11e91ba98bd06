"""Foreign text on a terminal; the only place that decides how it may look.

Stored text, agents' words and git's output reach a terminal through these
functions only: an escape sequence in them would otherwise move the cursor,
hide lines or retitle the window, and a bidirectional control would show other
words than the ones that are there.

What is for people is shown in a pipe too, which as often as not ends on their
terminal. JSON and YAML escape the same characters and mean the same. What is
data goes into a pipe or a file as it is stored, as git does it, and is shown on
a terminal only: a text of ``cas get``, the path of ``store path``, a file that
``workflow export`` prints, and all that ``git`` and ``thread log`` hand on.

In a job of GitHub Actions, or of a forge that runs the same, the log reads commands
off what is printed: what is for people holds none there, save in a regular file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uwfgit.model.wording import UNSAFE, shown, shown_lines

__all__ = [
    "UNSAFE",
    "paint_diff",
    "paint_log",
    "pattern_with_commands",
    "shown",
    "shown_lines",
    "without_commands",
]

_DIFF: Final = {"+": "32", "-": "31", "@": "36"}
_COMMIT: Final = re.compile(r"[*|/\\ ]*commit [0-9a-f]{40}")
_LINE_COMMAND: Final = r"^([^\S\n]*):(?=:)"
_IN_DATA: Final = rf"{UNSAFE.pattern}|(?<!\S):(?=:)|#(?=#\[)"
"""Both are compiled when they are first needed."""
_FILE: Final = "diff --git "
"""How git marks what a commit and a file of a diff begin with."""


def without_commands(text: str) -> str:
    r"""Return text no line of which is a command to GitHub Actions.

    It reads them off a log: ``::error::`` at the start of a line, and ``##[error]``
    anywhere. They show as ``\x3a:error::`` and ``\x23#[error]``.
    """
    if "::" in text:
        text = re.sub(_LINE_COMMAND, r"\1\\x3a", text, flags=re.MULTILINE)
    return text.replace("##[", r"\x23#[")


def pattern_with_commands() -> re.Pattern[str]:
    """Return what JSON and YAML escape in such a log: the value stays the same."""
    return re.compile(_IN_DATA)


def paint_diff(text: str) -> str:
    """Colour a diff by the first character of each line."""
    return "\n".join(_paint(line, _DIFF.get(line[:1])) for line in text.split("\n"))


def paint_log(text: str) -> str:
    """Colour what ``git log -p``, ``show`` or ``diff`` printed; other text stays."""
    return "\n".join(_paint_lines(text.split("\n")))


def _paint_lines(lines: list[str]) -> Iterator[str]:
    # What a commit says is indented; a diff begins with a line about its file.
    is_head = is_hunk = False
    for line in lines:
        if _COMMIT.match(line):
            is_head = is_hunk = False
            yield _paint(line, "33")
        elif line.startswith(_FILE):
            is_head, is_hunk = True, False
            yield _paint(line, "2")
        elif (is_head or is_hunk) and line.startswith("@@"):
            is_head, is_hunk = False, True
            yield _paint(line, "36")
        elif is_head:
            yield _paint(line, "2")
        else:
            yield _paint(line, _DIFF.get(line[:1]) if is_hunk else None)


def _paint(line: str, color: str | None) -> str:
    return line if color is None or not line else f"\x1b[{color}m{line}\x1b[0m"
