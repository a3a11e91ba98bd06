"""A reply into its YAML block and its body; the only place that does it (pure).

A block is the text between two lines ``---`` that reads as a YAML mapping with
``$status``. A reply starts with it; one inside a code fence or after a preamble
is taken too when there is no doubt. Everything is linear in the reply.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from operator import itemgetter
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import STATUS, SUSPEND
from uwfgit.errors import InvalidError, Problem
from uwfgit.model.yaml.core import parse_value
from uwfgit.model.yaml.cut_text import restore_text
from uwfgit.store.canonical import Json

BLOCK_CODE: Final = "reply-block"
MAX_TRIES: Final = 100
"""How many stretches between ``---`` lines are read as YAML, at most."""
MAX_GAPS: Final = 10_000
"""How many such stretches are looked at."""

_LEADING = re.compile("[\\s\ufeff\u200b]*")
_DELIMITER = re.compile(r"^---[ \t\r]*$", re.MULTILINE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`\r\n]*)\r?$", re.MULTILINE)
_THOUGHTS: Final = "(?:think|thinking|thought|thoughts|reasoning)"
_THOUGHT = re.compile(rf"^[ \t]*<{_THOUGHTS}>|(</{_THOUGHTS}>)[ \t\r]*$", re.MULTILINE)
_SUSPENDS = re.compile(
    r"^[\"']?\$?status[\"']?[ \t]*:[ \t]*[\"']?\$SUSPEND[\"']?[ \t\r]*$", re.MULTILINE
)
_REASON = re.compile(r"^reason[ \t]*:(.*)\Z", re.MULTILINE | re.DOTALL)
_SCALAR_HEADER = re.compile(r"[|>][+-]?[0-9]?[ \t\r]*\n")
_SHAPE = "start the reply with a line '---', the fields, and another line '---'"


class Split(Struct, frozen=True, kw_only=True):
    """A reply in its two parts; ``warnings`` say how it had to be read."""

    fields: dict[str, Json]
    body: str
    warnings: tuple[str, ...] = ()


class Wanted(Struct, frozen=True, kw_only=True):
    """Which YAML counts as a block's.

    ``accepts`` judges a mapping; ``hints`` a text before it is read, and again
    when it could not be read: whether it was meant to be a block.
    """

    accepts: Callable[[Mapping[str, Json]], bool]
    hints: Callable[[str], bool]


class _Gap(Struct, frozen=True, kw_only=True):
    """What stands between two delimiter lines next to each other."""

    start: int
    inner: str
    line: int
    end: int


_Read: TypeAlias = tuple[dict[str, Json], tuple[str, ...]]


def split_reply(text: str, wanted: Wanted) -> Split | tuple[Problem, ...]:
    """Find the block of a reply, and read it.

    White space and byte order marks before it are ignored, and so is what the
    agent only thought: a draft is no answer. A block at the start wins over
    others; elsewhere it must be the only one.
    """
    content = _LEADING.sub("", text, count=1)
    warnings: tuple[str, ...] = ()
    start = len(text) - len(content)
    if not _DELIMITER.match(text, start):
        thought = _end_of_thoughts(text, start)
        if thought > start:
            content = _LEADING.sub("", text[thought:], count=1)
            warnings = ("thoughts before the block are not part of the body",)
    if not content:
        return _problem("the reply is empty", None)
    line = text.count("\n", 0, len(text) - len(content)) + 1
    split = _split_at_start if _DELIMITER.match(content) else _search
    found = split(content, line, wanted)
    if not isinstance(found, Split):
        return found
    return replace(found, warnings=(*warnings, *found.warnings))


def _end_of_thoughts(text: str, start: int) -> int:
    """Return where thoughts end that a reply starts with, or ``start``.

    Some models print the closing tag alone. Where none closes, nothing is known
    to be a thought.
    """
    end = start
    for first, last in _find_thoughts(text, start):
        if text[end:first].strip():
            # An answer begins before this thought.
            break
        end = last
    return end


def _find_thoughts(text: str, start: int = 0) -> Iterator[tuple[int, int]]:
    """Find the outermost thoughts that are closed; the first may lack its start."""
    first, depth, met = start, 0, False
    for tag in _THOUGHT.finditer(text, start):
        if not tag[1]:
            first = first if depth else tag.start()
            depth += 1
        elif depth or not met:
            depth = max(depth - 1, 0)
            if depth == 0:
                yield first, tag.end()
        met = True


def _split_at_start(
    content: str, line: int, wanted: Wanted
) -> Split | tuple[Problem, ...]:
    gap = next(_iter_gaps(content, line), None)
    if gap is None:
        return _problem("the block is not closed", line, "add a line '---' below it")
    try:
        value, warnings = _read(gap)
    except InvalidError as exc:
        if wanted.hints(gap.inner):
            return _yaml_problem(exc, gap)
        found = _search(content, line, wanted)
        return found if isinstance(found, Split) else _yaml_problem(exc, gap)
    value = {} if value is None else value
    if isinstance(value, dict) and wanted.accepts(value):
        return Split(fields=value, body=_body(content[gap.end :]), warnings=warnings)
    # A line '---' may as well be a rule above a preamble.
    found = _search(content, line, wanted)
    if isinstance(found, Split):
        return found
    what, hint = "is not a mapping of fields", f"give {STATUS} and its fields"
    if value == {}:
        what = "is empty"
    elif isinstance(value, dict):
        what, hint = f"has no {STATUS}", f"add {STATUS} to it"
    return _problem(f"the block {what}", gap.line, hint)


def _iter_gaps(content: str, line: int) -> Iterator[_Gap]:
    previous: re.Match[str] | None = None
    for delimiter in _DELIMITER.finditer(content):
        if previous is not None:
            line += content.count("\n", previous.start(), previous.end() + 1)
            yield _Gap(
                start=previous.start(),
                inner=content[previous.end() + 1 : delimiter.start()],
                line=line,
                end=delimiter.end(),
            )
            line += content.count("\n", previous.end() + 1, delimiter.start())
        else:
            line += content.count("\n", 0, delimiter.start())
        previous = delimiter


def _search(content: str, line: int, wanted: Wanted) -> Split | tuple[Problem, ...]:
    """Look for the only block of a reply that does not start with one."""
    found: list[tuple[_Gap, _Read]] = []
    broken: tuple[Problem, ...] = ()
    tries = closed_at = 0
    thoughts = tuple(_find_thoughts(content))
    for gap in islice(_iter_gaps(content, line), MAX_GAPS):
        # The line that closes a block opens none.
        if gap.start < closed_at or not wanted.hints(gap.inner):
            continue
        before = bisect_right(thoughts, gap.start, key=itemgetter(0)) - 1
        if before >= 0 and gap.start < thoughts[before][1]:
            continue
        tries += 1
        try:
            value, warnings = _read(gap)
        except InvalidError as exc:
            broken = broken or _yaml_problem(exc, gap)
        else:
            if isinstance(value, dict) and wanted.accepts(value):
                found.append((gap, (value, warnings)))
                closed_at = gap.end
        if len(found) > 1 or tries >= MAX_TRIES:
            break
    if not found:
        return broken or _problem("the reply has no YAML block between two '---'", None)
    if len(found) > 1 or tries >= MAX_TRIES:
        return _problem("the reply has several blocks, none at its start", None)
    return _split_inside(content, *found[0])


def _without_thoughts(text: str) -> str:
    pieces, at = [], 0
    for first, last in _find_thoughts(text):
        pieces.append(text[at:first])
        at = last
    return "".join((*pieces, text[at:]))


def _split_inside(content: str, gap: _Gap, read: _Read) -> Split:
    fields, warnings = read
    before, after = content[: gap.start], content[gap.end :]
    fence = _find_open_fence(before)
    if fence is not None:
        warnings = ("the block stands in a code fence", *warnings)
        before = before[: fence.start()] + before[fence.end() :]
        after = _drop_closing_fence(after, fence[1])
    body, preamble = _body(after), _body(_without_thoughts(before))
    if preamble and body:
        warnings = ("text before the block is not part of the body", *warnings)
    elif preamble:
        body = preamble
        warnings = ("the block stands at the end; the body is above it", *warnings)
    return Split(fields=fields, body=body, warnings=warnings)


def _find_open_fence(before: str) -> re.Match[str] | None:
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(before):
        if opened is None:
            opened = fence
        elif _closes(fence, opened[1]):
            opened = None
    return opened


def _closes(fence: re.Match[str], marker: str) -> bool:
    return fence[1].startswith(marker) and not fence[2].strip()


def _drop_closing_fence(after: str, marker: str) -> str:
    """Take away the end of the fence: below the block, or of the whole reply."""
    first = last = None
    count = 0
    for fence in _FENCE.finditer(after):
        if fence[1].startswith(marker):
            first, last, count = first or fence, fence, count + 1
    if first is None or last is None:
        return after
    if _closes(first, marker) and not after[: first.start()].strip():
        return after[first.end() :]
    # Fences of the body come in pairs, so an odd one at the end is ours.
    if count % 2 and _closes(last, marker) and not after[last.end() :].strip():
        return after[: last.start()]
    return after


def _body(text: str) -> str:
    first = len(text) - len(text.lstrip())
    if first == len(text):
        return ""
    return text[text.rfind("\n", 0, first) + 1 :].rstrip("\r\n")


def _read(gap: _Gap) -> tuple[Json, tuple[str, ...]]:
    """Read a block's YAML.

    Raises:
        InvalidError: It is none, and not a suspend with a broken reason.
    """
    try:
        value = parse_value(gap.inner)
    except InvalidError:
        repaired = _repair_suspend(gap.inner)
        if repaired is None:
            raise
        return repaired, (f"the reason of {SUSPEND} is not valid YAML; read as text",)
    # Else there is nothing that YAML could have taken for a comment.
    return restore_text(gap.inner, value, gap.line) if "#" in gap.inner else (value, ())


def _repair_suspend(inner: str) -> dict[str, Json] | None:
    """Read a suspend block whose reason alone is what YAML cannot read."""
    status = _SUSPENDS.search(inner)
    rest = inner if status is None else inner[: status.start()] + inner[status.end() :]
    reason = _REASON.search(rest)
    if status is None or reason is None:
        return None
    text = _unwrap(reason[1])
    others = rest[: reason.start()]
    try:
        parse_value(f"{others}reason: text\n")
    except InvalidError:
        return None
    return {STATUS: SUSPEND, "reason": text}


def _unwrap(raw: str) -> str:
    text = raw.strip()
    header = _SCALAR_HEADER.match(text)
    text = text[header.end() :] if header else text
    text = "\n".join(line.strip() for line in text.splitlines()).strip()
    quote = text[:1]
    if quote in {'"', "'"} and text.endswith(quote) and len(text) > 1:
        return text[1:-1]
    return text


def _yaml_problem(exc: InvalidError, gap: _Gap) -> tuple[Problem, ...]:
    """Return the first problem of a block, its line counted in the reply."""
    first = exc.problems[0]
    line = gap.line + (first.line or 1) - 1
    hint = first.hint or "put values that hold ': ' or ' #' in quotes"
    return (
        Problem(
            code=first.code,
            message=f"the block cannot be read: {first.message}",
            hint=hint,
            line=line,
            column=first.column,
        ),
    )


def _problem(message: str, line: int | None, hint: str = _SHAPE) -> tuple[Problem, ...]:
    return (Problem(code=BLOCK_CODE, message=message, hint=hint, line=line),)
