"""Workers that are killed, stopped, frozen and cut off, at random instants.

``python tests/stress/fleet.py --threads 60 --events 200`` runs it at length; the
suite runs a few. At the end every thread has ended, each of its steps is there once,
nothing that was pushed is lost, and what a fenced worker did is set aside. With
``--http`` the remote is a web server's; without events each step is run once, and the
figures are those of workers in peace.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders import git
from tests.fleet.seats import Seat
from tests.sync.serving import serve_http

_LEASE = 6
_IN_PEACE = 120
_LOOK = 5.0
_AGENT = """\
#!/bin/sh
cat > /dev/null
echo "$UWF_THREAD $UWF_ROLE" >> "{log}"
printf -- '---\\n$status: done\\n---\\nDone.\\n'
"""
_GIVE_UP = 1800.0


@dataclass(slots=True)
class Fleet:
    """Workers of one remote, and what befell them."""

    folder: Path
    remote: Path
    seed: int
    lease: int
    seats: list[Seat] = field(default_factory=list)
    at_work: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    frozen: list[tuple[float, subprocess.Popen[str]]] = field(default_factory=list)
    away_until: float | None = None
    seen: dict[str, dict[str, str]] = field(default_factory=dict)
    """What the list said of a thread, each time: a queue commit, and its state."""
    pushes: int = 0
    seconds: float = 0.0

    def look(self, owner: Seat) -> None:
        """Note what the list says now."""
        for thread, item in owner.items().items():
            self.seen.setdefault(thread, {})[item["oid"]] = item["state"]

    def start(self, seat: Seat) -> None:
        log = (seat.folder / "worker.log").open("a")
        worker = subprocess.Popen(
            seat.worker_words(
                "--lease", str(self.lease), "--poll", "0.5", "--grace", "1"
            ),
            cwd=seat.folder,
            env=dict(seat.environment),
            stdout=log,
            stderr=log,
            text=True,
        )
        log.close()
        self.at_work[seat.name] = worker

    def keep_up(self) -> None:
        """Start again what died, wake what slept long enough, mend the network."""
        now = time.monotonic()
        for until, worker in list(self.frozen):
            if now >= until:
                self.frozen.remove((until, worker))
                worker.send_signal(signal.SIGCONT)
        if self.away_until is not None and now >= self.away_until:
            self.away.rename(self.remote)
            self.away_until = None
        for seat in self.seats:
            current = self.at_work.get(seat.name)
            if current is None or current.poll() is not None:
                self.start(seat)

    @property
    def away(self) -> Path:
        return self.remote.with_suffix(".away")

    def befall(self, chance: random.Random) -> str:
        """Let one thing happen to one worker, or to all."""
        kinds: dict[str, Callable[[], None]] = {
            "kill -9": lambda: self._signal(chance, signal.SIGKILL),
            "SIGTERM": lambda: self._signal(chance, signal.SIGTERM),
            "SIGSTOP": lambda: self._freeze(chance),
            "cut off": lambda: self._cut_off(chance),
        }
        kind = chance.choice(list(kinds))
        kinds[kind]()
        self.told[kind] += 1
        return kind

    def _awake(self) -> list[subprocess.Popen[str]]:
        asleep = [worker for _, worker in self.frozen]
        return [
            each
            for each in self.at_work.values()
            if each.poll() is None and each not in asleep
        ]

    def _signal(self, chance: random.Random, number: signal.Signals) -> None:
        if awake := self._awake():
            chance.choice(awake).send_signal(number)

    def _freeze(self, chance: random.Random) -> None:
        if awake := self._awake():
            worker = chance.choice(awake)
            worker.send_signal(signal.SIGSTOP)
            until = time.monotonic() + chance.uniform(1, 2.5 * _LEASE)
            self.frozen.append((until, worker))

    def _cut_off(self, chance: random.Random) -> None:
        if self.away_until is None:
            self.remote.rename(self.away)
            self.away_until = time.monotonic() + chance.uniform(0.5, 1.5 * _LEASE)

    def finish(self) -> None:
        """End all workers in peace."""
        for _, worker in self.frozen:
            worker.send_signal(signal.SIGCONT)
        self.frozen.clear()
        if self.away_until is not None:
            self.away.rename(self.remote)
            self.away_until = None
        for worker in self.at_work.values():
            worker.terminate()
        for worker in self.at_work.values():
            worker.wait(120)


def play(
    folder: Path,
    *,
    threads: int,
    events: int,
    workers: int,
    seed: int,
    steps: int = 5,
    http: bool = False,
) -> Fleet:
    """Queue threads, let workers run them and things befall the workers; check."""
    chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    remote = folder / "bare.git"
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    lease = _LEASE if events else _IN_PEACE
    fleet = Fleet(folder=folder, remote=remote, seed=seed, lease=lease)
    with serve_http(folder) if http else nullcontext(str(folder)) as place:
        names = ["owner", *(f"w{number}" for number in range(workers))]
        owner, *fleet.seats = (
            _seat(folder, name, f"{place}/{remote.name}", steps) for name in names
        )
        queued = owner.queue(threads, "./chain.yaml")
        begun = time.monotonic()
        left, next_look = events, 0.0
        try:
            while time.monotonic() - begun < _GIVE_UP:
                fleet.keep_up()
                time.sleep(chance.uniform(0.2, 0.8))
                if left:
                    fleet.befall(chance)
                    left -= 1
                elif fleet.away_until is None:
                    if _are_done(remote, queued):
                        break
                    if time.monotonic() >= next_look:
                        fleet.look(owner)
                        next_look = time.monotonic() + _LOOK
        finally:
            fleet.seconds = time.monotonic() - begun
            fleet.finish()
        check(fleet, owner, queued, steps)
        if not events:
            check_peace(fleet, queued, steps)
    return fleet


def _seat(folder: Path, name: str, remote: str, steps: int) -> Seat:
    seat = Seat(folder, name, remote)
    (seat.folder / "agent").write_text(_AGENT.format(log=folder / "log"))
    (seat.folder / "chain.yaml").write_text(_workflow(steps))
    return seat


def _workflow(steps: int) -> str:
    """Write a workflow of so many roles, each done once."""
    names = [f"r{number}" for number in range(steps)]
    roles = [
        f"  {name}:\n    description: Works\n    goal: You work.\n"
        "    capabilities: []\n    procedure: Work.\n    output: Nothing.\n"
        "    frontmatter:\n      properties: { $status: { const: done } }\n"
        "      required: [$status]\n"
        for name in names
    ]
    edges = [
        f'  {name}:\n    done: {{ role: {after}, prompt: "Go on." }}\n'
        for name, after in zip(names, [*names[1:], "$END"], strict=True)
    ]
    start = "".join(
        f'    {way}: {{ role: r0, prompt: "Begin." }}\n' for way in ("new", "resume")
    )
    head = "version: 1\nname: chain\ndescription: One after another\n"
    return f"{head}roles:\n{''.join(roles)}graph:\n  $START:\n{start}{''.join(edges)}"


def _are_done(remote: Path, threads: list[str]) -> bool:
    lines = git(
        remote, "for-each-ref", "--format=%(refname:lstrip=3) %(subject)", "refs/uwf"
    )
    done = {line.split()[0] for line in lines.splitlines() if line.endswith(": done")}
    return done >= set(threads)


def check(fleet: Fleet, owner: Seat, threads: list[str], steps: int) -> None:
    """Say what is wrong at the end, by an assertion with the seed in it."""
    where = f"seed {fleet.seed}, events {dict(fleet.told)}, in {fleet.folder}"
    assert _are_done(fleet.remote, threads), where
    assert git(fleet.remote, "fsck", "--strict", "--no-dangling") == "", where
    owner.uwf("pull")
    owner.uwf("verify")
    for thread in threads:
        shown = json.loads(owner.uwf("thread", "show", thread, "--json"))
        assert (shown["status"], shown["steps"]) == ("end", steps), (thread, where)
    for seat in fleet.seats:
        # Another went on where a worker was killed before it had sent its step.
        seat.uwf("pull", codes=(0, 1))
        seat.uwf("verify")
        assert git(seat.store, "fsck", "--strict", "--no-dangling") == "", where


def check_peace(fleet: Fleet, threads: list[str], steps: int) -> None:
    """Check what holds while nothing befalls anyone: each step and claim is one."""
    ran = Counter((fleet.folder / "log").read_text().splitlines())
    assert set(ran.values()) == {1}
    assert len(ran) == steps * len(threads)
    for thread in threads:
        ref = f"refs/uwf/queue/{thread}"
        told = git(fleet.remote, "log", "--reverse", "--format=%H %s", ref).splitlines()
        words = {line.split()[0]: line.split()[-1] for line in told}
        # The log is the story: queued, one claim renewed with each step, done.
        story = ["queued", *["claimed"] * (len(words) - 2), "done"]
        assert list(words.values()) == story, (thread, told)
        assert len(words) >= steps + 2
        fleet.pushes += len(words) - 1
        seen = fleet.seen.get(thread, {})
        assert seen.items() <= words.items(), (thread, seen, told)
    assert fleet.pushes <= 2 * steps * len(threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=60)
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--http", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        fleet = play(Path(folder), **vars(given))
    rate = 60 * given.threads / fleet.seconds
    told = f"clean: {dict(fleet.told)}, {fleet.seconds:.0f} s, {rate:.1f} threads"
    a_step = fleet.pushes / given.threads / given.steps
    peace = f", {a_step:.2f} pushes a step" if fleet.pushes else ""
    sys.stdout.write(f"{told} a minute{peace}\n")


if __name__ == "__main__":
    main()
