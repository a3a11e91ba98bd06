"""The program called in a work folder, as the tests of the command line have it."""

from __future__ import annotations

from tests.cli.conftest import ended, thread, uwf, work

__all__ = ["ended", "thread", "uwf", "work"]
