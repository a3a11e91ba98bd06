"""Check whose store it is and what it could make git do; the only place for that.

All of it is read with plain file calls: nothing here opens the repository,
runs git, follows an include or a link. A hook of a store is run by whoever pushes into
it or out of it, so it may hold those that are written here, byte by byte, alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import InvalidError, Problem, StoreError
from uwfgit.shell import quote_word
from uwfgit.store.files import write_over
from uwfgit.store.layout import HEAD_REF
from uwfgit.store.safety.config import (
    SHAPE,
    Config,
    check_config,
    config_hint,
    is_shared,
    problem_at,
    read_config,
)

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

OWNER: Final = "store-owner"
MODE: Final = "store-mode"
LINK: Final = "store-link"
HOOK: Final = "store-hook"
HISTORY: Final = "store-history"

_REQUIRED: Final = ("HEAD", "config", "objects", "refs")
_FOLDERS: Final = ("objects", "refs", "hooks", "uwf")
_FILES: Final = ("HEAD", "config", "packed-refs")
# git and libgit2 rewrite these two with the umask's mode. In a folder that
# nobody else can enter that is no danger.
_REWRITTEN: Final = frozenset({"HEAD", "packed-refs"})

_CHANGED_HISTORY: Final = (
    ("shallow", "a shallow boundary"),
    ("info/grafts", "grafts"),
    ("objects/info/alternates", "objects of another repository"),
    ("objects/info/http-alternates", "objects of another repository"),
    ("commondir", "refs, objects and config of another folder"),
)
_HEAD: Final = re.compile(rb"(?:ref: refs/[^\s]+|[0-9a-f]{40})\n?")
_HEAD_BYTES: Final = 4096
_GOOD_LINES: Final = re.compile(
    rb"(?:#[^\n]*\n)*(?:[0-9a-f]{40} refs/[^\n]+\n(?:\^[0-9a-f]{40}\n)?)*"
)


class Inspection(Struct, frozen=True, kw_only=True):
    """What is wrong with a store, and its config as far as it could be read."""

    problems: tuple[Problem, ...]
    config: Config


_NO_CONFIG: Final = Config(entries=(), values={})


def find_links(path: Path) -> tuple[Problem, ...]:
    """Find what leads out of a store that came from elsewhere.

    libgit2 follows a link in ``logs`` or ``refs`` and appends to its target.

    Raises:
        OSError: A folder cannot be read.
    """
    return tuple(
        problem_at(
            LINK,
            Path(folder) / name,
            "is a symbolic link" if stat.S_ISLNK(mode) else "is not a plain file",
            f"if you know it, remove it: rm {quote_word(str(Path(folder) / name))}",
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
    packed = b""
    if "packed-refs" in _read_entries(path):
        packed = (path / "packed-refs").read_bytes()
    return tuple(_check_history(path, packed))


def inspect_store(path: Path) -> Inspection:
    """Return every reason not to let git or libgit2 near the store at ``path``.

    A folder that is no repository is that one problem; its files are not read.

    Raises:
        StoreError: The folder cannot be read.
    """
    try:
        found = _read_entries(path)
        shape = tuple(_check_shape(path, found))
        if shape:
            return Inspection(problems=shape, config=_NO_CONFIG)
        config = read_config(path / "config")
        packed = b""
        if "packed-refs" in found:
            packed = (path / "packed-refs").read_bytes()
        problems = (
            *_check_files(path, found, shared=is_shared(config)),
            *check_config(path, config),
            *_check_hooks(path, found),
            *_check_history(path, packed),
        )
        problems = problems or (*_find_damage(path, packed),)
        return Inspection(problems=problems, config=config)
    except InvalidError as exc:
        return Inspection(problems=exc.problems, config=_NO_CONFIG)
    except OSError as exc:
        raise StoreError(f"cannot read store '{path}': {exc.strerror}") from exc


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
                yield problem_at(
                    SHAPE,
                    path,
                    f"not a bare git repository: '{name}' is missing",
                    _missing_hint(path, name, is_ours="uwf" in found),
                )
                return
        elif stat.S_ISLNK(status.st_mode):
            yield problem_at(LINK, path / name, "is a symbolic link")
        elif stat.S_ISDIR(status.st_mode) != (name in _FOLDERS) or not (
            stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
        ):
            yield problem_at(SHAPE, path / name, "is not a plain file or folder")


def _missing_hint(path: Path, name: str, *, is_ours: bool) -> str:
    if is_ours and name == "config":
        return config_hint(path)
    if is_ours and name == "HEAD":
        return _head_hint(path)
    return "give a folder that 'uwf init' or 'git clone --bare' made"


def _head_hint(path: Path) -> str:
    return f"echo 'ref: {HEAD_REF}' > {quote_word(str(path / 'HEAD'))}"


def _check_files(
    path: Path, found: Mapping[str, os.stat_result], *, shared: bool
) -> Iterator[Problem]:
    user, own = os.geteuid(), path.lstat()
    guarded = {
        path / name: found[name] for name in (*_FOLDERS, *_FILES) if name in found
    }
    guarded = {path: own, **guarded}
    yield from (
        _foreign(path, place, status)
        for place, status in guarded.items()
        if status.st_uid != user
    )
    is_private = not own.st_mode & (stat.S_IXGRP | stat.S_IXOTH)
    forbidden = stat.S_IWOTH | (0 if shared else stat.S_IWGRP)
    for place, status in guarded.items():
        is_rewritten = place.name in _REWRITTEN and place != path
        if status.st_mode & forbidden and not (is_private and is_rewritten):
            yield _writable(path, place)
    # That a group may write one below is no danger in a folder that nobody else
    # can enter; git makes them with the umask's mode.
    forbidden = stat.S_IWOTH if is_private else forbidden
    for place in (path / name for name in INNER):
        try:
            status = place.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISLNK(status.st_mode):
            # A hook that is one is named already.
            if place.parent.name != "hooks":
                yield problem_at(LINK, place, "is a symbolic link")
        elif status.st_uid != user:
            yield _foreign(path, place, status)
        elif status.st_mode & forbidden:
            yield _writable(path, place)


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
            yield problem_at(
                HOOK,
                file,
                "is a hook that uwf did not write",
                "remove it, or take away its x bit",
            )


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


def _check_history(path: Path, packed: bytes) -> Iterator[Problem]:
    for name, what in _CHANGED_HISTORY:
        if os.path.lexists(path / name):
            yield problem_at(HISTORY, path / name, f"shows a changed history: {what}")
    folder = path / "refs" / "replace"
    try:
        # git leaves the folder when the last of them is deleted.
        is_changed = folder.is_symlink() or any(folder.iterdir())
    except FileNotFoundError:
        is_changed = False
    except NotADirectoryError:
        is_changed = True
    if is_changed or b" refs/replace/" in packed:
        git = f"git --git-dir={quote_word(str(path))} replace"
        yield problem_at(
            HISTORY,
            folder,
            "shows a changed history: replace refs",
            f"look at them with: {git} -l; remove one with: {git} -d OBJECT",
        )


def _find_damage(path: Path, packed: bytes) -> Iterator[Problem]:
    """Find what a crash, or a full disk, has cut.

    git refuses such a repository. libgit2 reads on, and threads would seem not to
    be there.
    """
    with (path / "HEAD").open("rb") as file:
        if not _HEAD.fullmatch(file.read(_HEAD_BYTES)):
            yield problem_at(SHAPE, path / "HEAD", "is damaged", _head_hint(path))
    # Every command asks: counting ten thousand lines takes a tenth of the pattern.
    kinds = (packed.count(b" refs/"), packed.count(b"\n^"), packed.startswith(b"#"))
    if sum(kinds) != packed.count(b"\n") or (packed and packed[-1:] != b"\n"):
        good = _GOOD_LINES.match(packed)
        line = packed.count(b"\n", 0, good.end() if good else 0) + 1
        yield problem_at(
            SHAPE,
            path / "packed-refs",
            f"is damaged from line {line} on",
            "keep its good lines; a branch that is lost with the others stands last "
            f"in its file below {quote_word(str(path / 'logs'))}",
        )


def _foreign(path: Path, place: Path, status: os.stat_result) -> Problem:
    hint = "use a store of your own; 'uwf clone' makes one"
    if status.st_uid == 0:
        # A container's root, who wrote into a folder of the user's.
        hint = (
            "if it was yours before root wrote there, as in a container: "
            f"sudo chown -R {os.geteuid()} {quote_word(str(path))}"
        )
    message = f"belongs to another user (uid {status.st_uid})"
    return problem_at(OWNER, place, message, hint)


def _writable(path: Path, place: Path) -> Problem:
    return problem_at(
        MODE,
        place,
        "may be written by other users",
        f"chmod -R go-w {quote_word(str(path))}",
    )


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


def fingerprint(path: Path) -> frozenset[tuple[str, str]]:
    """Return the files that steer git in a store, with digests: no agent changes one.

    Two of them differ by what was changed in between. A file that cannot be read has
    an empty digest, so its coming and going shows as well.
    """
    names = ["config", "info/attributes"]
    with suppress(OSError):
        names += sorted(f"hooks/{name}" for name in os.listdir(path / "hooks"))  # noqa: PTH208 - twice a step
    found = dict.fromkeys(names, "")
    for name in names:
        with suppress(OSError), open(f"{path}/{name}", "rb") as file:  # noqa: PTH123 - twice a step
            found[name] = hashlib.sha256(file.read()).hexdigest()
    return frozenset(found.items())
