"""What goes to stdout and stderr, and in which form; the only place that prints.

stdout is data, stderr is talk. In JSON and YAML, notes wait until the command
has succeeded, so that an error stands alone on stderr.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from shutil import get_terminal_size
from typing import Any, Final

from msgspec import Struct, field

from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.cli.frame.screen import (
    pattern_with_commands,
    shown,
    shown_lines,
    without_commands,
)
from uwfgit.model.picture.columns import cut, display_width, wrap
from uwfgit.model.wording import UNSAFE, count_of, escape, format_duration, format_time

__all__ = [
    "Column",
    "Output",
    "agrees",
    "ask",
    "can_ask",
    "count_of",
    "format_duration",
    "format_fields",
    "format_json",
    "format_table",
    "format_time",
    "format_yaml",
    "indent_rest",
    "is_yes",
    "ring",
    "shown_page",
    "talk",
    "talk_git",
    "talk_over",
    "talk_width",
    "write",
]

# The colours that uwf writes itself, and nothing else that begins with an escape.
_COLOR: Final = re.compile(r"(\x1b\[(?:0|2|3[1-6])m)")
_STATUS_COLORS: Final = {
    "idle": "36",
    "running": "34",
    "suspended": "33",
    "end": "32",
    "diverged": "31",
    "cancelled": "2",
    "corrupt": "31",
    "error": "31",
    "warning": "33",
    "valid": "32",
    "invalid": "31",
    "current": "32",
}
_LONG: Final = 200
_CELL: Final = 2_000
"""Characters of a cell; one that is longer belongs to someone who means harm."""
_PROGRESS: Final = re.compile(r"[^:]{1,80}(: [^:]{1,80})?: +\d+(%| |$).*")
_LOG: Final = "GITHUB_ACTIONS"
"""Is set where what is printed goes into a log that takes lines for commands."""
_DEFAULT_WIDTH: Final = 80
_GAP: Final = "  "
_LEAST_WIDTH: Final = 6
_LEAST_ROOM: Final = 30


class Output(Struct, kw_only=True):
    """The two streams of one command, and how much it says on them."""

    options: GlobalOptions
    environment: Mapping[str, str]
    notes: list[str] = field(default_factory=list)
    """What is to be told once the command has succeeded, in JSON and YAML."""

    @property
    def is_text(self) -> bool:
        """Whether the output is for people."""
        return self.options.format == "text"

    @property
    def width(self) -> int | None:
        """Columns of the terminal on stdout; ``None`` when it is none."""
        if not _is_terminal(sys.stdout):
            return None
        return get_terminal_size((_DEFAULT_WIDTH, 24)).columns

    def emit(self, payload: Any, text: Callable[[], str]) -> None:  # noqa: ANN401 - a JSON value
        """Print a command's one result: the payload, or its text for people."""
        match self.options.format:
            case "text":
                rendered = text()
                if rendered:
                    write(rendered.removesuffix("\n") + "\n")
            case "yaml":
                write(format_yaml(payload), is_data=True)
            case _:
                write(format_json(payload) + "\n", is_data=True)

    def emit_data(self, payload: Any, text: str) -> None:  # noqa: ANN401 - a JSON value
        """Print a result whose text is data: into a pipe or a file as it is."""
        if self.is_text and self.width is None:
            write(text.removesuffix("\n") + "\n", is_data=True)
        else:
            self.emit(payload, lambda: shown_lines(text))

    def emit_document(self, text: str) -> None:
        """Print a text for people, through the pager when it may be long."""
        whole = shown_page(text.removesuffix("\n") + "\n")
        if self.width is None or whole.count("\n") < get_terminal_size().lines:
            write(whole)
            return
        import pydoc

        # What git sets when the user did not: quit on one screen, keep colours.
        os.environ.setdefault("LESS", "FRX")
        pydoc.pager(whole)

    def emit_listing(self, payload: Any, text: Callable[[], str]) -> None:  # noqa: ANN401 - a JSON value
        """Print a result that may be long: people get it through the pager."""
        if not self.is_text:
            self.emit(payload, text)
        elif rendered := text():
            self.emit_document(rendered)

    def say(self, message: str) -> None:
        """Tell the user something on stderr, unless ``-q`` was given."""
        if self.options.quiet:
            return
        if self.is_text:
            talk(message)
        else:
            self.notes.append(message)

    def warn(self, message: str) -> None:
        """Warn on stderr in one line."""
        self.say(f"warning: {shown(message)}")

    def paint(self, text: str, word: str) -> str:
        """Colour a text as a status word is, where colours are wanted."""
        code = _STATUS_COLORS.get(word)
        if code is None or not self.is_colored:
            return text
        return f"\x1b[{code}m{text}\x1b[0m"

    @property
    def is_colored(self) -> bool:
        """Whether stdout gets colours."""
        if self.options.color != "auto":
            return self.options.color == "always"
        if self.environment.get("NO_COLOR") or self.environment.get("TERM") == "dumb":
            return False
        return _is_terminal(sys.stdout)


