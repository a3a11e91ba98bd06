"""Child processes of agents; the only place that starts them.

A child has its own session, gets its prompt on stdin, is read as it speaks, and is
stopped with everything it started when it is silent, slow, too loud or interrupted.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.agents.base import Failure
from uwfgit.agents.children.child import Child
from uwfgit.agents.children.complaints import (
    check_command,
    explain_end,
    explain_start,
    one_line,
)
from uwfgit.agents.children.lines import MAX_LINES, Lines
from uwfgit.agents.children.stopping import (
    drain,
    find_members,
    kill_members,
    stop_child,
)
from uwfgit.agents.children.vitals import Vitals

MAX_STDOUT_BYTES: Final = 64 * 1024 * 1024
MAX_EVENT_BYTES: Final = 512 * 1024 * 1024
"""What a child may say whose lines are looked at and not kept."""
STDERR_SHOWN_CHARS: Final = 500
PIPE_SECONDS: Final = 2.0
"""How long a dead child's pipes may be held open by what it started."""
LEAVE_SECONDS: Final = 2.0
"""How long a child may take to end work that was called off."""
GRACE_SECONDS: Final = 15.0
"""How long a child may live on after it said that it is done."""
MARK: Final = "UWF_STEP"
"""The variable whose value tells one run's processes from all others."""


class Dialogue(Protocol):
    """What is said to a child whose stdin stays open."""

    def begin(self, child: Child) -> None:
        """Take the child to talk to; it has just started."""

    def cancel(self) -> None:
        """Call the work off, before the child is stopped."""

    def has_left(self) -> bool:
        """Whether the child has said its last word on that."""


class TimeLimits(Struct, frozen=True, kw_only=True):
    """How long a child may be silent, and may take; and the settings that say so."""

    idle_seconds: float
    wall_seconds: float | None = None
    idle_setting: str = "limits.idleSeconds"
    wall_setting: str = "limits.wallSeconds"


class ProcessResult(Struct, frozen=True, kw_only=True):
    """What a child said and how it ended.

    ``exit_code`` is negative for a signal and ``None`` when it never started. With
    a ``failure`` the text is all that was said until then; ``was_stopped`` tells that
    the failure is why it was stopped. ``was_over`` says that the child had told its
    end and was stopped because it lived on.
    """

    exit_code: int | None
    stdout: str
    stderr_tail: str
    failure: Failure | None
    warnings: tuple[str, ...]
    was_over: bool = False
    was_stopped: bool = False


def run_process(
    argv: Sequence[str],
    *,
    prompt: str,
    cwd: Path,
    environment: Mapping[str, str],
    limits: TimeLimits,
    on_line: Callable[[str], None] | None = None,
    is_over: Callable[[], bool] | None = None,
    dialogue: Dialogue | None = None,
    joins_lines: bool = False,
) -> ProcessResult:
    """Run a command to its end and return what came of it; a failure is a value.

    Ctrl-C, or ``SystemExit`` from a signal handler, stops the child's whole tree
    and becomes an ``interrupted`` failure: the caller keeps what was said, then
    ends the program. A second one skips the time to end in peace. No process of the
    run outlives a stop; after an end of its own, what left the session may live on.

    A child is silent only while it and all it started neither print, nor compute,
    nor start and end processes: one that prints at its end only is not hung.

    Args:
        argv: The command and its arguments; ``PATH`` of the environment counts.
        prompt: What the child reads on stdin before its end.
        cwd: Where it runs.
        environment: The child's whole environment.
        limits: Longest silence, longest run.
        on_line: Told each line of stdout as it comes, without its end.
        is_over: Whether the lines so far say that the child is done: it then has
            a few seconds to end. With it, what is said is told but not kept.
        dialogue: What is said to the child beside the prompt, as its lines come.
        joins_lines: Lines that come together are told together.
    """
    process = _spawn(argv, cwd=cwd, environment=environment)
    if isinstance(process, Failure):
        return ProcessResult(
            exit_code=None, stdout="", stderr_tail="", failure=process, warnings=()
        )
    child = Child(
        name=Path(argv[0]).name,
        process=process,
        lines=Lines(on_line=on_line, joined=joins_lines),
        room=MAX_STDOUT_BYTES if is_over is None else MAX_EVENT_BYTES,
        keeps_stdout=is_over is None,
        stays_open=dialogue is not None,
    )
    mark = f"{MARK}={environment[MARK]}" if environment.get(MARK) else None
    watch = _Watch(child=child, limits=limits, is_over=is_over or (lambda: False))
    try:
        child.listen(prompt.encode(errors="replace"))
        if dialogue is not None:
            dialogue.begin(child)
        failure = watch.run()
        if failure is None and not watch.was_over:
            failure = _settle(child)
    except (KeyboardInterrupt, SystemExit):
        failure = Failure(
            phase="interrupted", message=f"'{child.name}' was interrupted"
        )
    except BaseException:
        child.lines = Lines(on_line=None)
        stop_child(child, mark)
        child.close()
        raise
    if failure is not None or watch.was_over:
        if dialogue is not None and failure is not None:
            _take_leave(child, dialogue)
        stop_child(child, mark)
    child.close()
    return _result(child, failure, was_over=watch.was_over)


