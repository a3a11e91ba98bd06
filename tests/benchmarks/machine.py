"""How busy the machine is: the same small work, over and over."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.measuring import Sample, time_call

_BLOCK: Final = bytes(1024 * 1024)
_RUNS: Final = 40

Probe = Mapping[str, Sample]


def probe(folder: Path) -> Probe:
    """Time a fixed piece of computing, and a small file brought to disk."""
    return {
        "cpu": Sample(values=tuple(time_call(_compute) for _ in range(_RUNS))),
        "fsync": Sample(
            values=tuple(
                time_call(lambda: _write(folder / "probe")) for _ in range(_RUNS)
            )
        ),
    }


def _compute() -> None:
    for _ in range(5):
        hashlib.sha1(_BLOCK, usedforsecurity=False).digest()


def _write(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        os.write(descriptor, _BLOCK[:4096])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def compare(before: Probe, after: Probe) -> dict[str, Any]:
    """Give what the probes of a run's beginning and end say of its noise."""
    return {
        name: {"before": before[name].payload(), "after": after[name].payload()}
        for name in before
    } | {"load": os.getloadavg()[0]}


def tell(noise: Mapping[str, Any]) -> Iterator[str]:
    """Write the noise for people."""
    yield f"machine: {', '.join(f'{k} {v}' for k, v in describe().items())}"
    for name, what in (("cpu", "fixed computing"), ("fsync", "4 KiB to disk")):
        texts = [
            f"{p['min']:.2f}/{p['median']:.2f}/{p['max']:.2f} ms {when}"
            for when, p in noise[name].items()
        ]
        yield f"noise:   {what} {', '.join(texts)} (min/median/max)"
    yield f"load:    {noise['load']:.2f}"


def describe() -> dict[str, str]:
    """Name what the numbers depend on."""
    git = subprocess.run(
        ["git", "--version"], capture_output=True, text=True, check=False
    )
    return {
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "pygit2": version("pygit2"),
        "git": git.stdout.strip().removeprefix("git version "),
    }