def _is_terminal(stream: Any) -> bool:  # noqa: ANN401 - stdout may be None or replaced
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def shown_page(text: str) -> str:
    r"""Return what uwf put together, safe to print: of escapes, its own colours stay.

    The last gate before a stream. Foreign parts have come through the functions
    of ``screen``, which leave no colours in them; text that has is not changed.
    """
    if text.replace("\n", "").isprintable():
        return text
    parts = _COLOR.split(text)
    parts[::2] = (UNSAFE.sub(escape, part) for part in parts[::2])
    return "".join(parts)


def write(text: str, *, is_data: bool = False, has_commands: bool = False) -> None:
    """Write text to stdout; no escape but of our own colours passes, save in data.

    Nor does a command to a log of GitHub Actions that is not ``has_commands``.
    """
    if sys.stdout is not None:
        if not is_data:
            text = shown_page(text)
            text = text if has_commands else _for_log(text, sys.stdout)
        sys.stdout.write(text)
        sys.stdout.flush()


def _for_log(text: str, stream: Any) -> str:  # noqa: ANN401 - as _is_terminal
    is_log = os.environ.get(_LOG) and not _is_file(stream)
    return without_commands(text) if is_log else text


def _unsafe() -> re.Pattern[str]:
    return pattern_with_commands() if os.environ.get(_LOG) else UNSAFE


def _is_file(stream: Any) -> bool:  # noqa: ANN401 - as _is_terminal
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (AttributeError, ValueError, OSError):
        return False


def talk(message: str) -> None:
    """Write one message to stderr; nobody listening is no failure."""
    _tell(_for_log(shown_page(message), sys.stderr) + "\n")


def can_ask() -> bool:
    """Whether somebody sits there to be asked."""
    return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)


def ask(question: str) -> str:
    """Write a question to stderr and give the line that is typed after it."""
    _tell(shown_page(question))
    return sys.stdin.readline() if sys.stdin is not None else ""


def agrees(question: str) -> bool:
    """Whether somebody is there to be asked, and says yes."""
    return can_ask() and is_yes(ask(question))


def is_yes(answer: str) -> bool:
    """Whether an answer agrees; nothing and anything else does not."""
    return answer.strip().lower() in {"y", "yes"}


def _tell(text: str) -> None:
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        return


def talk_width(*, quiet: bool) -> int | None:
    """Return the columns for progress on stderr; ``None`` when nobody watches it."""
    if quiet or not _is_terminal(sys.stderr):
        return None
    return get_terminal_size((_DEFAULT_WIDTH, 24)).columns


def talk_over(line: str, width: int) -> None:
    """Show a line of progress in place of the one before; "" takes it away."""
    _tell(f"\r\x1b[K{cut(shown(line), width - 1)}")


def ring(*, quiet: bool) -> None:
    """Ring the bell of a terminal that someone may have looked away from."""
    if talk_width(quiet=quiet) is not None:
        _tell("\a")


def talk_git(line: str, width: int, *, is_over: bool) -> None:
    """Show on a terminal a line that git says.

    Args:
        is_over: It ended so that the next one takes its place. Only progress is
            let; any other line stays, whoever wants it hidden.
    """
    # git ends what a remote says in blanks where it sees no terminal.
    line = line.rstrip()
    if is_over and _PROGRESS.fullmatch(line):
        _tell(f"{cut(shown(line), width - 1)}\x1b[K\r")
    else:
        _tell(f"{shown(line)}\x1b[K\n")


