"""Putting the hook pre-receive into a server's repository, where git runs it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uwfgit.cli.context import CommandContext
from uwfgit.cli.receiving import SHARED_KEY
from uwfgit.cli.screen import shown
from uwfgit.errors import StoreError, UsageError

if TYPE_CHECKING:
    from uwfgit.store.repository import Store

_HOOK: Final = "pre-receive"
_COMMAND: Final = f"uwf hooks {_HOOK}"


def install_pre_receive(context: CommandContext, server: str, *, shared: bool) -> None:
    """Install the hook in a bare repository; say so.

    Raises:
        NotFoundError, StoreError: It is no repository, or cannot be changed.
        UsageError: It is not bare, there seems to be code in it, or git would
            not run the hook there.
    """
    from uwfgit.store.hooks import install_hook
    from uwfgit.store.reading import find_repository, open_reading

    path = find_repository(context.resolve(server))
    store = open_reading(path)
    if not store.repo.is_bare:
        raise UsageError(
            f"'{path}' is not bare: it has a work tree",
            hint="give the repository that others push to; 'git clone --bare' "
            "makes one",
        )
    if not shared:
        _require_dedicated(store)
    elsewhere = _find_elsewhere(path, context.environment)
    _set_shared(path, context.environment, shared=shared)
    added = elsewhere is None and install_hook(path, _HOOK)
    file = elsewhere or path / "hooks" / _HOOK
    if not os.access(file, os.X_OK):
        raise StoreError(
            f"git would not run '{file}': it is not executable there",
            hint="see whether its file system is mounted noexec",
        )
    payload = {
        "hook": _HOOK,
        "path": str(file),
        "installed": True,
        "changed": added,
        "shared": shared,
    }
    word = "installed" if added else "unchanged:"
    context.output.emit(payload, lambda: f"{word} {shown(str(file))}")


def _find_elsewhere(path: Path, environment: Mapping[str, str]) -> Path | None:
    """Give the hook that git runs there instead, when that calls ours.

    Raises:
        UsageError: It does not.
    """
    from uwfgit.store.hookcheck import find_hooks_path, is_run_hook

    folder = find_hooks_path(environment, git_dir=path)
    own = path / "hooks"
    if folder is None or os.path.realpath(folder) == os.path.realpath(own):
        return None
    if is_run_hook(folder / _HOOK, _COMMAND):
        return folder / _HOOK
    raise UsageError(
        f"core.hooksPath is set, so git runs '{folder / _HOOK}' and no hook in '{own}'",
        hint=f"call '{_COMMAND}' in that file and make it executable, or unset "
        "core.hooksPath; then run this again",
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
