"""Lines about what a long thread takes on disk, after git's gc and after ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.benchmarks.measuring import Measure, folder_bytes, one, run_process
from tests.benchmarks.stores import Long, World
from uwfgit.store.layout import thread_ref


def measure_disk(world: World) -> Mapping[str, Measure]:
    """Compare a thread's whole history with its last tree as one plain commit."""
    long = world.long(world.size(1_000, 40))
    plain = _make_plain(world, long)
    after_git = world.packed(long)
    after_uwf = world.copy(long.store, "gc")
    run_process([*world.uwf, "gc", "--store", after_uwf], world.environment)
    reference = one(_size(plain))
    note = f"steps of {reference.best / len(long.times):.1f} KiB, packed"
    return {
        "disk-git": Measure(
            measured=one(_size(after_git)), reference=reference, note=note
        ),
        "disk-uwf": Measure(measured=one(_size(after_uwf)), reference=reference),
    }


def _make_plain(world: World, long: Long) -> Path:
    """Make a repository that holds the thread's last tree and nothing else."""
    source = world.copy(long.store, "plain-source")
    tree = world.git(source, "rev-parse", f"{thread_ref(long.thread)}^{{tree}}")
    commit = world.git(source, "commit-tree", tree, "-m", "all at once")
    world.git(source, "update-ref", "refs/heads/plain", commit)
    path = world.new_folder("plain") / "plain.git"
    words = ["git", "clone", "--quiet", "--bare", "--single-branch"]
    words += ["--branch", "plain", f"file://{source}", str(path)]
    run_process(words, world.environment)
    world.git(path, "gc", "--quiet")
    return path


def _size(repository: Path) -> float:
    return folder_bytes(repository / "objects") / 1024
