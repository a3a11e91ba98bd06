"""Foreign text on a terminal; the only place that decides how it may look.

Stored text, agents' words and git's output reach a terminal through these
functions only: an escape sequence in them would otherwise move the cursor,
hide lines or retitle the window, and a bidirectional control would show other
words than the ones that are there.

What is for people is shown in a pipe too, which as often as not ends on their
terminal. JSON and YAML escape the same characters and mean the same. What is
data goes into a pipe or a file as it is stored, as git does it, and is shown on
a terminal only: a text of ``cas get``, the path of ``store path``, and all that
``git`` and ``thread log`` hand on.
"""

from __future__ import annotations

import re
from typing import Final

# C0 without tab and newline, DEL and C1, line separators, bidirectional
# controls, zero-width characters that join nothing, invisible tags and marks of
# shorthand and music, lone surrogates. The joiners U+200C and U+200D stay:
# scripts and emoji need them, and they reorder and hide nothing.
_UNSAFE: Final = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
UNSAFE: Final = re.compile(f"[{_UNSAFE}]")
"""One character that a terminal must not get as it is; tab and newline may."""
_ONE_LINE: Final = re.compile(f"[{_UNSAFE}\t\n]")
# The colours that uwf writes itself, and nothing else that begins with an escape.
_COLOR: Final = re.compile(r"(\x1b\[(?:0|2|3[1-6])m)")


def shown(text: str) -> str:
    r"""Give text of one line that is safe to print: ``\x1b`` for an escape."""
    # Printable for Python is less than safe here, and costs next to nothing.
    return text if text.isprintable() else _ONE_LINE.sub(_escape, text)


def shown_lines(text: str) -> str:
    r"""Give text of several lines that is safe to print.

    Newlines and tabs stay; CRLF becomes a newline.
    """
    return UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def shown_page(text: str) -> str:
    r"""Give what uwf put together, safe to print: of escapes, its own colours stay.

    The last gate before a stream. Foreign parts have come through the functions
    above, which leave no colours in them; text that has is not changed.
    """
    if text.replace("\n", "").isprintable():
        return text
    parts = _COLOR.split(text)
    parts[::2] = (UNSAFE.sub(_escape, part) for part in parts[::2])
    return "".join(parts)


def shown_json(text: str) -> str:
    r"""Escape what a terminal must not get in JSON text as ``\uXXXX``.

    The value is the same: such characters stand in strings only.
    """
    return UNSAFE.sub(_escape_json, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    named = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    if named is not None:
        return named
    if code < 0x100:  # noqa: PLR2004 - two digits are enough below it
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the basic plane's end


def _escape_json(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:  # noqa: PLR2004 - the basic plane's end
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
