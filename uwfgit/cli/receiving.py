"""A server's hook: how it is installed, and what git calls on every push."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from uwfgit.cli.context import CommandContext, get_context
from uwfgit.cli.output import talk
from uwfgit.cli.screen import shown
from uwfgit.errors import StoreError, UsageError

if TYPE_CHECKING:
    from uwfgit.store.repository import Store
    from uwfgit.sync.receive import Push

SHARED_KEY: Final = "uwf.shared"
_SECONDS_KEY: Final = "uwf.receiveSeconds"
_SECONDS: Final = 300
_GRACE: Final = 30
_MOST_REFS: Final = 20_000
_WORDS: Final = 3
_ON: Final = ("true", "yes", "on", "1")


def install_pre_receive(context: CommandContext, server: str, *, shared: bool) -> None:
    """Install the hook in a bare repository; say so.

    Raises:
        NotFoundError, StoreError: It is no repository, or cannot be changed.
        UsageError: There seems to be code in it.
    """
    from uwfgit.store.hooks import install_hook
    from uwfgit.store.reading import find_repository, open_reading

    path = find_repository(context.resolve(server))
    store = open_reading(path)
    if not shared:
        _require_dedicated(store)
    _set_shared(path, context.environment, shared=shared)
    added = install_hook(path, "pre-receive")
    file = str(path / "hooks" / "pre-receive")
    context.output.emit(
        {
            "hook": "pre-receive",
            "path": file,
            "installed": True,
            "changed": added,
            "shared": shared,
        },
        lambda: f"{'installed' if added else 'unchanged:'} {shown(file)}",
    )


def _require_dedicated(store: Store) -> None:
    from uwfgit.store.ancestry import is_ancestor
    from uwfgit.store.genesis import GENESIS_OID
    from uwfgit.store.layout import HEAD_REF
    from uwfgit.store.refs import find_ref

    main = find_ref(store, HEAD_REF)
    if main is not None and not is_ancestor(store, GENESIS_OID, main):
        raise UsageError(
            "its branch main is of another history: there seems to be code in it",
            hint="add --shared, which leaves the code's own refs unchecked",
        )


def _set_shared(path: Path, environment: Mapping[str, str], *, shared: bool) -> None:
    from uwfgit.store.gitcmd import run_git

    value = "true" if shared else "false"
    done = run_git(["config", SHARED_KEY, value], git_dir=path, environment=environment)
    if done.code:
        raise StoreError(f"cannot change the config of '{path}': {done.complaint}")


def pre_receive_command(ctx: typer.Context) -> None:
    """Check what a push would change; called by git, in the repository.

    Anything but exit code 0 makes git refuse the whole push.
    """
    # Before all else: whatever hangs from here on, the system ends it.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_SECONDS + _GRACE)
    context = get_context(ctx)
    path, quarantine = _find_place(context.environment)
    seconds = _read_seconds(path)
    signal.alarm(seconds + _GRACE)
    pushes = _read_pushes(sys.stdin.buffer)
    problems = _check(path, quarantine, pushes, context.environment, seconds)
    for push, problem in zip(pushes, problems, strict=True):
        if problem is not None:
            talk(f"refused {shown(push.ref)}: {shown(problem)}")
    raise typer.Exit(1 if any(problems) else 0)


def _find_place(environment: Mapping[str, str]) -> tuple[Path, Path | None]:
    from uwfgit.store.reading import require_whole
    from uwfgit.store.repository import resolve_path

    git_dir = environment.get("GIT_DIR")
    if not git_dir:
        raise UsageError(
            "this is for git to call, on a push",
            hint="install it with: uwf hooks install --server DIR",
        )
    path = resolve_path(Path(git_dir))
    require_whole(path)
    quarantine = environment.get("GIT_QUARANTINE_PATH") or environment.get(
        "GIT_OBJECT_DIRECTORY"
    )
    return path, resolve_path(Path(quarantine)) if quarantine else None


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
    from uwfgit.cli.limited import Limits, Place, check_pushes_limited

    return check_pushes_limited(
        Place(repository=path, quarantine=quarantine),
        pushes,
        shared=(_read_setting(path, SHARED_KEY) or "").lower() in _ON,
        environment=environment,
        limits=Limits(all_seconds=seconds),
    )


def _read_seconds(path: Path) -> int:
    value = _read_setting(path, _SECONDS_KEY) or str(_SECONDS)
    if not value.isdecimal() or not 1 <= int(value) <= _SECONDS * 100:
        raise StoreError(f"{_SECONDS_KEY} is '{value}', must be seconds")
    return int(value)


def _read_setting(path: Path, key: str) -> str | None:
    from uwfgit.store.configfile import find_value, read_config
    from uwfgit.store.repository import git_errors

    with git_errors(f"read the config of '{path}'"):
        return find_value(read_config(path / "config"), key.lower())
