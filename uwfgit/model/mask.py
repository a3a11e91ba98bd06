"""Masking of secrets that uwf itself knows; the only place that decides what is one.

Pure: variables come in, and text goes out with ``[redacted:NAME]`` where a
value of theirs stood, in whatever form agents and tools write it down.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote, quote_plus, urlsplit

from msgspec import Struct

from uwfgit.ids import is_hash
from uwfgit.store.canonical import Json

LEAST_CHARS: Final = 12
"""Shorter values would be found in ordinary text."""
CUT: Final = "…"
"""What stands where a text was shortened; half a value may stand beside it."""

_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_ENDS: Final = ("token", "secret", "password", "passphrase", "passwd", "apikey")
_SECRET_WORDS: Final = frozenset(
    {"credential", "authkey", "accesskey", "secretkey", "privatekey", "signingkey"}
)
_KEY_WORDS: Final = frozenset(
    [
        "access",
        "account",
        "admin",
        "api",
        "app",
        "auth",
        "aws",
        "client",
        "crypt",
        "data",
        "deploy",
        "encryption",
        "gpg",
        "host",
        "hmac",
        "jwt",
        "license",
        "master",
        "object",
        "pgp",
        "private",
        "provider",
        "secret",
        "service",
        "signing",
        "ssh",
        "storage",
        "subscription",
        "webhook",
    ]
)
"""What stands before the word KEY in the name of one that opens something."""
_NAME_CHARS = re.compile(r"[^A-Za-z0-9_.-]+")
# What follows is compiled where there is a value to look at.
_NUMBER: Final = r"[+-]?[0-9][0-9.,:_ /+TZ-]*"
_PART: Final = (
    r"[A-Z]?[a-z]{1,20}(?:[A-Z][a-z]{2,19}){0,2}"
    r"|[A-Z]{1,20}|[0-9]{1,8}|[A-Za-z0-9]{1,3}"
)
_BETWEEN: Final = r"[-_.:@,=/ ]+"
_CONSONANTS: Final = r"(?i)[b-df-hj-np-tv-xz]{6}"
_ABSOLUTE: Final = r"(?:~|\.{1,2})?/|[A-Za-z]:[\\/]"
_URL: Final = r"[A-Za-z][A-Za-z0-9+.-]*://\S+"
_RANDOM_CHARS: Final = 20
_KINDS: Final = (str.islower, str.isupper, str.isdigit)
"""Of all of which what is random has some, at that length."""
_WORDS_OF_SECRET: Final = 2
"""Of more words a passphrase may be made."""
_WORDS_OF_OTHER: Final = 8
_LINE_CHARS: Final = 16
_CUT_CHARS: Final = 6
_STATUS_LINE: Final = (
    r"""(?m)^[ \t]*(?:"\$status"|'\$status'|\$?status)[ \t]*:[ \t]*(?P<quote>["']?)"""
    r"""(?P<value>[^\n"']*?)(?P=quote)[ \t]*\r?$"""
)
_WRAPPED: Final = (
    r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40,}+(?:\r?\n|(?:\\r)?\\n)[ \t]*[A-Za-z0-9+/]"
)
_BREAK: Final = r"(?<=[A-Za-z0-9+/])(?:\r?\n|(?:\\r)?\\n)[ \t]*(?=[A-Za-z0-9+/=])"
_ANY_BREAK: Final = r"(?:(?:\r?\n|(?:\\r)?\\n)[ \t]*)?"


class Secret(Struct, frozen=True, kw_only=True):
    """A value that must not be recorded, and the name that may stand for it."""

    name: str
    value: str

    def __repr__(self) -> str:
        """Return the name alone."""
        return f"Secret(name={self.name!r})"


def find_name_kind(name: str) -> Literal["secret", "key"] | None:
    """Return what a variable holds that is named so, by whole words.

    A ``SORT_KEY`` is some key that opens nothing, and a ``MONKEY`` has none.
    """
    *before, last = map(str.lower, _NAME_WORD.findall(name) or [""])
    if last in {"key", "keys"} and before[-1:] and before[-1] in _KEY_WORDS:
        return "secret"
    word = last.removesuffix("s")
    if word.endswith(_SECRET_ENDS) or word in _SECRET_WORDS:
        return "secret"
    return "key" if last == "key" else None


