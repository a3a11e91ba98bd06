"""Values of configuration keys: read, checked against the table, and set.

Pure: works on plain mappings as YAML gives them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from uwfgit.config.table import (
    ABOVE_ZERO,
    ALIAS,
    KEYS,
    REMOTE,
    Key,
    KeyPath,
    Layer,
    ValueType,
)
from uwfgit.errors import ConfigError, NotFoundError
from uwfgit.shell import quote_word
from uwfgit.spelling import find_similar


class LayerValues(Struct, frozen=True, kw_only=True):
    """One file's checked values by path, and what to tell the user about it."""

    source: str
    values: Mapping[KeyPath, object]
    warnings: tuple[str, ...]


def read_layer(mapping: object, *, source: str, layer: Layer) -> LayerValues:
    """Check one file's content; ``None`` is an empty file, null an absent value.

    A key that is unknown, or that this layer may not set, is a warning and has
    no effect.

    Raises:
        ConfigError: A value of the wrong type; names source and key.
    """
    if mapping is not None and not isinstance(mapping, Mapping):
        raise ConfigError("the file must hold a mapping", source=source)
    values: dict[KeyPath, object] = {}
    warnings = []
    for path, value in _iter_leaves(mapping):
        key, dotted = find_key(path), ".".join(path)
        if key is not None and layer in key.layers:
            values[path] = check_value(path, value, source=source)
        elif key is not None:
            owner = ".uwf.yaml" if layer == "user" else "the user's own configuration"
            warnings.append(
                f"{source}: '{dotted}' has no effect here; it belongs in {owner}"
            )
        elif _is_group(path):
            raise ConfigError("must be a mapping", source=source, key=dotted)
        else:
            warnings.append(f"{source}: unknown key '{dotted}'{_suggest(path)}")
    return LayerValues(source=source, values=values, warnings=tuple(warnings))


def _iter_leaves(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    if isinstance(value, Mapping) and (not path or _is_group(path)):
        for name, child in value.items():
            yield from _iter_leaves(child, (*path, str(name)))
    elif value is not None:
        yield path, value


def find_key(path: KeyPath) -> Key | None:
    """Return the table's row for a path."""
    for key in KEYS:
        if len(key.path) == len(path) and _starts(key.path, path):
            return key
    return None


def _is_group(path: KeyPath) -> bool:
    return any(len(key.path) > len(path) and _starts(key.path, path) for key in KEYS)


def _starts(pattern: KeyPath, path: KeyPath) -> bool:
    return all(want in ("*", part) for want, part in zip(pattern, path, strict=False))


def _suggest(path: KeyPath) -> str:
    """Say what an unknown path may have meant: `` ; did you mean …?`` or nothing."""
    for depth, part in enumerate(path):
        head = path[:depth]
        names = {
            key.path[depth]
            for key in KEYS
            if len(key.path) > depth and _starts(key.path, head)
        }
        if part in names or "*" in names:
            continue
        close = find_similar(part, sorted(names))
        return f"; did you mean '{'.'.join((*head, close))}'?" if close else ""
    return ""


def check_value(path: KeyPath, value: object, *, source: str | None) -> object:
    """Return the value back when its type fits the key of this path.

    Raises:
        ConfigError: It does not fit, or an agent's alias has a bad name.
    """
    key = find_key(path)
    if key is None:
        raise ConfigError("unknown key", source=source, key=".".join(path))
    complaint = _CHECKS[key.type](key, value)
    if path[0] == "agents" and not ALIAS.fullmatch(path[1]):
        complaint = "an alias is made of letters, digits, '.', '_' and '-'"
    if complaint is not None:
        raise ConfigError(complaint, source=source, key=".".join(path))
    return value


def _check_text(key: Key, value: object) -> str | None:
    if not isinstance(value, str):
        return "must be text (put it in quotes)"
    if not value.strip() and "env" not in key.path:
        return "must not be empty"
    if key.choices and value not in key.choices:
        return f"must be one of {', '.join(key.choices)}"
    return None


def _check_number(key: Key, value: object) -> str | None:
    wanted = "a whole number" if key.type == "integer" else "a number"
    kinds = (int,) if key.type == "integer" else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        return f"must be {wanted}"
    if not math.isfinite(value) or (key.minimum is not None and value < key.minimum):
        least = "more than 0" if key.minimum == ABOVE_ZERO else f"{key.minimum} or more"
        return f"must be {least}"
    return None


def _check_words(key: Key, value: object) -> str | None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return "must be a list of texts"
    if not all(isinstance(word, str) for word in value):
        return "must be a list of texts (put numbers in quotes)"
    if key.path[-1] != "args" and not all(word.strip() for word in value):
        return "must not hold an empty text"
    return None


def _check_model(_key: Key, value: object) -> str | None:
    provider, _, name = value.partition("/") if isinstance(value, str) else ("", "", "")
    return None if provider and name else "must be PROVIDER/NAME"


_CHECKS: Final[Mapping[ValueType, Callable[[Key, object], str | None]]] = {
    "text": _check_text,
    "integer": _check_number,
    "number": _check_number,
    "words": _check_words,
    "tools": lambda key, value: None if value == "none" else _check_words(key, value),
    "model": _check_model,
    "remote": lambda _, value: (
        None
        if isinstance(value, str) and REMOTE.fullmatch(value)
        else "must be the name of a remote"
    ),
}


def get_key(mapping: Mapping[str, object], dotted: str) -> object:
    """Return the value, or the whole group, that a dotted name says; not masked.

    Names may hold dots themselves (``models.gpt-4.1.name``).

    Raises:
        NotFoundError: Nothing is set there.
    """
    found = [value for value in _descend(mapping, dotted) if value is not None]
    if not found:
        raise _nothing_at(dotted)
    return found[0]


def _nothing_at(dotted: str) -> NotFoundError:
    path = parse_dotted(dotted)
    words = tuple(dotted.split("."))
    if path is not None or _is_group(words):
        hint = "it has no value; uwf config list names those that have"
    elif near := _suggest(words):
        hint = near.removeprefix("; ")
    else:
        hint = "uwf config list names those that have a value"
    return NotFoundError("config key", dotted, hint=hint)


def _descend(value: object, dotted: str) -> Iterator[object]:
    if not isinstance(value, Mapping):
        return
    for name, child in value.items():
        if dotted == name:
            yield child
        elif dotted.startswith(f"{name}."):
            yield from _descend(child, dotted[len(str(name)) + 1 :])


def set_key(
    mapping: Mapping[str, object],
    dotted: str,
    text: str,
    *,
    source: str | None = None,
    layer: Layer = "user",
) -> dict[str, object]:
    """Return a copy of the mapping in which the key has the value a text says.

    Lists are JSON arrays; any other text is a list of that one item.

    Raises:
        ConfigError: Unknown key (all of that group are named), a value that does
            not fit, or a parent that is no mapping.
    """
    path = parse_dotted(dotted)
    key = find_key(path) if path is not None else None
    if path is None or key is None or layer not in key.layers:
        raise _unknown(tuple(dotted.split(".")), source=source, layer=layer)
    value = check_value(path, _read_text(key, text), source=source)
    return _put(mapping, path, value, source=source)


def is_group(dotted: str) -> bool:
    """Whether a dotted name stands for several keys, as ``agents.NAME`` does."""
    return _is_group(tuple(dotted.split(".")))


def set_group(
    mapping: Mapping[str, object],
    dotted: str,
    group: Mapping[str, object],
    *,
    source: str | None = None,
    layer: Layer = "user",
) -> tuple[dict[str, object], Mapping[KeyPath, object]]:
    """Return a copy of the mapping in which a group is this one, and its values.

    What the group held before is gone.

    Raises:
        ConfigError: It holds an unknown key (all of that group are named), a value
            that does not fit, or nothing; or a parent is no mapping.
    """
    path = tuple(dotted.split("."))
    values = dict(_iter_leaves(group, path))
    for leaf, value in values.items():
        key = find_key(leaf)
        if key is None and _is_group(leaf):
            raise ConfigError("must be a mapping", source=source, key=".".join(leaf))
        if key is None or layer not in key.layers:
            raise _unknown(leaf, source=source, layer=layer)
        check_value(leaf, value, source=source)
    if not values:
        raise ConfigError(
            "the mapping sets nothing",
            source=source,
            key=dotted,
            hint=f"to take a group away: uwf config unset {quote_word(dotted)}",
        )
    return _put(mapping, path, group, source=source), values


def _unknown(path: KeyPath, *, source: str | None, layer: Layer) -> ConfigError:
    dotted = ".".join(path)
    near = ", ".join(_list_near([key for key in KEYS if layer in key.layers], path))
    if _is_group(path):
        return ConfigError(
            f"'{dotted}' is a group of keys",
            source=source,
            hint=f"give a mapping, as '{{KEY: VALUE}}', or set one of: {near}",
        )
    return ConfigError(
        f"unknown key '{dotted}'{_suggest(path)}", source=source, hint=f"keys: {near}"
    )


def unset_key(mapping: Mapping[str, object], dotted: str) -> dict[str, object]:
    """Return a copy of the mapping without the value, or group, of a dotted name.

    A group that becomes empty goes with it.

    Raises:
        NotFoundError: Nothing is set there.
    """
    copy = _without(mapping, dotted)
    if copy is None:
        raise _nothing_at(dotted)
    return copy


def _without(mapping: Mapping[str, object], dotted: str) -> dict[str, object] | None:
    for name, child in mapping.items():
        rest = {key: value for key, value in mapping.items() if key != name}
        if dotted == name:
            return rest
        if not dotted.startswith(f"{name}.") or not isinstance(child, Mapping):
            continue
        inner = _without(child, dotted[len(name) + 1 :])
        if inner is not None:
            return {**mapping, name: inner} if inner else rest
    return None


def parse_dotted(dotted: str) -> KeyPath | None:
    """Split a dotted name by the table, so that names may hold dots themselves."""
    for key in sorted(KEYS, key=lambda key: -len(key.path)):
        parts = ("(.+)" if part == "*" else f"({re.escape(part)})" for part in key.path)
        match = re.fullmatch(r"\.".join(parts), dotted)
        if match is not None:
            return match.groups()
    return None


def _list_near(keys: Sequence[Key], path: KeyPath) -> list[str]:
    """List the keys below the longest beginning of the path that has any."""
    for depth in range(len(path), 0, -1):
        near = [str(key) for key in keys if _starts(key.path, path[:depth])]
        if near:
            return near
    return sorted({key.path[0] for key in keys})


def _read_text(key: Key, text: str) -> object:
    """Read a command line's text as the key's type; misfits are left for the check."""
    if key.type in ("integer", "number"):
        for read in (int, float):
            with suppress(ValueError):
                return read(text)
    if key.type == "words" or (key.type == "tools" and text != "none"):
        if not text.lstrip().startswith("["):
            return [text]
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


def _put(
    mapping: object, path: KeyPath, value: object, *, source: str | None
) -> dict[str, object]:
    if mapping is not None and not isinstance(mapping, Mapping):
        raise ConfigError(f"what holds '{path[0]}' is not a mapping", source=source)
    copy: dict[str, object] = dict(mapping or {})
    head, rest = path[0], path[1:]
    copy[head] = _put(copy.get(head), rest, value, source=source) if rest else value
    return copy
