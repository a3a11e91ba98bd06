from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.builders import git, object_file
from tests.fleet.crew import (
    Watch,
    contents,
    make_queue,
    make_worker,
    put,
    queue_thread,
    tip_there,
    word_of,
)
from tests.sync.judged import hold
from tests.sync.people import ASK, BAD, DONE, GOOD, Person
from uwfgit.errors import RejectedError
from uwfgit.fleet.queue import iter_states, queue_ref
from uwfgit.fleet.steer import cancel, clear, retry
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.tip import load_tip
from uwfgit.sync.exchange.queue_entry import Entry, read_entry
from uwfgit.sync.exchange.remotes import get_remote


def test_a_queued_thread_is_run_to_its_end(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    worker, hands = make_worker(bob, DONE, GOOD, terms={"once": True})

    worker.run()

    assert worker.jobs.ran == {thread: "done"}
    assert hands.events() == ["claimed", "pushed", "pushed", "done"]
    assert tip_there(ada, thread) == bob.tip(thread)
    assert load_tip(bob.store, thread).state.status == "end"


def test_a_thread_that_loops_waits_for_a_person_after_so_many_steps(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    says = (DONE, BAD, DONE, BAD, DONE, BAD)
    worker, hands = make_worker(bob, *says, terms={"once": True, "max_steps": 3})

    worker.run()

    assert worker.jobs.ran == {thread: "waiting"}
    assert hands.taken == [0, 1, 2]
    assert load_tip(bob.store, thread).state.steps == 3
    state = contents(ada).entries[thread].state
    assert state.reason == "limits.maxSteps is reached after 3 steps"
    assert tip_there(ada, thread) == bob.tip(thread)


def test_steps_of_threads_that_did_a_step_count_for_its_limit(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    says = (DONE, BAD, DONE, BAD)
    worker, hands = make_worker(bob, *says, terms={"once": True, "max_steps": 5})
    hands.each_ran = 3

    worker.run()

    state = contents(ada).entries[thread].state
    assert state.reason == "limits.maxSteps is reached after 6 steps"
    assert hands.taken == [0, 1]


def test_the_queue_s_log_tells_the_whole_story(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    worker, _ = make_worker(bob, DONE, GOOD, terms={"once": True})
    worker.run()

    entry = contents(ada).entries[thread]
    words = [each.state.word for each in iter_states(ada.store, entry.oid)]

    assert words == ["done", "claimed", "claimed", "queued"]


@pytest.mark.usefixtures("ada")
def test_with_nothing_to_do_one_thread_is_none(bob: Person) -> None:
    worker, _ = make_worker(bob, terms={"once": True})

    worker.run()

    assert worker.jobs.ran == {}


def test_with_all_its_money_spent_none_is_taken(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    worker, hands = make_worker(bob, terms={"max_cost": 0.0, "idle_exit": 0.0})

    worker.run()

    assert (worker.jobs.ran, hands.told, word_of(ada, thread)) == ({}, [], "queued")


def test_a_suspended_thread_waits_and_goes_on_when_queued_again(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    make_worker(bob, ASK, terms={"once": True})[0].run()
    entry = contents(ada).entries[thread]
    assert (entry.state.word, entry.state.reason) == ("waiting", "Which one?")

    ada.pull()
    ada.resume(thread, DONE)
    ada.push(thread)
    assert put(ada, thread) is None
    make_worker(bob, GOOD, terms={"once": True})[0].run()

    assert word_of(ada, thread) == "done"


def test_a_held_thread_waits_and_the_queue_says_who_holds_it(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    worker, hands = make_worker(bob, DONE, slow=True, terms={"once": True})
    worker.tick()
    hold(bob.ledger, thread, "It goes in circles.")
    hands.steps[0].is_over = True

    worker.tick()

    state = contents(ada).entries[thread].state
    told = "held by the supervisor: It goes in circles."
    assert (state.word, state.reason) == ("waiting", told)


def test_of_two_workers_one_has_the_claim(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    entry = contents(bob).entries[thread]
    first, second = make_worker(ada, slow=True)[0], make_worker(bob, slow=True)[0]

    first.tick()
    assert second._claim(entry) is False
    second.tick()

    assert [job.thread for job in first.jobs.running] == [thread]
    assert second.jobs.running == []


def test_a_worker_that_lost_its_claim_sets_its_step_aside(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    dead, hands = make_worker(ada, DONE, slow=True)
    dead.tick()
    other, _ = make_worker(bob, DONE, GOOD, watch=watch, terms={"lease": 60})
    other.tick()
    watch.now += 61  # bob saw the same claim for the length of its lease

    while other.jobs.ran.get(thread) != "done":
        other.tick()
    hands.steps[0].is_over = True
    dead.tick()

    assert dead.jobs.ran == {thread: "lost"}
    assert hands.events()[-2:] == ["lost", "set-aside"]
    copy = hands.told[-1][1]["copy"]
    assert load_tip(ada.store, copy).state.steps == 1
    assert ada.tip(thread) == tip_there(bob, thread) == bob.tip(thread)
    assert git(ada.store, "fsck", "--strict", "--no-dangling") == ""


def test_a_claim_lost_before_anyone_pushed_sets_the_step_aside_too(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    before = tip_there(ada, thread)
    worker, hands = make_worker(bob, DONE, slow=True, terms={"once": True})
    worker.tick()
    queue = make_queue(ada)
    entry = queue.fetch().entries[thread]
    queue.push(
        {
            queue_ref(thread): queue.write(
                queue.successor(entry, word="queued", reason="released"),
                parent=entry.oid,
            )
        }
    )

    hands.steps[0].is_over = True
    worker.tick()

    assert worker.jobs.ran == {thread: "lost"}
    assert tip_there(ada, thread) == before == bob.tip(thread)
    assert hands.events()[-1] == "set-aside"


def test_a_step_that_a_killed_worker_never_pushed_is_gone_on_from(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    make_worker(bob, DONE, slow=True, watch=watch)[0].tick()
    assert bob.tip(thread) != tip_there(ada, thread)

    again, hands = make_worker(bob, GOOD, watch=watch, terms={"lease": 60})
    again.tick()
    watch.now += 61
    while not again.jobs.ran:
        again.tick()

    assert again.jobs.ran == {thread: "done"}
    assert hands.events() == ["claimed", "pushed", "pushed", "done"]
    assert load_tip(bob.store, thread).state.steps == 2


def test_a_step_that_others_did_after_a_kill_is_set_aside_at_the_next_claim(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    make_worker(bob, DONE, slow=True, watch=watch)[0].tick()
    queue = make_queue(ada)
    entry = queue.fetch().entries[thread]
    released = queue.successor(entry, word="queued", reason="released by hand")
    queue.push({queue_ref(thread): queue.write(released, parent=entry.oid)})
    make_worker(ada, DONE, ASK, terms={"once": True})[0].run()
    queue = make_queue(ada)
    assert list(retry(queue, queue.fetch(), only_stuck=False)) == [(thread, None)]

    again, hands = make_worker(bob, GOOD, watch=watch, terms={"once": True})
    again.run()

    assert again.jobs.ran == {thread: "done"}
    assert hands.events()[0] == "set-aside"
    assert load_tip(bob.store, hands.told[0][1]["copy"]).state.steps == 1
    assert tip_there(ada, thread) == bob.tip(thread)


def test_a_claim_is_renewed_at_a_third_of_its_lease(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    worker, _ = make_worker(bob, slow=True, watch=watch)
    worker.tick()
    first = contents(ada).entries[thread].oid

    watch.now += 19
    worker.tick()
    assert contents(ada).entries[thread].oid == first
    watch.now += 1.5
    worker.tick()

    assert contents(ada).entries[thread].oid != first
    assert word_of(ada, thread) == "claimed"


def test_after_a_sleep_the_step_stands_still_until_the_claim_is_renewed(
    ada: Person, bob: Person
) -> None:
    queue_thread(ada)
    watch = Watch()
    worker, hands = make_worker(bob, slow=True, watch=watch)
    worker.tick()

    watch.slept += 3600  # a laptop's lid: only the wall clock went on
    worker.tick()

    assert hands.steps[0].did == ["freeze", "thaw"]


def test_a_claim_lost_during_a_sleep_stops_the_step(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    worker, hands = make_worker(bob, slow=True, watch=watch)
    worker.tick()
    queue = make_queue(ada)
    entry = queue.fetch().entries[thread]
    released = queue.write(
        queue.successor(entry, word="queued", reason="released"), parent=entry.oid
    )
    queue.push({queue_ref(thread): released})

    watch.slept += 3600
    worker.tick()
    worker.tick()

    assert hands.steps[0].did == ["freeze", "thaw", "stop"]
    assert worker.jobs.ran == {thread: "lost"}


def test_of_two_clocks_an_hour_apart_one_worker_has_the_thread(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    terms = {"lease": 1800}
    behind, hands = make_worker(ada, slow=True, terms=terms)
    ahead, others = make_worker(bob, slow=True, watch=Watch(slept=3600), terms=terms)
    behind.tick()

    # By its clock the claim is long over: that costs the other its step, no more.
    ahead.tick()
    hands.steps[0].is_over = True
    behind.tick()
    behind.tick()

    assert behind.jobs.ran == {thread: "lost"}
    assert hands.events() == ["claimed", "lost", "set-aside"]
    # A claim of a time to come is not over: the thread is not taken back.
    assert [job.thread for job in ahead.jobs.running] == [thread]
    others.slow, others.says = False, [GOOD]
    others.steps[0].is_over = True
    while not ahead.jobs.ran:
        ahead.tick()
    assert ahead.jobs.ran == {thread: "done"}
    assert tip_there(ada, thread) == bob.tip(thread)


def test_a_remote_that_is_gone_stops_nothing_before_the_lease_is_over(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    worker, hands = make_worker(
        bob, DONE, GOOD, slow=True, watch=watch, terms={"once": True}
    )
    worker.tick()
    away = bare.rename(bare.with_name("away.git"))

    for _ in range(4):
        watch.now += 19.9
        worker.tick()
    assert hands.steps[0].did == ["stop"]
    assert hands.events() == ["claimed", "unreachable"]
    away.rename(bare)
    watch.now += 6
    worker.tick()

    # Nobody took it meanwhile: the step that was stopped is pushed all the same.
    assert worker.jobs.ran == {thread: "queued"}
    assert tip_there(ada, thread) == bob.tip(thread)


@contextmanager
def losing_answers(bare: Path) -> Iterator[None]:
    """Let a remote do what pushes ask for, and die before it says so."""
    hook = bare / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\nif [ "$1" = committed ]; then kill -9 $PPID; fi\n')
    hook.chmod(0o755)
    yield
    hook.unlink()


@pytest.mark.parametrize("tries", [0, 2])
def test_a_claim_whose_answer_was_lost_is_ours_and_was_no_try(
    ada: Person, bob: Person, bare: Path, tries: int
) -> None:
    thread = queue_thread(ada)
    claim_in_vain(ada, thread, tries)
    watch = Watch()
    worker, hands = make_worker(bob, DONE, GOOD, watch=watch, terms={"lease": 1800})

    with losing_answers(bare):
        worker.tick()
    assert word_of(ada, thread) == "claimed"
    for _ in range(4):
        watch.now += 6
        worker.tick()

    assert hands.events()[:2] == ["unreachable", "claimed"]
    assert worker.jobs.ran == {thread: "done"}


def test_a_renewal_whose_answer_was_lost_is_no_lost_claim(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    worker, hands = make_worker(bob, DONE, GOOD, slow=True, watch=watch)
    worker.tick()
    claim = contents(ada).entries[thread].oid

    with losing_answers(bare):
        watch.now += 21
        worker.tick()
    assert contents(ada).entries[thread].oid != claim
    for _ in range(3):
        watch.now += 6
        worker.tick()

    assert hands.events() == ["claimed", "unreachable"]
    assert "stop" not in hands.steps[0].did
    hands.slow, hands.steps[0].is_over = False, True
    while not worker.jobs.ran:
        worker.tick()
    assert worker.jobs.ran == {thread: "done"}
    assert tip_there(ada, thread) == bob.tip(thread)


def test_a_renewal_that_is_refused_by_a_remote_that_then_goes_stops_nothing(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    worker, hands = make_worker(bob, slow=True, watch=watch)
    worker.tick()
    away = bare.with_name("away.git")
    hook = bare / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nmv {bare} {away}\nexit 1\n")
    hook.chmod(0o755)

    watch.now += 21
    worker.tick()

    assert hands.events() == ["claimed", "unreachable"]
    assert hands.steps[0].did == ["freeze", "thaw"]
    away.rename(bare)
    hook.unlink()
    watch.now += 6
    worker.tick()
    assert [job.thread for job in worker.jobs.running] == [thread]
    assert hands.steps[0].did == ["freeze", "thaw"]


def test_a_step_whose_answer_was_lost_is_gone_on_from(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    worker, hands = make_worker(bob, DONE, GOOD, watch=watch)
    worker.tick()

    with losing_answers(bare):
        worker.tick()
    assert tip_there(ada, thread) == bob.tip(thread)
    while not worker.jobs.ran:
        watch.now += 6
        worker.tick()

    assert hands.events() == ["claimed", "unreachable", "pushed", "pushed", "done"]
    assert worker.jobs.ran == {thread: "done"}
    assert tip_there(ada, thread) == bob.tip(thread)


def test_asked_to_stop_a_worker_gives_the_thread_back(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    worker, hands = make_worker(bob, slow=True, watch=watch, terms={"grace": 20.0})
    worker.tick()

    worker.ask_to_stop()
    worker.tick()
    assert hands.steps[0].did == []
    watch.now += 19.9
    worker.tick()
    assert hands.steps[0].did == []
    watch.now += 0.2
    worker.tick()

    assert hands.steps[0].did == ["stop"]
    assert word_of(ada, thread) == "queued"


def test_draining_waits_for_the_step(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    watch = Watch()
    worker, hands = make_worker(bob, slow=True, watch=watch, terms={"drain": True})
    worker.tick()

    worker.ask_to_stop()
    watch.now += 19.9
    assert worker.tick() is False
    hands.steps[0].is_over = True
    assert worker.tick() is True

    assert hands.steps[0].did == []
    assert word_of(ada, thread) == "queued"


def claim_in_vain(person: Person, thread: ThreadId, times: int) -> None:
    """Claim a thread, and give it back without a step."""
    for _ in range(times):
        queue = make_queue(person)
        entry = queue.fetch().entries[thread]
        claimed = queue.write(
            queue.successor(entry, word="claimed", worker="dying", lease=1),
            parent=entry.oid,
        )
        back = queue.write(
            queue.successor(
                entry_at(person, claimed), word="queued", reason="released by hand"
            ),
            parent=claimed,
        )
        queue.push({queue_ref(thread): back})


def test_a_worker_that_is_told_to_stop_while_it_claims_takes_no_other(
    ada: Person, bob: Person
) -> None:
    threads = [queue_thread(ada) for _ in range(2)]
    worker, hands = make_worker(bob, DONE, GOOD, terms={"slots": 2})

    def choose(entries: Sequence[Entry]) -> Entry:
        worker.ask_to_stop()
        return entries[0]

    worker.choose = choose
    worker.tick()

    assert hands.events() == ["stopping", "claimed"]
    assert sorted(word_of(ada, each) for each in threads) == ["claimed", "queued"]


def test_a_claim_that_the_server_refuses_is_left_alone_for_a_while(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    hook = Path(get_remote(ada.store, "origin").url) / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    watch = Watch()
    worker, hands = make_worker(bob, DONE, GOOD, watch=watch)

    worker.tick()
    worker.tick()
    hook.unlink()
    watch.now += 5
    worker.tick()

    assert hands.events()[:2] == ["refused", "claimed"]
    assert worker.jobs.running[0].thread == thread


def test_three_claims_without_a_step_are_enough(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    claim_in_vain(ada, thread, 3)

    worker, hands = make_worker(bob, terms={"once": True})
    worker.run()

    assert hands.steps == []
    entry = contents(ada).entries[thread]
    assert (entry.state.word, entry.state.reason) == ("waiting", "stuck")
    queue = make_queue(ada)
    assert [each for each, _ in retry(queue, queue.fetch(), only_stuck=True)] == [
        thread
    ]


def test_a_thread_found_stuck_waits_though_the_answer_was_lost(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = queue_thread(ada)
    claim_in_vain(ada, thread, 3)
    watch = Watch()
    worker, hands = make_worker(bob, DONE, GOOD, watch=watch, terms={"lease": 1800})

    with losing_answers(bare):
        worker.tick()
    entry = contents(ada).entries[thread]
    assert (entry.state.word, entry.state.reason) == ("waiting", "stuck")
    for _ in range(4):
        watch.now += 6
        worker.tick()

    assert contents(ada).entries[thread].oid == entry.oid
    assert hands.events() == ["unreachable"]


def entry_at(person: Person, oid: Oid) -> Entry:
    entry = read_entry(person.store, oid)
    assert entry is not None
    return entry


def test_what_is_not_trusted_is_passed_by_and_said_once(
    ada: Person, bob: Person
) -> None:
    bad, good = queue_thread(ada), queue_thread(ada)
    worker, hands = make_worker(bob, DONE, GOOD, suspect={bad: "unknown signer"})

    for _ in range(8):
        worker.tick()

    assert worker.jobs.ran == {good: "done"}
    skipped = [facts for event, facts in hands.told if event == "skipped"]
    assert skipped == [{"thread": bad, "why": "unknown signer"}]
    assert word_of(ada, bad) == "queued"


def test_what_was_passed_by_is_looked_at_again_less_and_less_often(
    ada: Person, bob: Person
) -> None:
    thread = queue_thread(ada)
    watch, suspect = Watch(), {thread: "its program is not here"}
    worker, hands = make_worker(bob, DONE, GOOD, watch=watch, suspect=suspect)
    worker.tick()
    watch.now += 61
    worker.tick()

    suspect.clear()
    watch.now += 61
    worker.tick()
    assert hands.events() == ["skipped"]
    watch.now += 60
    for _ in range(4):
        worker.tick()

    assert worker.jobs.ran == {thread: "done"}


def test_a_step_with_a_secret_does_not_leave(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    before = tip_there(ada, thread)
    worker, _ = make_worker(bob, secret="a token", terms={"once": True})  # noqa: S106 - a finding

    worker.run()

    assert word_of(ada, thread) == "waiting"
    assert tip_there(ada, thread) == before


def test_a_thread_queued_at_an_older_tip_is_not_run(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    ada.go(thread, DONE)
    ada.push(thread)
    worker, hands = make_worker(bob, terms={"once": True})

    worker.run()

    assert hands.events() == ["skipped"]


def test_a_damaged_thread_is_no_end_of_looking_over_the_others(ada: Person) -> None:
    damaged, whole = queue_thread(ada), queue_thread(ada)
    place = f"thread/{damaged}:threads/{damaged}/thread.json"
    object_file(ada.store, git(ada.store, "rev-parse", place).strip()).unlink()
    ada.store.raw.forget_packs()
    worker, _ = make_worker(ada)

    offers, reasons = worker.look_over()

    assert [entry.state.thread for entry in offers] == [whole]
    assert "is missing or damaged" in reasons[damaged]


def test_a_damaged_thread_is_passed_by_and_the_next_is_run(ada: Person) -> None:
    damaged, whole = queue_thread(ada), queue_thread(ada)
    place = f"thread/{damaged}:threads/{damaged}/thread.json"
    object_file(ada.store, git(ada.store, "rev-parse", place).strip()).unlink()
    ada.store.raw.forget_packs()
    worker, hands = make_worker(ada, DONE, GOOD)

    worker.tick()

    assert hands.events() == ["skipped", "claimed"]
    assert worker.jobs.running[0].thread == whole
    (told, *_) = hands.told
    assert "is missing or damaged" in told[1]["why"]


def test_a_forged_queue_ref_is_shown_and_passed_by(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = ada.begin(DONE)
    ada.push(thread)
    main = git(bare, "rev-parse", "refs/heads/main").strip()
    git(bare, "update-ref", queue_ref(thread), main)

    found = contents(bob)

    assert found.entries == {}
    assert set(found.bad) == {thread}


def test_a_queue_is_paused_for_all(ada: Person, bob: Person) -> None:
    queue_thread(ada)
    queue = make_queue(ada)
    queue.fetch()
    assert queue.pause()
    worker, hands = make_worker(bob, terms={"once": True})

    worker.run()
    assert worker.jobs.ran == {}
    assert hands.events() == ["paused"]
    queue.fetch()
    assert queue.unpause()
    worker, _ = make_worker(bob, DONE, GOOD, terms={"once": True})
    worker.run()

    assert list(worker.jobs.ran.values()) == ["done"]


def test_a_thread_leaves_the_queue_cancelled_or_done(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    queue = make_queue(bob)
    cancel(queue, queue.fetch().entries[thread], worker="cancel")
    assert word_of(ada, thread) == "done"

    assert clear(queue, queue.fetch()) == (thread,)

    assert contents(ada).entries == {}
    assert put(ada, thread) is None
    assert put(ada, thread) == f"thread {thread} is queued already"


def test_a_change_of_another_s_is_never_overwritten(ada: Person, bob: Person) -> None:
    thread = queue_thread(ada)
    theirs, mine = make_queue(bob), make_queue(ada)
    entry, same = theirs.fetch().entries[thread], mine.fetch().entries[thread]
    claimed = theirs.successor(entry, word="claimed", worker="bob", lease=60)
    theirs.push({queue_ref(thread): theirs.write(claimed, parent=entry.oid)})

    late = mine.successor(same, word="claimed", worker="ada", lease=60)
    with pytest.raises(RejectedError):
        mine.push({queue_ref(thread): mine.write(late, parent=same.oid)})

    assert contents(ada).entries[thread].state.worker == "bob"


def test_a_remote_that_knows_no_all_or_none_gets_no_step(
    ada: Person, bob: Person, bare: Path
) -> None:
    thread = queue_thread(ada)
    before = tip_there(ada, thread)
    git(bare, "config", "receive.advertiseAtomic", "false")
    worker, hands = make_worker(bob, DONE, terms={"once": True})

    for _ in range(3):
        worker.tick()

    assert tip_there(ada, thread) == before
    assert hands.events() == ["claimed", "unreachable"]
    assert "atomic" in str(hands.told[-1][1]["why"])
