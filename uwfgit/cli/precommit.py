"""Putting the hook pre-commit into a repository, beside what is there already."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uwfgit.cli.context import CommandContext
from uwfgit.cli.packaged import find_packaged
from uwfgit.errors import NotFoundError, StoreError

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
        return Installed(path=other.path) if is_there else other
    _write(path, find_packaged("hooks", HOOK).read_bytes())
    return Installed(path=path, changed=True)


def _find_other(context: CommandContext, root: Path, path: Path) -> Installed | None:
    """Look for whoever runs hooks here: it must run ours too."""
    if (root / _CONFIG).exists():
        reason = f"this repository uses pre-commit; add to {_CONFIG}, under 'repos:':"
        return Installed(path=root / _CONFIG, reason=reason, add=_ENTRY)
    if (root / ".husky").is_dir():
        reason = f"this repository uses husky; add to .husky/{HOOK}:"
        return Installed(path=root / ".husky" / HOOK, reason=reason, add=COMMAND)
    hooks = _hooks_path(context, root)
    if hooks is not None:
        file = root / hooks / HOOK
        reason = f"core.hooksPath is set, so git runs {file}; add to it:"
        return Installed(path=file, reason=reason, add=COMMAND)
    if os.path.lexists(path):
        reason = f"there is a hook already, {path}; add to it:"
        return Installed(path=path, reason=reason, add=COMMAND)
    return None


def _hooks_path(context: CommandContext, root: Path) -> str | None:
    from uwfgit.store.gitcmd import run_git

    found = run_git(
        ("config", "--type=path", "--null", "--get-all", "core.hooksPath"),
        git_dir=None,
        cwd=root,
        environment=context.environment,
    )
    # The last is what the one door to git itself sets.
    values = [os.fsdecode(each) for each in found.stdout.split(b"\0")[:-1]]
    return values[-2] if len(values) > 1 else None


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_MOST_BYTES)
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
