"""Whether git runs the hooks that uwf writes, and the mend when it would not."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from uwfgit.store.gitcmd import find_git, run_git
from uwfgit.store.health import Finding
from uwfgit.store.hooks import install_hook, is_own_hook
from uwfgit.store.repository import Store, git_errors

_MOST_BYTES: Final = 65_536
_PRE_PUSH: Final = "pre-push"


def find_hooks_path(
    environment: Mapping[str, str],
    *,
    git_dir: Path | None = None,
    cwd: Path | None = None,
) -> Path | None:
    """Give the folder in which git looks for hooks instead of a repository's own.

    Args:
        git_dir: The repository; without it the one around ``cwd``.
        cwd: Its work tree.

    Raises:
        StoreError: There is no git binary.
    """
    found = run_git(
        ("config", "--type=path", "--null", "--get-all", "core.hooksPath"),
        git_dir=git_dir,
        cwd=cwd,
        environment=environment,
    )
    # The last is what the one door to git itself sets.
    values = [os.fsdecode(each) for each in found.stdout.split(b"\0")[:-1]]
    base = git_dir or cwd or Path()
    return base / values[-2] if len(values) > 1 else None


def is_run_hook(path: Path, command: str) -> bool:
    """Tell whether git would run the hook at ``path``, and it names a command."""
    try:
        with path.open("rb") as stream:
            is_named = command.encode() in stream.read(_MOST_BYTES)
    except OSError:
        return False
    return is_named and os.access(path, os.X_OK)


def is_scanning(store: Path) -> bool:
    """Tell whether a store's own hook would scan what a push sends."""
    path = store / "hooks" / _PRE_PUSH
    return is_own_hook(path) and os.access(path, os.X_OK)


def check_hook(store: Store, *, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Look whether a plain ``git push`` would be scanned for secrets."""
    path = store.path / "hooks" / _PRE_PUSH
    if not is_scanning(store.path):
        yield Finding(
            check="hook",
            level="problem",
            message=f"'{path}' {_find_fault(path)}: a plain 'git push' is not scanned "
            "for secrets",
            hint="uwf doctor --fix writes it; what stands there is put aside",
            mend=lambda: _restore(store.path),
        )
        return
    other = None
    if find_git(environment) is not None:
        other = find_hooks_path(environment, git_dir=store.path)
    if other is None or is_run_hook(other / _PRE_PUSH, f"uwf hooks {_PRE_PUSH}"):
        yield Finding(check="hook", level="ok", message="a plain 'git push' is scanned")
        return
    yield Finding(
        check="hook",
        level="note",
        message="your git config sets core.hooksPath: a plain 'git push' is not "
        "scanned for secrets",
        hint="use 'uwf push' or 'uwf git push', or call what stands in "
        f"'{path}' in '{other / _PRE_PUSH}' too",
    )


def _find_fault(path: Path) -> str:
    if not os.path.lexists(path):
        return "is missing"
    if not is_own_hook(path):
        return "is not what uwf writes"
    return "is not executable"


def _restore(git_dir: Path) -> None:
    path = git_dir / "hooks" / _PRE_PUSH
    if os.path.lexists(path) and not is_own_hook(path):
        with git_errors(f"cannot put '{path}' aside"):
            path.rename(path.with_name(f"{_PRE_PUSH}.{secrets.token_hex(4)}.old"))
    install_hook(git_dir, _PRE_PUSH)
