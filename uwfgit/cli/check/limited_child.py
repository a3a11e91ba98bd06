"""The process that checks what others made, within limits it cannot lift.

It reads one request from standard input, writes one line of JSON an item, and
nothing else anywhere.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from uwfgit.cli.check.limited import EXIT_MEMORY, encode_report
from uwfgit.store.git.reading import limit_mapping, open_reading
from uwfgit.store.handle import Store
from uwfgit.sync.verify.verify import verify_refs

_MAPPED: int = 256 * 1024 * 1024
_GARBAGE: int = 50_000
"""Objects between looks for cycles: 700, as set by Python, cost a tenth of it all."""


def run() -> None:
    """Answer one request; leave with 0, with 71 for too much memory, or die."""
    request = json.load(sys.stdin)
    # Not the address space: packs are mapped, and cost no memory of ours.
    resource.setrlimit(resource.RLIMIT_DATA, (request["memory"],) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # No file is written, whatever goes wrong.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    limit_mapping(_MAPPED)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    # What was imported stays, and payloads have no cycles.
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    try:
        _answer(request)
    except MemoryError:
        os._exit(EXIT_MEMORY)


def _answer(request: Mapping[str, Any]) -> None:
    quarantine = request["quarantine"]
    store = open_reading(
        Path(request["repository"]),
        quarantine=Path(quarantine) if quarantine else None,
    )
    _say({"ready": True})
    # Without an answer in time, the system ends this process.
    signal.setitimer(signal.ITIMER_PROF, request["seconds"])
    for answer in _answers(store, request):
        _say(answer)
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])


def _answers(store: Store, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    items, skip = request["items"], request["skip"]
    if request["job"] == "verify":
        refs = ((ref, target) for ref, target in items[skip:])
        yield from map(encode_report, verify_refs(store, refs))
        return
    from uwfgit.sync.receive import Push, check_pushes

    pushes = [Push(old=old, new=new, ref=ref) for old, new, ref in items]
    problems = check_pushes(
        store, pushes, shared=request["shared"], now=int(time.time()), skip=skip
    )
    for problem in problems:
        yield {"problem": problem}


def _say(answer: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run()
