"""Find secrets in text: plain, inside JSON, and once or twice encoded (pure)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from array import array
from base64 import b64decode
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final

from msgspec import Struct, field

from uwfgit.store.canonical import Json
from uwfgit.sync.secrets.checks import PEM_GAP, Rule
from uwfgit.sync.secrets.rules import RULES

_COLOUR = r"\[[0-9;:?]{0,40}[A-Za-z]"
# The first letter as a class: searched for many times faster than alternatives. Of
# a run of backslashes only the first begins one, or a long run would take for ever.
_ESCAPED = re.compile(
    r"(?P<gap>[\u00ad\u200b-\u200d\u2060\ufeff]"
    r"|(?<=[A-Za-z0-9_/-])[\"'`][ \t\r\n]{0,40}(?:[+.&]|(?<=[ \t])\\|(?<=\n))"
    r"[ \t\r\n]{0,40}[\"'`](?=[A-Za-z0-9_/-]))"
    r"|[%\\\x1b](?:(?<=%)(?P<percent>[2-7][0-9A-Fa-f])"
    rf"|(?<=\x1b){_COLOUR}"
    r"|(?<=\\)(?<!\\\\)\\{0,7}+(?:(?:u00|x)(?P<hex>[2-7][0-9A-Fa-f])"
    rf"|(?:u001[bB]|x1[bB]|033|e){_COLOUR}))"
)
"""What may stand for a letter of a token, or within one that is one all the same."""
_WRAP = re.compile(
    r"(?<=[A-Za-z0-9_/+=.-]{12})[ \t]{0,8}\r?\n[ \t]{0,40}(?:[+>|#*][ \t]{0,4})?"
    r"(?=[A-Za-z0-9_/+=.-]{4})"
)
_BEFORE_CHARS: Final = 48
_ENDS = re.compile(
    r"(?:\\(?:[A-Za-z]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[0-7]{1,3})"
    r"|%[0-9A-Fa-f]{2}|\[[0-9;:?]*[A-Za-z])\Z"
)


def ends_in_escape(text: str, end: int) -> bool:
    r"""Whether an escape or a colour ends there, so that a word begins.

    ``\n``, ``\u000a``, ``%0A`` and ``\x1b[31m`` end in a letter or a digit.
    """
    return _ENDS.search(text, max(0, end - _BEFORE_CHARS), end) is not None


class Plain(Struct):
    """A text without escapes, which knows where in the other each part stood."""

    text: str = ""
    _ends: array[int] = field(default_factory=lambda: array("q"))
    _raw_ends: array[int] = field(default_factory=lambda: array("q"))
    _wide: bytearray = field(default_factory=bytearray)

    def add(self, end: int, raw_end: int, *, is_letter: bool) -> None:
        """Note an escape: where it ends here and there."""
        self._ends.append(end)
        self._raw_ends.append(raw_end)
        self._wide.append(is_letter)

    def find_raw(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the text with escapes a part of it begins and ends."""
        last = end - 1
        after = bisect_right(self._ends, last)
        is_escaped = (
            after < len(self._ends) and self._ends[after] == end and self._wide[after]
        )
        raw_end = self._raw_ends[after] if is_escaped else self._find(last) + 1
        return self._find(start), raw_end

    def _find(self, place: int) -> int:
        before = bisect_right(self._ends, place) - 1
        if before < 0:
            return place
        return self._raw_ends[before] + place - self._ends[before]


def unescape(text: str) -> Plain | None:
    """Return a text without one layer of escapes; ``None`` if it has none."""
    if _ESCAPED.search(text) is None:
        return None

    def letter_of(match: re.Match[str]) -> str:
        code = match["percent"] or match["hex"]
        return chr(int(code, 16)) if code else ""

    return _replace(text, _ESCAPED, letter_of)


def unwrap(text: str) -> Plain | None:
    """Return a text whose long words go on over line ends; ``None`` without any."""
    if _WRAP.search(text) is None:
        return None
    return _replace(text, _WRAP, lambda _: "")


def _replace(
    text: str, pattern: re.Pattern[str], letter_of: Callable[[re.Match[str]], str]
) -> Plain:
    plain, pieces, done, size = Plain(), [], 0, 0
    for match in pattern.finditer(text):
        letter = letter_of(match)
        size += match.start() - done + len(letter)
        pieces += [text[done : match.start()], letter]
        done = match.end()
        plain.add(size, done, is_letter=bool(letter))
    plain.text = "".join([*pieces, text[done:]])
    return plain


_BOUNDED: Final = tuple(rule for rule in RULES if rule.bounded)
_LAYERS: Final = 2
_ID_CHARS: Final = 12
_SHOWN_CHARS: Final = 4
_WORD_CHARS: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
)
_GAPS = re.compile(rf"{PEM_GAP}+")
_CODE = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_WRAPPED = re.compile(
    r"(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{40,}+(?:\r?\n|(?:\\r)?\\n)[ \t]*)++"
    r"(?:[A-Za-z0-9+/]++={0,2})?"
)
_HEX = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:[0-9a-f]{2}){20,}|(?:[0-9a-f]{2}[ :]){19,}[0-9a-f]{2})"
    r"(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_BREAKS = re.compile(r"\s+|\\r|\\n")
