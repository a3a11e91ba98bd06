"""A repository of the user's with a commit, and what keeps its code."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from tests.code.repo import Repo
from uwfgit.code.snapshots.keep import Keeper
from uwfgit.code.snapshots.take import Camera


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A work tree with two committed files."""
    return Repo.make(tmp_path / "code")


@pytest.fixture
def keeper(tmp_path: Path) -> Keeper:
    """Keeps code with the bounds of every day; a file with SECRET in it is secret."""
    seconds = itertools.count(1_800_000_000)
    return Keeper(
        camera=Camera(
            folder=tmp_path / "state",
            home=tmp_path / "home",
            is_secret=lambda _, data: b"SECRET" in data,
        ),
        environment=dict(os.environ),
        now=lambda: next(seconds),
    )
