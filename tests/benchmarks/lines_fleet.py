"""Lines about many machines: a look at a long queue, beside git's own."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.benchmarks.many import make_many
from tests.benchmarks.measuring import Measure, alternate, run_process
from tests.benchmarks.stores import World
from uwfgit.fleet.hands import Terms
from uwfgit.fleet.queue import Queue
from uwfgit.fleet.steer import put_all
from uwfgit.fleet.worker import Worker
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.layout import THREAD_PREFIX, find_ref_thread
from uwfgit.store.refs import scan_refs
from uwfgit.sync.exchange.queue_entry import Entry
from uwfgit.sync.exchange.queue_state import QUEUE_PREFIX
from uwfgit.sync.exchange.remotes import get_remote
from uwfgit.sync.exchange.transport import Wire


class _Bystander:
    """The hands of a worker that trusts nobody, so that every thread is looked at."""

    def distrust_entry(self, _: Entry) -> str:
        return "nobody is trusted"

    def tell(self, *_: object, **__: object) -> None:
        return


def measure_fleet(world: World) -> Mapping[str, Measure]:
    """Time a poll of a worker that finds nothing new."""
    path, _ = make_many(world, world.size(5_000, 300))
    remote = world.new_folder("queue") / "queue.git"
    run = partial(run_process, environment=world.environment, cwd=world.code)
    run(["git", "init", "--quiet", "--bare", remote])
    run([*world.uwf, "remote", "add", "origin", remote, "--store", path])
    world.git(path, "push", "--quiet", "origin", "refs/heads/*:refs/heads/*")
    with world.opened(path) as ledger:
        _queue_all(world, ledger, remote)
        worker = _worker(world, ledger)
        poll, plain = alternate(
            worker.tick,
            lambda: run(["git", "ls-remote", remote, f"{QUEUE_PREFIX}*"]),
            repeats=world.size(9, 2),
        )
    return {"poll": Measure(measured=poll, reference=plain)}


def _queue_all(world: World, ledger: Ledger, remote: Path) -> None:
    queue = _queue(world, ledger)
    refs = scan_refs(ledger.store, THREAD_PREFIX)
    tips = (load_tip(ledger.store, t) for ref in refs if (t := find_ref_thread(ref)))
    problems = put_all(queue, queue.fetch(), tips)
    assert not any(problems.values())
    # As any server keeps them.
    world.git(remote, "gc", "--quiet")


def _queue(world: World, ledger: Ledger) -> Queue:
    return Queue(
        ledger=ledger,
        remote=get_remote(ledger.store, "origin"),
        wire=Wire(environment=world.environment),
    )


def _worker(world: World, ledger: Ledger) -> Worker:
    return Worker(
        queue=_queue(world, ledger),
        hands=_Bystander(),  # type: ignore[arg-type] # it takes nothing
        terms=Terms(name="w", poll=0.0),
        monotonic=time.monotonic,
        choose=lambda entries: entries[0],
        sleep=lambda _: None,
        jitter=lambda: 0.0,
    )