def collect_secrets(
    variables: Mapping[str, str], *, names: Collection[str] | None = None
) -> tuple[Secret, ...]:
    """Return the secrets among variables: long values that are no ordinary text.

    Args:
        variables: Names and values.
        names: Take only these, and those named like a secret; ``None``: all.
    """
    found: list[Secret] = []
    for name, value in variables.items():
        kind = find_name_kind(name)
        is_named = kind == "secret" or (names is not None and name in names)
        # The value says what some key is.
        if is_named or names is None or (kind == "key" and _looks_random(value)):
            found += _secrets_of(name, value, is_named=is_named)
    return tuple(found)


def _secrets_of(name: str, value: str, *, is_named: bool) -> Iterator[Secret]:
    words = _WORDS_OF_SECRET if is_named else _WORDS_OF_OTHER
    label = _NAME_CHARS.sub("-", name)
    for text in (value.strip(), *_parts_of(value.strip())):
        if len(text) >= LEAST_CHARS and not _is_plain(text, words):
            yield Secret(name=label, value=text)


def _parts_of(value: str) -> Iterator[str]:
    """Yield what may stand alone: a URL's password, lines, a key file's fields."""
    if re.fullmatch(_URL, value):
        yield from filter(None, [_password_of(value)])
    if "\n" in value:
        lines = (line.strip() for line in value.splitlines())
        yield from (
            line
            for line in lines
            if len(line) >= _LINE_CHARS and not line.startswith("-----")
        )
    if value.startswith("{"):
        try:
            fields = json.loads(value)
        except (ValueError, RecursionError):
            return
        for key, item in fields.items() if isinstance(fields, dict) else ():
            if isinstance(item, str) and find_name_kind(key) == "secret":
                yield item


