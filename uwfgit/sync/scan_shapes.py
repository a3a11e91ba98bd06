"""What rules for secrets are made of: the kinds of rules, and forms many share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
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
    """

    name: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Check | None = None
    starts: bool = True
    fold: bool = False
    bounded: bool = False
    back: int = 0


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
        check=check,
        starts=starts,
        bounded=True,
    )


def make_open(
    name: str,
    pattern: str,
    *words: str,
    check: Check | None = None,
) -> Rule:
    """Make a rule for what stands behind a word, in whatever case."""
    return Rule(
        name=name,
        words=tuple(word.lower() for word in words),
        pattern=re.compile(pattern, re.IGNORECASE),
        check=check,
        fold=True,
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
VALUE: Final = r"""[^\s"'`,;<>{}()\[\]\\]"""
ASSIGNED: Final = (
    rf"(?:_?(?:value|id))?{QUOTE}\]?[ \t]{{0,8}}(?::=|=>|[:=])[ \t]{{0,8}}"
    r"""(?:\\*["'`](?P<quoted>[^\s"'`\\]{8,200})\\*["'`]"""
    rf"|(?P<secret>{VALUE}{{8,200}}+)(?!{VALUE}))"
)
