"""The recipes of docs/fleet.md, held to by the linters of what they are for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from shutil import which

import pytest

_GUIDE = Path(__file__).parent.parent / "docs" / "fleet.md"


def recipe(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", _GUIDE.read_text(), re.DOTALL)
    return str(found)


@pytest.mark.skipif(which("systemd-analyze") is None, reason="no systemd-analyze")
def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    program = tmp_path / ".local" / "bin" / "uwf"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "uwf-worker.service"
    unit.write_text(recipe("ini"))

    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )

    # It speaks of units of the machine too, as far as it finds faults there.
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(which("actionlint") is None, reason="no actionlint")
def test_the_ci_file_is_one_that_its_linter_takes(tmp_path: Path) -> None:
    file = tmp_path / "uwf-worker.yml"
    file.write_text(recipe("yaml"))

    done = subprocess.run(
        ["actionlint", "-no-color", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout
