"""Where the program begins: completion without the rest of it, or all of it."""

from __future__ import annotations

import gc
import os
import sys

COMPLETE = "__complete"
_OFTEN = 100_000
"""Objects made between two looks for garbage: most commands end before the first."""
_INTERRUPTED = 130


def run() -> None:
    """Run the program and leave the process with its exit code."""
    _fill_closed()
    gc.set_threshold(_OFTEN)
    try:
        _run()
    except KeyboardInterrupt:
        # Before there was anything to stop or to tell.
        sys.exit(_INTERRUPTED)


def _fill_closed() -> None:
    """Give closed standard streams a place, so that no file takes their number.

    Python prints to stdout what goes to a stderr that is closed.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            # The least number that is free, so the one that is missing.
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            if number == 2:  # noqa: PLR2004 - stderr
                sys.stderr = os.fdopen(descriptor, "w", closefd=False)


def _run() -> None:
    if sys.argv[1:2] == [COMPLETE]:
        from uwfgit.cli.words.complete import complete

        complete(sys.argv[2:])
        return
    from uwfgit.cli.frame.app import run as run_program

    run_program()
