"""Pages of a large store: how soon they are there, and what the server keeps."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from tests.benchmarks.many import make_many
from tests.benchmarks.measuring import Measure, Sample, one
from tests.benchmarks.stores import World

_FAILED = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class _Server:
    port: int
    token: str
    pid: int

    def time(self, path: str) -> float:
        """Return the milliseconds that a page takes, read to its end."""
        line = HTTPConnection("127.0.0.1", self.port, timeout=120)
        begun = time.perf_counter()
        line.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        answer = line.getresponse()
        answer.read()
        line.close()
        if answer.status >= _FAILED:
            raise RuntimeError(f"{path} answered {answer.status}")
        return (time.perf_counter() - begun) * 1000

    def memory(self) -> float:
        """Return the MB that are resident: its own, and the files that it mapped."""
        text = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        found = re.search(r"Rss:\s+(\d+) kB", text)
        if found is None:
            raise RuntimeError("the system does not tell a process's memory")
        return int(found[1]) / 1024


@contextmanager
def _serving(world: World, store: Path) -> Iterator[_Server]:
    process = subprocess.Popen(
        [*world.uwf, "web", "--port", "8641", "--store", store],
        cwd=world.code,
        env=world.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        token = subprocess.run(
            [*world.uwf, "web", "token"],
            env=world.environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        yield _Server(port=8641, token=token, pid=process.pid)
    finally:
        process.terminate()
        process.communicate()


def measure_web(world: World) -> Mapping[str, Measure]:
    """Time the pages of a store of many threads, and of a long thread."""
    count, repeats = world.size(10_000, 300), world.size(9, 2)
    path, _ = make_many(world, count)
    # Whatever looked at the store before has filled its lookup.
    subprocess.run(
        [*world.uwf, "thread", "list", "--store", path],
        env=world.environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    firsts = []
    for _ in range(world.size(3, 1)):
        with _serving(world, path) as server:
            firsts.append(server.time("/threads"))
    with _serving(world, path) as server:
        server.time("/threads")
        found = [server.time(f"/threads?q=offsets+{n}") for n in range(repeats)]
        memory = server.memory()
    long = world.long(world.size(1_000, 40))
    with _serving(world, long.store) as server:
        read = [server.time(f"/threads/{long.thread}") for _ in range(repeats)]
    return {
        "web-first": Measure(measured=Sample(values=tuple(firsts))),
        "web-search": Measure(measured=Sample(values=tuple(found))),
        "web-thread": Measure(measured=Sample(values=tuple(read))),
        "web-memory": Measure(measured=one(memory)),
    }
