"""What a command said about a thread, as a page shows it."""

from __future__ import annotations

from msgspec import Struct


class Report(Struct, frozen=True, kw_only=True):
    """A report, what it comes to, and the command that says the same.

    ``kind`` is the language it is written in, such as ``diff``.
    """

    title: str
    told: str
    text: str
    kind: str = ""
