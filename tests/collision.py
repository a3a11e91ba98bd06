"""Two different texts of one hash, and how they were found.

XXH64 takes its input in stripes of four words, one to a lane, and each word
goes into its lane by ``state = rotl(state + word * P2, 31) * P1``. Whatever a
first word did to a lane, a second word of the same lane can undo: it only has to
differ by the difference of the states divided by P2. So two texts that differ in
two words of one lane, a stripe apart, have one hash. The only search is for a
pair of words that are both letters and digits.
"""

from __future__ import annotations

import itertools
from typing import Final

from uwfgit.ids import Hash

_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_MASK: Final = 2**64 - 1
_P2_INVERSE: Final = pow(_P2, -1, 2**64)
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"

# A text node is hashed as 13 characters of type, 2 bytes of CBOR header (for 24
# to 255 characters) and the text; so the text's second character starts the third
# lane of the first stripe, and its 34th that of the second.
_FIRST: Final = slice(1, 9)
_SECOND: Final = slice(33, 41)
_FRAME: Final = "[--------] opens this long plan [--------] and nothing else does."


def _absorb(state: int, word: bytes) -> int:
    total = state + int.from_bytes(word, "little") * _P2 & _MASK
    return (total << 31 | total >> 33) * _P1 & _MASK


def _undo(second: bytes, state: int, other: int) -> bytes:
    """Give the word that has on the lane ``other`` the effect of ``second``."""
    word = int.from_bytes(second, "little") + (state - other) * _P2_INVERSE
    return (word & _MASK).to_bytes(8, "little")


def _fill(first: bytes, second: bytes) -> str:
    text = bytearray(_FRAME.encode())
    text[_FIRST], text[_SECOND] = first, second
    return text.decode("ascii")


def find_collision() -> tuple[str, str]:
    """Make two readable texts of one hash; takes some thousand tries."""
    lane, first, second = 0, b"original", b"harmless"  # the third lane starts at 0
    state = _absorb(lane, first)
    for letters in itertools.product(_LETTERS, repeat=4):
        other = f"evil{''.join(letters)}".encode()
        answer = _undo(second, state, _absorb(lane, other))
        if answer.isalnum():
            return _fill(first, second), _fill(other, answer)
    raise AssertionError


COLLIDING: Final = (
    "[original] opens this long plan [harmless] and nothing else does.",
    "[evilahrl] opens this long plan [JMkqUyhC] and nothing else does.",
)
"""What :func:`find_collision` finds; both texts are named ``COLLIDING_HASH``."""

COLLIDING_HASH: Final = Hash("3SGPDA16932MK")
