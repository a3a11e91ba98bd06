"""Words of a command that people paste into a shell; the only place that quotes them.

What a terminal must not get as it is stands in a form that a shell reads back and a
terminal shows: a name that is not UTF-8, and a control character in one, would
otherwise be shown as an escape that means another name.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable


def quote_word(word: str) -> str:
    r"""Return a word as a shell takes it: as it is, ``'…'``, or ``$'…\xff…'``."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_quote_character, word))}'"


def quote_words(words: Iterable[str]) -> str:
    """Return the words of a command in a line."""
    return " ".join(map(quote_word, words))


def _quote_character(character: str) -> str:
    if character in {"'", "\\"}:
        return f"\\{character}"
    if character.isprintable():
        return character
    try:
        data = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in data)
