"""Workers that are killed, stopped, frozen and cut off, by clocks that tests turn.

The same with processes, signals and real clocks is ``tests/stress/fleet.py``.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders import git
from tests.fleet.crew import ActingHands, Watch, contents, make_queue, make_worker
from tests.proof import verify_threads
from tests.sync.people import DONE, GOOD, Person, make_person
from uwfgit.fleet.steer import put_all
from uwfgit.fleet.worker import Worker
from uwfgit.ids import ThreadId
from uwfgit.model.thread.tip import load_tip

_LEASE = 60
_POLL = 10.0
_TURN = 5.0
"""Seconds by which all clocks go on at a time."""


@dataclass(slots=True)
class Machine:
    """A machine with one worker at a time."""

    person: Person
    watch: Watch
    asleep_until: float = 0.0
    hands: list[ActingHands] = field(default_factory=list)
    worker: Worker = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin with a worker that knows nothing of the one before."""
        self.worker, hands = make_worker(
            self.person,
            watch=self.watch,
            slow=True,
            by_role={"worker": DONE, "critic": GOOD},
            terms={"lease": _LEASE, "poll": _POLL, "grace": 5.0},
        )
        self.hands.append(hands)

    def turn(self, chance: random.Random) -> None:
        """Let some time pass, and the worker do what it does in it."""
        self.watch.now += _TURN
        if self.watch.now < self.asleep_until:
            return
        for step in self.hands[-1].steps:
            step.is_over = step.is_over or chance.random() < 0.5
        if self.worker.tick():
            self.restart()

    def told(self) -> Counter[str]:
        return Counter(event for each in self.hands for event in each.events())


def test_twelve_threads_and_ten_events(tmp_path: Path, ada: Person, bare: Path) -> None:
    chance = random.Random(20_261)  # noqa: S311 - to be repeated, not to be secret
    threads = [ada.begin() for _ in range(12)]
    ada.push(*threads)
    queue = make_queue(ada)
    tips = [load_tip(ada.store, thread) for thread in threads]
    assert put_all(queue, queue.fetch(), tips) == dict.fromkeys(threads)
    machines = []
    for number in range(3):
        person = make_person(tmp_path, f"m{number}")
        person.join(bare)
        machines.append(Machine(person, Watch()))
    away, back_at = bare.with_name("away.git"), 0

    def cut_off() -> None:
        if not away.exists():
            bare.rename(away)

    happens: dict[str, Callable[[Machine], None]] = {
        "killed": lambda machine: machine.restart(),
        "stopped": lambda machine: machine.worker.ask_to_stop(),
        "frozen": lambda machine: setattr(
            machine, "asleep_until", machine.watch.now + chance.uniform(30, 150)
        ),
        "cut off": lambda _: cut_off(),
    }
    befell: Counter[str] = Counter()
    for turn in range(600):
        if turn % 3 == 2 and sum(befell.values()) < 10:
            event = chance.choice(list(happens))
            happens[event](chance.choice(machines))
            befell[event] += 1
            back_at = turn + 4 if event == "cut off" else back_at
        if away.exists() and turn >= back_at:
            away.rename(bare)
        for machine in machines:
            machine.turn(chance)
        if sum(befell.values()) == 10 and not away.exists() and _are_done(ada, threads):
            break

    assert len(befell) == 4
    _check(ada, [machine.person for machine in machines], threads, bare)


def _are_done(person: Person, threads: list[ThreadId]) -> bool:
    entries = contents(person).entries
    return {entries[thread].state.word for thread in threads} == {"done"}


def _check(
    ada: Person, people: list[Person], threads: list[ThreadId], bare: Path
) -> None:
    assert _are_done(ada, threads)
    assert git(bare, "fsck", "--strict", "--no-dangling") == ""
    for person in (ada, *people):
        person.pull()
        assert git(person.store, "fsck", "--strict", "--no-dangling") == ""
        assert all(report.ok for report in verify_threads(person.store))
    states = [load_tip(ada.store, thread).state for thread in threads]
    assert {(state.status, state.steps) for state in states} == {("end", 2)}
