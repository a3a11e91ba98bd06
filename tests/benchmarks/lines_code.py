"""Lines about the code beside a thread: a snapshot, and why."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tests.benchmarks.measuring import Measure, Sample, run_process
from tests.benchmarks.stores import World
from uwfgit.code.chain import Label
from uwfgit.code.snapshots.keep import Keeper
from uwfgit.code.snapshots.take import Camera
from uwfgit.ids import ThreadId

_THREAD: Final = ThreadId("01J8Z3NDEKTSV4RRFFQ69G5FAV")
_FILE: Final = "big.txt"
_AGENT: Final = """\
#!/bin/sh
cat > /dev/null
sed -i '100,120s/^/step /' big.txt
printf -- '---\\n$status: good\\n---\\nDone.\\n'
"""
_WORKFLOW: Final = """\
version: 1
name: one
description: One step
roles:
  worker:
    description: Works
    goal: You work.
    capabilities: []
    procedure: Work.
    output: It.
    frontmatter:
      properties: { $status: { const: good } }
      required: [$status]
graph:
  $START:
    new: { role: worker, prompt: "Work." }
    resume: { role: worker, prompt: "Work." }
  worker:
    good: { role: $END, prompt: "Good." }
"""


def _git(world: World, root: Path, *words: str, data: bytes = b"") -> None:
    subprocess.run(
        ["git", *words],
        cwd=root,
        env=world.environment,
        input=data,
        capture_output=True,
        check=True,
    )


def _time(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def measure_snapshot(world: World) -> Mapping[str, Measure]:
    """Time a snapshot of a large work tree in turns with ``git status``."""
    root = world.new_folder("work-tree")
    _git(world, root, "init", "-q", "-b", "main")
    for number in range(world.size(200, 10)):
        folder = root / f"d{number}"
        folder.mkdir()
        for file in range(100):
            (folder / f"f{file}.txt").write_text(f"{number} {file}\n" * 20)
    _git(world, root, "add", "-A")
    _git(world, root, "commit", "-q", "-m", "files")
    # Else every file is as young as the index, and git reads them all.
    time.sleep(1.1)
    _git(world, root, "status")
    camera = Camera(
        folder=world.new_folder("state"), home=world.home, is_secret=lambda *_: False
    )
    keeper = Keeper(
        camera=camera, environment=world.environment, now=lambda: int(time.time())
    )
    status, snapshots = [], []
    for number in range(world.size(15, 3)):
        (root / "d1" / "f1.txt").write_text(f"changed {number}\n")
        label = Label(thread=_THREAD, number=number + 1, run=1, when="after")
        status.append(_time(lambda: _git(world, root, "status")))
        snapshots.append(_time(lambda: keeper.keep(root, label)))  # noqa: B023 - called at once
    return {
        "snapshot": Measure(
            measured=Sample(values=tuple(snapshots)),
            reference=Sample(values=tuple(status)),
        )
    }


def measure_why(world: World) -> Mapping[str, Measure]:
    """Time ``why`` of a long file in a repository of many commits."""
    root = world.new_folder("history")
    _git(world, root, "init", "-q", "-b", "main")
    history = "".join(_history(world.size(5_000, 100))).encode()
    _git(world, root, "fast-import", "--quiet", data=history)
    _git(world, root, "reset", "-q", "--hard", "main")
    place = world.new_folder("agent")
    (place / "agent.sh").write_text(_AGENT)
    (place / "agent.sh").chmod(0o755)
    (place / "one.yaml").write_text(_WORKFLOW)
    environment = {**world.environment, "UWF_STORE": ""}
    words = [*world.uwf, "-q", "thread", "run", place / "one.yaml", "-p", "work"]
    run_process(
        [*words, "--agent", f"stdio:{place / 'agent.sh'}"], environment, cwd=root
    )
    question = [*world.uwf, "why", _FILE]

    def ask() -> None:
        run_process(question, environment, cwd=root)

    times = tuple(_time(ask) for _ in range(world.size(9, 2)))
    return {"why": Measure(measured=Sample(values=times))}


def _history(commits: int) -> Iterator[str]:
    """Write commits for ``git fast-import``; each fiftieth changes the long file."""
    choose = random.Random(1)  # noqa: S311 - no secret
    lines = [f"line {number} of the long file" for number in range(2_000)]
    for number in range(commits):
        yield f"commit refs/heads/main\ncommitter A <a@example.org> {10**9 + number} "
        yield "+0000\ndata 1\nc\n"
        if number % 50 == 0:
            for _ in range(25):
                lines[choose.randrange(2_000)] = f"a line of commit {number}"
            text = "\n".join(lines) + "\n"
            yield f"M 100644 inline {_FILE}\ndata {len(text)}\n{text}\n"
        text = f"{number}\n"
        yield f"M 100644 inline d{number % 50}/f{number % 300}\n"
        yield f"data {len(text)}\n{text}\n"
