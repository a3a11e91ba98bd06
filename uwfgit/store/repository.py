"""Open, make and trust a store; the only place that owns a pygit2 handle on one."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from uwfgit.constants import FORMAT_VERSION
from uwfgit.errors import (
    FormatVersionError,
    InvalidError,
    NotFoundError,
    Problem,
    StoreError,
    UntrustedError,
    first_of,
)
from uwfgit.shell import quote_word
from uwfgit.store.handle import Store, git_errors, make_store
from uwfgit.store.layout import HEAD_REF
from uwfgit.store.libgit2 import RepositoryOpenFlag, pygit2
from uwfgit.store.locks.git_lock import replacing
from uwfgit.store.locks.holding import tidy_up
from uwfgit.store.safety import init, trust
from uwfgit.store.safety.config import FORMAT, REQUIRED, SHAPE, Config, is_mirror
from uwfgit.store.safety.refspecs import drop_forced
from uwfgit.store.safety.stores import (
    is_known,
    list_stores,
    make_id,
    register_store,
    write_id,
)

_STORE_CODES = frozenset({SHAPE, FORMAT})
_OID_LINE = re.compile(rb"[0-9a-f]{40}\s*")


def open_store(
    path: Path,
    *,
    home: Path,
    write: bool = False,
    fsync: bool = True,
    on_many_packs: Callable[[Store], object] | None = None,
) -> Store:
    """Open the store at ``path``, after every check that it is safe to open.

    What a process was killed at between two moves of refs is finished first.
    Nothing of the store acts before the checks are done: no git, no libgit2,
    no include. The store's own folder is what keeps others out (0700), so the
    process's umask stays as it is; an agent's files must not change with it.

    Args:
        home: Folder of the user's own state, ``UWF_HOME``.
        write: Switch fsync of objects and refs to ``fsync``. libgit2 knows one
            such switch a process; a store opened for reading leaves it alone.
        fsync: Only tests and bulk imports go without.
        on_many_packs: Called after a pack that makes them many; merges them.

    Raises:
        NotFoundError: There is nothing at ``path``.
        UntrustedError: It is not on this user's list, or holds what a store of
            theirs would not.
        StoreError: It is no repository that uwf can read.
        InvalidError: Its ``uwf.format`` is no number.
        FormatVersionError: A newer uwf made it.
        LockedError: Settings are to be mended, and another process keeps the
            config locked.
    """
    path = Path(os.path.realpath(path))
    if not os.path.lexists(path):
        raise NotFoundError("store", str(path), hint=_init_hint(path))
    if not is_known(path, home=home):
        if not (path / "objects").is_dir():
            own = path / ".git" / "uwf"
            hint = "a store is a bare repository that `uwf init` made"
            raise StoreError(
                f"'{path}' is not a store",
                hint=f"its store is {quote_word(str(own))}" if own.is_dir() else hint,
            )
        raise UntrustedError(
            f"store '{path}' was not made or trusted by you on this machine",
            hint=f"if you know it: uwf store trust {quote_word(str(path))}",
        )
    config = _require_usable(path, is_new=False)
    if write:
        if path not in list_stores(home):
            # It was moved, and brought its id along.
            register_store(path, home=home)
        _mend(path, config)
        pygit2.settings.enable_fsync_gitdir(fsync)
    flags = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.BARE
    with git_errors(f"open store '{path}'"):
        repo = pygit2.Repository(str(path), flags)
    store = make_store(path, repo, fsync=fsync, on_many_packs=on_many_packs)
    with suppress(StoreError):
        # One that may only be read is read as it is.
        tidy_up(store)
    return store


def _mend(path: Path, config: Config) -> None:
    """Put right what a checked store lacks to be written: settings, main, the hook.

    Raises:
        LockedError: Another process keeps the config, or ``main``, locked.
        StoreError: It cannot be written.
    """
    with git_errors(f"fix the settings of store '{path}'"):
        if not config.values.keys() >= REQUIRED:
            init.add_settings(path)
        try:
            main = (path / HEAD_REF).read_bytes()
        except FileNotFoundError:
            pass
        else:
            # libgit2 moves no ref at all beside a file that holds no oid.
            if not _OID_LINE.fullmatch(main):
                init.mend_main(path)
    # Whatever can be run there passed the checks: uwf wrote it.
    if not os.access(path / "hooks" / "pre-push", os.X_OK):
        with suppress(StoreError):
            # Another in its place, which git does not run, is left alone.
            trust.install_hook(path, "pre-push")


def init_store(path: Path, *, home: Path, fsync: bool = True) -> bool:
    """Make a store at ``path``, or complete the bare repository there; trust it.

    A new store appears whole or not at all, also beside another process that
    makes the same one. Of an existing repository HEAD is pointed at ``main`` and
    what is missing is added; before it passed the checks only its modes change.

    Returns:
        Whether there was nothing before.

    Raises:
        StoreError: There is something else at ``path``, a repository with a
            work tree, of a format uwf cannot read, or of another history.
        UntrustedError: The repository holds what a store may not.
        InvalidError: Its ``uwf.format`` is no number.
        FormatVersionError: A newer uwf made it.
        LockedError: Another process keeps its config locked.
    """
    path = Path(os.path.realpath(path))
    names = []
    try:
        with suppress(FileNotFoundError):
            names = [entry.name for entry in path.iterdir()]
    except OSError as exc:
        raise StoreError(f"cannot use '{path}' as a store: {exc.strerror}") from exc
    if not all(name.startswith(init.SCRATCH) for name in names):
        _complete(path, home=home)
        return False
    # Listed first: who finds the store finds it trusted.
    register_store(path, home=home)
    if init.make_store(path, id_=make_id(home), fsync=fsync):
        return True
    _complete(path, home=home)
    return False


def trust_store(path: Path, *, home: Path) -> bool:
    """Put an existing store on this user's list; return whether it was not yet.

    Raises:
        NotFoundError: There is nothing at ``path``.
        UntrustedError: It holds what no store may: naming it does not help.
        StoreError: It is no repository that uwf can read.
    """
    path = Path(os.path.realpath(path))
    if not os.path.lexists(path):
        raise NotFoundError("store", str(path), hint=_init_hint(path))
    if problems := trust.inspect_store(path).problems:
        raise _refusal(problems)
    return _adopt(path, home=home)


def _adopt(path: Path, *, home: Path) -> bool:
    """Make a store this user's; return whether it was not yet.

    What it says of "this machine" was said on another: all of that goes aside.

    Raises:
        UntrustedError: A link in it leads out of it.
        StoreError: It cannot be written.
    """
    if is_known(path, home=home):
        return register_store(path, home=home)
    _require_no_links(path)
    with git_errors(f"trust store '{path}'"):
        init.set_state_aside(path)
        write_id(path, make_id(home))
    register_store(path, home=home)
    return True


@contextmanager
def keeping_config(path: Path) -> Iterator[None]:
    """Put a store's config back as it was if the block makes it one that is refused.

    Raises:
        UntrustedError, StoreError: It was; names the setting.
    """
    file = path / "config"
    before = file.read_bytes()
    yield
    inspection = trust.inspect_store(path)
    if inspection.problems and file.read_bytes() != before:
        with git_errors(f"write '{file}'"), replacing(file) as stream:
            stream.write(before)
        refusal = _refusal(inspection.problems)
        refusal.hint = (
            "nothing was changed; for yourself: git config --global KEY VALUE"
        )
        raise refusal


def _require_no_links(path: Path) -> None:
    with git_errors(f"look through store '{path}'"):
        links = trust.find_links(path)
    if links:
        raise _refusal(links)


def _complete(path: Path, *, home: Path) -> None:
    init.await_maker(path)
    problems = trust.inspect_store(path).problems
    if problems and all(problem.code == trust.MODE for problem in problems):
        init.make_private(path)
    # Plain remotes are made of mirrors where nothing else is wrong.
    inspection = trust.inspect_store(path)
    mirrors = [entry for entry in inspection.config.entries if is_mirror(entry)]
    if mirrors and len(mirrors) == len(inspection.problems):
        with git_errors(f"complete store '{path}'"):
            drop_forced(path / "config", inspection.config.entries)
    config = _require_usable(path, is_new=True)
    if not is_known(path, home=home):
        _require_no_links(path)
    with git_errors(f"complete store '{path}'"):
        drop_forced(path / "config", config.entries)
        init.complete_store(path, config)
    _adopt(path, home=home)


def _refusal(problems: tuple[Problem, ...]) -> StoreError | UntrustedError:
    told = sorted(problems, key=lambda problem: problem.code not in _STORE_CODES)
    error = StoreError if told[0].code in _STORE_CODES else UntrustedError
    return error(f"store refused: {first_of(told)}", hint=told[0].hint)


def _require_usable(path: Path, *, is_new: bool) -> Config:
    """Refuse a repository that is not safe, or of a format uwf cannot read.

    With ``is_new`` it need not be a store yet.
    """
    inspection = trust.inspect_store(path)
    if inspection.problems:
        raise _refusal(inspection.problems)
    found = inspection.config.values.get("uwf.format")
    if found is None:
        if is_new:
            return inspection.config
        raise StoreError(
            f"'{path}' is a bare repository, but not yet a store",
            hint=_init_hint(path),
        )
    if not re.fullmatch(r"[1-9][0-9]{0,8}", found):
        raise InvalidError(f"'{path}' has no valid uwf.format: '{found}'")
    if int(found) > FORMAT_VERSION:
        raise FormatVersionError(
            f"store '{path}'", found=found, supported=str(FORMAT_VERSION)
        )
    return inspection.config


def _init_hint(path: Path) -> str:
    return f"run: uwf init --store {quote_word(str(path))}"
