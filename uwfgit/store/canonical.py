"""Values to bytes and names: canonical JSON, CBOR and the XXH64 hash (pure).

The hash is that of the public ``ocas`` store, so nodes keep their names when
they move between the two.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import cbor2
import xxhash
from msgspec.json import Decoder as JsonDecoder
from msgspec.json import Encoder as JsonEncoder
from msgspec.json import decode
from msgspec.json import format as format_json

from uwfgit.constants import MAX_DEPTH, MAX_SAFE_INTEGER
from uwfgit.errors import CorruptError, InvalidError, Problem
from uwfgit.ids import Hash, format_hash

Json: TypeAlias = Any
"""A JSON value: dict with string keys, list, str, int, float, bool or None."""

if TYPE_CHECKING:
    _Kind = TypeVar("_Kind")
    Omittable: TypeAlias = _Kind | None
else:

    class Omittable:
        """A field that JSON has or leaves out, never as null: ``None`` is left out."""

        def __class_getitem__(cls, kind: object) -> object:
            return kind


META_TYPE: Final = Hash("CTS5P6RD8HMCS")
"""The hash of the meta-schema, whose type is itself."""
TEXT_TYPE: Final = Hash("7VQ43ZSJTEWA7")
"""The hash of ``{type: string}``; such nodes are stored as plain UTF-8."""


_Trail: TypeAlias = "tuple[_Trail, str | int] | None"
"""A path as keys linked inside out: most are made and never read."""


def normalise(value: Json, trail: _Trail = None, depth: int = 0) -> Json:  # noqa: C901, PLR0911, PLR0912 - one case a JSON type
    """Return the one form of a JSON value that is hashed and stored.

    Integral floats up to 2^53-1 become integers; maps are ordered by the bytes
    of their encoded keys, as CBOR wants them.

    Args:
        value: What there is.
        trail: Where it stands, as a part of another.
        depth: How deep in that.

    Raises:
        InvalidError: NaN, infinity, an integer beyond 2^53-1, a lone
            surrogate, a key that is no string, nesting beyond ``MAX_DEPTH``,
            or a value JSON does not have; the problem's path says where.
    """
    if isinstance(value, str):
        if not value.isascii():
            _check_text(value, trail)
        return value
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise _refusal(trail, "integer beyond 2^53-1")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refusal(trail, "number that is not finite")
        if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
            return int(value)
        return value
    if depth >= MAX_DEPTH:
        raise _refusal(trail, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, (dict, Mapping)):
        found = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise _refusal(trail, f"key {key!r} is not a string")
            below = (trail, key)
            if not key.isascii():
                _check_text(key, below)
            found[key] = normalise(item, below, depth + 1)
        return {key: found[key] for key in _order_keys(tuple(found))}
    if isinstance(value, (list, tuple)):
        return [
            normalise(item, (trail, index), depth + 1)
            for index, item in enumerate(value)
        ]
    raise _refusal(trail, f"a {type(value).__name__} is not a JSON value")


def _check_text(text: str, trail: _Trail) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise _refusal(trail, "lone surrogate in a string") from exc


def _refusal(trail: _Trail, message: str) -> InvalidError:
    path: list[str | int] = []
    while trail is not None:
        trail, key = trail
        path.insert(0, key)
    place = format_path(tuple(path)) or "(root)"
    return InvalidError([Problem(code="value", message=message, path=place)])


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


def encode_json(payload: Json) -> bytes:
    """Write a normalised payload as the only bytes allowed for it."""
    # What json.dumps(sort_keys=True, indent=2, ensure_ascii=False) gives, in a tenth
    # of the time.
    data = _SORTED.encode(payload)
    try:
        _PLAIN.decode(data)
    except ValueError:
        # Floats are written as Python does.
        data = _ENCODER.encode(payload).encode()
    return format_json(data, indent=2) + b"\n"


_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
)


def decode_json(data: bytes) -> Json:
    """Read what :func:`encode_json` wrote.

    Raises:
        CorruptError: The bytes are not exactly those of a payload.
    """
    with suppress(ValueError, RecursionError, InvalidError):
        # A codec in C decides where it may: canonical bytes of a value without floats
        # are those of `encode_json`. All that is not so is left to the slower way.
        value = _PLAIN.decode(data)
        if data == format_json(_SORTED.encode(value), indent=2) + b"\n":
            return _order(value, 0)
    try:
        value = normalise(decode(data))
        is_canonical = encode_json(value) == data
    except (ValueError, RecursionError, InvalidError) as exc:
        raise CorruptError(f"not a payload: {exc}") from exc
    if not is_canonical:
        raise CorruptError("payload is not in canonical form")
    return value


def _order(value: Json, depth: int) -> Json:
    """Order what was read as :func:`normalise` would, and refuse what that does."""
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise _refusal(None, "integer beyond 2^53-1")
    elif isinstance(value, (dict, list)):
        if depth >= MAX_DEPTH:
            raise _refusal(None, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, list):
            return [_order(item, depth + 1) for item in value]
        return {
            key: item if type(item := value[key]) is str else _order(item, depth + 1)
            for key in _order_keys(tuple(value))
        }
    return value


_ORDERS: Final[dict[tuple[str, ...], tuple[str, ...]]] = {}
_MOST_ORDERS: Final = 256
_ORDER_CHARS: Final = 1_000


def _order_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    found = _ORDERS.get(keys)
    if found is None:
        # CBOR text starts with its length, so encoded keys sort by length first.
        found = tuple(sorted(keys, key=lambda key: (len(text := key.encode()), text)))
        # Most mappings are of one of a few types; what others made may be of any size.
        if len(_ORDERS) < _MOST_ORDERS and sum(map(len, keys)) <= _ORDER_CHARS:
            _ORDERS[keys] = found
    return found


def _refuse_float(_: str) -> Json:
    raise ValueError("a float has several forms")


_PLAIN: Final = JsonDecoder(float_hook=_refuse_float)
_SORTED: Final = JsonEncoder(order="sorted")


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


def parse_payload(node_type: Hash, data: bytes) -> Json:
    """Read a node's blob without a look at whether its bytes are canonical.

    Raises:
        CorruptError: It is no payload at all.
    """
    try:
        # In half the time of json.loads.
        return data.decode() if node_type == TEXT_TYPE else decode(data)
    except (ValueError, RecursionError) as exc:
        raise CorruptError(f"not a payload: {exc}") from exc


def node_hash(node_type: Hash, payload: Json) -> Hash:
    """Name a node by its type and a payload that :func:`normalise` gave."""
    # Not cbor2's canonical mode: that shortens floats, the format never does.
    encoded = cbor2.dumps(payload)
    if node_type == META_TYPE:
        # The meta-schema, whose type is itself, is hashed without one.
        own = format_hash(xxhash.xxh64_intdigest(encoded))
        if own == META_TYPE:
            return own
    return format_hash(xxhash.xxh64_intdigest(node_type.encode("ascii") + encoded))
