"""Putting the hook pre-commit into a repository, beside what is there already."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.packaged import find_packaged
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.hooks.receiving import SHARED_KEY
from uwfgit.errors import NotFoundError, StoreError, UsageError
from uwfgit.shell import quote_word
from uwfgit.store.files import read_start, write_new

if TYPE_CHECKING:
    from uwfgit.store.handle import Store

_HOOK: Final = "pre-receive"
_COMMAND: Final = f"uwf hooks {_HOOK}"


def install_pre_receive(context: CommandContext, server: str, *, shared: bool) -> None:
    """Install the hook in a bare repository; say so.

    Raises:
        NotFoundError, StoreError: It is no repository, or cannot be changed.
        UsageError: It is not bare, there seems to be code in it, or git would
            not run the hook there.
    """
    from uwfgit.store.git.gitcmd import run_git
    from uwfgit.store.git.reading import find_repository, open_reading
    from uwfgit.store.safety.trust import install_hook

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
    done = run_git(
        ["config", SHARED_KEY, "true" if shared else "false"],
        git_dir=path,
        environment=context.environment,
    )
    if done.code:
        raise StoreError(f"cannot change the config of '{path}': {done.complaint}")
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
    """Return the hook that git runs there instead, when that calls ours.

    Raises:
        UsageError: It does not.
    """
    from uwfgit.store.care.integrity import find_hooks_path, is_run_hook

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
    from uwfgit.store.genesis import GENESIS_OID
    from uwfgit.store.layout import HEAD_REF
    from uwfgit.store.refs import find_ref, is_ancestor

    main = find_ref(store, HEAD_REF)
    if main is not None and not is_ancestor(store, GENESIS_OID, main):
        raise UsageError(
            "its branch main is of another history: there seems to be code in it",
            hint="add --shared, which leaves the code's own refs unchecked",
        )


HOOK: Final = "pre-commit"
MERGE_HOOK: Final = "pre-merge-commit"
"""What git runs in place of the other where a merge has no conflict."""
COMMAND: Final = "uwf workflow validate --staged"
_MODE: Final = 0o755
_MOST_BYTES: Final = 65_536
_CONFIG: Final = ".pre-commit-config.yaml"
_ENTRY: Final = r"""- repo: local
  hooks:
    - id: uwf-validate
      name: uwf workflow validate
      entry: uwf workflow validate --edited
      language: system
      files: ^(.*/)?\.workflows?/
      always_run: true
      require_serial: true"""

# What tells that ours is run already: in a hook, and in pre-commit's file.
_NAMES: Final = (COMMAND.encode(), b"uwf-validate")


class Installed(Struct, frozen=True, kw_only=True):
    """What became of the hook.

    ``add`` is what the user has to put in themselves, and ``reason`` why and
    where; both are missing when the hook is in place.
    """

    path: Path
    changed: bool = False
    reason: str | None = None
    add: str | None = None


def install_pre_commit(context: CommandContext) -> Installed:
    """Install the hook in the enclosing repository; nothing is overwritten.

    Raises:
        NotFoundError: There is no repository.
        StoreError: The hook cannot be written.
    """
    enclosing = context.enclosing
    if enclosing is None:
        hint = "run it inside a git repository's work tree"
        raise NotFoundError("repository", str(context.cwd), hint=hint)
    path = enclosing.common_dir / "hooks" / HOOK
    other = _find_other(context, enclosing.root, path)
    if other is not None:
        # Whoever runs the hooks here may run ours as well by now.
        is_there = _NAMES[other.add == _ENTRY] in _read(other.path)
        if other.path == path and is_there:
            return _install_for_merges(_require_run(path))
        return _require_run(other.path) if is_there else other
    write_new(path, find_packaged("hooks", HOOK).read_bytes(), mode=_MODE)
    return _install_for_merges(Installed(path=path, changed=True))


def _install_for_merges(done: Installed) -> Installed:
    """Put the same hook beside it for merges, which git does not run it for."""
    path = done.path.with_name(MERGE_HOOK)
    if done.add is not None:
        return done
    if not os.path.lexists(path):
        write_new(path, find_packaged("hooks", HOOK).read_bytes(), mode=_MODE)
        return replace(done, changed=True)
    if COMMAND.encode() in _read(path):
        return done
    reason = f"there is a hook for merges already, {path}; add to it:"
    return replace(done, path=path, reason=reason, add=COMMAND)


def _find_other(context: CommandContext, root: Path, path: Path) -> Installed | None:
    """Look for whoever runs hooks here: it must run ours too."""
    from uwfgit.store.care.integrity import find_hooks_path

    if (root / _CONFIG).exists():
        reason = f"this repository uses pre-commit; add to {_CONFIG}, under 'repos:':"
        return Installed(path=root / _CONFIG, reason=reason, add=_ENTRY)
    if (root / ".husky").is_dir():
        reason = f"this repository uses husky; add to .husky/{HOOK}:"
        return Installed(path=root / ".husky" / HOOK, reason=reason, add=COMMAND)
    hooks = find_hooks_path(context.environment, cwd=root)
    if hooks is not None:
        file = hooks / HOOK
        reason = f"core.hooksPath is set, so git runs {file}; add to it:"
        return Installed(path=file, reason=reason, add=COMMAND)
    if os.path.lexists(path):
        reason = f"there is a hook already, {path}; add to it:"
        return Installed(path=path, reason=reason, add=COMMAND)
    return None


def _require_run(path: Path) -> Installed:
    """Accept a file that calls ours, unless git leaves it alone."""
    # husky and pre-commit read theirs, whatever its mode.
    if path.name != HOOK or ".husky" in path.parts or os.access(path, os.X_OK):
        return Installed(path=path)
    reason = f"git does not run {path}: it is not executable; run:"
    return Installed(path=path, reason=reason, add=f"chmod +x {quote_word(str(path))}")


def _read(path: Path) -> bytes:
    try:
        return read_start(path, most=_MOST_BYTES)
    except OSError:
        return b""
