"""Find secrets in text: plain, inside JSON, and once or twice encoded (pure)."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64decode
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from uwfgit.store.canonical import Json
from uwfgit.sync.scan_rules import RULES, Rule

_ID_CHARS: Final = 12
_SHOWN_CHARS: Final = 4
_WORD_CHARS: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
)
_GAPS = re.compile(r"[\s>#|*]+|\\+[nrt]")
_CODE = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_WRAPPED = re.compile(
    r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{40,}+(?:\r?\n|(?:\\r)?\\n)[ \t]*)++"
    r"(?:[A-Za-z0-9+/]++={0,2})?"
)
_BREAKS = re.compile(r"\s+|\\r|\\n")
_URL_SAFE = str.maketrans("-_", "+/")
_PRINTABLE = re.compile(rb"[\x20-\x7e\t\r\n]{16,}")
_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_ANCHOR_CHARS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A secret in a text; ``secret`` is as it stands, ``line`` counts from 1."""

    rule: str
    secret: str = field(repr=False)
    line: int = 1

    @property
    def id(self) -> str:
        """The same for the same secret wherever it stands."""
        text = f"uwf\0{self.rule}\0{without_gaps(self.secret)}"
        digest = hashlib.sha256(text.encode("utf-8", "replace"))
        return f"{self.rule}-{digest.hexdigest()[:_ID_CHARS]}"

    @property
    def shown(self) -> str:
        """As much of it as may be shown."""
        return f"{self.secret[: min(_SHOWN_CHARS, len(self.secret) // 4)]}…"


def without_gaps(secret: str) -> str:
    """Give a secret without what line breaks, quotes and comments put into it."""
    return _GAPS.sub("", secret)


@dataclass(frozen=True, slots=True)
class _Hit:
    rule: str
    secret: str
    start: int
    anchor: str
    """What stands in the text where it begins: the secret, or its code."""


def scan_text(text: str) -> tuple[Match, ...]:
    """Give the secrets of a text, each once a line."""
    hits = list(_scan(text, encoded=True))
    if not hits:
        return ()
    ends = list(accumulate(len(line) + 1 for line in text.split("\n")))
    matches = [
        Match(rule=hit.rule, secret=hit.secret, line=bisect_right(ends, hit.start) + 1)
        for hit in hits
    ]
    return tuple({(match.id, match.line): match for match in matches}.values())


def scan_json(text: str, value: Json) -> tuple[Match, ...]:
    """Give the secrets of a JSON document's strings, each once.

    Args:
        text: The document, in which lines are counted.
        value: What it says.
    """
    flat = "\n".join(_flatten("", value))
    matches = [
        Match(rule=hit.rule, secret=hit.secret, line=_line_of(text, hit.anchor))
        for hit in _scan(flat, encoded=True)
    ]
    return tuple({match.id: match for match in reversed(matches)}.values())


def _flatten(key: str, value: Json) -> Iterator[str]:
    """Give each string on lines of its own, behind the key it is the value of."""
    if isinstance(value, str):
        yield f"{key}: {value}\n" if key else f"{value}\n"
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _flatten(name, item)
    elif isinstance(value, list):
        for item in value:
            yield from _flatten(key, item)


def _line_of(text: str, anchor: str) -> int:
    first = anchor.split("\n", 1)[0].rstrip("\r")
    place = text.find(json.dumps(first, ensure_ascii=False)[1:-1])
    return text.count("\n", 0, place) + 1 if place >= 0 else 1


def _scan(text: str, *, encoded: bool) -> Iterator[_Hit]:
    taken: list[tuple[int, int]] = []
    folded = _fold(text)
    for rule in RULES:
        for match in _find(rule, text, folded if rule.fold else text):
            yield from _check(rule, text, match, taken)
    if encoded:
        for code, start in _iter_codes(text):
            for piece in _decode(code):
                for hit in _scan(piece, encoded=False):
                    yield _Hit(hit.rule, hit.secret, start, code[:_ANCHOR_CHARS])


def _fold(text: str) -> str:
    """Give a text in lower case, of the same length."""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.translate(_LOWER)


def _find(rule: Rule, text: str, folded: str) -> Iterator[re.Match[str]]:
    # To look for words and match there is many times faster than a pattern
    # that is tried everywhere.
    if rule.back:
        yield from _find_before(rule, text, folded)
        return
    if not rule.starts:
        if any(word in folded for word in rule.words):
            yield from rule.pattern.finditer(text)
        return
    for word in rule.words:
        place = folded.find(word)
        while place >= 0:
            match = rule.pattern.match(text, place)
            if match is not None:
                yield match
            place = folded.find(word, match.end() if match else place + len(word))


def _find_before(rule: Rule, text: str, folded: str) -> Iterator[re.Match[str]]:
    """Look only where a match may end in one of the words."""
    for word in rule.words:
        done, place = 0, folded.find(word)
        while place >= 0:
            end = place + len(word)
            match = rule.pattern.search(text, max(done, place - rule.back), end)
            if match is not None:
                yield match
            done, place = end, folded.find(word, end)


def _check(
    rule: Rule, text: str, match: re.Match[str], taken: list[tuple[int, int]]
) -> Iterator[_Hit]:
    before = match.start() - 1
    if rule.bounded and before >= 0 and text[before] in _WORD_CHARS:
        return
    start, end = _place_of(match)
    if any(start < last and first < end for first, last in taken):
        return
    secret = text[start:end]
    if rule.check is None or rule.check(secret):
        taken.append((start, end))
        yield _Hit(rule.name, secret, start, secret)


def _place_of(match: re.Match[str]) -> tuple[int, int]:
    for name in ("secret", "quoted"):
        if name in match.re.groupindex and match[name] is not None:
            return match.span(name)
    return match.span()


def _iter_codes(text: str) -> Iterator[tuple[str, int]]:
    """Give what may be base64, with where it begins."""
    end = 0
    for match in _WRAPPED.finditer(text):
        yield from _iter_runs(text, end, match.start())
        yield _BREAKS.sub("", match[0]), match.start()
        end = match.end()
    yield from _iter_runs(text, end, len(text))


def _iter_runs(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    for match in _CODE.finditer(text, start, end):
        yield match[0], match.start()


def _decode(code: str) -> Iterator[str]:
    """Give the texts that a run of letters encodes, wherever in it they begin."""
    for offset in range(4):
        bare = code[offset:].rstrip("=").translate(_URL_SAFE)
        whole = bare[: len(bare) - (len(bare) % 4 == 1)]
        data = b64decode(whole + "=" * (-len(whole) % 4))
        for piece in _PRINTABLE.finditer(data):
            yield piece[0].decode("ascii")
