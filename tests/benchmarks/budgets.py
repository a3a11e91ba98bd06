"""Measure every budget beside the thing it names; print a table, or JSON.

    python tests/benchmarks/budgets.py [--quick] [--only PATTERN] [--json FILE]

A budget is held by the best of several runs, each taken in turns with the
thing named, so that a busy machine is busy for both. ``--quick`` takes smaller
stores and fewer runs: it shows that everything works, not that a budget holds.
"""

# ruff: noqa: T201 - a program, it prints

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks import (
    lines_code,
    lines_commands,
    lines_disk,
    lines_fleet,
    lines_nodes,
    lines_sharing,
    lines_steps,
    lines_web,
    lines_workflow,
    machine,
)
from tests.benchmarks.measuring import Measure, Row, Sample, judge
from tests.benchmarks.stores import World
from tests.benchmarks.table import BUDGETS

_FAILURE_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Budgets that are measured together."""

    names: tuple[str, ...]
    run: Callable[[World], Mapping[str, Measure]]


GROUPS = (
    Group(
        names=("version", "help", "help-imports"), run=lines_commands.measure_startup
    ),
    Group(names=("show",), run=lines_commands.measure_show),
    Group(names=("list",), run=lines_commands.measure_list),
    Group(names=("step-fsync", "step"), run=lines_steps.measure_steps),
    Group(names=("step-growth",), run=lines_steps.measure_growth),
    Group(names=("refresh", "refresh-growth"), run=lines_steps.measure_refresh),
    Group(names=("turns",), run=lines_steps.measure_turns),
    Group(names=("put", "get-batch", "get-single"), run=lines_nodes.measure_nodes),
    Group(names=("read", "read-verified"), run=lines_nodes.measure_reading),
    Group(names=("rebuild",), run=lines_nodes.measure_rebuild),
    Group(names=("verify", "verify-growth"), run=lines_workflow.measure_verify),
    Group(names=("validate",), run=lines_workflow.measure_validation),
    Group(names=("snapshot",), run=lines_code.measure_snapshot),
    Group(names=("why",), run=lines_code.measure_why),
    Group(names=("disk-git", "disk-uwf"), run=lines_disk.measure_disk),
    Group(names=("starts",), run=lines_commands.measure_starts),
    Group(names=("memory",), run=lines_commands.measure_memory),
    Group(
        names=("web-first", "web-search", "web-thread", "web-memory"),
        run=lines_web.measure_web,
    ),
    Group(names=("pull", "push"), run=lines_sharing.measure_sharing),
    Group(names=("poll",), run=lines_fleet.measure_fleet),
)


def main(words: Sequence[str] | None = None) -> int:
    """Run the chosen lines; 1 when a budget does not hold or a line failed."""
    options = _read_options(words)
    chosen = _choose(options.only)
    if options.list:
        for budget in BUDGETS:
            print(f"{budget.name:<16}{budget.what} {budget.text}")
        return 0
    with tempfile.TemporaryDirectory(prefix="uwf-bench-", dir=options.dir) as name:
        world = World(folder=Path(name), quick=options.quick)
        before = machine.probe(world.folder)
        rows = _run(world, chosen)
        after = machine.probe(world.folder)
    noise = machine.compare(before, after)
    if options.json:
        print(json.dumps(_payload(rows, noise, quick=options.quick), indent=2))
    else:
        print(_format(rows, noise, quick=options.quick))
    return int(any(row.verdict in {"over", "failed"} for row in rows))


def _read_options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller and fewer")
    parser.add_argument("--only", metavar="PATTERN", help="a name, or read*,step*")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--list", action="store_true", help="name the budgets")
    parser.add_argument("--dir", metavar="DIR", help="where the stores are made")
    return parser.parse_args(words)


def _choose(patterns: str | None) -> frozenset[str]:
    names = [budget.name for budget in BUDGETS]
    if patterns is None:
        return frozenset(names)
    chosen = {
        name
        for pattern in patterns.split(",")
        for name in fnmatch.filter(names, pattern.strip())
    }
    if not chosen:
        raise SystemExit(f"no budget is named '{patterns}'; --list names them")
    return frozenset(chosen)


def _run(world: World, chosen: frozenset[str]) -> list[Row]:
    found: dict[str, Row] = {}
    for group in GROUPS:
        if chosen.isdisjoint(group.names):
            continue
        print(f"measuring {', '.join(group.names)} …", file=sys.stderr, flush=True)
        found |= _run_group(world, group)
    return [found[each.name] for each in BUDGETS if each.name in chosen & found.keys()]


def _run_group(world: World, group: Group) -> dict[str, Row]:
    budgets = [budget for budget in BUDGETS if budget.name in group.names]
    try:
        measures = group.run(world)
    except Exception as exc:  # noqa: BLE001 - the other lines are still worth measuring
        traceback.print_exc()
        note = f"{type(exc).__name__}: {exc}"[:_FAILURE_CHARS]
        return {b.name: Row(budget=b, verdict="failed", note=note) for b in budgets}
    return {
        budget.name: judge(budget, measures[budget.name])
        if budget.name in measures
        else Row(budget=budget, verdict="not built")
        for budget in budgets
    }


def _payload(rows: list[Row], noise: Mapping[str, Any], *, quick: bool) -> Any:  # noqa: ANN401 - JSON
    return {
        "quick": quick,
        "machine": machine.describe(),
        "noise": noise,
        "budgets": [row.payload() for row in rows],
    }


def _format(rows: list[Row], noise: Mapping[str, Any], *, quick: bool) -> str:
    lines = [["what", "measured", "reference", "ratio", "budget", ""]]
    for row in rows:
        measure = row.measure
        reference = measure.reference if measure else None
        beside = row.budget.reference if reference or not measure else ""
        lines.append(
            [
                f"{row.budget.name}: {row.budget.what}",
                _told(measure.measured, row) if measure else "-",
                f"{_told(reference, row)} {beside}" if reference else beside or "-",
                "-" if row.ratio is None else f"{row.ratio:.2f} x",
                row.budget.text,
                f"{row.verdict}{f' ({row.note})' if row.note else ''}",
            ]
        )
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    table = [
        "  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[5]])
        for line in lines
    ]
    tail = ["", *machine.tell(noise)]
    if quick:
        tail.append("quick: small stores, few runs; no proof that a budget holds")
    return "\n".join(line.rstrip() for line in [*table, *tail])


def _told(sample: Sample, row: Row) -> str:
    """Write best, median and worst; one number for what does not vary."""
    digits = 0 if row.budget.unit in {"nodes/s", "threads", "modules"} else 1
    values = [sample.best, sample.median, sample.worst]
    if len(sample.values) == 1:
        values = [sample.best]
    return f"{'/'.join(f'{v:.{digits}f}' for v in values)} {row.budget.unit}"


if __name__ == "__main__":
    sys.exit(main())
