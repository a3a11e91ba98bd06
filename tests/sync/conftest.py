"""A thread with every event; two people and a bare repository between them."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.builders import Clock, make_ledger
from tests.sync.people import Person, make_bare, make_person
from tests.sync.tour import Tour, make_tour, tip_of
from uwfgit.store.repository import init_store, open_store


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Tour:
    """A thread with every event, made once a module."""
    folder = tmp_path_factory.mktemp("tour")
    init_store(folder / "store", home=folder, fsync=False)
    store = open_store(folder / "store", home=folder, write=True, fsync=False)
    ledger = make_ledger(store, Clock(count(1_800_000_000_500, 700)))
    thread = make_tour(ledger, folder)
    return Tour(ledger, thread, tip_of(ledger, thread))


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
