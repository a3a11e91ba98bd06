"""What a terminal shows of work that takes longer than half a second."""

from __future__ import annotations

import os
import pty
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.program import Program, make_program

pytestmark = pytest.mark.slow

# A git that takes its time; -c and --git-dir stand before its command.
_SLOW = """\
#!/bin/sh
case " $* " in *" {word} "*) sleep 1.9;; esac
exec {git} "$@"
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = make_program(tmp_path / "user")
    made.start()
    return made


def _environment(program: Program, word: str) -> dict[str, str]:
    """Give an environment whose git is slow at one of its commands."""
    folder = program.folder / "bin"
    folder.mkdir()
    slow = folder / "git"
    slow.write_text(_SLOW.format(word=word, git=shutil.which("git")))
    slow.chmod(0o700)
    shell = program.shell
    return {**shell, "PATH": f"{folder}{os.pathsep}{shell['PATH']}", "TERM": "xterm"}


def _on_a_terminal(
    program: Program, environment: dict[str, str], *words: str, typed: str = ""
) -> tuple[int, str]:
    """Run the program on a terminal; give its exit code and all that was shown."""
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(program.folder)
        command = [*program.before, *words]
        os.execve(command[0], command, environment)  # noqa: S606 - this very program
    os.write(terminal, typed.encode())
    shown = b""
    # Linux tells the end of a terminal as an error.
    with suppress(OSError):
        while chunk := os.read(terminal, 65_536):
            shown += chunk
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


@pytest.mark.parametrize(
    ("words", "slow", "phase"),
    [
        pytest.param(["gc"], "pack-refs", "packing refs", id="gc"),
        pytest.param(["doctor"], "fsck", "reading all objects", id="doctor"),
    ],
)
def test_a_terminal_shows_what_takes_so_long_and_keeps_nothing_of_it(
    program: Program, words: list[str], slow: str, phase: str
) -> None:
    environment = _environment(program, slow)

    code, shown = _on_a_terminal(program, environment, *words)
    piped = replace(program, environment=environment).run(*words)
    quiet = _on_a_terminal(program, environment, *words, "-q")[1]

    ticks, _, rest = shown.rpartition("\r\x1b[K")
    assert code == 0
    assert f"{phase} … 1 s" in ticks
    assert phase not in rest
    assert (piped.code, piped.err) == (0, "")
    assert phase not in quiet


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param("y", 0, id="yes"),
        pytest.param("n", 2, id="no"),
        pytest.param("", 2, id="return"),
    ],
)
def test_pruning_at_once_is_asked_for_on_a_terminal(
    program: Program, answer: str, code: int
) -> None:
    environment = {**program.shell, "TERM": "xterm"}
    words = ("gc", "--prune=now")

    ended, shown = _on_a_terminal(program, environment, *words, typed=f"{answer}\n")

    assert (ended, "[y/N]" in shown) == (code, True), shown
