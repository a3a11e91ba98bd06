"""What tells a secret from text that only looks like one (pure)."""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode, urlsafe_b64decode
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

Check = Callable[[str], bool]


class Rule(Struct, frozen=True, kw_only=True):
    """How one kind of secret is told.

    Attributes:
        name: What stands in reports, and in ``[redacted:NAME]``.
        words: One of them stands in every match.
        pattern: Finds candidates.
        check: Tells a secret from what only looks like one.
        starts: Every match begins with one of the words.
        fold: The words are lower case and stand in the lower-case text.
        bounded: The secret may not begin in the middle of a word.
        back: So far before one of the words a match may begin; 0: anywhere.
        probe: One of them stands in a text with a match; looked for at first.
    """

    name: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Check | None = None
    starts: bool = True
    fold: bool = False
    bounded: bool = False
    back: int = 0
    probe: tuple[str, ...] = ()


# No letter or digit may stand before or behind a token, or it is a piece of
# something longer. What stands before is looked at afterwards: a
# pattern that starts with a word is found many times faster.
_AFTER = r"(?![A-Za-z0-9_])"


def make_token(
    name: str,
    pattern: str,
    *words: str,
    check: Check | None = None,
    starts: bool = True,
    after: str = _AFTER,
) -> Rule:
    """Make a rule for what an issuer gives out, known by letters of its own."""
    return Rule(
        name=name,
        words=words,
        pattern=re.compile(pattern + after),
        check=lambda text: is_token(text) and (check is None or check(text)),
        starts=starts,
        bounded=True,
    )


def make_open(
    name: str,
    pattern: str,
    *words: str,
    check: Check | None = None,
    starts: bool = True,
    probe: tuple[str, ...] = (),
) -> Rule:
    """Make a rule for what stands behind a word, in whatever case."""
    return Rule(
        name=name,
        words=tuple(word.lower() for word in words),
        pattern=re.compile(pattern, re.IGNORECASE),
        check=check,
        starts=starts,
        fold=True,
        probe=probe,
    )


# Line breaks however escaped, and what quotes, comments and diffs put before a line.
PEM_GAP: Final = (
    r"(?:[\s>#|*]|\\+[nrt]|(?:(?<=\n)|(?<=\\n))-(?=[A-Za-z0-9+/=]|-----END))"
)
PEM: Final = (
    r"-----BEGIN (?P<kind>(?:[A-Z0-9]{1,20} ){0,4})PRIVATE KEY(?: BLOCK)?-----"
    rf"{PEM_GAP}*+(?:[A-Za-z-]{{1,30}}: [^\n\\]{{0,200}}{PEM_GAP}++){{0,6}}"
    rf"(?:[A-Za-z0-9+/=]++{PEM_GAP}*+){{1,2000}}"
    r"(?:-----END (?P=kind)PRIVATE KEY(?: BLOCK)?-----)?"
)
# What is left of a key when the text before it was cut: an end of an error's output.
PEM_END: Final = (
    rf"(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]{{16,}}+{PEM_GAP}*+){{1,100}}+"
    rf"(?:[A-Za-z0-9+/=]{{1,15}}+{PEM_GAP}*+)?+"
    r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
)

WORD_START: Final = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
QUOTE: Final = r"""(?:\\*["'`])?"""
SECRET_WORDS: Final = (
    "secret",
    "api_key",
    "api-key",
    "apikey",
    "access_key",
    "access-key",
    "accesskey",
    "auth_key",
    "authkey",
    "private_key",
    "privatekey",
    "account_key",
    "accountkey",
    "signing",
    "encryption",
    "master",
    "token",
    "credential",
)
HEX_WORDS: Final = (
    *(word for word in SECRET_WORDS if word not in ("token", "credential")),
    *(
        f"{kind}{sign}token"
        for kind in ("access", "auth", "api", "bearer", "refresh", "session")
        for sign in ("_", "-", "")
    ),
)
VALUE: Final = r"""[^\s"'`,;<>{}()\[\]\\]"""
ASSIGNED: Final = (
    rf"(?:_?(?:value|id))?{QUOTE}\]?[ \t]{{0,8}}(?::=|=>|[:=])[ \t]{{0,8}}"
    r"""(?:\\*["'`](?P<quoted>[^\s"'`\\]{8,200})\\*["'`]"""
    rf"|(?P<secret>{VALUE}{{8,200}}+)(?!{VALUE}))"
)