def _take_leave(child: Child, dialogue: Dialogue) -> None:
    """Say that the work is called off, and give a moment to end it in peace."""
    try:
        dialogue.cancel()
        deadline = time.monotonic() + LEAVE_SECONDS
        while not dialogue.has_left() and time.monotonic() < deadline:
            if child.process.poll() is not None:
                return
            child.pump()
    except (KeyboardInterrupt, SystemExit):
        return


def _spawn(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes] | Failure:
    try:
        complaint = check_command(argv[0], cwd=cwd, environment=environment)
        if complaint is not None:
            return Failure(phase="agent", message=complaint)
        return subprocess.Popen(  # noqa: S603 - running the user's command is the job
            argv,
            cwd=cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as exc:
        return Failure(phase="agent", message=explain_start(argv[0], exc))


class _Watch(Struct, kw_only=True):
    """Reads until the child ends or has to be stopped."""

    child: Child
    limits: TimeLimits
    is_over: Callable[[], bool]
    was_over: bool = False

    def run(self) -> Failure | None:
        """Return the reason to stop the child, if there is one."""
        started, over_at = time.monotonic(), None
        vitals = Vitals(pid=self.child.process.pid, idle=self.limits.idle_seconds)
        while self.child.process.poll() is None:
            self.child.pump()
            now = time.monotonic()
            if self.child.is_too_loud:
                return _too_loud(self.child)
            if not self.is_over():
                over_at = None
            elif over_at is None:
                over_at = now
            elif now - over_at >= GRACE_SECONDS:
                self.was_over = True
                self.child.warnings.append(
                    f"'{self.child.name}' still ran {GRACE_SECONDS:g} s after its "
                    "answer and was stopped"
                )
                return None
            complaint = self._find_overrun(now - started, vitals, now)
            if complaint is not None:
                message = f"'{self.child.name}' {complaint}"
                return Failure(phase="agent", message=message)
        return None

    def _find_overrun(self, taken: float, vitals: Vitals, now: float) -> str | None:
        """Say which of the limits is reached."""
        wall = self.limits.wall_seconds
        if wall is not None and taken >= wall:
            setting = self.limits.wall_setting
            return f"ran longer than {wall:g} s and was stopped (see {setting})"
        silent = vitals.find_silence(now, heard_at=self.child.heard_at)
        if silent is not None:
            setting = self.limits.idle_setting
            return f"said nothing for {silent:g} s and was stopped (see {setting})"
        return None


def _too_loud(child: Child) -> Failure:
    limit = MAX_STDOUT_BYTES if child.keeps_stdout else MAX_EVENT_BYTES
    size = f"{limit // 1024 // 1024} MiB"
    if child.lines.is_endless:
        size = f"{MAX_LINES:,} lines"
    message = f"'{child.name}' said more than {size} and was stopped"
    return Failure(phase="agent", message=message)


def _settle(child: Child) -> Failure | None:
    """Read what an ended child has left in its pipes, not waiting for its heirs."""
    drain(child, PIPE_SECONDS)
    if child.is_too_loud:
        return _too_loud(child)
    if child.is_speaking:
        child.warnings.append("a process the agent left behind held its output open")
        child.members = find_members(child, None)
        kill_members(child, None)
    return None


def _result(child: Child, failure: Failure | None, *, was_over: bool) -> ProcessResult:
    stderr = child.stderr.decode(errors="replace")
    warnings = list(child.warnings)
    try:
        stdout = child.stdout.decode()
    except UnicodeDecodeError:
        stdout = child.stdout.decode(errors="replace")
        warnings.append("reply was not valid UTF-8")
    if child.lines.is_cut:
        warnings.append("a very long line of the reply was not followed to its end")
    was_stopped = failure is not None
    is_ended = not was_stopped and not was_over
    ending = explain_end(child.name, child.process.returncode) if is_ended else None
    if ending is not None:
        failure = Failure(phase="agent", message=ending)
    tail = one_line(stderr, STDERR_SHOWN_CHARS)
    if failure is not None and tail and failure.phase != "interrupted":
        failure = replace(failure, message=f"{failure.message}: {tail}")
    return ProcessResult(
        exit_code=child.process.returncode,
        stdout=stdout,
        stderr_tail=stderr,
        failure=failure,
        warnings=tuple(warnings),
        was_over=was_over,
        was_stopped=was_stopped,
    )
