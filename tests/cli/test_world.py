from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
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


def test_a_step_asks_git_for_its_settings_once(
    uwf: Uwf, thread: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, folder = tmp_path / "asked", tmp_path / "bin"
    folder.mkdir()
    program = folder / "git"
    path = os.environ["PATH"]
    program.write_text(
        f'#!/bin/sh\necho "$*" >> {log}\nexec env PATH="{path}" git "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{path}")

    done = uwf("thread", "exec", thread, "--agent", "scripted:replies.yaml")

    assert done.code == 0
    asked = log.read_text().splitlines()
    assert [line.partition("protocol.ext.allow=never ")[2] for line in asked] == [
        "config -z --list"
    ]
