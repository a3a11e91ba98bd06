"""Run the fake API by hand: ``python -m tests.agents.fake_api --mode answer``."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading

from tests.agents.fake_api import FakeApi, modes


def main() -> int:
    """Serve until Ctrl-C; the address is the only line on stdout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=sorted(modes.MODES), default="answer")
    parser.add_argument("--text", help="what it says, instead of the mode's own")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    script = modes.MODES[options.mode]()
    if options.text:
        script = modes.answer(options.text)
    with (
        FakeApi(script, port=options.port) as api,
        contextlib.suppress(KeyboardInterrupt),
    ):
        sys.stdout.write(f"{api.url}\n")
        sys.stdout.flush()
        threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
