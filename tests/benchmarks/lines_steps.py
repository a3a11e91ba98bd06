"""Lines about recording steps: the engine's own time, and the lookup after one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pygit2
from msgspec.structs import replace
from pygit2.enums import ObjectType

from tests.benchmarks.many import make_many
from tests.benchmarks.measuring import Measure, Sample, time_call
from tests.benchmarks.stores import World, make_talker, run_steps
from tests.builders import reply, write_script
from uwfgit.engine.run.executor import Engine
from uwfgit.ids import Oid, ThreadId
from uwfgit.store.layout import thread_ref
from uwfgit.store.lookup import refscan
from uwfgit.store.refs import find_ref

_ROUND: Final = 10
_RACY_SECONDS: Final = 2.5


def measure_steps(world: World) -> Mapping[str, Measure]:
    """Time scripted steps with and without fsync, beside their objects raw."""
    rounds = world.size(10, 3)
    fsync, raw = _measure_beside_raw(world, rounds)
    return {
        "step-fsync": Measure(measured=fsync, reference=raw),
        "step": Measure(measured=_measure_without_fsync(world, rounds)),
    }


def _measure_beside_raw(world: World, rounds: int) -> tuple[Sample, Sample]:
    """Take turns: ten steps, then the objects and ref moves of those ten, raw."""
    path = world.make_store("steps-fsync")
    plain = _make_plain(world)
    steps, raws = [], []
    with world.opened(path, fsync=True) as ledger:
        tip = world.start(ledger)
        engine = _scripted(world, world.engine(ledger), rounds)
        source, name = ledger.store.repo, thread_ref(tip.thread)
        before = find_ref(ledger.store, name)
        for _ in range(rounds):
            steps.append(time_call(lambda: run_steps(engine, tip.thread, _ROUND)))
            after = find_ref(ledger.store, name)
            events = [
                list(_iter_objects(source, c)) for c in _walk(source, before, after)
            ]
            raws.append(time_call(lambda: _write_raw(plain, name, events)))  # noqa: B023 - called at once
            before = after
    found = (Sample(values=tuple(times)) for times in (steps, raws))
    fsync, raw = (sample.scaled(1 / _ROUND) for sample in found)
    return fsync, raw


def _measure_without_fsync(world: World, rounds: int) -> Sample:
    path = world.make_store("steps")
    with world.opened(path) as ledger:
        tip = world.start(ledger)
        engine = _scripted(world, world.engine(ledger), rounds)
        times = [
            time_call(lambda: run_steps(engine, tip.thread, _ROUND))
            for _ in range(rounds)
        ]
    return Sample(values=tuple(times)).scaled(1 / _ROUND)


def _scripted(world: World, engine: Engine, rounds: int) -> Engine:
    count = rounds * _ROUND
    folder = world.new_folder("script")
    replies = {
        "worker": [reply("done", plan=f"Plan {n}") for n in range(count)],
        "critic": [reply("bad", reason=f"Reason {n}") for n in range(count)],
    }
    flag, choose = write_script(folder, replies), engine.choose
    return replace(engine, choose=lambda _, *rest: choose(flag, *rest))


def _make_plain(world: World) -> pygit2.Repository:
    path = world.new_folder("raw")
    repo = pygit2.init_repository(str(path), bare=True, initial_head="main")
    repo.config["core.logAllRefUpdates"] = "always"
    return repo


def _walk(repo: pygit2.Repository, old: Oid | None, new: Oid | None) -> list[Oid]:
    commits = []
    while new is not None and new != old:
        commits.append(new)
        new = Oid(str(repo[new].peel(pygit2.Commit).parent_ids[0]))
    return commits[::-1]


_Object = tuple[ObjectType, bytes]


def _iter_objects(repo: pygit2.Repository, oid: Oid) -> Iterator[_Object]:
    """Give what a commit added: blobs, trees bottom-up, the commit."""
    commit = repo[oid].peel(pygit2.Commit)
    before = commit.parents[0].tree
    yield from _iter_added(before, commit.tree)
    yield ObjectType.COMMIT, commit.read_raw()


def _iter_added(old: pygit2.Tree | None, new: pygit2.Tree) -> Iterator[_Object]:
    known = {item.name: item for item in old} if old is not None else {}
    for item in new:
        earlier = known.get(item.name)
        if earlier is not None and earlier.id == item.id:
            continue
        if isinstance(item, pygit2.Tree):
            yield from _iter_added(
                earlier if isinstance(earlier, pygit2.Tree) else None, item
            )
        else:
            yield ObjectType.BLOB, item.read_raw()
    yield ObjectType.TREE, new.read_raw()


def _write_raw(repo: pygit2.Repository, name: str, events: list[list[_Object]]) -> None:
    for objects in events:
        oids = [repo.odb.write(kind, data) for kind, data in objects]
        repo.references.create(name, oids[-1], force=True)


def measure_growth(world: World) -> Mapping[str, Measure]:
    """Compare the steps at a long thread's end with those at its beginning."""
    times = world.long(world.size(1_000, 40)).times
    early, late = times[5:25], times[-20:]
    return {
        "step-growth": Measure(
            measured=Sample(values=late), reference=Sample(values=early)
        )
    }


def measure_turns(world: World) -> Mapping[str, Measure]:
    """Time steps whose agent takes a hundred turns."""
    path = world.make_store("turns")
    with world.opened(path, fsync=True) as ledger:
        tip = world.start(ledger)
        count = world.size(30, 8)
        engine = world.engine(ledger, make_talker(1, count, turns=100))
        times = run_steps(engine, tip.thread, count)
    return {"turns": Measure(measured=Sample(values=tuple(times[1:])))}


def measure_refresh(world: World) -> Mapping[str, Measure]:
    """Time the lookup's refresh after each step of a short and of a long thread."""
    count = world.size(10_000, 300)
    path, short = make_many(world, count)
    with world.opened(path) as ledger:
        ledger.lookup.list_nodes()
    steps = world.size(1_000, 40)
    long = _grow(world, path, steps)
    repeats = world.size(15, 3)
    return {
        "refresh": _refresh_after_steps(world, path, short, 0, repeats),
        "refresh-growth": _refresh_after_steps(world, path, long, steps, repeats),
    }


def _grow(world: World, path: Path, steps: int) -> ThreadId:
    with world.opened(path) as ledger:
        tip = world.start(ledger)
        run_steps(world.engine(ledger, make_talker(1, steps)), tip.thread, steps)
        ledger.lookup.refresh()
    world.git(path, "gc", "--quiet")
    # For two seconds the packed refs' times prove nothing, and all are read again.
    time.sleep(_RACY_SECONDS)
    return tip.thread


def _refresh_after_steps(
    world: World, path: Path, thread: ThreadId, steps: int, repeats: int
) -> Measure:
    refreshes, readings = [], []
    with world.opened(path) as reader, world.opened(path) as writer:
        reader.lookup.refresh()
        engine = world.engine(writer, make_talker(steps + 1, repeats))
        for _ in range(repeats):
            run_steps(engine, thread, 1)
            reading = time_call(lambda: _read_refs(path))
            refreshes.append(time_call(reader.lookup.refresh) - reading)
            readings.append(reading)
    note = f"reading the refs took {Sample(values=tuple(readings)).median:.1f} ms"
    return Measure(
        measured=Sample(values=tuple(max(0, t) for t in refreshes)), note=note
    )


def _read_refs(path: Path) -> None:
    # Packed refs did not change, so a refresh does not read them either.
    refscan.read_fingerprint(path)
    refscan.read_loose(path)
