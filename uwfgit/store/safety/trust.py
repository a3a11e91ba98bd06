"""Check whose store it is and what it could make git do; the only place for that.

All of it is read with plain file calls: nothing here opens the repository,
runs git, follows an include or a link.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import InvalidError, Problem
from uwfgit.store.safety.configfile import ConfigEntry, find_value, read_config
from uwfgit.store.safety.hooks import is_own_hook
from uwfgit.store.safety.ref_files import find_damage
from uwfgit.store.safety.refspecs import is_mirror

INNER: Final = (
    "refs/heads",
    "refs/heads/thread",
    "refs/heads/workflow",
    "refs/tags",
    "refs/uwf",
    "objects/info",
    "objects/pack",
    "hooks/pre-push",
    "hooks/pre-receive",
)
"""A few, and no walk: every command looks at them before it starts."""


def iter_inner(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield those of a store's inner places that exist, links not followed."""
    for name in INNER:
        place = path / name
        try:
            status = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        yield place, status


SHAPE: Final = "store-shape"
FORMAT: Final = "store-format"
OWNER: Final = "store-owner"
MODE: Final = "store-mode"
LINK: Final = "store-link"
CONFIG: Final = "store-config"
HOOK: Final = "store-hook"
HISTORY: Final = "store-history"

_REQUIRED: Final = ("HEAD", "config", "objects", "refs")
_FOLDERS: Final = ("objects", "refs", "hooks", "uwf")
_FILES: Final = ("HEAD", "config", "packed-refs")
# git and libgit2 rewrite these two with the umask's mode. In a folder that
# nobody else can enter that is no danger.
_REWRITTEN: Final = frozenset({"HEAD", "packed-refs"})

_ALLOWED: Final = frozenset(
    {
        "core.repositoryformatversion",
        "core.filemode",
        "core.bare",
        "core.logallrefupdates",
        "core.sharedrepository",
        "core.ignorecase",
        "core.precomposeunicode",
        "core.symlinks",
        "extensions.objectformat",
        "extensions.refstorage",
        # Not gc.* as a whole: gc.recentObjectsHook is a command, and
        # gc.repackFilterTo names a path.
        "gc.aggressivedepth",
        "gc.aggressivewindow",
        "gc.auto",
        "gc.autodetach",
        "gc.autopacklimit",
        "gc.bigpackthreshold",
        "gc.cruftpacks",
        "gc.logexpiry",
        "gc.maxcruftsize",
        "gc.packrefs",
        "gc.pruneexpire",
        "gc.reflogexpire",
        "gc.reflogexpireunreachable",
        "gc.worktreepruneexpire",
        "gc.writecommitgraph",
        "maintenance.auto",
        "receive.advertiseatomic",
        "receive.advertisepushoptions",
        "receive.autogc",
        "receive.denycurrentbranch",
        "receive.denydeletecurrent",
        "receive.denydeletes",
        "receive.denynonfastforwards",
        "receive.fsckobjects",
        "receive.hiderefs",
        "receive.keepalive",
        "receive.maxinputsize",
        "receive.unpacklimit",
        "transfer.fsckobjects",
        "transfer.hiderefs",
        "transfer.unpacklimit",
    }
)
_TUNING: Final = frozenset({"pack", "repack"})
_REMOTE: Final = frozenset(
    {"fetch", "push", "pushurl", "tagopt", "url", "uwffollows", "uwfmemory"}
)
_BRANCH: Final = frozenset({"remote", "merge"})
_NUMBER: Final = re.compile(r"[0-9]+[kmg]?|true|false|yes|no|on|off|", re.IGNORECASE)
_COMMAND_URL: Final = re.compile(r"(?:ext|fd)::", re.IGNORECASE)
_SHARED: Final = frozenset({"1", "2", "group", "all", "world", "everybody"})

_CHANGED_HISTORY: Final = (
    ("shallow", "a shallow boundary"),
    ("info/grafts", "grafts"),
    ("objects/info/alternates", "objects of another repository"),
    ("objects/info/http-alternates", "objects of another repository"),
    ("commondir", "refs, objects and config of another folder"),
)


class Inspection(Struct, frozen=True, kw_only=True):
    """What is wrong with a store, and its config as far as it could be read."""

    problems: tuple[Problem, ...]
    config: tuple[ConfigEntry, ...]


def find_links(path: Path) -> tuple[Problem, ...]:
    """Find what leads out of a store that came from elsewhere.

    libgit2 follows a link in ``logs`` or ``refs`` and appends to its target.

    Raises:
        OSError: A folder cannot be read.
    """
    return tuple(
        _problem(
            LINK,
            Path(folder) / name,
            "is a symbolic link" if stat.S_ISLNK(mode) else "is not a plain file",
            f"if you know it, remove it: rm {shlex.quote(str(Path(folder) / name))}",
        )
        for folder, folders, files in os.walk(path, onerror=_raise)
        for name in (*folders, *files)
        if not stat.S_ISDIR(mode := os.lstat(f"{folder}/{name}").st_mode)
        and not stat.S_ISREG(mode)
    )


