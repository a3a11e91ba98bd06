"""Masking of configured secrets; the only place that decides what of one is shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit, urlunsplit

from uwfgit.config.keys import KeyPath

_SECRET_NAME = re.compile(r"(?i)(key|token|secret|password)$")
_SECRET_FLAG = re.compile(r"(?i)--?[a-z0-9_-]*(key|token|secret|password)(?![a-z])")
_SHOW_ENDS_FROM = 20


def masked(value: object, *, path: KeyPath = ()) -> object:
    """Give the value as it may be shown: keys, tokens and passwords are cut.

    ``path`` is where it stands in the configuration; the root by default.
    """
    if isinstance(value, Mapping):
        return {
            name: masked(child, path=(*path, name)) for name, child in value.items()
        }
    if isinstance(value, str):
        secret = path[-1:] == ("apiKey",) or (
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