def format_json(payload: Any) -> str:  # noqa: ANN401 - a JSON value
    """Write JSON for people and programs; control characters are escaped.

    A long listing has one line an item, which is many times faster to write.
    """
    items = payload.get("items") if isinstance(payload, dict) else None
    if isinstance(items, list) and len(items) > _LONG:
        text = _format_listing(payload)
    else:
        text = json.dumps(payload, indent=2, ensure_ascii=False)
    # What a terminal must not get stands in strings only: the value is the same.
    return _unsafe().sub(_escape_json, text)


def _escape_json(match: re.Match[str]) -> str:
    r"""Return what :data:`UNSAFE` found as JSON escapes it: ``\uXXXX``."""
    code = ord(match[0])
    if code <= 0xFFFF:  # noqa: PLR2004 - the basic plane's end
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def format_yaml(payload: Any) -> str:  # noqa: ANN401 - a JSON value
    """Write YAML for people and programs; control characters are escaped."""
    from uwfgit.model.yaml.dump import dump_yaml

    return dump_yaml(payload, escape=_unsafe())


def _format_listing(payload: Mapping[str, Any]) -> str:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    parts = []
    for key, value in payload.items():
        lines = ",\n    ".join(map(encode, value)) if key == "items" else None
        text = f"[\n    {lines}\n  ]" if lines is not None else encode(value)
        parts.append(f"  {encode(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}"


class Column(Struct, frozen=True, kw_only=True):
    """A column of a listing; a flexible one is cut when the terminal is narrow."""

    title: str
    flexible: bool = False
    right: bool = False
    status: bool = False


def format_table(
    output: Output, columns: Sequence[Column], rows: Sequence[Sequence[str | None]]
) -> str:
    """Align rows under a header; ``-`` stands for nothing.

    Cells are cut to fit a terminal, and in a pipe only when they are huge.
    """
    given = zip(*rows, strict=True) if rows else [()] * len(columns)
    cells = [
        [
            shown(cell if len(cell) <= _CELL else f"{cell[:_CELL]}…") if cell else "-"
            for cell in column
        ]
        for column in given
    ]
    widths = [
        max(map(display_width, (column.title, *texts)))
        for column, texts in zip(columns, cells, strict=True)
    ]
    _narrow(widths, columns, output.width)
    parts = [
        _format_column(output, column, texts, width)
        for column, texts, width in zip(columns, cells, widths, strict=True)
    ]
    return "\n".join(_GAP.join(line).rstrip() for line in zip(*parts, strict=True))


def _format_column(
    output: Output, column: Column, cells: Sequence[str], width: int
) -> list[str]:
    padded = []
    for cell in (column.title, *cells):
        text, columns = cell, len(cell)
        if not cell.isascii() or columns > width:
            text = cut(cell, width)
            columns = display_width(text)
        space = " " * (width - columns)
        padded.append(space + text if column.right else text + space)
    if not (column.status and output.is_colored):
        return padded
    painted = [
        text.replace(word, output.paint(word, word), 1)
        for text, cell in zip(padded[1:], cells, strict=True)
        for word in (cell.partition(" ")[0],)
    ]
    return [padded[0], *painted]


def _narrow(widths: list[int], columns: Sequence[Column], terminal: int | None) -> None:
    if terminal is None:
        return
    flexible = [i for i, column in enumerate(columns) if column.flexible]
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - terminal
    while excess > 0 and flexible:
        widest = max(flexible, key=lambda i: widths[i])
        if widths[widest] <= max(_LEAST_WIDTH, len(columns[widest].title)):
            return
        widths[widest] -= 1
        excess -= 1


def format_fields(
    output: Output, fields: Sequence[tuple[str, str | None]], *, status: str = "status"
) -> str:
    """Write names and values in two aligned columns; ``-`` stands for nothing.

    Values are wrapped to fit a terminal.
    """
    width = max((len(name) for name, _ in fields), default=0)
    lines = []
    lead = width + len(_GAP)
    room = None if output.width is None else max(_LEAST_ROOM, output.width - lead)
    for name, value in fields:
        text = indent_rest(wrap(shown_lines(value), room), lead) if value else "-"
        painted = output.paint(text, text) if name == status else text
        lines.append(f"{name.ljust(width)}{_GAP}{painted}")
    return "\n".join(lines)


def indent_rest(text: str, by: int) -> str:
    """Indent all lines but the first."""
    return text.rstrip("\n").replace("\n", "\n" + " " * by)
