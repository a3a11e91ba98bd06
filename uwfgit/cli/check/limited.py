"""Checks of what others made, in a child process that cannot take too much.

The only place that starts it and knows its limits. A thread whose check takes
too long, needs too much memory or kills the process is one that does not
verify, and the next one is checked by a new process.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from msgspec import Struct, convert, to_builtins

from uwfgit.errors import StoreError
from uwfgit.ids import ThreadId
from uwfgit.store.handle import Store
from uwfgit.sync.verify.branches import list_thread_refs
from uwfgit.sync.verify.report import ThreadReport, refused_report

if TYPE_CHECKING:
    # What checks is the child's to import.
    from uwfgit.sync.receive import Push

CheckJob: TypeAlias = Literal["verify", "receive"]

EXIT_MEMORY: Final = 71
_MODULE: Final = "uwfgit.cli.check.limited_child"
_PATIENCE: Final = 5
"""Seconds by the clock for each second of work: other processes want some too."""
_KEYS: Final = frozenset({"ready", "problem", "problems"})
_TICK: Final = 0.2
_MIB: Final = 1024 * 1024


class CheckLimits(Struct, frozen=True, kw_only=True):
    """What checking may cost.

    ``seconds`` is CPU time and ``memory`` is bytes, for each thread. Seconds by
    the clock are ``start_seconds``, for a child to begin, and ``all_seconds``,
    for the whole, as a server's hook needs it.
    """

    seconds: float = 120
    memory: int = 1024 * _MIB
    all_seconds: float | None = None
    start_seconds: float = 60


DEFAULT_LIMITS: Final = CheckLimits()


class CheckPlace(Struct, frozen=True, kw_only=True):
    """Where to look: a repository, and a receiving git's quarantine."""

    repository: Path
    quarantine: Path | None = None


def verify_limited(
    store: Store,
    threads: Sequence[ThreadId] | None = None,
    *,
    environment: Mapping[str, str],
    limits: CheckLimits = DEFAULT_LIMITS,
) -> tuple[ThreadReport, ...]:
    """Check threads of a store, by default all, in a limited child.

    Raises:
        NotFoundError: A thread that was named has no branch.
        StoreError: The child cannot be started.
    """
    refs = list_thread_refs(store, threads)
    place = CheckPlace(repository=store.path)
    return verify_refs_limited(place, refs, environment=environment, limits=limits)


def verify_refs_limited(
    place: CheckPlace,
    refs: Sequence[tuple[str, str]],
    *,
    environment: Mapping[str, str],
    limits: CheckLimits = DEFAULT_LIMITS,
) -> tuple[ThreadReport, ...]:
    """Check the threads that refs name, as ``verify_refs`` does, in a limited child.

    Raises:
        StoreError: The child cannot be started.
    """
    answers = _run(place, "verify", refs, environment=environment, limits=limits)
    return tuple(
        refused_report(ref.rpartition("/")[2], answer, code="limits")
        if isinstance(answer, str)
        else decode_report(answer)
        for (ref, _), answer in zip(refs, answers, strict=True)
    )


def check_pushes_limited(
    place: CheckPlace,
    pushes: Sequence[Push],
    *,
    shared: bool,
    environment: Mapping[str, str],
    limits: CheckLimits,
) -> tuple[str | None, ...]:
    """Say of each ref why it may not move, as ``check_pushes`` does.

    Raises:
        StoreError: The child cannot be started.
    """
    items = [(push.old, push.new, push.ref) for push in pushes]
    answers = _run(
        place,
        "receive",
        items,
        environment=environment,
        limits=limits,
        extra={"shared": shared},
    )
    return tuple(
        answer if isinstance(answer, str) else answer["problem"] for answer in answers
    )


def encode_report(report: ThreadReport) -> dict[str, Any]:
    """Return a report as JSON."""
    return cast("dict[str, Any]", to_builtins(report))


def decode_report(data: Mapping[str, Any]) -> ThreadReport:
    """Read a report that ``encode_report`` gave."""
    return convert(data, ThreadReport)


