"""Make the folder of a store, or complete one; the only place for its layout."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from uwfgit.errors import StoreError
from uwfgit.store import genesis
from uwfgit.store.libgit2 import RepositoryOpenFlag, pygit2
from uwfgit.store.locks.flock import pause
from uwfgit.store.locks.git_lock import append, replacing
from uwfgit.store.raw import RawObjects
from uwfgit.store.safety.config import REQUIRED, SETTINGS, Config, read_config
from uwfgit.store.safety.ref_logs import list_logged
from uwfgit.store.safety.stores import write_id
from uwfgit.store.safety.trust import INNER, install_hook

SCRATCH: Final = ".uwf-init-"
"""How the name of a folder starts in which a store is being built."""
_PRE_PUSH: Final = "pre-push"
_MAIN: Final = "refs/heads/main"
_BARE: Final = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
"""
_FOLDERS: Final = (
    "objects/info",
    "objects/pack",
    "refs/heads",
    "refs/tags",
    "info",
    "hooks",
    "uwf",
)
# HEAD last: without it a folder is no repository.
_ORDER: Final = ("objects", "refs", "info", "hooks", "uwf", "description", "config")
_TAKEN: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_DESCRIPTION: Final = "uwf store: threads of agent workflows\n"
_WAIT: Final = 2.0


def make_store(path: Path, *, id_: str, fsync: bool) -> bool:
    """Make a new store where there is nothing or an empty folder.

    It is built aside and moved into place, so it is there whole or not at all.

    Returns:
        False when another process was faster; its store is then complete.

    Raises:
        StoreError: The folder cannot be made.
    """
    # An empty folder stays the one it is: it may be the user's working folder.
    into = path if path.is_dir() else None
    name = f"{SCRATCH}{os.getpid()}-{secrets.token_hex(4)}"
    scratch = (into or path.parent) / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        scratch.mkdir(mode=0o700)
        try:
            _build(scratch, id_=id_, fsync=fsync)
            return _fill(scratch, into) if into else _move(scratch, path)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise StoreError(f"cannot make store '{path}': {reason}") from exc


def set_state_aside(path: Path) -> None:
    """Move what a store keeps for one machine out of the way, should there be any.

    Raises:
        OSError: It cannot be moved.
    """
    state = path / "uwf"
    if state.exists():
        state.rename(path / f"uwf-of-another-{secrets.token_hex(4)}")


def await_maker(path: Path) -> None:
    """Give a process that is filling the folder at ``path`` time to finish."""
    deadline = time.monotonic() + _WAIT
    while time.monotonic() < deadline and not (path / "HEAD").exists():
        if not any(path.glob(f"{SCRATCH}*")):
            return
        pause()


def make_private(path: Path) -> None:
    """Take a store's folder away from everyone else.

    git makes group-writable folders under a umask of 002. A folder nobody else
    can enter needs no care about most modes inside, now and later.
    """
    names = ("", "HEAD", "config", "hooks", "objects", "packed-refs", "refs", "uwf")
    for place in (path / name for name in (*names, *INNER)):
        if place.exists():
            place.chmod(stat.S_IMODE(place.stat().st_mode) & ~0o077)


