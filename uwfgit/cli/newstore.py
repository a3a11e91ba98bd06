"""A store in a folder of its own, which a failure leaves as it was."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from uwfgit.errors import StoreError, UwfError


@contextmanager
def new_store(path: Path, *, home: Path) -> Iterator[None]:
    """Make a store; when the block fails it is none, as with git's own clone."""
    from uwfgit.store.repository import init_store
    from uwfgit.store.stores import list_stores, unregister_store

    mode = path.stat().st_mode if path.exists() else None
    was_listed = path in list_stores(home)
    is_ours = False

    def undo() -> None:
        # Before it has a HEAD it is nobody's; else another process was faster.
        if is_ours or not (path / "HEAD").exists():
            _remove(path, mode)
            if not was_listed:
                with suppress(UwfError):
                    unregister_store(path, home=home)

    with ExitStack() as failing:
        failing.callback(undo)
        is_ours = init_store(path, home=home)
        if not is_ours:
            raise is_there(path)
        yield
        failing.pop_all()


def _remove(path: Path, mode: int | None) -> None:
    """Remove a store; a folder that was there, and its mode, is what is left."""
    if mode is None:
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        for each in path.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink()
        path.chmod(stat.S_IMODE(mode))


def is_there(path: Path) -> StoreError:
    """Give the refusal of a folder that is no new one."""
    return StoreError(f"'{path}' is there already", hint="name another folder")
