from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.builders import git
from tests.sync.people import BAD, DONE, WIRE, Person, let_pass, refs_of
from uwfgit.engine.thread import fork_thread
from uwfgit.errors import InvalidError, NotFoundError, StateError
from uwfgit.ids import ThreadId
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.sync.remotes import get_remote
from uwfgit.sync.review import (
    Review,
    approve,
    close_review,
    open_review,
    set_up,
    update_review,
)
from uwfgit.sync.signatures import list_approvals
from uwfgit.sync.verify import verify_threads


def review(person: Person, thread: ThreadId, **options: Any) -> Review:  # noqa: ANN401 - as open takes them
    return open_review(
        person.ledger,
        get_remote(person.store, options.pop("to", "origin")),
        thread,
        **{"wire": WIRE, "verify": verify_threads, "scan": let_pass, **options},
    )


def test_a_review_is_the_thread_s_own_commits_beside_genesis(
    ada: Person, bare: Path
) -> None:
    thread = ada.begin(DONE, BAD)

    opened = review(ada, thread)

    assert refs_of(bare) == {
        f"refs/heads/uwf/{thread}": ada.tip(thread),
        "refs/heads/main": GENESIS_OID,
    }
    names = git(bare, "diff", "--name-only", f"{opened.base}...{opened.head}")
    assert names.splitlines()[0] == f"threads/{thread}/TASK.md"


def test_beside_code_only_branches_of_the_review_appear(
    ada: Person, bare: Path
) -> None:
    ada.join(bare, name="code", kind="shared")
    thread = ada.begin(DONE)

    opened = review(ada, thread, to="code")

    assert opened.base == "uwf/main"
    assert set(refs_of(bare)) == {"refs/heads/uwf/main", f"refs/heads/uwf/{thread}"}


def test_a_part_of_a_thread_is_compared_with_what_was_before(
    ada: Person, bare: Path
) -> None:
    thread = ada.begin(DONE, BAD, DONE)

    opened = review(ada, thread, first=2, last=2)

    changed = git(bare, "diff", "--name-only", f"{opened.base}...{opened.head}")
    assert opened.base == f"uwf/{thread}-base"
    assert "00002-critic/output.md" in changed
    assert "00001" not in changed
    assert "00003" not in changed


def test_a_fork_is_compared_with_where_it_was_forked(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE, BAD)
    fork = fork_thread(ada.ledger, thread).thread
    ada.go(fork, DONE)

    opened = review(ada, fork)

    assert opened.base_oid == ada.tip(thread)
    assert refs_of(bare)[f"refs/heads/uwf/{fork}-base"] == ada.tip(thread)


def test_a_review_follows_its_thread_and_can_be_closed(ada: Person, bare: Path) -> None:
    thread, remote = ada.begin(DONE), get_remote(ada.store, "origin")
    options: dict[str, Any] = {
        "wire": WIRE,
        "verify": verify_threads,
        "scan": let_pass,
    }
    with pytest.raises(StateError):
        update_review(ada.ledger, remote, thread, **options)
    review(ada, thread)
    ada.go(thread, BAD)

    update_review(ada.ledger, remote, thread, **options)
    updated = refs_of(bare)[f"refs/heads/uwf/{thread}"]
    gone = close_review(ada.ledger, remote, thread, wire=WIRE)

    assert (updated, gone) == (ada.tip(thread), (f"uwf/{thread}",))
    assert set(refs_of(bare)) == {"refs/heads/main"}


def test_what_may_not_leave_is_not_reviewed(ada: Person, bare: Path) -> None:
    thread = ada.begin(DONE)

    with pytest.raises(InvalidError, match="a key"):
        review(ada, thread, scan=lambda _: {"x": "a key"})

    assert refs_of(bare) == {}


def test_an_approval_is_a_tag_of_the_step_s_commit(ada: Person) -> None:
    thread = ada.begin(DONE, BAD)

    done = approve(
        ada.ledger, thread, step=1, message="fine", sign=None, environment=os.environ
    )

    (found,) = list_approvals(ada.store, thread, [done.commit], environment=os.environ)
    assert (found.problem, found.signer, found.by) == (None, None, "ada@example.com")
    assert git(ada.store, "rev-parse", f"{done.tag}^{{}}").strip() == done.commit
    with pytest.raises(StateError):
        approve(
            ada.ledger, thread, step=1, message=None, sign=None, environment=os.environ
        )
    with pytest.raises(NotFoundError):
        approve(
            ada.ledger, thread, step=9, message=None, sign=None, environment=os.environ
        )


def test_a_job_is_added_to_the_base_once(ada: Person, bare: Path) -> None:
    remote = get_remote(ada.store, "origin")

    first = set_up(ada.ledger, remote, "github", wire=WIRE)
    again = set_up(ada.ledger, remote, "github", wire=WIRE)

    assert (first[0], first) == ("main", again)
    assert "uwf verify --repo" in git(
        bare, "show", "main:.github/workflows/uwf-verify.yml"
    )
