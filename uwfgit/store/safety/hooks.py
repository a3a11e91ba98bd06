"""The hooks that uwf writes, as exact bytes; the only place for them.

A hook of a store is run by whoever pushes into it or out of it, so a store may
hold these bytes and no others.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from uwfgit.errors import StoreError
from uwfgit.store.safety.newfile import write_over

PRE_RECEIVE: Final = b"""\
#!/bin/sh
# Threads that are pushed here must verify; written by 'uwf hooks install'.
# Without uwf, or when the check does not come to its end, nothing is taken.
PATH="$PATH:/usr/local/bin:$HOME/.local/bin"
export PATH
exec uwf hooks pre-receive
"""
"""The server's: checks what is pushed, from git's quarantine."""

PRE_PUSH: Final = b"""\
#!/bin/sh
# What leaves is scanned for secrets first; written by uwf into every store.
# Without uwf, or when the scan does not come to its end, nothing is sent.
PATH="$PATH:/usr/local/bin:$HOME/.local/bin"
export PATH
if ! command -v uwf >/dev/null 2>&1; then
  echo "error: uwf is not on your PATH: nothing was scanned for secrets or sent" >&2
  echo "hint: put uwf on your PATH and push again" >&2
  exit 1
fi
exec uwf hooks pre-push --store "${GIT_DIR:-.}" -- "$@"
"""
"""Every store's: scans what a plain ``git push`` would send."""

HOOKS: Final = {"pre-receive": PRE_RECEIVE, "pre-push": PRE_PUSH}
"""Name of the hook's file → its bytes."""


def is_own_hook(path: Path) -> bool:
    """Whether a plain file is a hook that uwf wrote, byte by byte."""
    wanted = HOOKS.get(path.name)
    if wanted is None:
        return False
    try:
        with path.open("rb") as stream:
            return stream.read(len(wanted) + 1) == wanted
    except OSError:
        return False


def mend_hook(git_dir: Path, name: str) -> None:
    """Write a hook where there is none, or let git run it again.

    Another in its place, which git does not run either, is left alone; and so
    is a folder that cannot be written.
    """
    path = git_dir / "hooks" / name
    if not os.path.lexists(path) or (not path.is_symlink() and is_own_hook(path)):
        with suppress(StoreError):
            install_hook(git_dir, name)


def install_hook(git_dir: Path, name: str) -> bool:
    """Write a hook into a repository; return whether it was not there yet.

    Raises:
        StoreError: Another hook has its place, or it cannot be written.
    """
    path = git_dir / "hooks" / name
    if os.path.lexists(path):
        if path.is_symlink() or not is_own_hook(path):
            raise StoreError(
                f"'{path}' is a hook that uwf did not write",
                hint=f"call 'uwf hooks {name}' in it, or remove it",
            )
        if os.access(path, os.X_OK):
            return False
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_over(path, HOOKS[name], mode=0o755)
    except OSError as exc:
        raise StoreError(f"cannot write '{path}': {exc.strerror}") from exc
    return True