def _raise(error: OSError) -> None:
    raise error


def check_history(path: Path) -> tuple[Problem, ...]:
    """Return every reason why a repository may show another history than it has.

    For one that is only read, and never treated as a store.

    Raises:
        OSError: The folder cannot be read.
    """
    return tuple(_check_history(path, _read_entries(path)))


def inspect_store(path: Path) -> Inspection:
    """Return every reason not to let git or libgit2 near the store at ``path``.

    A folder that is no repository is that one problem; its files are not read.

    Raises:
        OSError: The folder cannot be read.
    """
    found = _read_entries(path)
    shape = tuple(_check_shape(path, found))
    if shape:
        return Inspection(problems=shape, config=())
    try:
        config = read_config(path / "config")
    except InvalidError as exc:
        return Inspection(problems=exc.problems, config=())
    problems = (
        *_check_owner(path, found),
        *_check_modes(path, found, shared=_is_shared(config)),
        *_check_inner(path, shared=_is_shared(config)),
        *_check_config(path, config),
        *_check_hooks(path, found),
        *_check_history(path, found),
    )
    if not problems:
        problems = tuple(
            _problem(SHAPE, path / each.file, each.message, each.hint)
            for each in find_damage(path)
        )
    return Inspection(problems=problems, config=config)


def _read_entries(path: Path) -> dict[str, os.stat_result]:
    found = {}
    for entry in os.scandir(path):
        # A lock file that a git at work makes is gone again in a moment.
        with suppress(FileNotFoundError):
            found[entry.name] = entry.stat(follow_symlinks=False)
    return found


def _check_shape(path: Path, found: Mapping[str, os.stat_result]) -> Iterator[Problem]:
    for name in (*_FOLDERS, *_FILES):
        status = found.get(name)
        if status is None:
            if name in _REQUIRED:
                yield _problem(
                    SHAPE,
                    path,
                    f"no bare git repository: '{name}' is missing",
                    "give a folder that 'uwf init' or 'git clone --bare' made",
                )
                return
        elif stat.S_ISLNK(status.st_mode):
            yield _problem(LINK, path / name, "is a symbolic link")
        elif stat.S_ISDIR(status.st_mode) != (name in _FOLDERS) or not (
            stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
        ):
            yield _problem(SHAPE, path / name, "is not a plain file or folder")


def _guarded(
    path: Path, found: Mapping[str, os.stat_result]
) -> Iterator[tuple[str, os.stat_result]]:
    yield ".", path.lstat()
    for name in (*_FOLDERS, *_FILES):
        if name in found:
            yield name, found[name]


def _check_owner(path: Path, found: Mapping[str, os.stat_result]) -> Iterator[Problem]:
    user = os.geteuid()
    for name, status in _guarded(path, found):
        if status.st_uid != user:
            yield _foreign(path, path / name, status)


def _check_modes(
    path: Path, found: Mapping[str, os.stat_result], *, shared: bool
) -> Iterator[Problem]:
    forbidden = stat.S_IWOTH | (0 if shared else stat.S_IWGRP)
    is_private = False
    for name, status in _guarded(path, found):
        if name == ".":
            is_private = not status.st_mode & (stat.S_IXGRP | stat.S_IXOTH)
        elif name in _REWRITTEN and is_private:
            continue
        if status.st_mode & forbidden:
            yield _writable(path, path / name)


def _is_shared(config: tuple[ConfigEntry, ...]) -> bool:
    value = find_value(config, "core.sharedrepository")
    if value is None:
        return False
    value = value.lower()
    if re.fullmatch(r"0[0-7]{3}", value):
        return bool(int(value, 8) & stat.S_IWGRP)
    return value in _SHARED or value in ("", "true", "yes", "on")


def _check_config(path: Path, config: tuple[ConfigEntry, ...]) -> Iterator[Problem]:
    for entry in config:
        reason = _find_refusal(entry)
        if reason is not None:
            yield Problem(
                code=CONFIG,
                message=reason,
                hint=_find_way(path, entry),
                file=str(path / "config"),
                line=entry.line,
            )
    if os.path.lexists(path / "config.worktree"):
        yield _problem(CONFIG, path / "config.worktree", "is a second config")
    yield from _check_format(path, config)


def _find_way(path: Path, entry: ConfigEntry) -> str:
    if is_mirror(entry):
        return f"uwf init --store {shlex.quote(str(path))}"
    return (
        "if you know how it came there: git config --file "
        f"{shlex.quote(str(path / 'config'))} --unset-all {shlex.quote(entry.written)}"
    )


def _find_refusal(entry: ConfigEntry) -> str | None:
    """Say why a setting may not stand in a store's config."""
    if entry.section == "uwf" or entry.key in _ALLOWED:
        return None
    if entry.section in _TUNING and entry.subsection is None:
        plain = _NUMBER.fullmatch(entry.value or "")
        return None if plain else f"'{entry.written}' is not a plain number"
    names = {"remote": _REMOTE, "branch": _BRANCH}.get(entry.section, frozenset())
    if entry.subsection and entry.name in names:
        return _find_remote_refusal(entry, entry.subsection)
    return f"'{entry.written}' may not stand in a store's config"


