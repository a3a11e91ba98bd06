from __future__ import annotations

from datetime import datetime

import pytest

from uwfgit.cli.frame.arguments import parse_time
from uwfgit.errors import UsageError

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("7d", NOW - 7 * 86_400_000, id="days"),
        pytest.param("12h", NOW - 12 * 3_600_000, id="hours"),
        pytest.param(" 30m ", NOW - 30 * 60_000, id="minutes-trimmed"),
        pytest.param("2026-05-01", 1_777_593_600_000, id="date-is-utc-midnight"),
        pytest.param("2026-05-01T12:00Z", 1_777_636_800_000, id="zone"),
        pytest.param("2026-05-01T12:00+02:00", 1_777_629_600_000, id="offset"),
        pytest.param(
            "2026-05-01T12:00",
            int(datetime(2026, 5, 1, 12).astimezone().timestamp() * 1000),
            id="no-zone-is-local",
        ),
    ],
)
def test_times_are_read(text: str, expected: int) -> None:
    assert parse_time(text, option="--after", now_ms=NOW) == expected


@pytest.mark.parametrize(
    "text", ["", "1x", "d", "-7d", "tomorrow", "2026-13-01", "\uff17d"]
)
def test_anything_else_is_a_usage_error_that_names_the_option(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_time(text, option="--after", now_ms=NOW)

    assert caught.value.message.startswith("--after: ")
