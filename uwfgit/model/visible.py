"""Foreign text made visible: what would hide or reorder it is written as a code.

The only place that says which characters those are. A terminal and a page get
stored text, agents' words and git's output through these functions.
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
_ONE_LINE: Final = f"[{_UNSAFE}\t\n]"
"""The same where they may not; compiled when it is first needed."""


def shown(text: str) -> str:
    r"""Return text of one line that is safe to print: ``\x1b`` for an escape."""
    # Printable for Python is less than safe here, and costs next to nothing.
    return text if text.isprintable() else re.sub(_ONE_LINE, escape, text)


def shown_lines(text: str) -> str:
    r"""Return text of several lines that is safe to print.

    Newlines and tabs stay; CRLF becomes a newline.
    """
    return UNSAFE.sub(escape, text.replace("\r\n", "\n"))


def escape(match: re.Match[str]) -> str:
    """Write the character that was found as a name of it."""
    code = ord(match[0])
    named = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    if named is not None:
        return named
    if code < 0x100:  # noqa: PLR2004 - two digits are enough below it
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the basic plane's end
