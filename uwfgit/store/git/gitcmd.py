"""The one door to the git binary; only `streaming` beside it starts git as well.

Whoever calls names the repository: what the environment says about one is
taken away, and hooks, fsmonitor and ``ext::`` addresses run nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import StoreError, UsageError
from uwfgit.store.locks.flock import Lock

OPTIONS: Final = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "protocol.ext.allow=never",
)
# The user's own repository: filters and fsmonitor of its config run, as they do
# for any git command there; hooks, reflogs and maintenance are left alone.
CODE_OPTIONS: Final = (
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


def run_git(
    args: Sequence[str],
    *,
    git_dir: Path | None,
    environment: Mapping[str, str],
    cwd: Path | None = None,
    input: bytes | None = None,  # noqa: A002 - subprocess's own word
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
        index: Stands in for the repository's own index: what a commit that is
            being made will hold.
        held: Locks that git holds on to until it ends, should we be killed.
        timeout: Seconds, after which git is killed.
        is_grouped: Whether all that git starts is killed with it, on Ctrl-C too.
            Then it has no terminal, and ``held`` does not count.

    Raises:
        StoreError: There is no git binary, or it took too long.
    """
    command, cleaned = prepare_git(args, git_dir=git_dir, environment=environment)
    if index is not None:
        cleaned["GIT_INDEX_FILE"] = str(index)
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
            capture_output=True,
            pass_fds=[each.descriptor for each in held],
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise StoreError(f"git {args[0]} took longer than {timeout:g} s") from exc
    except OSError as exc:
        raise StoreError(f"cannot run git {args[0]}: {exc.strerror}") from exc
    return GitResult(
        code=exit_code(done.returncode),
        stdout=done.stdout,
        stderr=done.stderr,
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
    command, cleaned = prepare_git(
        args, git_dir=None, environment=environment, options=CODE_OPTIONS
    )
    cleaned["GIT_OPTIONAL_LOCKS"] = "0"
    if literal:
        cleaned["GIT_LITERAL_PATHSPECS"] = "1"
    if index is not None:
        cleaned["GIT_INDEX_FILE"] = str(index)
    if objects is not None:
        cleaned["GIT_OBJECT_DIRECTORY"] = str(objects[0])
        # Between quotes, for it is a list that colons divide.
        path = str(objects[1]).replace("\\", "\\\\").replace('"', '\\"')
        cleaned["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{path}"'
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
    return GitResult(code=exit_code(child.returncode), stdout=stdout, stderr=stderr)


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


def exit_code(returncode: int) -> int:
    """Tell an end by a signal the way a shell does."""
    return returncode if returncode >= 0 else _SIGNAL_BASE - returncode


# What belongs to the user and not to a repository. All other GIT_* variables
# can point git at another repository, or into it (rev-parse --local-env-vars),
# and new ones appear with new versions: hence a list of what stays.
_KEPT: Final = frozenset(
    {
        "GIT_ALLOW_PROTOCOL",
        "GIT_ASKPASS",
        "GIT_ATTR_NOSYSTEM",
        "GIT_AUTHOR_DATE",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_COMMITTER_DATE",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_CURL_VERBOSE",
        "GIT_EDITOR",
        "GIT_EXEC_PATH",
        "GIT_PAGER",
        "GIT_PROGRESS_DELAY",
        "GIT_PROTOCOL_FROM_USER",
        "GIT_PROXY_COMMAND",
        "GIT_SEQUENCE_EDITOR",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_TERMINAL_PROMPT",
    }
)
# Settings in variables are the user's own, as those on git's command line are;
# plain GIT_CONFIG is not: it names a repository's file.
_KEPT_PREFIXES: Final = (
    "GIT_CONFIG_",
    "GIT_HTTP_",
    "GIT_PROXY_SSL_",
    "GIT_SSL_",
    "GIT_TRACE",
)


def prepare_git(
    args: Sequence[str],
    *,
    git_dir: Path | None,
    environment: Mapping[str, str],
    options: Sequence[str] = OPTIONS,
) -> tuple[list[str], dict[str, str]]:
    """Return the words that start git on a repository, and its environment.

    That is the user's, without any repository's.

    Raises:
        StoreError: There is no git binary.
    """
    git = find_git(environment)
    if git is None:
        raise StoreError(
            "git is not installed, or not on your PATH",
            hint="install git 2.25 or later",
        )
    where = [] if git_dir is None else [f"--git-dir={git_dir}"]
    cleaned = {
        name: value
        for name, value in environment.items()
        if not name.startswith("GIT_")
        or name in _KEPT
        or name.startswith(_KEPT_PREFIXES)
    }
    if "GIT_ALLOW_PROTOCOL" in cleaned:
        # It beats protocol.ext.allow=never.
        protocols = cleaned["GIT_ALLOW_PROTOCOL"].split(":")
        cleaned["GIT_ALLOW_PROTOCOL"] = ":".join(p for p in protocols if p != "ext")
    cleaned["GIT_NO_REPLACE_OBJECTS"] = "1"
    # A missing object must not make git fetch it, by whatever command a
    # repository's config names for that.
    cleaned["GIT_NO_LAZY_FETCH"] = "1"
    return [str(git), *options, *where, *args], cleaned
