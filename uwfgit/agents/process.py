"""Child processes of agents; the only place that starts and stops them.

A child has its own session, gets its prompt on stdin, is read as it speaks, and is
stopped with everything it started when it is silent, slow, too loud or interrupted.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from uwfgit.agents import tree
from uwfgit.agents.base import Failure
from uwfgit.agents.complaints import (
    check_command,
    explain_end,
    explain_start,
    one_line,
)
from uwfgit.agents.lines import Lines

MAX_STDOUT_BYTES: Final = 64 * 1024 * 1024
STDERR_TAIL_BYTES: Final = 1024 * 1024
STDERR_SHOWN_CHARS: Final = 500
STOP_SECONDS: Final = 5.0
"""Between the request to end and the kill."""
PIPE_SECONDS: Final = 2.0
"""How long a dead child's pipes may be held open by what it started."""
MARK: Final = "UWF_STEP"
"""The variable whose value tells one run's processes from all others."""

_KILL_SECONDS: Final = 2.0
_TICK: Final = 0.05
_CHUNK: Final = 65_536
_PS = ("ps", "-A", "-o", tree.PS_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    """What a child said and how it ended.

    ``exit_code`` is negative for a signal and ``None`` when it never started. With
    a ``failure`` the text is all that was said until then.
    """

    exit_code: int | None
    stdout: str
    stderr_tail: str
    failure: Failure | None
    warnings: tuple[str, ...]


def run_process(
    argv: Sequence[str],
    *,
    prompt: str,
    cwd: Path,
    environment: Mapping[str, str],
    idle_seconds: float,
    wall_seconds: float | None = None,
    on_line: Callable[[str], None] | None = None,
) -> ProcessResult:
    """Run a command to its end and give what came of it; a failure is a value.

    Ctrl-C, or ``SystemExit`` from a signal handler, stops the child's whole tree
    and becomes an ``interrupted`` failure: the caller keeps what was said, then
    ends the program. A second one skips the time to end in peace. No process of the
    run outlives a stop; after an end of its own, what left the session may live on.

    Args:
        argv: The command and its arguments; ``PATH`` of the environment counts.
        prompt: What the child reads on stdin before its end.
        cwd: Where it runs.
        environment: The child's whole environment.
        idle_seconds: Longest silence on both outputs.
        wall_seconds: Longest run; ``None`` for no such limit.
        on_line: Told each line of stdout as it comes, without its end.
    """
    process = _spawn(argv, cwd=cwd, environment=environment)
    if isinstance(process, Failure):
        return ProcessResult(
            exit_code=None, stdout="", stderr_tail="", failure=process, warnings=()
        )
    child = _Child(
        name=Path(argv[0]).name, process=process, lines=Lines(on_line=on_line)
    )
    mark = f"{MARK}={environment[MARK]}" if environment.get(MARK) else None
    try:
        child.listen(prompt.encode(errors="replace"))
        failure = _watch(child, idle=idle_seconds, wall=wall_seconds) or _settle(child)
    except (KeyboardInterrupt, SystemExit):
        failure = Failure(
            phase="interrupted", message=f"'{child.name}' was interrupted"
        )
    except BaseException:
        child.lines = Lines(on_line=None)
        _stop(child, mark)
        child.close()
        raise
    if failure is not None:
        _stop(child, mark)
    child.close()
    return _result(child, failure)


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


@dataclass(slots=True, kw_only=True)
class _Child:
    """A running child and what it has said; ``pump`` is its only reader and writer."""

    name: str
    process: subprocess.Popen[bytes]
    lines: Lines
    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    heard_at: float = field(default_factory=time.monotonic)
    is_too_loud: bool = False
    warnings: list[str] = field(default_factory=list)
    members: set[tree.Process] = field(default_factory=set)
    _pipes: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _unsent: memoryview = field(default_factory=lambda: memoryview(b""))

    def listen(self, prompt: bytes) -> None:
        """Take over the pipes; the prompt goes as fast as the child reads it."""
        self._unsent = memoryview(prompt)
        self._register(self.process.stdout, selectors.EVENT_READ, self._hear)
        self._register(self.process.stderr, selectors.EVENT_READ, self._note)
        self._register(self.process.stdin, selectors.EVENT_WRITE, self._send)

    def _register(
        self, pipe: IO[bytes] | None, event: int, move: Callable[[int], bool]
    ) -> None:
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
            self._pipes.register(pipe, event, move)

    @property
    def is_speaking(self) -> bool:
        """Whether somebody still holds one of its outputs open."""
        pipes = (self.process.stdout, self.process.stderr)
        return any(pipe is not None and not pipe.closed for pipe in pipes)

    def pump(self, seconds: float = _TICK) -> None:
        """Move what can be moved; wait at most so long for that, or for the end."""
        if not self._pipes.get_map():
            self._wait(seconds)
            return
        for key, _ in self._pipes.select(seconds):
            self.heard_at = time.monotonic()
            if not key.data(key.fd):
                self._pipes.unregister(key.fileobj)
                self._close_pipe(key.fd)

    def _wait(self, seconds: float) -> None:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def _close_pipe(self, descriptor: int | None = None) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is None or pipe.closed:
                continue
            if descriptor in (None, pipe.fileno()):
                pipe.close()

    def _send(self, descriptor: int) -> bool:
        try:
            self._unsent = self._unsent[os.write(descriptor, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except OSError:
            # EPIPE: the child does not read its prompt to the end, its own affair.
            return False
        return bool(self._unsent)

    def _hear(self, descriptor: int) -> bool:
        chunk = os.read(descriptor, _CHUNK)
        room = MAX_STDOUT_BYTES - len(self.stdout)
        self.is_too_loud = self.is_too_loud or len(chunk) > room
        self.stdout += chunk[:room]
        self.lines.feed(chunk[:room])
        return bool(chunk)

    def _note(self, descriptor: int) -> bool:
        chunk = os.read(descriptor, _CHUNK)
        self.stderr += chunk
        del self.stderr[:-STDERR_TAIL_BYTES]
        return bool(chunk)

    def close(self) -> None:
        """Let go of the pipes; the child must have ended or been stopped."""
        self._pipes.close()
        self._close_pipe()
        self.process.poll()
        self.lines.finish()


def _watch(child: _Child, *, idle: float, wall: float | None) -> Failure | None:
    """Read until the child ends; give the reason to stop it, if there is one."""
    started = time.monotonic()
    while child.process.poll() is None:
        child.pump()
        if child.is_too_loud:
            return _too_loud(child)
        if wall is not None and time.monotonic() - started >= wall:
            return _timeout(f"'{child.name}' ran longer than {wall:g} s")
        if time.monotonic() - child.heard_at >= idle:
            return _timeout(f"'{child.name}' said nothing for {idle:g} s")
    return None


def _timeout(message: str) -> Failure:
    return Failure(phase="timeout", message=f"{message} and was stopped")


def _too_loud(child: _Child) -> Failure:
    size = f"{MAX_STDOUT_BYTES // 1024 // 1024} MiB"
    message = f"'{child.name}' said more than {size} and was stopped"
    return Failure(phase="agent", message=message)


def _settle(child: _Child) -> Failure | None:
    """Read what an ended child has left in its pipes, not waiting for its heirs."""
    _drain(child, PIPE_SECONDS)
    if child.is_too_loud:
        return _too_loud(child)
    if child.is_speaking:
        child.warnings.append("a process the agent left behind held its output open")
        child.members = _find_members(child, None)
        _kill(child, None)
    return None


def _drain(child: _Child, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while child.is_speaking and time.monotonic() < deadline:
        child.pump()


def _stop(child: _Child, mark: str | None) -> None:
    """End the child and all it started: ask, wait, kill; keep reading meanwhile."""
    try:
        child.members = _find_members(child, mark)
        _signal(child, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while _is_alive(child) and time.monotonic() < deadline:
            child.pump()
            child.members = _find_members(child, None)
    except (KeyboardInterrupt, SystemExit):
        # Asked a second time: no more waiting.
        pass
    finally:
        child.members = _find_members(child, mark)
        _kill(child, mark)


def _kill(child: _Child, mark: str | None) -> None:
    deadline = time.monotonic() + _KILL_SECONDS
    while _is_alive(child) and time.monotonic() < deadline:
        _signal(child, signal.SIGKILL)
        child.pump()
        # One that was just being forked is found in the next round.
        child.members = _find_members(child, mark)
    _drain(child, _TICK)


def _is_alive(child: _Child) -> bool:
    return bool(child.members) or child.process.poll() is None


def _find_members(child: _Child, mark: str | None) -> set[tree.Process]:
    table = tree.read_table() if tree.has_proc() else tree.parse_ps(_run_ps())
    return tree.find_members(
        table,
        root=child.process.pid,
        is_root_ours=child.process.poll() is None,
        also=child.members | tree.find_marked(table, mark),
    )


def _run_ps() -> str:
    try:
        done = subprocess.run(_PS, capture_output=True, text=True, check=False)  # noqa: S603 - constant words
    except OSError:
        # Without it the child's own group is still reached.
        return ""
    return done.stdout


def _signal(child: _Child, number: signal.Signals) -> None:
    """Signal each member once: a second request would mean another thing to it."""
    root = child.process.pid
    # Not reaped, so the group is surely its own; reaches what is just being forked.
    has_group = child.process.poll() is None
    if has_group:
        _try_kill(os.killpg, root, number)
    for member in child.members:
        if not (has_group and member.group == root):
            _try_kill(os.kill, member.pid, number)


def _try_kill(
    kill: Callable[[int, int], None], target: int, number: signal.Signals
) -> None:
    try:
        kill(target, number)
    except OSError:
        # Gone already, or another user's.
        return


def _result(child: _Child, failure: Failure | None) -> ProcessResult:
    stderr = child.stderr.decode(errors="replace")
    stdout, is_broken = _decode(child.stdout)
    warnings = list(child.warnings)
    if is_broken:
        warnings.append("reply was not valid UTF-8")
    if child.lines.is_cut:
        warnings.append("a very long line of the reply was not followed to its end")
    ending = None if failure else explain_end(child.name, child.process.returncode)
    if ending is not None:
        failure = Failure(phase="agent", message=ending)
    return ProcessResult(
        exit_code=child.process.returncode,
        stdout=stdout,
        stderr_tail=stderr,
        failure=failure and _with_stderr(failure, stderr),
        warnings=tuple(warnings),
    )


def _decode(data: bytearray) -> tuple[str, bool]:
    try:
        return data.decode(), False
    except UnicodeDecodeError:
        return data.decode(errors="replace"), True


def _with_stderr(failure: Failure, stderr: str) -> Failure:
    tail = one_line(stderr, STDERR_SHOWN_CHARS)
    if not tail or failure.phase == "interrupted":
        return failure
    return Failure(phase=failure.phase, message=f"{failure.message}: {tail}")
