"""A command killed at one system call after the other, as strace can do it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CALLS: Final = "/^(rename|link|unlink|fsync|fdatasync|ftruncate)"
"""What makes something appear, go, or be on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Killing:
    """A command on a store, which stands anew before each time it is killed."""

    store: Path
    home: Path
    words: tuple[str, ...]

    def kill_everywhere(self) -> Iterator[int]:
        """Kill it at its first call, at its second, …, until it comes to its end.

        Yields:
            How many calls of these it had made, each time that it was killed;
            last of all how many it makes when it is let be.
        """
        aside = self.store.with_name(f"{self.store.name}.aside")
        shutil.copytree(self.store, aside, symlinks=True)
        count = self._count()
        for number in range(1, count + 1):
            self._restore(aside)
            if self._run(f"inject={CALLS}:signal=KILL:when={number}") == 0:
                # Fewer than the first time: it chose other names.
                break
            yield number
        self._restore(aside)
        self.finish()
        yield count

    def finish(self) -> None:
        """Run the command again, and let it come to its end."""
        assert self._run(f"trace={CALLS}") == 0

    def _restore(self, aside: Path) -> None:
        shutil.rmtree(self.store)
        shutil.copytree(aside, self.store, symlinks=True)

    def _count(self) -> int:
        log = self.store.with_name("strace.log")
        assert self._run(f"trace={CALLS}", log=log) == 0
        return len(re.findall(r"^\w+\(", log.read_text(), re.MULTILINE))

    def _run(self, expression: str, *, log: Path | None = None) -> int:
        """Run it; give its exit code, 0 or that of its being killed."""
        done = subprocess.run(
            [
                *("strace", "-o", str(log or os.devnull), "-e", expression),
                *(sys.executable, "-B", "-m", "uwfgit", *self.words),
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
