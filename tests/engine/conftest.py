"""The thread that most engine tests drive, and the proof that its record holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import begin
from tests.history import check_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref


@pytest.fixture
def thread(ledger: Ledger, tmp_path: Path) -> Iterator[ThreadId]:
    """A thread that has not run yet; what a test made of it must verify."""
    thread = begin(ledger, tmp_path).thread
    yield thread
    if find_ref(ledger.store, thread_ref(thread)) not in {None, GENESIS_OID}:
        check_thread(ledger.store, thread)
