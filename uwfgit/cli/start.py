"""Where the program begins: completion without the rest of it, or all of it."""

from __future__ import annotations

import sys

COMPLETE = "__complete"
_INTERRUPTED = 130


def run() -> None:
    """Run the program and leave the process with its exit code."""
    try:
        _run()
    except KeyboardInterrupt:
        # Before there was anything to stop or to tell.
        sys.exit(_INTERRUPTED)


def _run() -> None:
    if sys.argv[1:2] == [COMPLETE]:
        from uwfgit.cli.words.complete import complete

        complete(sys.argv[2:])
        return
    from uwfgit.cli.frame.app import run as run_program

    run_program()
