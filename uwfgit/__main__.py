"""Run the command line as ``python -m uwfgit``."""

from __future__ import annotations

from uwfgit.cli.start import run

if __name__ == "__main__":
    run()
