"""The one door to the git binary; nothing else starts git.

Whoever calls names the repository: what the environment says about one is
taken away, and hooks, fsmonitor and ``ext::`` addresses run nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from uwfgit.errors import StoreError, UsageError
from uwfgit.store.git import pipes
from uwfgit.store.git.environment import clean_environment
from uwfgit.store.locks.flock import Lock

_OPTIONS: Final = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "protocol.ext.allow=never",
)
# The user's own repository: filters and fsmonitor of its config run, as they do
# for any git command there; hooks, reflogs and maintenance are left alone.
_CODE_OPTIONS: Final = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "core.splitIndex=false",
    "-c",
    "core.safecrlf=false",
    "-c",
    "core.logAllRefUpdates=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
)
_SIGNAL_BASE: Final = 128
_CHUNK: Final = 65_536
_KEPT_LINES: Final = 100

Hear: TypeAlias = pipes.Hear


class GitResult(Struct, frozen=True, kw_only=True):
    """How git ended and what it wrote; a failure is a value."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output, without the line end."""
        return self.stdout.decode("utf-8", "replace").rstrip("\n")

    @property
    def complaint(self) -> str:
        """The last line of standard error, or the exit code."""
        lines = self.stderr.decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1] if said else f"git exited with {self.code}"


def find_git(environment: Mapping[str, str]) -> Path | None:
    """Find the git binary on the PATH of ``environment``; without one, there is none.

    A relative entry counts for nothing.
    """
    entries = environment.get("PATH", "").split(os.pathsep)
    # The working folder may be a stranger's.
    path = os.pathsep.join(entry for entry in entries if os.path.isabs(entry))  # noqa: PTH117 - text, not a Path
    found = shutil.which("git", path=path) if path else None
    return Path(found) if found else None


