"""A server's hook: what git calls on every push."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from uwfgit.cli.frame.context import get_context
from uwfgit.cli.frame.output import talk
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import StoreError, UsageError

if TYPE_CHECKING:
    from uwfgit.store.safety.config import ConfigEntry
    from uwfgit.sync.receive import Push

SHARED_KEY: Final = "uwf.shared"
_SECONDS_KEY: Final = "uwf.receiveSeconds"
_SECONDS: Final = 300
_GRACE: Final = 30
_MOST_REFS: Final = 20_000
_WORDS: Final = 3
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)


def pre_receive_command(ctx: typer.Context) -> None:
    """Check what a push would change; called by git, in the repository.

    Anything but exit code 0 makes git refuse the whole push.
    """
    # Before all else: whatever hangs from here on, the system ends it.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS + _GRACE)
    context = get_context(ctx)
    path, quarantine = _find_place(context.environment)
    found = _find_setting(path, _SECONDS_KEY)
    value = (found.value if found is not None else None) or str(_SECONDS)
    if not _NUMBER.fullmatch(value) or int(value) > _SECONDS * 100:
        raise StoreError(f"{_SECONDS_KEY} is '{value}', must be seconds")
    seconds = int(value)
    signal.alarm(seconds + _GRACE)
    pushes = _read_pushes(sys.stdin.buffer)
    problems = _check(path, quarantine, pushes, context.environment, seconds)
    for push, problem in zip(pushes, problems, strict=True):
        if problem is not None:
            talk(f"refused {shown(push.ref)}: {shown(problem)}")
    raise typer.Exit(1 if any(each is not None for each in problems) else 0)


def _find_place(environment: Mapping[str, str]) -> tuple[Path, Path | None]:
    from uwfgit.store.git.reading import require_whole

    git_dir = environment.get("GIT_DIR")
    if not git_dir:
        raise UsageError(
            "this is for git to call, on a push",
            hint="install it with: uwf hooks install --server DIR",
        )
    path = Path(os.path.realpath(git_dir))
    require_whole(path)
    quarantine = environment.get("GIT_QUARANTINE_PATH") or environment.get(
        "GIT_OBJECT_DIRECTORY"
    )
    return path, Path(os.path.realpath(quarantine)) if quarantine else None


def _read_pushes(stream: Iterable[bytes]) -> list[Push]:
    from uwfgit.sync.receive import Push

    pushes: list[Push] = []
    for line in stream:
        words = line.decode("utf-8", "backslashreplace").rstrip("\n").split(" ", 2)
        if len(words) != _WORDS or len(pushes) >= _MOST_REFS:
            raise UsageError(f"at most {_MOST_REFS} refs, each as 'OLD NEW REF'")
        old, new, ref = words
        pushes.append(Push(old=old, new=new, ref=ref))
    return pushes


def _check(
    path: Path,
    quarantine: Path | None,
    pushes: list[Push],
    environment: Mapping[str, str],
    seconds: int,
) -> tuple[str | None, ...]:
    from uwfgit.cli.check.limited import CheckLimits, CheckPlace, check_pushes_limited
    from uwfgit.store.safety.config import is_true

    shared = _find_setting(path, SHARED_KEY)
    return check_pushes_limited(
        CheckPlace(repository=path, quarantine=quarantine),
        pushes,
        shared=shared is not None and is_true(shared.value),
        environment=environment,
        limits=CheckLimits(all_seconds=seconds),
    )


def _find_setting(path: Path, key: str) -> ConfigEntry | None:
    from uwfgit.store.handle import git_errors
    from uwfgit.store.safety.config import read_config

    with git_errors(f"read the config of '{path}'"):
        entries = read_config(path / "config").entries
    return next((each for each in reversed(entries) if each.key == key.lower()), None)
