"""A command killed at one system call after the other, as strace can do it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CALLS: Final = "/^(rename|link|unlink|fsync|fdatasync|ftruncate)"
"""What makes something appear, go, or be on disk."""
_CALL: Final = re.compile(r"^\w+\(.*", re.MULTILINE)
_REF: Final = re.compile(
    r'(?:rename|link)\w*\(.*/refs/[^"]*"\)|unlink\w*\(.*/refs/\S*"\)'
)
_LOCK: Final = '.lock")'


@dataclass(frozen=True, slots=True, kw_only=True)
class Killing:
    """A command, whose world stands anew before each time it is killed.

    ``folder`` is that world: what the command may change. ``words`` are the
    command's, behind ``python``.
    """

    folder: Path
    store: Path
    home: Path
    words: tuple[str, ...]

    def kill_everywhere(self, *, is_sample: bool = False) -> Iterator[int]:
        """Kill it at its first call, at its second, …, until it comes to its end.

        Args:
            is_sample: Only between the first two refs that it moves.

        Yields:
            How many calls of these it had made, each time that it was killed;
            last of all how many it makes when it is let be.
        """
        aside = self.folder.with_name(f"{self.folder.name}.aside")
        shutil.copytree(self.folder, aside, symlinks=True)
        calls = self._list_calls()
        numbers: Iterable[int] = range(1, len(calls) + 1)
        if is_sample:
            moves = [number for number in numbers if _is_move(calls[number - 1])]
            numbers = moves[1:2]
            assert numbers, calls
        for number in numbers:
            self._restore(aside)
            if self._run(f"inject={CALLS}:signal=KILL:when={number}") == 0:
                # Fewer than the first time: it chose other names.
                break
            yield number
        self._restore(aside)
        self.finish()
        yield len(calls)

    def finish(self) -> None:
        """Run the command again, and let it come to its end."""
        assert self._run(f"trace={CALLS}") == 0

    def _restore(self, aside: Path) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(aside, self.folder, symlinks=True)

    def _list_calls(self) -> list[str]:
        log = self.folder.with_name("strace.log")
        assert self._run(f"trace={CALLS}", log=log) == 0
        return _CALL.findall(log.read_text())

    def _run(self, expression: str, *, log: Path | None = None) -> int:
        """Run it; give its exit code, 0 or that of its being killed."""
        done = subprocess.run(
            [
                *("strace", "-s", "1000", "-o", str(log or os.devnull)),
                *("-e", expression, sys.executable, "-B", *self.words),
            ],
            env={
                **os.environ,
                "UWF_STORE": str(self.store),
                "UWF_HOME": str(self.home),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {0, -signal.SIGKILL}, done.stdout + done.stderr
        return done.returncode


def _is_move(call: str) -> bool:
    """Whether a call of strace's log makes a ref appear or go."""
    return bool(_REF.match(call)) and (_LOCK not in call or not call.startswith("un"))
