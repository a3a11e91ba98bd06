"""Proof that what a test recorded is what the format prescribes."""

from __future__ import annotations

from uwfgit.store.handle import Store
from uwfgit.sync.verify.verify import verify_threads


def assert_verified(store: Store) -> None:
    """Fail unless every thread of a store verifies, with all problems told."""
    problems = [
        f"{report.thread} {problem}"
        for report in verify_threads(store)
        for problem in report.problems
    ]
    assert not problems, "\n".join(problems)
