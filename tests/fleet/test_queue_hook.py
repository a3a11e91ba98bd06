"""What a server with the hook lets a queue do, move by move."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.builders import git
from tests.fleet.crew import make_queue, queue_thread
from tests.sync.people import Person
from uwfgit.fleet.queue import Queue, queue_ref
from uwfgit.ids import Oid, ThreadId
from uwfgit.sync.exchange.queue_state import PAUSE_REF, QUEUE_PREFIX
from uwfgit.sync.receive import ZERO, Push, check_pushes


def move(
    queue: Queue,
    old: Oid | str,
    *words: str,
    **facts: Any,  # noqa: ANN401 - the fields of a state
) -> tuple[Oid, str | None]:
    """Write states on top of one, and ask the hook about a push of them."""
    entry = queue.fetch().entries[THREADS[0]]
    oid = Oid(old)
    for word in words:
        claim = {"worker": "w", "lease": 60} if word == "claimed" else {}
        state = queue.successor(entry, word=word, **{**claim, **facts})
        oid = queue.write(state, parent=oid)
    return oid, ask(queue, old, oid, queue_ref(THREADS[0]))


def ask(queue: Queue, old: str, new: str, ref: str) -> str | None:
    (problem,) = check_pushes(
        queue.store,
        [Push(old=old, new=new, ref=ref)],
        shared=False,
        now=queue.ledger.now_ms() // 1000,
    )
    return problem


THREADS: list[ThreadId] = []
WHO = ("-c", "user.name=x", "-c", "user.email=x@y")


@pytest.fixture
def queue(ada: Person) -> Queue:
    THREADS[:] = [queue_thread(ada)]
    return make_queue(ada)


def test_the_legal_moves_are_taken(queue: Queue) -> None:
    queued = queue.fetch().entries[THREADS[0]].oid

    claimed, first = move(queue, queued, "claimed")
    problems = [move(queue, claimed, word)[1] for word in ("claimed", "queued", "done")]
    waiting, third = move(queue, claimed, "waiting", reason="a person")

    assert [first, third, *problems] == [None] * 5
    assert move(queue, waiting, "queued")[1] is None
    assert move(queue, waiting, "claimed")[1] is None
    assert move(queue, queued, "claimed", "done")[1] is None


@pytest.mark.parametrize("words", [("queued",), ("waiting",), ("done",)])
def test_illegal_moves_are_refused(queue: Queue, words: tuple[str, ...]) -> None:
    queued = queue.fetch().entries[THREADS[0]].oid

    assert move(queue, queued, *words)[1] is not None


def test_a_claim_is_another_s_only_after_its_lease(queue: Queue) -> None:
    queued = queue.fetch().entries[THREADS[0]].oid
    claimed, _ = move(queue, queued, "claimed", lease=3600)

    assert "holds it" in str(move(queue, claimed, "claimed", worker="other")[1])


def test_a_state_of_a_far_date_is_refused(ada: Person, bob: Person) -> None:
    # Bob's clock is five hours ahead: nobody could end a claim of his.
    THREADS[:] = [queue_thread(bob)]
    queue = make_queue(bob)
    queued = queue.fetch().entries[THREADS[0]].oid

    problems = [
        check_pushes(
            queue.store,
            [Push(old=ZERO, new=queued, ref=queue_ref(THREADS[0]))],
            shared=False,
            now=clock.ledger.now_ms() // 1000,
        )
        for clock in (ada, bob)
    ]

    assert [list(each) for each in problems] == [
        ["its date is ahead of this server's clock"],
        [None],
    ]


def test_a_state_of_another_thread_is_refused(queue: Queue, ada: Person) -> None:
    queued = queue.fetch().entries[THREADS[0]].oid
    other = ada.begin()

    problem = move(queue, queued, "claimed", thread=other)[1]

    assert problem == "it is not a state of that thread in a queue"


def test_a_rewind_is_refused(queue: Queue) -> None:
    queued = queue.fetch().entries[THREADS[0]].oid
    claimed, _ = move(queue, queued, "claimed")

    assert ask(queue, claimed, queued, queue_ref(THREADS[0])) is not None


def test_only_what_is_done_is_deleted(queue: Queue) -> None:
    queued = queue.fetch().entries[THREADS[0]].oid
    claimed, _ = move(queue, queued, "claimed")
    waiting, _ = move(queue, claimed, "waiting")
    done, _ = move(queue, claimed, "done")
    ref = queue_ref(THREADS[0])

    for oid in (queued, claimed, waiting):
        assert ask(queue, oid, ZERO, ref) == "only what is done leaves the queue"
    assert ask(queue, done, ZERO, ref) is None


@pytest.mark.parametrize("name", ["x", "PAUSED", "01J8Z3K4M5N6P7Q8R9S0T1V2W3/x"])
def test_other_names_are_refused(queue: Queue, name: str) -> None:
    queued = queue.fetch().entries[THREADS[0]].oid

    assert ask(queue, ZERO, queued, QUEUE_PREFIX + name) is not None


def test_a_commit_with_files_is_no_state(queue: Queue) -> None:
    ref = queue_ref(THREADS[0])
    main = Oid(git(queue.store, "rev-parse", "refs/heads/main").strip())

    assert ask(queue, ZERO, main, ref) == "it is not a state of that thread in a queue"


def test_a_pause_comes_and_goes(queue: Queue, ada: Person) -> None:
    queue.fetch()
    queue.pause()
    queue.fetch()
    copy = f"refs/uwf/queues/origin/{PAUSE_REF.rpartition('/')[2]}"
    oid = git(ada.store, "rev-parse", copy).strip()

    assert ask(queue, ZERO, oid, PAUSE_REF) is None
    assert ask(queue, oid, ZERO, PAUSE_REF) is None
    empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    child = git(ada.store, *WHO, "commit-tree", "-p", oid, "-m", "x", empty).strip()
    genesis = git(ada.store, "rev-parse", "refs/heads/main").strip()
    for other in (child, genesis):
        told = ask(queue, ZERO, other, PAUSE_REF)
        assert told == "a pause is a commit without files and parents"
    thread = git(ada.store, "rev-parse", f"refs/heads/thread/{THREADS[0]}").strip()
    tree = git(ada.store, "rev-parse", f"{thread}^{{tree}}").strip()
    assert tree in str(ask(queue, ZERO, tree, PAUSE_REF))


def test_a_lease_of_a_thousand_years_is_refused(queue: Queue) -> None:
    queued = queue.fetch().entries[THREADS[0]]
    state = replace(queued.state, word="claimed", worker="w", lease=60)
    oid = queue.write(replace(state, lease=31_536_000_000), parent=queued.oid)

    assert ask(queue, queued.oid, oid, queue_ref(THREADS[0])) is not None
