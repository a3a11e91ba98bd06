"""Lines about sharing: pull and push beside git's own fetch and push."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.benchmarks.many import make_many
from tests.benchmarks.measuring import (
    Measure,
    Sample,
    alternate,
    run_process,
    time_call,
)
from tests.benchmarks.stores import World, make_talker, run_steps
from uwfgit.cli.frame.catalog import CATALOG
from uwfgit.store.layout import thread_ref


def measure_sharing(world: World) -> Mapping[str, Measure]:
    """Time a pull that brings nothing, and pushes of a thread's newest step."""
    if not {"pull", "push"} <= {entry.name for entry in CATALOG}:
        return {}
    path, thread = make_many(world, world.size(5_000, 300))
    remote = world.new_folder("remote") / "remote.git"
    run = partial(run_process, environment=world.environment, cwd=world.code)
    run(["git", "init", "--quiet", "--bare", remote])
    run([*world.uwf, "remote", "add", "origin", remote, "--store", path])
    world.git(path, "push", "--quiet", "origin", "refs/heads/*:refs/heads/*")
    world.git(path, "fetch", "--quiet", "origin")
    repeats = world.size(7, 2)
    pull, fetch = alternate(
        lambda: run([*world.uwf, "pull", "origin", "--store", path]),
        lambda: world.git(path, "fetch", "origin"),
        repeats=repeats,
    )
    ways: tuple[list[str | Path], ...] = (
        [*world.uwf, "push", "origin", thread, "--store", path],
        ["git", f"--git-dir={path}", "push", "origin", thread_ref(thread)],
    )
    times: tuple[list[float], ...] = ([], [])
    for number in range(1, 2 * repeats + 1):
        with world.opened(path) as ledger:
            run_steps(world.engine(ledger, make_talker(number, 1)), thread, 1)
        times[number % 2].append(time_call(lambda: run(ways[number % 2])))  # noqa: B023 - called at once
    push, plain = (Sample(values=tuple(found)) for found in times)
    return {
        "pull": Measure(measured=pull, reference=fetch),
        "push": Measure(measured=push, reference=plain),
    }
