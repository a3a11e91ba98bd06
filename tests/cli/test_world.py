from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from uwfgit.cli.frame.world import utc_offset


@pytest.fixture
def zone() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    time.tzset()


@pytest.mark.parametrize(
    ("name", "minutes"),
    [
        pytest.param("XXX-5:45", 345, id="quarters"),
        pytest.param("XXX3:30", -210, id="west"),
        pytest.param("XXX-20", 840, id="too far east"),
        pytest.param("XXX24", -840, id="too far west"),
    ],
)
def test_an_offset_is_one_that_a_place_on_earth_has(
    zone: pytest.MonkeyPatch, name: str, minutes: int
) -> None:
    zone.setenv("TZ", name)
    time.tzset()

    assert utc_offset() == minutes
