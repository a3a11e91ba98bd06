"""Samples of a measurement, and what a budget makes of them (pure but for timing)."""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

Kind = Literal["times at most", "times at least", "at most", "at least", "none"]
Verdict = Literal["ok", "over", "not built", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Repeated measurements of one thing. ``best`` is the least disturbed one."""

    values: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.values)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def worst(self) -> float:
        return max(self.values)

    @property
    def noise(self) -> float:
        """How far the median lies above the best, as a share of it."""
        return self.median / self.best - 1 if self.best else 0.0

    def scaled(self, factor: float) -> Sample:
        return Sample(values=tuple(value * factor for value in self.values))

    def payload(self) -> dict[str, float]:
        return {"min": self.best, "median": self.median, "max": self.worst}


def one(value: float) -> Sample:
    """Make a sample of a thing that does not vary, such as a size."""
    return Sample(values=(value,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What was measured for one budget, beside the thing it names."""

    measured: Sample
    reference: Sample | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One line of the table of budgets."""

    name: str
    what: str
    reference: str
    kind: Kind
    limit: float
    unit: str = "ms"

    @property
    def text(self) -> str:
        """The budget as people write it."""
        sign = "≥" if self.kind in {"times at least", "at least"} else "≤"
        if self.kind == "none":
            return "none fails"
        if self.kind.startswith("times"):
            return f"{sign} {self.limit:g} x"
        return f"{sign} {self.limit:,g} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A budget with what came of it."""

    budget: Budget
    verdict: Verdict
    ratio: float | None = None
    measure: Measure | None = None
    note: str = ""

    def payload(self) -> dict[str, Any]:
        measure = self.measure
        reference = measure.reference if measure else None
        return {
            "name": self.budget.name,
            "what": self.budget.what,
            "unit": self.budget.unit,
            "measured": measure.measured.payload() if measure else None,
            "reference": self.budget.reference,
            "referenceMeasured": reference.payload() if reference else None,
            "ratio": self.ratio,
            "budget": self.budget.text,
            "limit": self.budget.limit,
            "verdict": self.verdict,
            "note": self.note,
        }


def judge(budget: Budget, measure: Measure) -> Row:
    """Hold a measure against its budget: the best run against the best run."""
    value, ratio = measure.measured.best, None
    if budget.kind == "times at most":
        assert measure.reference is not None
        ratio = value / measure.reference.best
        holds = ratio <= budget.limit
    elif budget.kind == "times at least":
        # Of speeds: how often the thing named would do in the same time.
        assert measure.reference is not None
        ratio = measure.reference.best / value
        holds = ratio >= budget.limit
    elif budget.kind == "at least":
        # The unit is a speed: the best is the highest.
        holds = measure.measured.worst >= budget.limit
    else:
        holds = value <= budget.limit
    return Row(
        budget=budget,
        verdict="ok" if holds else "over",
        ratio=ratio,
        measure=measure,
        note=measure.note,
    )


Clock = Callable[[], float]
CPU: Final[Clock] = time.process_time
"""For work that waits for nothing: what else runs here then counts little."""


def time_call(work: Callable[[], object], *, clock: Clock = time.perf_counter) -> float:
    """Give how long a call takes, in ms, without the garbage of those before."""
    gc.collect()
    began = clock()
    work()
    return (clock() - began) * 1000


def alternate(
    *works: Callable[[], object],
    repeats: int,
    warm: int = 1,
    clock: Clock = time.perf_counter,
) -> tuple[Sample, ...]:
    """Time works in turns, so that a busy machine is busy for all of them."""
    for _ in range(warm):
        for work in works:
            work()
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, found in zip(works, times, strict=True):
            found.append(time_call(work, clock=clock))
    return tuple(Sample(values=tuple(found)) for found in times)


def run_process(
    words: Sequence[str | Path],
    environment: Mapping[str, str],
    *,
    cwd: Path | None = None,
) -> bytes:
    """Run a program that must succeed, and give what it prints."""
    done = subprocess.run(
        [str(word) for word in words],
        env=dict(environment),
        cwd=cwd,
        check=False,
        capture_output=True,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-500:]
        raise RuntimeError(f"{words[0]} exited with {done.returncode}: {said}")
    return done.stdout


_STARTER = """
import os, sys
quiet = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
words = sys.argv[1:]
pid = os.posix_spawnp(words[0], words, os.environ, file_actions=[quiet])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def peak_memory(
    words: Sequence[str | Path], environment: Mapping[str, str], *, cwd: Path
) -> float:
    """Run a program and give the most memory it held, in MiB."""
    # The system counts what a process held before it became another program, so a
    # small one starts it.
    done = subprocess.run(
        [sys.executable, "-S", "-c", _STARTER, *(str(word) for word in words)],
        env=dict(environment),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    code, peak = map(int, done.stdout.split())
    if code:
        raise RuntimeError(f"{words[0]} exited with {code}: {done.stderr}")
    return peak / 1024


def folder_bytes(folder: Path) -> int:
    """Give the size of all files below a folder."""
    return sum(path.stat().st_size for path in iter_files(folder))


def iter_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield path
