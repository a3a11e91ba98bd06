"""Two people, a bare repository between them, and its queue."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sync.people import Person, make_bare, make_person


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    return make_bare(tmp_path / "bare.git")


@pytest.fixture
def ada(tmp_path: Path, bare: Path) -> Person:
    person = make_person(tmp_path, "ada")
    person.join(bare)
    return person


@pytest.fixture
def bob(tmp_path: Path, bare: Path) -> Person:
    person = make_person(tmp_path, "bob", hours=5)
    person.join(bare)
    return person
