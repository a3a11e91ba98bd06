"""Lines that time whole commands: start-up, show, list, starts in parallel, memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from tests.benchmarks.many import make_many
from tests.benchmarks.measuring import (
    Measure,
    alternate,
    one,
    peak_memory,
    run_process,
)
from tests.benchmarks.stores import World
from tests.builders import make_workflow, reply, workflow_data

_BARE: Final = Path(__file__).with_name("bare.py")
_HEAVY: Final = ("pygit2", "jsonschema", "httpx", "yaml")
_SEE_IMPORTS: Final = f"""
import contextlib, io, sys
from uwfgit.cli.frame.app import main
with contextlib.redirect_stdout(io.StringIO()):
    main([sys.argv[1]])
print(*[name for name in {_HEAVY!r} if name in sys.modules])
"""


def measure_startup(world: World) -> Mapping[str, Measure]:
    """Time ``--version`` and ``--help`` beside an import of typer."""
    run = partial(run_process, environment=world.environment)
    version, help_, typer = alternate(
        lambda: run([*world.uwf, "--version"]),
        lambda: run([*world.uwf, "--help"]),
        lambda: run([sys.executable, "-c", "import typer"]),
        repeats=world.size(25, 2),
    )
    heavy = [
        f"{option} imports {name}"
        for option in ("--version", "--help")
        for name in run([sys.executable, "-c", _SEE_IMPORTS, option]).decode().split()
    ]
    return {
        "version": Measure(measured=version, reference=typer),
        "help": Measure(measured=help_, reference=typer),
        "help-imports": Measure(measured=one(len(heavy)), note=", ".join(heavy)),
    }


def measure_show(world: World) -> Mapping[str, Measure]:
    """Time ``thread show`` beside the bare program on the same store."""
    path, thread = make_many(world, world.size(1_000, 200))
    run = partial(run_process, environment=world.environment, cwd=world.code)
    show, bare = alternate(
        lambda: run([*world.uwf, "thread", "show", thread, "--store", path]),
        lambda: run([sys.executable, _BARE, path]),
        repeats=world.size(25, 2),
        warm=world.size(2, 1),
    )
    return {"show": Measure(measured=show, reference=bare)}


def measure_list(world: World) -> Mapping[str, Measure]:
    """Time ``thread list`` beside the bare program on the same store."""
    count = world.size(10_000, 300)
    path, _ = make_many(world, count)
    run = partial(run_process, environment=world.environment, cwd=world.code)
    shown = run([*world.uwf, "thread", "list", "--store", path])
    lines = shown.count(b"\n") - 1
    if lines != count:
        raise RuntimeError(f"thread list shows {lines} of {count}")
    listed, bare = alternate(
        lambda: run([*world.uwf, "thread", "list", "--store", path]),
        lambda: run([sys.executable, _BARE, path]),
        repeats=world.size(15, 2),
        warm=world.size(2, 1),
    )
    return {"list": Measure(measured=listed, reference=bare)}


def measure_starts(world: World) -> Mapping[str, Measure]:
    """Start threads from eight processes at a time, and count what is missing."""
    total = world.size(64, 6)
    path = world.make_store("starts")
    file = world.new_folder("workflow") / "work.yaml"
    file.write_bytes(workflow_data(make_workflow()))
    words = [*world.uwf, "thread", "start", file, "-p", "x", "--json", "--store", path]

    def start(_: int) -> str | None:
        try:
            said = run_process(words, world.environment, cwd=world.code)
        except RuntimeError as exc:
            return str(exc)
        return str(json.loads(said)["threadId"])

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(start, range(total)))
    refs = world.git(path, "for-each-ref", "--format=%(refname)", "refs/heads/thread/")
    known = {ref.rpartition("/")[2] for ref in refs.splitlines()}
    missing = [each for each in told if each not in known]
    note = f"{total} started; {missing[0]}" if missing else f"{total} started"
    return {"starts": Measure(measured=one(len(missing)), note=note)}


def measure_memory(world: World) -> Mapping[str, Measure]:
    """Compare the peak memory of ``exec`` on a long thread and on a short one."""
    samples = []
    for steps in (world.size(1_000, 40), 10):
        long = world.long(steps)
        store = world.copy(long.store, f"memory-{steps}")
        # Steps alternate between the two roles, and the count is even.
        answer = store.with_name("answer.md")
        answer.write_text(reply("done", plan="A plan"))
        words = [*world.uwf, "thread", "exec", long.thread, "--store", store]
        words += ["--agent", f"stdio:cat {answer}"]
        samples.append(one(peak_memory(words, world.environment, cwd=world.code)))
    return {"memory": Measure(measured=samples[0], reference=samples[1])}