_BODY_CHARS: Final = 16
_FEW_CHARS: Final = 4
"""A token that ends in so few different characters was typed, not made."""
_DOCUMENTED: Final = frozenset(
    {
        # In pieces, or other programs that look for tokens would find them here.
        "sk_" + "test_4eC39HqLyjWDarjtT1zdp7dc",
        "sk_" + "test_BQokikJOvBiI2HlWgH4olfQ2",
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
            "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ."
            "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
        ),
    }
)
_COUNTED: Final = frozenset({"0123456789abcdef", "0123456789abcdef" * 2})
_LEAST_ENTROPY: Final = 3.0
"""Bits a character; English words have less in so few characters."""
_LEAST_CHARS: Final = 12
_KEY_CHARS: Final = 24
_LEAST_PASSWORD_KINDS: Final = 3
_HEX = re.compile(r"[0-9a-fA-F]+")
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.IGNORECASE)
_HASH = re.compile(r"[0-9A-F][0-9A-HJKMNP-TV-Z]{12}", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_STEP = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}:\d{1,5}(?::[0-9a-f]*)?")
_DIGEST = re.compile(
    r"(?:sha\d{1,3}|md5|blake\w*)[-:].*"
    r"|\$(?:[1567y]|2[abxy]?|argon\w*|scrypt|pbkdf2[\w-]*)\$.*",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r"[-/:@.,#=?&^~_+|]+")
_PART = re.compile(r"[0-9A-F][0-9A-HJKMNP-TV-Z]{12}|[0-7][0-9A-HJKMNP-TV-Z]{25}")
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_OID = re.compile(r"[0-9a-f]{4,16}")
_DATA_URL = re.compile(r"data:[a-z]+/", re.IGNORECASE)
_IMAGE = re.compile(r"iVBORw0KGgo|R0lGOD|/9j/|UklGR|PHN2Zy|Qk0|AAABAA")
"""How PNG, GIF, JPEG, WebP, SVG, BMP and ICO begin in base64."""
_STAND_IN = re.compile(
    r"[$#]?\{\{[^{}]*\}\}|[$#]\{[^{}]*\}|\$\([^()]*\)|%\(\w*\)\w?|\{(?:[A-Za-z_][\w.]*|\d?)\}"
    r"|%-?\d{0,2}[sdvqrx](?![A-Za-z0-9])|<[A-Za-z/][\w .:/-]*>|\[redacted:[^\]]*\]"
)
"""What is filled in later, wherever in a value it stands."""
_NESTED: Final = 3
"""``${A:-${B}}``"""
_ALL_STAND_IN = re.compile(
    r"(?:\$+\w+(?:[.:]+\w+|\[\w+\])*|%\w+%|\[[^\[\]]*\]|\([^()]*\)|<[^<>]*>|\{[^{}]*\}"
    r"|[-_.:/@+,|~=!;$])*+"
    r"|[A-Za-z_][\w.:]*(?:\[[^\[\]]*\]|\([^()]*\))++[;,)]*|\+.*\+|\..*\)\."
)
"""A value that is nothing but names of others, a call, or code between strings."""
_PLACEHOLDER = re.compile(
    r"\*\*\*|\.\.\.|…|x{4,}|0{6,}|redacted|example(?:\.|key)|your[-_ ]|changeme"
    r"|placeholder|process\.env|os\.environ|getenv|secrets\.|vault:|\bnull\b|undefined"
    # An expression that describes values is none.
    r"|\(\?|\[\^|\[a-z|\[0-9|\]\{\d|\][+*]",
    re.IGNORECASE,
)
_PLAIN_PASSWORD = re.compile(
    r"(?:user(?:name)?|pass(?:word|wd)?|pwd|secret|token|key|xxx+|string|null|none|true"
    r"|false|test|foo|bar|example|hidden|masked)\d{0,3}",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z_][\w]*(?:(?:\.|::|->)[A-Za-z_]\w*)+[;,)]*|[A-Za-z_]+")
_PATH = re.compile(r"(?:~|\.{1,2}|\$\w+)?/[\w./@~+-]*|[a-z][a-z0-9+.-]*://\S*")
_WORDS = re.compile(
    r"[a-z]{1,20}(?:[A-Z][a-z]{2,19})*\d{0,2}|[A-Z][a-z]{1,19}(?:[A-Z][a-z]{2,19})*\d{0,2}"
    r"|[A-Z]{1,20}\d{0,2}|\d{1,8}|v?\d+[a-z]?"
)
_KINDS = (str.islower, str.isupper, str.isdigit)


def is_token(text: str) -> bool:
    """Whether a token is one that was given out, and none that manuals show."""
    body = text[-_BODY_CHARS:]
    return (
        len(set(body)) > _FEW_CHARS
        and "example" not in text.lower()
        and text not in _DOCUMENTED
    )


