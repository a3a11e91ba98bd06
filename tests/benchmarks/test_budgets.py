"""The script of budgets runs, and has a line for each of them. Nothing is timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.budgets import GROUPS
from tests.benchmarks.measuring import Budget, Kind, Measure, Sample, judge, one
from tests.benchmarks.table import BUDGETS

SCRIPT = Path(__file__).with_name("budgets.py")


@pytest.mark.slow
def test_the_script_measures_what_it_is_asked_for(tmp_path: Path) -> None:
    words = ["--quick", "--json", "--only", "version,validate", "--dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "UWF_HOME": "/nonexistent"},
    )

    found = json.loads(done.stdout)
    verdicts = {row["name"]: row["verdict"] for row in found["budgets"]}
    assert {"version", "validate"} <= verdicts.keys(), done.stderr
    assert verdicts["version"] != "failed"
    assert verdicts["validate"] != "failed"
    assert found["noise"].keys() == {"cpu", "fsync", "load"}


def test_every_budget_is_measured_by_one_group() -> None:
    grouped = sorted(name for group in GROUPS for name in group.names)

    assert grouped == sorted(budget.name for budget in BUDGETS)


@pytest.mark.parametrize(
    ("kind", "measured", "reference", "verdict"),
    [
        pytest.param("times at most", 4.0, 2.0, "ok", id="twice-as-long"),
        pytest.param("times at most", 4.1, 2.0, "over", id="more-than-twice"),
        pytest.param("times at least", 1.0, 2.0, "ok", id="twice-as-fast"),
        pytest.param("times at least", 1.1, 2.0, "over", id="not-quite"),
        pytest.param("at most", 2.0, None, "ok", id="at-the-limit"),
        pytest.param("at most", 2.1, None, "over", id="above-it"),
        pytest.param("at least", 2.0, None, "ok", id="as-many"),
        pytest.param("at least", 1.9, None, "over", id="fewer"),
    ],
)
def test_a_budget_is_held_by_the_best_run(
    kind: Kind, measured: float, reference: float | None, verdict: str
) -> None:
    budget = Budget(name="x", what="x", reference="y", kind=kind, limit=2.0)
    worse = measured * 3 if kind != "at least" else measured / 3
    beside = None if reference is None else one(reference)

    row = judge(
        budget, Measure(measured=Sample(values=(worse, measured)), reference=beside)
    )

    assert row.verdict == verdict
