"""A command of ours in a process of its own, waited for; the only place for it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from uwfgit.cli.frame.context import CommandContext
from uwfgit.errors import StoreError

_SECONDS: Final = 120


def run_apart(
    context: CommandContext, words: Sequence[str], *, stdin: str | None
) -> tuple[int, str, str]:
    """Run a command of ours in a process of its own; give its exit code and words.

    Raises:
        StoreError: It cannot be started, or takes longer than any that only begins.
    """
    try:
        done = subprocess.run(  # noqa: S603 - this very program
            [sys.executable, "-P", "-m", "uwfgit", *words],
            input=(stdin or "").encode(errors="surrogateescape"),
            capture_output=True,
            env=dict(context.environment),
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise StoreError(f"'uwf {words[0]}' did not run: {exc}") from exc
    out, err = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
    return done.returncode, out, err