def is_hex_secret(text: str) -> bool:
    """Whether hex digits, or a UUID, that were called a secret are one."""
    bare = text.replace("-", "")
    return len(set(bare)) > _FEW_CHARS and bare not in _COUNTED


def is_filled(text: str) -> bool:
    """Whether a value is more than a stand-in for one."""
    text = _without_stand_ins(text)
    return _PLACEHOLDER.search(text) is None and len(set(text)) > 3  # noqa: PLR2004 - ****, 1111


def _without_stand_ins(text: str) -> str:
    """Return what a value has besides what is filled in later."""
    # ``password=$PASSWORD&user=…``
    first = text.partition("&")[0]
    if first and _ALL_STAND_IN.fullmatch(_strip(first)):
        return ""
    return _strip(text)


def _strip(text: str) -> str:
    for _ in range(_NESTED):
        text = _STAND_IN.sub("", text)
    return text


def is_name(text: str) -> bool:
    """Whether a value names a thing of git's, uwf's or the world's."""
    shapes = (_ULID, _HASH, _UUID, _STEP, _DIGEST)
    if any(shape.fullmatch(text) for shape in shapes):
        return True
    if _DATA_URL.match(text) or _IMAGE.match(text):
        return True
    if _HEX.fullmatch(text):
        return len(text) in {40, 56, 64, 96, 128}
    return _is_of_names(text)


def _is_of_names(text: str) -> bool:
    """Whether hashes, ULIDs or oids are joined by signs, with words or alone."""
    parts = [part for part in _BETWEEN.split(text) if part]
    is_named = [bool(_PART.fullmatch(part) or _OID.fullmatch(part)) for part in parts]
    return any(is_named) and all(
        named or _WORDS.fullmatch(part) or _SHORT_OID.fullmatch(part)
        for named, part in zip(is_named, parts, strict=True)
    )


def is_random(text: str) -> bool:
    """Whether a value is made of random characters rather than of words."""
    if not is_filled(text) or is_name(text) or _entropy(text) < _LEAST_ENTROPY:
        return False
    # Or cases change within it more often than in joined words.
    turns = sum(a.islower() and b.isupper() for a, b in pairwise(text))
    return any(map(str.isdigit, text)) or turns * 5 >= len(text)


def is_likely_secret(text: str) -> bool:
    """Whether a value that was called a secret is one."""
    text = _without_stand_ins(text).rstrip(".,;:!?)")
    return (
        len(text) >= _LEAST_CHARS
        and not _is_of_words(text)
        and is_random(text)
        and not _PATH.fullmatch(text)
    )


def is_password(text: str) -> bool:
    """Whether a value that was called a password is one; it may be short."""
    text = _without_stand_ins(text).rstrip(".,;")
    if not is_filled(text) or is_name(text) or _PLAIN_PASSWORD.fullmatch(text):
        return False
    if _CODE.fullmatch(text) or _PATH.fullmatch(text):
        return False
    kinds = sum(any(map(is_, text)) for is_ in _KINDS)
    kinds += any(not char.isalnum() for char in text)
    return kinds >= _LEAST_PASSWORD_KINDS or is_likely_secret(text)


def is_url_password(text: str) -> bool:
    """Whether what stands in an address as a password is one."""
    if not is_filled(text):
        return False
    text = unquote(text)
    own = _without_stand_ins(text)
    if not is_filled(own) or _PLAIN_PASSWORD.fullmatch(own):
        return False
    return own == text or is_password(own)


def is_argument(text: str) -> bool:
    """Whether what follows an option for a password is one, and no prose."""
    return is_password(text) and not _is_of_words(text.rstrip(".,;:!?"))


def _is_of_words(text: str) -> bool:
    """Whether a value is code, or words and numbers joined by signs."""
    parts = [part for part in re.split(r"[-_.:/@+=|~,]+", text) if part]
    return all(_WORDS.fullmatch(part) for part in parts)


def _entropy(text: str) -> float:
    counts, length = Counter(text), len(text)
    return -sum(n / length * math.log2(n / length) for n in counts.values())


def is_key_block(text: str) -> bool:
    """Whether a private key follows the line that announces one."""
    lines = re.split(r"[\s>#|*]+|\\+[nrt]", text)
    return any(len(line) >= _KEY_CHARS and is_random(line) for line in lines)


def is_jwt(text: str) -> bool:
    """Whether a token's head is that of a JSON Web Token."""
    head = text.partition(".")[0]
    try:
        fields = json.loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and "alg" in fields


def is_basic_auth(text: str) -> bool:
    """Whether a value is an encoded ``user:password``."""
    try:
        user, colon, password = b64decode(text, validate=True).decode().partition(":")
    except ValueError:
        return False
    return bool(colon) and user.isprintable() and is_filled(password)