def _password_of(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None


def _is_plain(text: str, words: int) -> bool:
    """Whether a value is a number, a path, an address or a few words."""
    if re.fullmatch(_NUMBER, text):
        return True
    if re.fullmatch(_URL, text):
        return _password_of(text) is None
    if re.match(_ABSOLUTE, text):
        long = [p for p in re.split(r"[/\\:;,]", text) if len(p) >= _RANDOM_CHARS]
        return not any(all(any(map(is_, p)) for is_ in _KINDS) for p in long)
    parts = [part for part in re.split(_BETWEEN, text) if part]
    if "/" not in text and len(parts) > words:
        return False
    return all(map(_is_word, parts))


def _looks_random(text: str) -> bool:
    return any(
        len(part) >= _LINE_CHARS
        and not _is_word(part)
        and any(map(str.isdigit, part))
        and any(map(str.isalpha, part))
        for part in re.split(_BETWEEN, text)
    )


def _is_word(part: str) -> bool:
    return re.fullmatch(_PART, part) is not None and not re.search(_CONSONANTS, part)


@dataclass(slots=True, eq=False, repr=False)
class Masker:
    """Replaces known values in text. Nothing is prepared before it is first asked.

    Of values within one another the longest goes first; a value under two
    names has the first.
    """

    secrets: Sequence[Secret] = ()
    _needles: dict[str, str] | None = None
    _encoded: frozenset[str] = frozenset()

    def mask(self, text: str, found: set[str] | None = None) -> str:
        """Return a text without the values.

        Args:
            found: Told the names of those that stood in it.
        """
        if not self.secrets:
            return text
        # Asking for each is many times faster than one expression of all: a
        # search for a long word skips most of the text.
        needles = self._prepare()
        present = [re.escape(needle) for needle in needles if needle in text]
        present += self._find_wrapped(text)
        if not present:
            return text
        return re.sub("|".join(present), lambda match: self._name(match, found), text)

    def _name(self, match: re.Match[str], found: set[str] | None) -> str:
        needles = self._prepare()
        text = match[0]
        name = needles.get(text) or needles[re.sub(_BREAK, "", text)]
        if found is not None:
            found.add(name)
        return f"[redacted:{name}]"

    def _find_wrapped(self, text: str) -> list[str]:
        """Find encoded values that a line break of their encoding cuts in two."""
        if not re.search(_WRAPPED, text):
            return []
        whole = re.sub(_BREAK, "", text)
        broken = [n for n in self._encoded if n in whole and n not in text]
        return [_ANY_BREAK.join(map(re.escape, needle)) for needle in broken]

    def mask_value(self, value: Json, found: set[str] | None = None) -> Json:
        """Return a JSON value whose strings are masked; keys and hashes stay."""
        if not self.secrets:
            return value
        if isinstance(value, str):
            return value if is_hash(value) else self.mask(value, found)
        if isinstance(value, Mapping):
            return {
                key: item if key == "$status" else self.mask_value(item, found)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.mask_value(item, found) for item in value]
        return value

    def mask_reply(
        self, text: str, found: set[str], *, statuses: AbstractSet[str] = frozenset()
    ) -> str:
        """Mask a reply, but not the lines that report one of the statuses."""
        masked, start = [], 0
        for match in re.finditer(_STATUS_LINE, text) if self.secrets else ():
            if match["value"] in statuses:
                masked += [self.mask(text[start : match.start()], found), match[0]]
                start = match.end()
        return "".join([*masked, self.mask(text[start:], found)])

    def mask_cut(self, text: str, found: set[str] | None = None) -> str:
        """Mask a text that was shortened: of a value only an end may be left."""
        text = self.mask(text, found)
        if CUT not in text or not self.secrets:
            return text
        pieces = text.split(CUT)
        needles = self._prepare()
        for index in range(len(pieces) - 1):
            for at, is_start in ((index, True), (index + 1, False)):
                pieces[at] = _without_half(
                    pieces[at], needles, found, is_start=is_start
                )
        return CUT.join(pieces)

    def _prepare(self) -> dict[str, str]:
        if self._needles is None:
            needles: dict[str, str] = {}
            encoded: set[str] = set()
            for secret in self.secrets:
                bits = tuple(_encoded_forms(secret.value))
                encoded.update(bits)
                for form in (*_plain_forms(secret.value), *bits):
                    needles.setdefault(form, secret.name)
            longest = sorted(needles, key=lambda needle: -len(needle))
            self._needles = {needle: needles[needle] for needle in longest}
            self._encoded = frozenset(encoded)
        return self._needles


NO_MASK: Final = Masker()
"""Knows no secret."""


def _plain_forms(value: str) -> Iterator[str]:
    yield value
    yield value.replace("'", "''")
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield once.replace("/", "\\/")
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    for safe in ("", "/"):
        yield from _either_case(quote(value, safe=safe, errors="surrogateescape"))
    yield from _either_case(quote_plus(value, errors="surrogateescape"))


def _either_case(text: str) -> Iterator[str]:
    yield text
    yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), text)


def _encoded_forms(value: str) -> Iterator[str]:
    """Yield what base64 makes of a value wherever in a text it begins.

    Characters that also hold bits of what stands before or behind are left out.
    """
    data = value.encode("utf-8", "surrogateescape")
    for offset in range(3):
        text = b64encode(bytes(offset) + data).decode().rstrip("=")
        first, last = -(-8 * offset // 6), 8 * (offset + len(data)) // 6
        core = text[first:last]
        yield core
        yield core.replace("+", "-").replace("/", "_")


def _without_half(
    piece: str, needles: Mapping[str, str], found: set[str] | None, *, is_start: bool
) -> str:
    """Mask the start of a value at a piece's end, or its end at the piece's start."""
    if len(piece) < _CUT_CHARS:
        return piece
    for needle, name in needles.items():
        least = needle[:_CUT_CHARS] if is_start else needle[-_CUT_CHARS:]
        if least not in piece:
            continue
        label = f"[redacted:{name}]"
        for length in range(len(needle) - 1, _CUT_CHARS - 1, -1):
            if is_start and piece.endswith(needle[:length]):
                masked = f"{piece[:-length]}{label}"
            elif not is_start and piece.startswith(needle[-length:]):
                masked = f"{label}{piece[length:]}"
            else:
                continue
            if found is not None:
                found.add(name)
            return masked
    return piece


def mask_warnings(names: Iterable[str]) -> tuple[str, ...]:
    """Say on a step which values were masked in it."""
    return tuple(
        f"the value of {name} was replaced by [redacted:{name}]"
        for name in sorted(names)
    )
