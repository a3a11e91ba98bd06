"""Lines about checking: a workflow file, and whole threads."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.benchmarks.measuring import CPU, Measure, Sample, run_process, time_call
from tests.benchmarks.stores import World
from tests.proof import verify_threads
from uwfgit.ids import ThreadId
from uwfgit.store.handle import Store

_ROOT: Final = Path(__file__).parents[2]
_WARM: Final = "debate.yaml"
_FIVE_ROLES: Final = "solve-issue.yaml"
# In a process of its own, so that no schema was checked before.
_VALIDATE: Final = """
import sys, time
from pathlib import Path
from uwfgit.model.workflow.source import check_workflow_file, read_workflow
folder, warm, wanted = sys.argv[1:]
read_workflow(Path(folder, warm))
began = time.process_time()
problems = check_workflow_file(Path(folder, wanted))
took = time.process_time() - began
assert not [p for p in problems if p.severity == "error"], problems
assert len(read_workflow(Path(folder, wanted)).workflow.roles) == 5
print(took * 1000)
"""


def measure_validation(world: World) -> Mapping[str, Measure]:
    """Time the check of a file whose schemas nobody has checked before."""
    folder = world.new_folder("examples")
    shutil.copytree(_ROOT / "examples", folder, dirs_exist_ok=True)
    words: list[str | Path] = [
        sys.executable,
        "-c",
        _VALIDATE,
        folder,
        _WARM,
        _FIVE_ROLES,
    ]
    times = tuple(
        float(run_process(words, world.environment)) for _ in range(world.size(15, 3))
    )
    return {"validate": Measure(measured=Sample(values=times))}


def measure_verify(world: World) -> Mapping[str, Measure]:
    """Time ``verify`` of threads of two lengths, a step."""
    found = []
    for steps in (world.size(1_000, 40), world.size(5_000, 80)):
        long = world.long(steps)
        path = world.packed(long)
        with world.opened(path) as ledger:
            times = [
                time_call(lambda: _verify(ledger.store, long.thread), clock=CPU) / steps  # noqa: B023 - called at once
                for _ in range(world.size(3, 2))
            ]
        found.append(Sample(values=tuple(times)))
    return {
        "verify": Measure(measured=found[0]),
        "verify-growth": Measure(measured=found[1], reference=found[0]),
    }


def _verify(store: Store, thread: ThreadId) -> None:
    (report,) = verify_threads(store, [thread])
    if report.problems:
        raise RuntimeError(f"a thread of ours does not verify: {report.problems[0]}")
