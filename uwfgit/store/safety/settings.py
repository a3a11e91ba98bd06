"""Which settings a store's config may hold: none that makes git do something.

What is not on the list is refused, for newer versions of git have more of them.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from uwfgit.errors import Problem
from uwfgit.store.safety.configfile import ConfigEntry, find_value, is_true
from uwfgit.store.safety.refspecs import is_mirror

SHAPE: Final = "store-shape"
FORMAT: Final = "store-format"
CONFIG: Final = "store-config"

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


def problem_at(
    code: str, place: Path, message: str, hint: str | None = None
) -> Problem:
    """Return what is wrong with one place of a store."""
    return Problem(code=code, message=message, hint=hint, file=str(place))


def is_shared(config: tuple[ConfigEntry, ...]) -> bool:
    """Whether a group may write to the repository, as its config says."""
    value = find_value(config, "core.sharedrepository")
    if value is None:
        return False
    value = value.lower()
    if re.fullmatch(r"0[0-7]{3}", value):
        return bool(int(value, 8) & stat.S_IWGRP)
    return value in _SHARED or value in ("", "true", "yes", "on")


def check_config(path: Path, config: tuple[ConfigEntry, ...]) -> Iterator[Problem]:
    """Yield what may not stand in the config of the store at ``path``."""
    for entry in config:
        reason = _find_refusal(entry)
        if reason is None:
            continue
        hint = (
            "if you know how it came there: git config --file "
            f"{shlex.quote(str(path / 'config'))} --unset-all "
            f"{shlex.quote(entry.written)}"
        )
        if is_mirror(entry):
            hint = f"uwf init --store {shlex.quote(str(path))}"
        yield Problem(
            code=CONFIG,
            message=reason,
            hint=hint,
            file=str(path / "config"),
            line=entry.line,
        )
    if os.path.lexists(path / "config.worktree"):
        yield problem_at(CONFIG, path / "config.worktree", "is a second config")
    yield from _check_format(path, config)


def _find_refusal(entry: ConfigEntry) -> str | None:
    """Say why a setting may not stand in a store's config."""
    if entry.section == "uwf" or entry.key in _ALLOWED:
        return None
    value = entry.value or ""
    if entry.section in _TUNING and entry.subsection is None:
        plain = _NUMBER.fullmatch(value)
        return None if plain else f"'{entry.written}' is not a plain number"
    names = {"remote": _REMOTE, "branch": _BRANCH}.get(entry.section, frozenset())
    if not entry.subsection or entry.name not in names:
        return f"'{entry.written}' may not stand in a store's config"
    is_plain = entry.name == "tagopt" and value in ("--tags", "--no-tags")
    if entry.subsection.startswith("-") or (value.startswith("-") and not is_plain):
        return f"'{entry.written}' starts with '-', as an option would"
    if _COMMAND_URL.match(value) or _COMMAND_URL.match(entry.subsection):
        return f"'{entry.written}' runs a command"
    return None


def config_hint(path: Path) -> str:
    """Return what makes a store's config again, whose file was lost or cut."""
    file, store = shlex.quote(str(path / "config")), shlex.quote(str(path))
    return (
        f"git config --file {file} core.bare true && uwf init --store {store}; "
        "remotes are to be added again"
    )


def _check_format(path: Path, config: tuple[ConfigEntry, ...]) -> Iterator[Problem]:
    quoted = shlex.quote(str(path))
    if not config:
        yield problem_at(SHAPE, path / "config", "is empty", config_hint(path))
        return
    bare = [entry for entry in config if entry.key == "core.bare"]
    if not bare or not is_true(bare[-1].value):
        yield problem_at(
            SHAPE,
            path,
            "is not a bare repository",
            "'git clone --bare' makes one of it",
        )
    if (find_value(config, "extensions.objectformat") or "sha1").lower() != "sha1":
        yield problem_at(
            FORMAT,
            path,
            "uses sha256 object names; uwf reads sha1 only",
            "convert it: git init --bare --object-format=sha1 NEW && "
            f"git --git-dir={quoted} fast-export --all | "
            "git --git-dir=NEW fast-import",
        )
    if (find_value(config, "extensions.refstorage") or "files").lower() != "files":
        yield problem_at(
            FORMAT,
            path,
            "keeps its refs as reftable; uwf reads the files format only",
            f"convert it: git --git-dir={quoted} refs migrate --ref-format=files",
        )
