"""The user's ``.env`` file; the only place that knows its form (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit, urlunsplit

from uwfgit.config.table import KeyPath

_SECRET_NAME = re.compile(r"(?i)(key|token|secret|password)$")
_SECRET_FLAG = re.compile(r"(?i)--?[a-z0-9_-]*(key|token|secret|password)(?![a-z])")
_SHOW_ENDS_FROM = 20


def masked(value: object, *, path: KeyPath = ()) -> object:
    """Return the value as it may be shown: keys, tokens and passwords are cut.

    ``path`` is where it stands in the configuration; the root by default.
    """
    if isinstance(value, Mapping):
        return {
            name: masked(child, path=(*path, name)) for name, child in value.items()
        }
    if isinstance(value, str):
        secret = path[-1:] in {("apiKey",), ("secret",)} or (
            path[-2:-1] == ("env",) and _SECRET_NAME.search(path[-1]) is not None
        )
        return _mask(value) if secret else _mask_url(value)
    if isinstance(value, Sequence):
        return _mask_words(list(value))
    return value


def _mask(text: str) -> str:
    return f"{text[:4]}…{text[-4:]}" if len(text) >= _SHOW_ENDS_FROM else "****"


def _mask_url(text: str) -> str:
    try:
        parts = urlsplit(text)
    except ValueError:
        return text
    user, at, host = parts.netloc.rpartition("@")
    if not at or ":" not in user:
        return text
    shown = f"{user.partition(':')[0]}:****@{host}"
    return urlunsplit(parts._replace(netloc=shown))


def _mask_words(words: list[object]) -> list[object]:
    shown: list[object] = []
    hide = False
    for word in words:
        flag = _SECRET_FLAG.match(word) if isinstance(word, str) else None
        if hide and isinstance(word, str):
            shown.append(_mask(word))
        elif flag is not None and isinstance(word, str) and "=" in word:
            name, _, secret = word.partition("=")
            shown.append(f"{name}={_mask(secret)}")
        else:
            shown.append(masked(word))
        hide = flag is not None and isinstance(word, str) and "=" not in word
    return shown


_LINE = re.compile(
    r"""(?m)^[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.]*)[ \t]*=[ \t]*"""
    r"""(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)'|(?P<plain>[^\n#]*?))"""
    r"""[ \t]*(?:[ \t]\#[^\n]*)?\r?$""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_BARE = re.compile(r"[A-Za-z0-9_./+=:@%,-]+")
_QUOTED = re.compile(r"[^'\r\n]*")
_ESCAPED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def parse_dotenv(text: str) -> dict[str, str]:
    r"""Read ``NAME=VALUE`` lines; of a name given twice the last counts.

    Values may stand in quotes and then span lines; in double ones ``\n`` is a
    line break. What is no such line is passed over.
    """
    found = {}
    for match in _LINE.finditer(text):
        value = match["plain"] if match["single"] is None else match["single"]
        if match["double"] is not None:
            value = _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1]), match["double"])
        found[match["name"]] = value
    return found


def is_variable_name(name: str) -> bool:
    """Whether a line may set a variable of this name."""
    return _NAME.fullmatch(name) is not None


def add_variable(text: str, name: str, value: str) -> str | None:
    """Add a line that sets a variable; all that stands there stays as it is.

    Returns:
        The new text; ``None`` when no added line would be read as it should, since
        a quote before it is never closed.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lead = newline if text and not text.endswith("\n") else ""
    added = f"{text}{lead}{name}={_quote(value)}{newline}"
    wanted = {**parse_dotenv(text), name: value}
    return added if parse_dotenv(added) == wanted else None


def _quote(value: str) -> str:
    """Write a value as shells and other readers of such files take it too."""
    if _BARE.fullmatch(value):
        return value
    if _QUOTED.fullmatch(value):
        return f"'{value}'"
    escaped = re.sub(r'[\\"$`]', r"\\\g<0>", value)
    return '"' + re.sub(r"[\n\r\t]", lambda m: _ESCAPED[m[0]], escaped) + '"'
