"""A file of inputs, a thread a line, spread over processes or a Dask cluster.

``python tests/stress/map.py --lines 200 --executor dask --kill`` runs it at length;
the suite runs a few lines. Each line is looked at once, whatever is killed half-way,
and the results come in the order of the file. The cluster is a scheduler and workers
as processes of this machine, each with a home and a store of its own.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.builders import git
from tests.fleet.seats import Seat

WORKFLOW = """\
version: 1
name: look
description: Look at something
inputs:
  what: { type: string }
roles:
  looker:
    description: Looks
    goal: You look.
    capabilities: []
    procedure: Look.
    output: What you saw.
    frontmatter:
      properties: { $status: { const: seen }, what: { type: string } }
      required: [$status, what]
graph:
  $START:
    new: { role: looker, prompt: "Watch <{{{_inputs.what}}}>" }
    resume: { role: looker, prompt: "Watch <{{{_inputs.what}}}> again" }
  looker:
    seen: { role: $END, prompt: "Seen." }
"""
_AGENT = """\
#!/bin/sh
what=$(sed -n 's/.*Watch <\\([^>]*\\)>.*/\\1/p' | head -n 1)
echo "$what" >> {folder}/log
if [ -e {folder}/slow ]; then sleep 2; fi
if [ "$what" = bad ] && [ ! -e {folder}/mended ]; then exit 1; fi
printf -- '---\\n$status: seen\\nwhat: "%s"\\n---\\nSeen.\\n' "$what"
"""
_PATIENCE = 3600


@dataclass(frozen=True, slots=True)
class Bench:
    """Someone with a file of inputs, and an agent that notes what it looks at."""

    owner: Seat
    remote: Path
    folder: Path

    @classmethod
    def make(cls, folder: Path, words: list[str]) -> Bench:
        remote = folder / "bare.git"
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
        owner = Seat(folder, "owner", remote)
        (owner.folder / "look.yaml").write_text(WORKFLOW)
        agent = folder / "agent"
        agent.write_text(_AGENT.format(folder=folder))
        agent.chmod(0o755)
        bench = cls(owner=owner, remote=remote, folder=folder)
        bench.write(words)
        return bench

    def write(self, words: list[str]) -> None:
        lines = [json.dumps({"what": word}) for word in words]
        (self.owner.folder / "in.jsonl").write_text("\n".join(lines) + "\n")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the command, in JSON; what stands behind ``--`` comes last."""
        agent = ("--agent", f"stdio:{self.folder / 'agent'}", "--trust-pushers")
        given = ("./look.yaml", "--inputs", "in.jsonl", "-p", "Look", "--json")
        return self.owner.start("fleet", "map", *given, *words, "--", *agent)

    def run(self, *words: str, code: int = 0) -> dict[str, Any]:
        with self.start(*words) as done:
            out, err = done.communicate(timeout=_PATIENCE)
        assert done.returncode == code, (done.returncode, out, err)
        found: dict[str, Any] = json.loads(out)
        return found

    def looked(self) -> Counter[str]:
        """Return how often the agent looked at what."""
        log = self.folder / "log"
        return Counter(log.read_text().splitlines() if log.exists() else [])

    def seen(self, found: Mapping[str, Any]) -> list[str | None]:
        return [item["output"] and item["output"]["what"] for item in found["items"]]


@contextmanager
def cluster(bench: Bench, workers: int) -> Iterator[str]:
    """Run a scheduler and workers of Dask; give the address."""
    file = bench.folder / "scheduler.json"
    dask = str(Path(sys.executable).with_name("dask"))
    plain = ("--no-dashboard", "--host", "127.0.0.1", "--port", "0")
    words = [dask, "scheduler", "--scheduler-file", str(file), *plain]
    started = [_start(words, bench.owner)]
    try:
        while not file.exists() or not file.read_text().strip().endswith("}"):
            assert started[0].poll() is None, "the scheduler has ended"
            time.sleep(0.1)
        for number in range(workers):
            seat = Seat(bench.folder, f"machine{number}", bench.remote)
            asked = ("--nthreads", "1", "--no-nanny", "--no-dashboard")
            given = ("--scheduler-file", str(file), "--host", "127.0.0.1")
            started.append(_start([dask, "worker", *given, *asked], seat))
        yield json.loads(file.read_text())["address"]
    finally:
        for process in reversed(started):
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        # A worker of Dask that loses its scheduler meanwhile may wait for ever.
        process.kill()
        process.wait()


def _start(words: list[str], seat: Seat) -> subprocess.Popen[bytes]:
    log = (seat.folder / "dask.log").open("ab")
    with log:
        return subprocess.Popen(
            words, cwd=seat.folder, env=dict(seat.environment), stdout=log, stderr=log
        )


def play(folder: Path, *, lines: int, executor: str, kill: bool) -> float:
    """Run a file of lines, kill the command half-way if told to; return seconds."""
    wanted = [f"w{number}" for number in range(lines)]
    bench = Bench.make(folder, wanted)
    begun = time.monotonic()
    if executor == "dask":
        with cluster(bench, 3) as address:
            _run(bench, wanted, ("--executor", f"dask:{address}"), kill=kill)
    else:
        _run(bench, wanted, ("-j", "3"), kill=kill)
    return time.monotonic() - begun


def _run(
    bench: Bench, wanted: list[str], words: tuple[str, ...], *, kill: bool
) -> None:
    if kill:
        first = bench.start(*words)
        while len(bench.looked()) < len(wanted) // 2:
            assert first.poll() is None, first.communicate()
            time.sleep(0.1)
        first.send_signal(signal.SIGKILL)
        first.communicate()
    found = bench.run(*words)
    assert bench.seen(found) == wanted
    assert found["ended"] == len(wanted)
    assert bench.looked() == Counter(wanted)
    bench.owner.uwf("verify")
    assert git(bench.remote, "fsck", "--strict", "--no-dangling") == ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--executor", choices=("process", "dask"), default="process")
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="map-") as folder:
        seconds = play(Path(folder), **vars(given))
    rate = 60 * given.lines / seconds
    sys.stdout.write(
        f"{given.lines} lines, each looked at once: {seconds:.0f} s, "
        f"{rate:.0f} a minute\n"
    )


if __name__ == "__main__":
    main()