_URL_SAFE = str.maketrans("-_", "+/")
_PRINTABLE = re.compile(rb"[\x20-\x7e\t\r\n]{16,}")
_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_ANCHOR_CHARS: Final = 40
_KEY_CHARS: Final = 80
_LEAST_VALUE: Final = 8
"""The rules that look at what a value is called take none that is shorter."""
_MISSES: Final = 32
"""Strings that are looked for in all of a document."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A secret in a text; ``secret`` is as it stands, ``line`` counts from 1."""

    rule: str
    secret: str = dataclasses.field(repr=False)
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
    """Return a secret without what line breaks, quotes and comments put into it."""
    return _GAPS.sub("", secret)


class _Hit(Struct, frozen=True):
    rule: str
    secret: str
    start: int
    anchor: str
    """What stands in the text where it begins: the secret, or its code."""


def scan_text(text: str) -> tuple[Match, ...]:
    """Return the secrets of a text, each once a line."""
    hits = list(_scan(text, layers=_LAYERS))
    if not hits:
        return ()
    ends = _ends_of(text)
    matches = [
        Match(rule=hit.rule, secret=hit.secret, line=bisect_right(ends, hit.start) + 1)
        for hit in hits
    ]
    return tuple({(match.id, match.line): match for match in matches}.values())


def scan_json(text: str, value: Json) -> tuple[Match, ...]:
    """Return the secrets of a JSON document's strings, each once.

    Args:
        text: The document, in which lines are counted.
        value: What it says.
    """
    flat = "\n".join(_flatten(value))
    hits = sorted(_scan(flat, layers=_LAYERS), key=lambda hit: hit.start)
    lines = _lines_of(text, [hit.anchor for hit in hits])
    matches = [
        Match(rule=hit.rule, secret=hit.secret, line=line)
        for hit, line in zip(hits, lines, strict=True)
    ]
    return tuple({match.id: match for match in reversed(matches)}.values())


def _flatten(value: Json) -> Iterator[str]:
    """Yield each string on lines of its own, behind the key it is the value of.

    Of a key that stands before many only the end is said again, and before none
    that is too short for a secret: else the text would grow out of all measure.
    """
    left: list[tuple[str, Json, bool]] = [("", value, False)]
    while left:
        key, each, is_named = left.pop()
        if is_named:
            yield key
            key = key[-_KEY_CHARS:]
        if isinstance(each, str):
            has_key = key and len(each) >= _LEAST_VALUE
            yield f"{key}: {each}\n" if has_key else f"{each}\n"
        elif isinstance(each, dict):
            left += [(name, item, True) for name, item in reversed(each.items())]
        elif isinstance(each, list):
            left += [(key, item, False) for item in reversed(each)]


def _lines_of(text: str, anchors: Sequence[str]) -> Iterator[int]:
    """Yield the lines on which some strings begin, which stand in this order."""
    ends = _ends_of(text) if anchors else []
    place, misses = 0, 0
    for anchor in anchors:
        if misses < _MISSES:
            first = anchor.split("\n", 1)[0].rstrip("\r")
            needle = json.dumps(first, ensure_ascii=False)[1:-1]
            found = text.find(needle, place)
            if found < 0:
                # In another order, or written in another way.
                misses += 1
                found = text.find(needle)
            place = found if found >= 0 else place
        yield bisect_right(ends, place) + 1


def _ends_of(text: str) -> list[int]:
    return list(accumulate(len(line) + 1 for line in text.split("\n")))


