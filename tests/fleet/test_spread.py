from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any

from tests.fleet.crew import contents, make_queue, make_worker, queue_thread, word_of
from tests.sync.people import ASK, DONE, GOOD, Person
from uwfgit.fleet.queue import iter_states
from uwfgit.fleet.spread import Spread, Taken
from uwfgit.ids import ThreadId


class Here(Executor):
    """Does each task at once, in the test's own thread."""

    def submit(
        self,
        fn: Callable[..., Any],
        /,
        *args: Any,  # noqa: ANN401 - as executors take them
        **kwargs: Any,  # noqa: ANN401
    ) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except RuntimeError as exc:
            future.set_exception(exc)
        return future


def take_by(person: Person, *says: str) -> Callable[[ThreadId], Taken]:
    """Return a task that runs a thread by a worker of someone's."""

    def take(thread: ThreadId) -> Taken:
        terms = {"once": True, "only": thread}
        worker, _ = make_worker(person, *says, terms=terms)
        # Its files are this thread's to close.
        with closing(person.ledger.lookup), closing(person.ledger.local):
            worker.run()
        return Taken(word=worker.jobs.ran.get(thread))

    return take


def spread(
    person: Person,
    *threads: ThreadId,
    take: Callable[[ThreadId], Taken],
    **changes: Any,  # noqa: ANN401 - as Spread takes them
) -> Spread:
    now = iter(range(0, 10_000_000, 10))
    facts: dict[str, Any] = {
        "executor": Here(),
        "most": None,
        "monotonic": lambda: float(next(now)),
        "sleep": lambda _: None,
        "tell": lambda _: None,
    }
    return Spread(
        queue=make_queue(person), take=take, threads=threads, **{**facts, **changes}
    )


def test_each_thread_is_run_and_counted(ada: Person, bob: Person) -> None:
    threads = [queue_thread(ada) for _ in range(3)]
    told: list[dict[str, int]] = []

    found = spread(
        ada,
        *threads,
        take=take_by(bob, DONE, GOOD),
        most=1,
        tell=lambda counts: told.append(dict(counts)),
    ).run()

    assert found == dict.fromkeys(threads)
    assert [counts["done"] for counts in told] == [0, 1, 2, 3]
    assert {word_of(ada, thread) for thread in threads} == {"done"}


def test_a_thread_that_waits_is_over_and_why_is_said(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)

    found = spread(ada, thread, take=take_by(bob, ASK)).run()

    assert found == {thread: "Which one?"}


def test_a_task_that_is_lost_is_done_again(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    tries: list[int] = []

    def take(name: ThreadId) -> Taken:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("the machine is gone")
        return take_by(bob, DONE, GOOD)(name)

    assert spread(ada, thread, take=take).run() == {thread: None}
    assert len(tries) == 2


def test_what_nobody_takes_is_given_up(ada: Person) -> None:
    thread = queue_thread(ada)
    tries: list[ThreadId] = []

    def take(name: ThreadId) -> Taken:
        tries.append(name)
        return Taken(why="not signed by anyone in trust")

    found = spread(ada, thread, take=take).run()

    assert found == {thread: "not signed by anyone in trust"}
    assert len(tries) == 3


def test_what_another_worker_has_is_waited_for(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    worker, hands = make_worker(bob, DONE, GOOD, slow=True)
    worker.tick()
    naps: list[float] = []

    def sleep(seconds: float) -> None:
        naps.append(seconds)
        for step in hands.steps:
            step.is_over = True
        worker.tick()

    def take(_: ThreadId) -> Taken:
        raise AssertionError("another has it")

    assert spread(ada, thread, take=take, sleep=sleep).run() == {thread: None}
    assert naps


def test_a_claim_whose_time_is_up_is_queued_again(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    make_worker(ada, slow=True)[0].tick()

    found = spread(bob, thread, take=take_by(bob, DONE, GOOD)).run()

    assert found == {thread: None}
    states = list(iter_states(bob.store, contents(bob).entries[thread].oid))
    assert "its lease ran out" in {each.state.reason for each in states}


def test_a_pool_of_threads_is_an_executor_too(ada: Person, bob: Person) -> None:
    threads = [queue_thread(ada) for _ in range(2)]
    with ThreadPoolExecutor(1) as pool:
        found = spread(
            ada, *threads, take=take_by(bob, DONE, GOOD), executor=pool
        ).run()

    assert found == dict.fromkeys(threads)
    assert {each.state.word for each in contents(ada).entries.values()} == {"done"}
