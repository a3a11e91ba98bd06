"""Text that YAML cuts off at `` #``, where hardly a comment was meant (pure).

Agents write ``note: fixed by PR #42`` and mean all of it. A ``#`` with something
right behind it is text; one with a blank behind it is the comment it is for YAML,
and what it cuts off is told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from uwfgit.constants import STATUS
from uwfgit.errors import InvalidError
from uwfgit.model.yaml.core import parse_yaml
from uwfgit.model.yaml.located import Mark
from uwfgit.store.canonical import Json

_HASH = re.compile(r"(?:^|[ \t])#", re.MULTILINE)
_CUT = re.compile(r"[ \t]+#([^\r\n]*)")
_PROPERTIES = re.compile(r"(?:[&!][^\s]*[ \t]+)*")
_PLAIN: Final = ""
_TOLD: Final = 20
"""How many places are told one by one."""
_STATUSES: Final = frozenset({STATUS, "status"})


class Cut(NamedTuple):
    """A value, where its text starts and stops, and whether the rest is text too."""

    mark: Mark
    start: int
    end: int
    is_text: bool


def restore_text(text: str, value: Json, line: int) -> tuple[Json, tuple[str, ...]]:
    """Return what a block says with the text YAML cut off, and what to warn of.

    Args:
        text: The block's YAML, which can be read.
        value: What it was read as.
        line: The number of its first line.
    """
    if not _HASH.search(text):
        return value, ()
    try:
        root = parse_yaml(text).mark
    except InvalidError:
        return value, ()
    # What an alias names stands in the text once.
    by_place = {cut.start: cut for cut in find_cuts(root)}
    cuts = [by_place[start] for start in sorted(by_place)]
    whole = _read_whole(text, [cut for cut in cuts if cut.is_text])
    told = []
    for cut in cuts[:_TOLD]:
        at = line + text.count("\n", 0, cut.end)
        what = "what follows ' #' is a YAML comment and left out"
        if whole is not None and cut.is_text:
            what = "text after ' #' was kept; put such text in quotes"
        told.append(f"line {at}: {what}")
    if len(cuts) > _TOLD:
        told.append(f"{len(cuts) - _TOLD} more places have text after ' #'")
    return (whole[0] if whole else value), tuple(dict.fromkeys(told))


def find_cuts(root: Mark) -> Iterator[Cut]:
    """Find the texts behind which something stands that is a comment to YAML.

    A value that aliases name is looked at once, where its anchor stands.
    """
    waiting: list[tuple[str | int, Mark]] = [("", root)]
    seen: set[int] = set()
    while waiting:
        name, mark = waiting.pop()
        if id(mark) in seen:
            continue
        seen.add(id(mark))
        waiting += reversed((mark.children or {}).items())
        is_value = isinstance(mark.value, str) or mark.start == mark.end
        if not is_value or mark.style != _PLAIN or mark.start < 0:
            continue
        text = mark.source.text
        comment = _CUT.match(text, mark.end)
        if comment is None or isinstance(mark.value, dict | list):
            continue
        is_text = name not in _STATUSES and bool(comment[1][:1].strip())
        if is_text or mark.value is not None:
            properties = _PROPERTIES.match(text, mark.start)
            start = properties.end() if properties else mark.start
            yield Cut(mark, start, comment.end(), is_text)


def _read_whole(text: str, cuts: list[Cut]) -> tuple[Json] | None:
    """Read the text again with what was cut off in quotes; ``None`` where none was."""
    pieces, at = [], 0
    for cut in cuts:
        rest = text[cut.mark.end : cut.end].rstrip()
        said = f"{cut.mark.value}{rest}" if cut.mark.value else rest.lstrip()
        blank = " " if text[cut.start - 1 : cut.start] in {":", "-"} else ""
        quoted = json.dumps(said, ensure_ascii=False)
        pieces += [text[at : cut.start], blank, quoted]
        at = cut.end
    if not cuts:
        return None
    try:
        return (parse_yaml("".join((*pieces, text[at:]))).value,)
    except InvalidError:
        return None