def run_git(  # noqa: PLR0913 - one argument a fact
    args: Sequence[str],
    *,
    git_dir: Path | None,
    environment: Mapping[str, str],
    cwd: Path | None = None,
    input: bytes | None = None,  # noqa: A002 - subprocess's own word
    capture: bool = True,
    keep_quarantine: bool = False,
    index: Path | None = None,
    held: Sequence[Lock] = (),
    timeout: float | None = None,
    is_grouped: bool = False,
) -> GitResult:
    """Run git on one repository and wait for it.

    Args:
        args: The command and its arguments. Names and addresses that come
            from elsewhere stand after ``--`` and passed ``check_operand``.
        git_dir: The repository. Git's own check of its owner is off then, so
            it must have passed ours. ``None``: the one around ``cwd``, whose
            owner git checks.
        capture: Without it, git writes to this process's own streams.
        keep_quarantine: Let a receiving git's object folders through; only
            for the pre-receive hook.
        index: Stands in for the repository's own index: what a commit that is
            being made will hold.
        held: Locks that git holds on to until it ends, should we be killed.
        timeout: Seconds, after which git is killed.
        is_grouped: Whether all that git starts is killed with it, on Ctrl-C too.
            Then it has no terminal, and ``capture`` and ``held`` do not count.

    Raises:
        StoreError: There is no git binary, or it took too long.
    """
    stream = subprocess.PIPE if capture else None
    cleaned = clean_environment(environment, keep_quarantine=keep_quarantine)
    if index is not None:
        cleaned["GIT_INDEX_FILE"] = str(index)
    command = _command(args, git_dir=git_dir, environment=environment)
    if is_grouped:
        word = next(each for each in args if "." not in each and each[:1] != "-")
        return _run_group(command, word, cleaned, cwd, input or b"", timeout)
    try:
        done = subprocess.run(  # noqa: S603 - the one door
            command,
            env=cleaned,
            cwd=cwd,
            stdin=subprocess.DEVNULL if input is None else None,
            input=input,
            stdout=stream,
            stderr=stream,
            pass_fds=[each.descriptor for each in held],
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise StoreError(f"git {args[0]} took longer than {timeout:g} s") from exc
    except OSError as exc:
        raise StoreError(f"cannot run git {args[0]}: {exc.strerror}") from exc
    return GitResult(
        code=_exit_code(done.returncode),
        stdout=done.stdout or b"",
        stderr=done.stderr or b"",
    )


def run_code_git(
    args: Sequence[str],
    *,
    root: Path,
    environment: Mapping[str, str],
    input: bytes = b"",  # noqa: A002 - subprocess's own word
    index: Path | None = None,
    objects: tuple[Path, Path] | None = None,
    literal: bool = True,
    timeout: float | None = None,
) -> GitResult:
    """Run git in the user's own work tree, with the filters of its config.

    Args:
        args, environment: As in ``run_git``.
        root: The work tree's top; git checks who owns the repository there.
        index: Stands in for the work tree's own index.
        objects: Where new objects go, and the folder of those there are: the
            repository itself gets none.
        literal: Whether paths among the arguments are no patterns.
        timeout: Seconds, after which git and all it started are killed.

    Raises:
        StoreError: There is no git binary, or it took too long.
    """
    cleaned = clean_environment(environment)
    cleaned["GIT_OPTIONAL_LOCKS"] = "0"
    if literal:
        cleaned["GIT_LITERAL_PATHSPECS"] = "1"
    if index is not None:
        cleaned["GIT_INDEX_FILE"] = str(index)
    if objects is not None:
        cleaned["GIT_OBJECT_DIRECTORY"] = str(objects[0])
        cleaned["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quoted(objects[1])
    command = _command(
        args, git_dir=None, environment=environment, options=_CODE_OPTIONS
    )
    return _run_group(command, args[0], cleaned, root, input, timeout)


def _run_group(
    command: Sequence[str],
    word: str,
    environment: Mapping[str, str],
    cwd: Path | None,
    given: bytes,
    timeout: float | None,
) -> GitResult:
    try:
        child = subprocess.Popen(  # noqa: S603 - the one door
            command,
            env=environment,
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A filter that hangs is to end with git. Without a limit git stays in
            # our group, where Ctrl-C and the terminal reach it.
            process_group=None if timeout is None else 0,
        )
    except OSError as exc:
        raise StoreError(f"cannot run git {word}: {exc.strerror}") from exc
    with child:
        try:
            stdout, stderr = child.communicate(given, timeout)
        except BaseException as exc:
            _kill(child, is_group=timeout is not None)
            if isinstance(exc, subprocess.TimeoutExpired):
                raise StoreError(f"git {word} took longer than {timeout:g} s") from exc
            raise
    return GitResult(code=_exit_code(child.returncode), stdout=stdout, stderr=stderr)


def _quoted(path: Path) -> str:
    """Write a path for a list that colons divide, as git reads it."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _kill(child: subprocess.Popen[bytes], *, is_group: bool) -> None:
    with suppress(OSError):
        if is_group:
            os.killpg(child.pid, signal.SIGKILL)
        child.kill()
    for pipe in (child.stdin, child.stdout, child.stderr):
        # What git started may hold them open; nobody waits for it.
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


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
        child = subprocess.Popen(  # noqa: S603 - the one door
            _command(args, git_dir=git_dir, environment=environment),
            env=clean_environment(environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(held.descriptor,),
            start_new_session=True,
        )
    except (OSError, StoreError):
        return False
    # It is not waited for; Python would say so when it lets go of it.
    child.returncode = 0
    return True


def stream_git(
    args: Sequence[str],
    *,
    git_dir: Path | None,
    environment: Mapping[str, str],
    on_line: Callable[[str], None],
    cwd: Path | None = None,
    input: bytes = b"",  # noqa: A002 - subprocess's own word
    most_bytes: int | None = None,
) -> GitResult:
    """Run git and hear what it says on standard error while it runs.

    Of standard error the last lines are kept, however much there is.

    Args:
        args, environment: As in ``run_git``.
        on_line: Told each line as it comes, progress too. It is text of git,
            and of whoever git talks to.
        input: What git reads from standard input.
        most_bytes: How much git may write to standard output.

    Raises:
        StoreError: There is no git binary, or it wrote too much.
    """
    child = _start(
        args,
        git_dir=git_dir,
        environment=environment,
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said: list[bytes] = []

    def hear(line: bytes, _: bytes) -> None:
        if line.strip():
            said.append(line)
            del said[:-_KEPT_LINES]
            on_line(line.decode("utf-8", "replace"))

    stdin, child.stdin = child.stdin, None
    stderr, child.stderr = child.stderr, None
    # Not communicate(): it would take standard error for itself.
    with child, pipes.listening(stderr, hear) as hear_out:
        try:
            feed_out = pipes.feed(stdin, input)
            assert child.stdout is not None  # noqa: S101 - as asked for
            stdout = child.stdout.read(-1 if most_bytes is None else most_bytes + 1)
            is_too_much = most_bytes is not None and len(stdout) > most_bytes
            if is_too_much:
                child.kill()
            else:
                hear_out()
                feed_out()
            code = child.wait()
        except BaseException:
            child.kill()
            raise
    if is_too_much:
        raise StoreError(f"git {args[0]} gave more than {most_bytes:,} bytes")
    return GitResult(code=_exit_code(code), stdout=stdout, stderr=b"\n".join(said))


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
        options=_OPTIONS if root is None else _CODE_OPTIONS,
        stdout=subprocess.PIPE if stdout else None,
        stderr=subprocess.PIPE if stderr else None,
    )
    pipe, child.stderr = child.stderr, None
    with child, pipes.listening(pipe, stderr) as hear_out:
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
    return _exit_code(code)


def _start(
    args: Sequence[str],
    *,
    git_dir: Path | None,
    environment: Mapping[str, str],
    cwd: Path | None = None,
    options: Sequence[str] = _OPTIONS,
    stdin: int | None = None,
    stdout: int | None,
    stderr: int | None,
) -> subprocess.Popen[bytes]:
    command = _command(args, git_dir=git_dir, environment=environment, options=options)
    try:
        return subprocess.Popen(  # noqa: S603 - the one door
            command,
            env=clean_environment(environment),
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )
    except OSError as exc:
        raise StoreError(f"cannot run git: {exc.strerror}") from exc


def check_operand(text: str) -> str:
    """Return a name or address that git cannot take for more than that.

    Raises:
        UsageError: It starts with ``-``, or is an address that runs a command.
    """
    if text.startswith("-"):
        raise UsageError(f"'{text}' starts with '-': not a name or address")
    if text.lower().startswith(("ext::", "fd::")):
        raise UsageError(f"'{text}' is an address that runs a command")
    return text


def _command(
    args: Sequence[str],
    *,
    git_dir: Path | None,
    environment: Mapping[str, str],
    options: Sequence[str] = _OPTIONS,
) -> list[str]:
    git = find_git(environment)
    if git is None:
        raise StoreError(
            "git is not installed, or not on your PATH",
            hint="install git 2.25 or later",
        )
    where = [] if git_dir is None else [f"--git-dir={git_dir}"]
    return [str(git), *options, *where, *args]


def _exit_code(returncode: int) -> int:
    """Tell an end by a signal the way a shell does."""
    return returncode if returncode >= 0 else _SIGNAL_BASE - returncode