def complete_store(path: Path, config: Config) -> None:
    """Add what a checked bare repository lacks as a store; keep its refs and objects.

    Only its HEAD is pointed at ``main``. Its settings are written last: without
    them the store does not open.

    Raises:
        StoreError: Its branch ``main`` is of another history.
        LockedError: Another process keeps the config locked.
        OSError: A file cannot be written.
    """
    for name in _FOLDERS:
        (path / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    _add_attributes(path / "info" / "attributes")
    install_hook(path, _PRE_PUSH)
    _add_main(path)
    if not config.values.keys() >= REQUIRED:
        add_settings(path)


def _build(scratch: Path, *, id_: str, fsync: bool) -> None:
    for name in _FOLDERS:
        (scratch / name).mkdir(parents=True)
    (scratch / "HEAD").write_text(f"ref: {_MAIN}\n")
    (scratch / "config").write_text(_BARE + _format_settings(()))
    (scratch / "description").write_text(_DESCRIPTION)
    write_id(scratch, id_)
    (scratch / "info" / "attributes").write_bytes(genesis.ATTRIBUTES)
    install_hook(scratch, _PRE_PUSH)
    oid = genesis.write_genesis(_open(scratch))
    (scratch / _MAIN).write_text(f"{oid}\n")
    for folder, _, names in os.walk(scratch, topdown=False):
        is_objects = Path(folder).is_relative_to(scratch / "objects")
        for name in names:
            mode = 0o400 if is_objects else 0o700 if name == _PRE_PUSH else 0o600
            _settle(Path(folder) / name, mode, fsync=fsync)
        _settle(Path(folder), 0o700, fsync=fsync)


def _settle(place: Path, mode: int, *, fsync: bool) -> None:
    """Give the mode whatever the umask was, and see to it that it is on disk."""
    place.chmod(mode)
    if fsync:
        descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _move(scratch: Path, path: Path) -> bool:
    try:
        scratch.rename(path)
    except OSError as exc:
        if exc.errno in _TAKEN:
            return False
        raise
    return True


def _fill(scratch: Path, into: Path) -> bool:
    into.chmod(0o700)
    for name in (*_ORDER, "HEAD"):
        if not _move(scratch / name, into / name):
            await_maker(into)
            return False
    return True


def _open(path: Path) -> pygit2.Repository:
    flags = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.BARE
    return pygit2.Repository(str(path), flags)


def _add_attributes(path: Path) -> None:
    text = path.read_bytes() if path.exists() else b""
    known = text.splitlines()
    lines = [line for line in genesis.ATTRIBUTES.splitlines() if line not in known]
    if not lines:
        return
    if text and not text.endswith(b"\n"):
        text += b"\n"
    path.write_bytes(text + b"".join(line + b"\n" for line in lines))


def mend_main(path: Path) -> None:
    """Write a store's ``main`` again, of which a loss of power left a file without oid.

    What it pointed at stands last in its log; without one it is where every store
    begins.

    Raises:
        LockedError: Someone holds git's lock of it.
        OSError: It cannot be written.
    """
    objects = RawObjects(path / "objects")
    known = (oid for oid in list_logged(path, _MAIN) if objects.exists(oid))
    oid = next(known, genesis.GENESIS_OID)
    with replacing(path / _MAIN) as file:
        file.write(f"{oid}\n".encode())


def _add_main(path: Path) -> None:
    repo = _open(path)
    oid = genesis.GENESIS_OID
    genesis.write_genesis(repo)
    if _MAIN not in repo.references:
        repo.references.create(_MAIN, pygit2.Oid(hex=oid))
    main = repo.references[_MAIN].resolve().target
    objects = RawObjects(path / "objects")
    if not objects.descends(str(main), oid):
        raise StoreError(
            f"branch main of '{path}' does not start at uwf's genesis commit",
            hint="keep threads apart from other history: choose an empty folder",
        )
    if repo.references["HEAD"].target != _MAIN:
        repo.set_head(_MAIN)


def add_settings(path: Path) -> None:
    """Add the settings that a store's config lacks.

    Raises:
        LockedError: Another process keeps the config locked.
        OSError: It cannot be written.
    """
    file = path / "config"
    append(file, lambda: _format_settings(read_config(file).values.keys()))


def _format_settings(known: Collection[str]) -> str:
    """Write the settings whose keys, in lower case, are not known yet."""
    out: list[str] = []
    last = ""
    for key, value in SETTINGS.items():
        if key.lower() in known:
            continue
        section, name = key.split(".")
        if section != last:
            out.append(f"[{section}]\n")
            last = section
        out.append(f"\t{name} = {value}\n")
    return "".join(out)
