"""The tables of docs/architecture.md name every event and every kind of ref."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from uwfgit.model.thread.message import EventName
from uwfgit.store.care.tracking import REMOTES_PREFIX
from uwfgit.store.layout import (
    HEAD_REF,
    KEEP_REF,
    THREAD_PREFIX,
    TRASH_PREFIX,
    WORKFLOW_PREFIX,
)
from uwfgit.sync.exchange.remotes import APPROVED_PREFIX

TEXT = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text("utf-8")


def first_cells() -> str:
    """Give the first cell of each row of its tables."""
    return "\n".join(re.findall(r"^\| ([^|]+) \|", TEXT, re.MULTILINE))


@pytest.mark.parametrize("event", get_args(EventName))
def test_each_event_stands_in_its_table(event: str) -> None:
    assert re.search(rf"\b{event}\b", first_cells())


@pytest.mark.parametrize(
    "prefix",
    [
        HEAD_REF,
        KEEP_REF,
        THREAD_PREFIX,
        WORKFLOW_PREFIX,
        TRASH_PREFIX,
        APPROVED_PREFIX,
        REMOTES_PREFIX,
    ],
)
def test_each_kind_of_ref_stands_in_its_table(prefix: str) -> None:
    assert f"`{prefix}" in first_cells()
