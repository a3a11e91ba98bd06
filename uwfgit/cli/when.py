"""Times on the command line: ``7d``, ``12h``, ``30m``, dates and date-times."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from uwfgit.errors import UsageError

_SPAN: Final = re.compile(r"([0-9]{1,6})([dhm])", re.ASCII)
_UNIT_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def parse_time(text: str, *, option: str, now_ms: int) -> int:
    """Read a point in time, in ms since 1970.

    A span counts back from now; a date is its midnight in UTC; a date-time
    without a zone is local.

    Raises:
        UsageError: It is none of these; names the option.
    """
    wanted = text.strip()
    span = _SPAN.fullmatch(wanted)
    if span:
        return now_ms - int(span[1]) * _UNIT_MS[span[2]]
    try:
        found = datetime.fromisoformat(wanted)
        if _DATE.fullmatch(wanted):
            found = found.replace(tzinfo=UTC)
        return int(found.timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as exc:
        raise UsageError(
            f"{option}: '{text}' is no time",
            hint="for example 7d, 12h, 30m, 2026-05-01 or 2026-05-01T12:00",
        ) from exc
