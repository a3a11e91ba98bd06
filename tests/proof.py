"""Proof that what a test recorded is what the format prescribes."""

from __future__ import annotations

from collections.abc import Iterable

from uwfgit.ids import ThreadId
from uwfgit.store.handle import Store
from uwfgit.sync.verify.branches import list_thread_refs
from uwfgit.sync.verify.report import ThreadReport
from uwfgit.sync.verify.verify import verify_refs


def verify_threads(
    store: Store, threads: Iterable[ThreadId] | None = None
) -> tuple[ThreadReport, ...]:
    """Check threads of a store, by default all."""
    return tuple(verify_refs(store, list_thread_refs(store, threads)))


def assert_verified(store: Store) -> None:
    """Fail unless every thread of a store verifies, with all problems told."""
    problems = [
        f"{report.thread} {problem}"
        for report in verify_threads(store)
        for problem in report.problems
    ]
    assert not problems, "\n".join(problems)