def _find_remote_refusal(entry: ConfigEntry, subsection: str) -> str | None:
    value = entry.value or ""
    if entry.name == "tagopt" and value in ("--tags", "--no-tags"):
        return None
    if subsection.startswith("-") or value.startswith("-"):
        return f"'{entry.written}' starts with '-', as an option would"
    if _COMMAND_URL.match(value) or _COMMAND_URL.match(subsection):
        return f"'{entry.written}' runs a command"
    return None


def _check_format(path: Path, config: tuple[ConfigEntry, ...]) -> Iterator[Problem]:
    quoted = shlex.quote(str(path))
    bare = [entry for entry in config if entry.key == "core.bare"]
    if not bare or not bare[-1].is_true:
        yield _problem(
            SHAPE,
            path,
            "is not a bare repository",
            "'git clone --bare' makes one of it",
        )
    if (find_value(config, "extensions.objectformat") or "sha1").lower() != "sha1":
        yield _problem(
            FORMAT,
            path,
            "uses sha256 object names; uwf reads sha1 only",
            "convert it: git init --bare --object-format=sha1 NEW && "
            f"git --git-dir={quoted} fast-export --all | "
            "git --git-dir=NEW fast-import",
        )
    if (find_value(config, "extensions.refstorage") or "files").lower() != "files":
        yield _problem(
            FORMAT,
            path,
            "keeps its refs as reftable; uwf reads the files format only",
            f"convert it: git --git-dir={quoted} refs migrate --ref-format=files",
        )


def _check_hooks(path: Path, found: Mapping[str, os.stat_result]) -> Iterator[Problem]:
    if "hooks" not in found:
        return
    for name, status in _read_entries(path / "hooks").items():
        file, mode = path / "hooks" / name, status.st_mode
        if name.endswith(".sample"):
            continue
        if stat.S_ISREG(mode) and is_own_hook(file):
            continue
        if stat.S_ISLNK(mode) or (stat.S_ISREG(mode) and mode & 0o111):
            yield _problem(
                HOOK,
                file,
                "is a hook that uwf did not write",
                "remove it, or take away its x bit",
            )


def _check_history(
    path: Path, found: Mapping[str, os.stat_result]
) -> Iterator[Problem]:
    for name, what in _CHANGED_HISTORY:
        if os.path.lexists(path / name):
            yield _problem(HISTORY, path / name, f"shows a changed history: {what}")
    if _has_replacements(path, found):
        yield _problem(
            HISTORY,
            path / "refs" / "replace",
            "shows a changed history: replace refs",
            "look at them with 'git replace -l', remove them with 'git replace -d'",
        )


def _has_replacements(path: Path, found: Mapping[str, os.stat_result]) -> bool:
    folder = path / "refs" / "replace"
    try:
        # git leaves the folder when the last of them is deleted.
        if folder.is_symlink():
            return True
        with os.scandir(folder) as entries:
            if any(entries):
                return True
    except FileNotFoundError:
        pass
    except NotADirectoryError:
        return True
    if "packed-refs" not in found:
        return False
    return b" refs/replace/" in (path / "packed-refs").read_bytes()


def _problem(code: str, place: Path, message: str, hint: str | None = None) -> Problem:
    return Problem(code=code, message=message, hint=hint, file=str(place))


def _check_inner(path: Path, *, shared: bool) -> Iterator[Problem]:
    # That a group may write one is no danger in a folder that nobody else can
    # enter; git makes them with the umask's mode.
    is_private = not path.lstat().st_mode & (stat.S_IXGRP | stat.S_IXOTH)
    forbidden = stat.S_IWOTH | (0 if shared or is_private else stat.S_IWGRP)
    for place, status in iter_inner(path):
        if stat.S_ISLNK(status.st_mode):
            # A hook that is one is named already.
            if place.parent.name != "hooks":
                yield _problem(LINK, place, "is a symbolic link")
        elif status.st_uid != os.geteuid():
            yield _foreign(path, place, status)
        elif status.st_mode & forbidden:
            yield _writable(path, place)


def _foreign(path: Path, place: Path, status: os.stat_result) -> Problem:
    hint = "use a store of your own; 'uwf clone' makes one"
    if status.st_uid == 0:
        # A container's root, who wrote into a folder of the user's.
        hint = (
            "if it was yours before root wrote there, as in a container: "
            f"sudo chown -R {os.geteuid()} {shlex.quote(str(path))}"
        )
    message = f"belongs to another user (uid {status.st_uid})"
    return _problem(OWNER, place, message, hint)


def _writable(path: Path, place: Path) -> Problem:
    return _problem(
        MODE,
        place,
        "may be written by other users",
        f"chmod -R go-w {shlex.quote(str(path))}",
    )
