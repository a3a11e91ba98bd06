"""Git that is heard while it runs, on threads of its own, or that nobody waits for.

A thread's pipe is its own to close, so whoever gives one away forgets it. Closed
by another, its number may be that of another file when it is read next; and who
closes a pipe that is being written to waits for the reader.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final, TypeAlias

from uwfgit.errors import StoreError
from uwfgit.store.git.gitcmd import (
    CODE_OPTIONS,
    OPTIONS,
    GitResult,
    exit_code,
    prepare_git,
)
from uwfgit.store.locks.flock import Lock

_CHUNK: Final = 65_536
_KEPT_LINES: Final = 100
_LINE_END: Final = re.compile(rb"(\r?\n|\r)")

Hear: TypeAlias = Callable[[bytes, bytes], None]
"""Told a line and what ended it."""


_LEFT: Final[set[int]] = set()
"""What this process has not waited for."""


def leave_to_git(
    args: Sequence[str],
    *,
    git_dir: Path,
    environment: Mapping[str, str],
    held: Lock,
) -> bool:
    """Start git and do not wait for it; return whether it could be started.

    It outlives this process and its terminal, and says nothing.

    Args:
        args, environment: As in ``run_git``.
        held: A lock that git holds on to until it ends.
    """
    try:
        command, cleaned = prepare_git(args, git_dir=git_dir, environment=environment)
        child = subprocess.Popen(  # noqa: S603 - the one door
            command,
            env=cleaned,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(held.descriptor,),
            start_new_session=True,
        )
    except (OSError, StoreError):
        return False
    # It is not waited for; Python would say so when it lets go of it. Those left
    # before are dead by now, and the system keeps their names until we ask.
    child.returncode = 0
    for pid in tuple(_LEFT):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _LEFT.discard(pid)
    _LEFT.add(child.pid)
    return True


def stream_git(
    args: Sequence[str],
    *,
    git_dir: Path | None,
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    cwd: Path | None = None,
    most_bytes: int | None = None,
) -> GitResult:
    """Run git and hear what it says on standard error while it runs.

    Of standard error the last lines are kept, however much there is.

    Args:
        args, environment: As in ``run_git``.
        on_line: Told each line as it comes, progress too. It is text of git,
            and of whoever git talks to.
        most_bytes: How much git may write to standard output.

    Raises:
        StoreError: There is no git binary, or it wrote too much.
    """
    child = _start(
        args,
        git_dir=git_dir,
        environment=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said: list[bytes] = []

    def hear(line: bytes, _: bytes) -> None:
        if line.strip():
            said.append(line)
            del said[:-_KEPT_LINES]
            on_line(line.decode("utf-8", "replace"))

    stderr, child.stderr = child.stderr, None
    # Not communicate(): it would take standard error for itself.
    with child, _listening(stderr, hear) as hear_out:
        try:
            assert child.stdout is not None  # noqa: S101 - as asked for
            stdout = child.stdout.read(-1 if most_bytes is None else most_bytes + 1)
            is_too_much = most_bytes is not None and len(stdout) > most_bytes
            if is_too_much:
                child.kill()
            else:
                hear_out()
            code = child.wait()
        except BaseException:
            child.kill()
            raise
    if is_too_much:
        raise StoreError(f"git {args[0]} gave more than {most_bytes:,} bytes")
    return GitResult(code=exit_code(code), stdout=stdout, stderr=b"\n".join(said))


def pass_to_git(
    args: Sequence[str],
    *,
    git_dir: Path | None,
    environment: Mapping[str, str],
    root: Path | None = None,
    stdout: Callable[[bytes], None] | None = None,
    stderr: Hear | None = None,
) -> int:
    """Run git on this process's own streams; return what it exits with.

    Args:
        args, environment: As in ``run_git``.
        root: The user's own work tree, as ``run_code_git`` has it, in place of
            ``git_dir``.
        stdout: Told what git writes there, as it comes, instead.
        stderr: Told each line git says there, and how it ended, instead.

    Raises:
        StoreError: There is no git binary.
    """
    child = _start(
        args,
        git_dir=git_dir,
        environment=environment,
        cwd=root,
        options=OPTIONS if root is None else CODE_OPTIONS,
        stdout=subprocess.PIPE if stdout else None,
        stderr=subprocess.PIPE if stderr else None,
    )
    pipe, child.stderr = child.stderr, None
    with child, _listening(pipe, stderr) as hear_out:
        try:
            while stdout and child.stdout and (data := child.stdout.readline(_CHUNK)):
                stdout(data)
            hear_out()
            code = child.wait()
        except KeyboardInterrupt:
            # It came to git too, which takes its own lock files away.
            with suppress(subprocess.TimeoutExpired):
                child.wait(2.0)
            raise
        finally:
            child.kill()
    return exit_code(code)


def _start(
    args: Sequence[str],
    *,
    git_dir: Path | None,
    environment: Mapping[str, str],
    cwd: Path | None,
    options: Sequence[str] = OPTIONS,
    stdin: int | None = None,
    stdout: int | None,
    stderr: int | None,
) -> subprocess.Popen[bytes]:
    command, cleaned = prepare_git(
        args, git_dir=git_dir, environment=environment, options=options
    )
    try:
        return subprocess.Popen(  # noqa: S603 - the one door
            command,
            env=cleaned,
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
    except OSError as exc:
        raise StoreError(f"cannot run git: {exc.strerror}") from exc


@contextmanager
def _listening(
    pipe: IO[bytes] | None, hear: Hear | None
) -> Iterator[Callable[[], None]]:
    """Tell each line of a pipe, if there is one, for the length of the block.

    The block gets what waits for the pipe's end. What a process that outlives
    the child says after the block is not heard.
    """
    is_over = threading.Event()

    def read() -> None:
        if pipe is None or hear is None:
            return
        with pipe:
            for line, end in _iter_lines(pipe):
                if is_over.is_set():
                    return
                hear(line, end)

    try:
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        yield thread.join
    finally:
        is_over.set()


def _iter_lines(pipe: IO[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield lines, and what ends each: a line feed, a return, or nothing.

    A line that is too long to be one comes in several, and the end of a piece
    is then nothing.
    """
    rest, had_return = b"", False
    while data := os.read(pipe.fileno(), _CHUNK):
        if had_return and data.startswith(b"\n"):
            # The two of a pair came apart; the line was given already.
            data = data[1:]
        *pieces, rest = _LINE_END.split(rest + data)
        yield from zip(pieces[::2], pieces[1::2], strict=True)
        had_return = data.endswith(b"\r")
        if len(rest) > _CHUNK:
            yield rest, b""
            rest = b""
    if rest:
        yield rest, b""
