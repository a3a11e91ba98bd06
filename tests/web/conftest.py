"""The program called in a work folder, as the tests of the command line have it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conftest import ended, thread, uwf, work
from tests.ports import held_port

__all__ = ["ended", "thread", "uwf", "work"]


@pytest.fixture
def port() -> Iterator[int]:
    """A port for a server that the test starts, ends and starts again."""
    with held_port() as found:
        yield found
