"""What a server remembers of a store, and when it looks again."""

from __future__ import annotations

import os
from pathlib import Path

from tests.builders import begin, git
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import tracking_ref
from uwfgit.web.serve.shelf import mark_of


def test_what_a_remote_has_of_a_thread_is_noticed(
    ledger: Ledger, tmp_path: Path
) -> None:
    store, tip = ledger.store, begin(ledger, tmp_path)
    ref = tracking_ref("origin", thread_ref(tip.thread))
    git(store, "update-ref", ref, GENESIS_OID)
    # So long ago that the file system's clock shows what comes.
    os.utime((store.path / ref).parent, (0, 0))
    before = mark_of(ledger)

    git(store, "update-ref", ref, tip.commit)

    assert mark_of(ledger) != before