class _Taken:
    """Parts of a text in which something was found; none overlaps another."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def has(self, start: int, end: int) -> bool:
        before = bisect_left(self._starts, end)
        return before > 0 and self._ends[before - 1] > start

    def add(self, start: int, end: int) -> None:
        place = bisect_left(self._starts, start)
        self._starts.insert(place, start)
        self._ends.insert(place, end)


def _scan(text: str, *, layers: int) -> Iterator[_Hit]:
    """Find secrets, in as many layers of encoding as are asked for."""
    taken = _Taken()
    yield from _scan_once(text, RULES, taken)
    if layers == 0:
        return
    # What only shows when escapes and colours are taken away.
    plain = unescape(text)
    if plain is not None:
        hits = _scan_once(plain.text, RULES, _Taken())
        yield from _find_in_raw(text, plain, hits, taken)
    # Tokens that a terminal, a mail or a diff broke into lines.
    plain = unwrap(text)
    if plain is not None:
        hits = _scan_once(plain.text, _BOUNDED, None)
        yield from _find_in_raw(text, plain, hits, taken)
    for code, start in _iter_codes(text):
        for piece in _decode(code):
            for hit in _scan(piece, layers=layers - 1):
                yield _Hit(hit.rule, hit.secret, start, code[:_ANCHOR_CHARS])
    for match in _HEX.finditer(text):
        data = bytes.fromhex(match[0].replace(":", ""))
        for found in _PRINTABLE.finditer(data):
            for hit in _scan(found[0].decode("ascii"), layers=0):
                yield _Hit(
                    hit.rule, hit.secret, match.start(), match[0][:_ANCHOR_CHARS]
                )


def _scan_once(
    text: str, rules: Iterable[Rule], taken: _Taken | None
) -> Iterator[_Hit]:
    """Find what stands in a text as it is; without ``taken`` hits may overlap."""
    folded = _fold(text)
    for rule in rules:
        for match in _find(rule, text, folded if rule.fold else text):
            yield from _check(rule, text, match, taken or _Taken())


def _find_in_raw(
    text: str, plain: Plain, hits: Iterable[_Hit], taken: _Taken
) -> Iterator[_Hit]:
    """Yield what was found in a plain text as it stands in the one it was made of."""
    for hit in hits:
        start, end = plain.find_raw(hit.start, hit.start + len(hit.secret))
        if not taken.has(start, end):
            taken.add(start, end)
            # As it stands, so that it can be taken out.
            secret = text[start:end]
            yield _Hit(hit.rule, secret, start, secret)


def _fold(text: str) -> str:
    """Return a text in lower case, of the same length."""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.translate(_LOWER)


def _find(rule: Rule, text: str, folded: str) -> Iterator[re.Match[str]]:
    # To look for words and match there is many times faster than a pattern
    # that is tried everywhere.
    if rule.probe and not any(word in folded for word in rule.probe):
        return
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
            # What stands before is looked at first: of a word that is repeated
            # without end each would be followed to the end.
            match = None
            if not rule.bounded or _is_start(text, place):
                match = rule.pattern.match(text, place)
            if match is not None:
                yield match
            place = folded.find(word, match.end() if match else place + len(word))


def _is_start(text: str, place: int) -> bool:
    """Whether a word may begin there."""
    if place == 0 or text[place - 1] not in _WORD_CHARS:
        return True
    return ends_in_escape(text, place)


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
    rule: Rule, text: str, match: re.Match[str], taken: _Taken
) -> Iterator[_Hit]:
    names = ("secret", "quoted")
    named = (n for n in names if n in match.re.groupindex and match[n] is not None)
    start, end = match.span(next(named, 0))
    if rule.bounded and not _is_start(text, start):
        return
    if taken.has(start, end):
        return
    secret = text[start:end]
    if rule.check is None or rule.check(secret):
        taken.add(start, end)
        yield _Hit(rule.name, secret, start, secret)


def _iter_codes(text: str) -> Iterator[tuple[str, int]]:
    """Yield what may be base64, with where it begins."""
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
    """Yield the texts that a run of letters encodes, wherever in it they begin."""
    for offset in range(4):
        bare = code[offset:].rstrip("=").translate(_URL_SAFE)
        whole = bare[: len(bare) - (len(bare) % 4 == 1)]
        data = b64decode(whole + "=" * (-len(whole) % 4))
        for piece in _PRINTABLE.finditer(data):
            yield piece[0].decode("ascii")
