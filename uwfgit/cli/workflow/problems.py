"""How problems of workflow files look: for people, for programs, for GitHub."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.screen import shown
from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import Problem
from uwfgit.model.picture.columns import cut, display_width
from uwfgit.store.files import read_start

_WIDTH: Final = 80
_CARET: Final = "^"
_LEAST_ROOM: Final = 20


def problem_payload(problem: Problem) -> dict[str, Any]:
    """Return a problem as JSON."""
    return {
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "code": problem.code,
        "severity": problem.severity,
        "path": problem.path,
        "message": problem.message,
        "hint": problem.hint,
    }


def problem_lines(
    context: CommandContext, problems: Sequence[Problem], *, folder: Path | None = None
) -> list[str]:
    """Write problems for people, each with its line and a caret under the place.

    Args:
        folder: Holds the files that the problems name, if not the working
            directory.
    """
    sources = _Sources(folder=folder or context.cwd)
    lines = []
    for problem in problems:
        lines.append(_head(context, problem))
        lines += _excerpt(sources, problem, context.output.width or _WIDTH)
        if problem.hint:
            lines.append(f"    hint: {shown(problem.hint)}")
    return lines


def _head(context: CommandContext, problem: Problem) -> str:
    place = ":".join(
        str(part)
        for part in (problem.file, problem.line, problem.column)
        if part is not None
    )
    where = f"{problem.path}: " if problem.path else ""
    word = context.output.paint(problem.severity, problem.severity)
    head = f"{shown(place)}: " if place else ""
    return f"{head}{word} {problem.code}: {shown(where + problem.message)}"


class _Sources(Struct, kw_only=True):
    """Lines of the files that problems name, each file read once."""

    folder: Path
    files: dict[str, list[str]] = field(default_factory=dict)

    def line(self, file: str, number: int) -> str | None:
        if file not in self.files:
            try:
                data = read_start(self.folder / file, most=YAML_MAX_BYTES)
            except OSError:
                data = b""
            # As the reader of the file counts lines: not at form feeds and the like.
            text = data.decode("utf-8-sig", errors="replace")
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            self.files[file] = text.split("\n")
        lines = self.files[file]
        return lines[number - 1] if 0 < number <= len(lines) else None


def _excerpt(sources: _Sources, problem: Problem, width: int) -> Iterator[str]:
    if problem.file is None or problem.line is None or problem.column is None:
        return
    line = sources.line(problem.file, problem.line)
    if line is None or not line.strip():
        return
    gutter = f"{problem.line:>6} | "
    before, after = line[: problem.column - 1], line[problem.column - 1 :]
    room = max(width - len(gutter), _LEAST_ROOM)
    left, right = _fit(_plain(before), _plain(after), room)
    yield f"{gutter}{left}{right}".rstrip()
    yield f"{' ' * (len(gutter) - 2)}| {' ' * display_width(left)}{_CARET}"


def _plain(text: str) -> str:
    return shown(text.replace("\t", " "))


def _fit(left: str, right: str, room: int) -> tuple[str, str]:
    """Cut a line so that the place stays in view, with more behind it than before."""
    if display_width(left) + display_width(right) <= room:
        return left, right
    most = max(room // 2, room - display_width(right) - 1)
    if display_width(left) > most:
        left = cut(left[::-1], most)[::-1]
    return left, cut(right, room - display_width(left))


def github_lines(problems: Sequence[Problem], *, strict: bool) -> list[str]:
    """Write problems as commands that GitHub shows beside the lines of a change."""
    return [_annotation(problem, strict=strict) for problem in problems]


def _annotation(problem: Problem, *, strict: bool) -> str:
    word = "error" if strict else problem.severity
    facts = {
        "file": problem.file,
        "line": problem.line,
        "col": problem.column,
        "title": f"uwf {problem.code}",
    }
    properties = ",".join(
        f"{name}={_escape(str(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in facts.items()
        if value is not None
    )
    where = f"{problem.path}: " if problem.path else ""
    hint = f"\nhint: {problem.hint}" if problem.hint else ""
    return f"::{word} {properties}::{_escape(where + problem.message + hint)}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
