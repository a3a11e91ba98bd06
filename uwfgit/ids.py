"""Names of things: oids, hashes, thread ids; the only place that parses them."""

from __future__ import annotations

import re
from typing import Annotated, Final, NewType

from msgspec import Meta

from uwfgit.errors import UsageError

HASH_SHAPE: Final = r"[0-9A-F][0-9A-HJKMNP-TV-Z]{12}"
THREAD_SHAPE: Final = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
_OID_SHAPE: Final = r"[0-9a-f]{40}"

# Whatever msgspec reads of these types has their shape.
Oid = NewType("Oid", Annotated[str, Meta(pattern=rf"\A{_OID_SHAPE}\Z")])
"""A git object id: 40 lower-case hex digits."""
Hash = NewType("Hash", Annotated[str, Meta(pattern=rf"\A{HASH_SHAPE}\Z")])
"""uwf's content hash: 13 Crockford base-32 characters, upper case."""
ThreadId = NewType("ThreadId", Annotated[str, Meta(pattern=rf"\A{THREAD_SHAPE}\Z")])
"""An upper-case canonical ULID."""

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS: Final = tuple(first + second for first in ALPHABET for second in ALPHABET)
_HASH = re.compile(HASH_SHAPE, re.ASCII)
_THREAD = re.compile(THREAD_SHAPE, re.ASCII)
_TIME_CHARS: Final = 10
"""Of a ULID's 26: 48 bits of time, in characters of five."""
_OID = re.compile(_OID_SHAPE, re.ASCII)


def find_hash(text: str) -> Hash | None:
    """Read a hash in either case; ``None`` when the text has another shape."""
    upper = text.upper() if len(text) == 13 and text.isascii() else ""  # noqa: PLR2004 - the hash's length
    return Hash(upper) if _HASH.fullmatch(upper) else None


def read_hash(text: str) -> Hash:
    """Read a hash in either case.

    Raises:
        UsageError: It is none.
    """
    found = find_hash(text)
    if found is None:
        hint = "a hash is 13 of 0-9 and A-Z without I, L, O and U; the first is 0-F"
        raise UsageError(f"'{text}' is not a hash", hint=hint)
    return found


def is_hash(text: str) -> bool:
    """Whether the text is a hash as uwf prints it (upper case)."""
    return _HASH.fullmatch(text) is not None


def find_thread_id(text: str) -> ThreadId | None:
    """Read a whole thread id in either case; ``None`` for another shape."""
    upper = text.upper()
    return ThreadId(upper) if _THREAD.fullmatch(upper) else None


def is_thread_id(text: str) -> bool:
    """Whether the text is a canonical upper-case ULID."""
    return _THREAD.fullmatch(text) is not None


def is_oid(text: str) -> bool:
    """Whether the text is a full lower-case sha1 oid."""
    return _OID.fullmatch(text) is not None


def format_hash(value: int) -> Hash:
    """Write a 64-bit value as 13 base-32 characters, most significant first."""
    pairs = [_PAIRS[(value >> shift) & 1023] for shift in range(50, -1, -10)]
    return Hash(ALPHABET[value >> 60] + "".join(pairs))


def mint_thread_id(now_ms: int, randomness: bytes) -> ThreadId:
    """Make a ULID of a time (ms since 1970) and ten random bytes."""
    from ulid import ULID  # noqa: PLC0415 - imports importlib.metadata, which is slow

    return ThreadId(str(ULID.from_bytes(now_ms.to_bytes(6) + randomness)))


def thread_time_ms(thread: ThreadId) -> int:
    """Return the time a thread id carries, in ms since 1970."""
    value = 0
    for character in thread[:_TIME_CHARS]:
        value = value << 5 | ALPHABET.index(character)
    return value
