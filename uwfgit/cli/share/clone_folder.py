"""The folder of a clone: a new store, or what a killed clone left of one."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from uwfgit.errors import StoreError, UwfError
from uwfgit.shell import quote_word


@contextmanager
def new_store(path: Path, *, home: Path) -> Iterator[None]:
    """Make a store; when the block fails it is none, as with git's own clone."""
    from uwfgit.store.repository import init_store
    from uwfgit.store.safety.stores import list_stores, unregister_store

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
            raise is_there(path, home=home)
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


def is_there(path: Path, *, home: Path) -> StoreError:
    """Return the refusal of a folder that is not a new one."""
    from uwfgit.store.safety.stores import is_known

    hint = "name another folder"
    if is_known(path, home=home):
        # A clone that was killed has left it, maybe.
        hint += f", or bring the rest: uwf pull --store {quote_word(str(path))}"
    return StoreError(f"'{path}' is there already", hint=hint)


def is_begun(path: Path, address: str, *, home: Path) -> bool:
    """Whether a clone of an address was killed there before any thread came."""
    from uwfgit.store.layout import THREAD_PREFIX, WORKFLOW_PREFIX
    from uwfgit.store.refs import list_refs
    from uwfgit.store.repository import open_store
    from uwfgit.store.safety.stores import is_known
    from uwfgit.sync.exchange.remotes import DEFAULT_NAME, list_remotes

    if not is_known(path, home=home):
        return False
    store = open_store(path, home=home)
    remotes = [(remote.name, remote.url) for remote in list_remotes(store)]
    return remotes in ([], [(DEFAULT_NAME, address)]) and not any(
        list_refs(store, prefix) for prefix in (THREAD_PREFIX, WORKFLOW_PREFIX)
    )
