"""Other commands do not pay for the pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.calls import Uwf

LOOK = """
import sys
from uwfgit.cli.frame.app import main
main(sys.argv[1:])
rooms = ("uwfgit.web", "starlette", "uvicorn", "markdown_it", "pygments", "websockets")
print("LOADED", sorted(name for name in sys.modules if name.startswith(rooms)))
"""


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--help"], id="help"),
        pytest.param(["thread", "list", "--all"], id="list"),
        pytest.param(["thread", "show", "@last"], id="show"),
        pytest.param(["workflow", "validate", "ping.yaml"], id="validate"),
        pytest.param(["web", "--help"], id="the help of web"),
        pytest.param(["export", "--help"], id="the help of export"),
    ],
)
def test_no_other_command_imports_the_web_room(
    uwf: Uwf, thread: str, words: list[str]
) -> None:
    assert uwf("thread", "show", thread).code == 0

    done = subprocess.run(
        [sys.executable, "-c", LOOK, *words], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "LOADED []"
