"""Values to bytes and names: canonical JSON, CBOR and the XXH64 hash (pure).

The hash is that of the public ``ocas`` store, so nodes keep their names when
they move between the two.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import cbor2
import xxhash

from uwfgit.constants import MAX_DEPTH, MAX_SAFE_INTEGER
from uwfgit.errors import CorruptError, InvalidError, Problem
from uwfgit.ids import Hash, format_hash

Json: TypeAlias = Any
"""A JSON value: dict with string keys, list, str, int, float, bool or None."""

META_TYPE: Final = Hash("CTS5P6RD8HMCS")
"""The hash of the meta-schema, whose type is itself."""
TEXT_TYPE: Final = Hash("7VQ43ZSJTEWA7")
"""The hash of ``{type: string}``; such nodes are stored as plain UTF-8."""


def normalise(value: Json) -> Json:
    """Give the one form of a JSON value that is hashed and stored.

    Integral floats up to 2^53-1 become integers; maps are ordered by the bytes
    of their encoded keys, as CBOR wants them.

    Raises:
        InvalidError: NaN, infinity, an integer beyond 2^53-1, a lone
            surrogate, a key that is no string, nesting beyond ``MAX_DEPTH``,
            or a value JSON does not have; the problem's path says where.
    """
    return _normalise(value, (), 0)


def _normalise(value: Json, path: tuple[str | int, ...], depth: int) -> Json:  # noqa: C901, PLR0911 - one case a JSON type
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        _check_text(value, path)
        return value
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise _refusal(path, "integer beyond 2^53-1")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refusal(path, "number that is not finite")
        if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
            return int(value)
        return value
    if depth >= MAX_DEPTH:
        raise _refusal(path, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        pairs = []
        for key, item in value.items():
            if not isinstance(key, str):
                raise _refusal(path, f"key {key!r} is not a string")
            _check_text(key, (*path, key))
            pairs.append((key, _normalise(item, (*path, key), depth + 1)))
        pairs.sort(key=_key_order)
        return dict(pairs)
    if isinstance(value, (list, tuple)):
        return [
            _normalise(item, (*path, index), depth + 1)
            for index, item in enumerate(value)
        ]
    raise _refusal(path, f"a {type(value).__name__} is not a JSON value")


def _key_order(pair: tuple[str, Json]) -> tuple[int, bytes]:
    # CBOR text starts with its length, so encoded keys sort by length first.
    encoded = pair[0].encode()
    return len(encoded), encoded


def _check_text(text: str, path: tuple[str | int, ...]) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise _refusal(path, "lone surrogate in a string") from exc


def _refusal(path: tuple[str | int, ...], message: str) -> InvalidError:
    return InvalidError(
        [Problem(code="value", message=message, path=format_path(path) or "(root)")]
    )


def format_path(path: tuple[str | int, ...]) -> str:
    """Write a path into a value as text: ``steps[2].output``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            # A key may hold anything; a path is shown, so it stays ASCII.
            shown = part.encode("ascii", "backslashreplace").decode()
            text += f".{shown}" if text else shown
    return text


def hash_node(node_type: Hash | None, payload: Json) -> Hash:
    """Name a node by its type and its *normalised* payload.

    Args:
        node_type: ``None`` for the meta-schema, whose type is itself.
        payload: A value that :func:`normalise` gave.
    """
    # Not cbor2's canonical mode: that shortens floats, the format never does.
    digest = xxhash.xxh64(b"" if node_type is None else node_type.encode("ascii"))
    digest.update(cbor2.dumps(payload))
    return format_hash(digest.intdigest())


def encode_json(payload: Json) -> bytes:
    """Write a normalised payload as the only bytes allowed for it."""
    text = json.dumps(payload, sort_keys=True, indent=2, ensure_ascii=False)
    return text.encode() + b"\n"


def decode_json(data: bytes) -> Json:
    """Read what :func:`encode_json` wrote.

    Raises:
        CorruptError: The bytes are not exactly those of a payload.
    """
    try:
        value = normalise(json.loads(data.decode()))
    except (ValueError, RecursionError, InvalidError) as exc:
        raise CorruptError(f"not a payload: {exc}") from exc
    if encode_json(value) != data:
        raise CorruptError("payload is not in canonical form")
    return value


def encode_payload(node_type: Hash, payload: Json) -> bytes:
    """Write a normalised payload as its blob: text plain, all else JSON."""
    if node_type == TEXT_TYPE:
        if not isinstance(payload, str):
            raise InvalidError("a text node's payload is a string")
        return payload.encode()
    return encode_json(payload)


def decode_payload(node_type: Hash, data: bytes) -> Json:
    """Read a node's blob.

    Raises:
        CorruptError: The bytes are not exactly those of a payload.
    """
    if node_type == TEXT_TYPE:
        try:
            return data.decode()
        except UnicodeDecodeError as exc:
            raise CorruptError("text node is not UTF-8") from exc
    return decode_json(data)


def node_hash(node_type: Hash, payload: Json) -> Hash:
    """Name a node of any type, the meta-schema included."""
    if node_type == META_TYPE:
        own = hash_node(None, payload)
        if own == META_TYPE:
            return own
    return hash_node(node_type, payload)
