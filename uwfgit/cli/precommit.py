"""Putting the hook pre-commit into a repository, beside what is there already."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uwfgit.cli.context import CommandContext
from uwfgit.cli.packaged import find_packaged
from uwfgit.errors import NotFoundError, StoreError
from uwfgit.store.plainfile import read_start

HOOK: Final = "pre-commit"
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
      require_serial: true"""

# What tells that ours is run already: in a hook, and in pre-commit's file.
_NAMES: Final = (COMMAND.encode(), b"uwf-validate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
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
        return _require_run(other.path) if is_there else other
    _write(path, find_packaged("hooks", HOOK).read_bytes())
    return Installed(path=path, changed=True)


def _find_other(context: CommandContext, root: Path, path: Path) -> Installed | None:
    """Look for whoever runs hooks here: it must run ours too."""
    from uwfgit.store.hookcheck import find_hooks_path

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
    return Installed(path=path, reason=reason, add=f"chmod +x {shlex.quote(str(path))}")


def _read(path: Path) -> bytes:
    try:
        return read_start(path, most=_MOST_BYTES)
    except OSError:
        return b""


def _write(path: Path, text: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as stream:
            stream.write(text)
        path.chmod(_MODE)
    except OSError as exc:
        raise StoreError(f"cannot write '{path}': {exc.strerror}") from exc