def _run(
    place: CheckPlace,
    job: CheckJob,
    items: Sequence[Sequence[str]],
    *,
    environment: Mapping[str, str],
    limits: CheckLimits,
    extra: Mapping[str, Any] | None = None,
) -> list[dict[str, Any] | str]:
    """Return an answer for each item: the child's, or why it gave none."""
    deadline = None
    if limits.all_seconds is not None:
        deadline = _Deadline.after(limits.all_seconds, "checking all")
    answers: list[dict[str, Any] | str] = []
    while len(answers) < len(items):
        if deadline is not None and deadline.is_over:
            answers.append(deadline.reason)
            continue
        request = {
            "repository": str(place.repository),
            "quarantine": str(place.quarantine) if place.quarantine else None,
            "job": job,
            # With all of them, refs that one push moves are seen together.
            "items": list(map(list, items)),
            "skip": len(answers),
            "seconds": limits.seconds,
            "memory": limits.memory,
            **(extra or {}),
        }
        answers += _run_child(request, environment, limits, deadline)
    return answers


def _run_child(
    request: Mapping[str, Any],
    environment: Mapping[str, str],
    limits: CheckLimits,
    deadline: _Deadline | None,
) -> Iterator[dict[str, Any] | str]:
    """Yield what a child says until it ends; of the last it did not, why."""
    wanted = len(request["items"]) - request["skip"]
    given = 0
    with _spawn(environment) as child:
        watch = _Watch(child, deadline)
        watch.begin(_Deadline.after(limits.start_seconds, "beginning to check it"))
        try:
            _send(child, request)
            for line in child.stdout or ():
                answer = _parse(line)
                if answer is None or given == wanted:
                    break
                patience = limits.seconds * _PATIENCE
                watch.begin(_Deadline.after(patience, "checking it"))
                if "ready" not in answer:
                    given += 1
                    yield answer
        finally:
            child.kill()
            code = child.wait()
            watch.end()
    if given < wanted:
        yield _reason(code, limits, watch)


def _spawn(environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # Without the variables that a git which runs us as its hook has set.
    cleaned = {
        name: value
        for name, value in environment.items()
        if not name.startswith("GIT_")
    }
    try:
        return subprocess.Popen(  # noqa: S603 - this very program
            # -P: no module is ever taken from the working directory.
            [sys.executable, "-P", "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=cleaned,
            cwd="/",
        )
    except OSError as exc:
        raise StoreError(f"cannot start a check: {exc.strerror}") from exc


def _send(child: subprocess.Popen[bytes], request: Mapping[str, Any]) -> None:
    if child.stdin is None:
        return
    try:
        with child.stdin as stream:
            stream.write(json.dumps(request).encode())
    except BrokenPipeError:
        # It has ended already; its exit code says how.
        return


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    is_known = isinstance(answer, dict) and not _KEYS.isdisjoint(answer)
    return answer if is_known else None


class _Deadline(Struct, frozen=True, kw_only=True):
    """A time by Python's own clock, and what to say when it is over."""

    until: float
    reason: str

    @classmethod
    def after(cls, seconds: float, what: str) -> _Deadline:
        return cls(
            until=time.monotonic() + seconds,
            reason=f"{what} takes longer than {seconds:g} s by the clock",
        )

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until


class _Watch:
    """Kills a child that takes too long by the clock; ``reason`` is why it did."""

    def __init__(
        self, child: subprocess.Popen[bytes], deadline: _Deadline | None
    ) -> None:
        self._child = child
        self._whole = deadline
        self._next: _Deadline | None = None
        self._over = threading.Event()
        self.reason: str | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def begin(self, deadline: _Deadline) -> None:
        """Let the next answer take so long."""
        self._next = deadline

    def end(self) -> None:
        """Watch no more."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_TICK):
            for deadline in (self._whole, self._next):
                if deadline is not None and deadline.is_over:
                    self.reason = deadline.reason
                    self._child.kill()
                    return


def _reason(code: int, limits: CheckLimits, watch: _Watch) -> str:
    if code == -signal.SIGPROF:
        return f"checking it takes longer than {limits.seconds:g} s of CPU time"
    if watch.reason is not None:
        return watch.reason
    if code == EXIT_MEMORY:
        return f"checking it needs more than {limits.memory // _MIB} MiB of memory"
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"the check did not come to its end ({how})"
