"""A store's config, read without git: its settings, which may stand there, and shall.

The check of a store must know its config before anything that would act on it (or
follow its includes) has read it. What is not on the list of settings is refused, for
newer versions of git have more that make it do something.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.constants import FORMAT_VERSION
from uwfgit.errors import InvalidError, Problem
from uwfgit.shell import quote_word

# Git's grammar less the forms that neither git nor a person at ease writes: a
# key beside its section, a value over several lines. What is not plain is
# refused rather than guessed, so nothing can hide in a reading of our own.
_SECTION = re.compile(
    r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\["\\])*)")?\][ \t]*(?:[#;].*)?'
)
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=.*)?")
_SPECIAL = re.compile(r'["\\#;]')
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPES: Final = {"n": "\n", "t": "\t", "b": "\b", "\\": "\\", '"': '"'}
_TRUE: Final = frozenset({"true", "yes", "on", "1"})

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

SETTINGS: Final = {
    "core.logAllRefUpdates": "always",
    "gc.auto": "0",
    # libgit2 does not see that an object lives only in a cruft pack, and
    # "writes" nothing; the next prune would take it.
    "gc.cruftPacks": "false",
    "gc.pruneExpire": "2.weeks.ago",
    "gc.reflogExpire": "90.days",
    "gc.reflogExpireUnreachable": "30.days",
    # A gc that is killed leaves one that names commits it pruned.
    "gc.writeCommitGraph": "false",
    "maintenance.auto": "false",
    "receive.autogc": "false",
    "receive.denyNonFastForwards": "true",
    "receive.fsckObjects": "true",
    "transfer.fsckObjects": "true",
    "uwf.format": str(FORMAT_VERSION),
}
"""What uwf writes into the config of every store."""
REQUIRED: Final = frozenset(key.lower() for key in SETTINGS)
"""Their keys, as a config's values have them."""
_FREE: Final = frozenset(
    {"gc.pruneExpire", "gc.reflogExpire", "gc.reflogExpireUnreachable"}
)
_ALIASES: Final = {"no": "false", "off": "false", "yes": "true", "on": "true"}


class ConfigEntry(Struct, frozen=True, kw_only=True):
    """One setting: its dotted key and the parts of it, its value and its line.

    Section and name are lower case, the subsection as written, as ``git
    config`` prints them; ``written`` is the key as it stands in the file. The
    value is ``None`` for a key without ``=``, which git reads as true.
    """

    key: str
    section: str
    subsection: str | None
    name: str
    written: str
    value: str | None
    line: int


class Config(Struct, frozen=True, kw_only=True):
    """The settings of one file: all in their order, and of each key what holds.

    That is the last value, and an empty one for a key without ``=``.
    """

    entries: tuple[ConfigEntry, ...]
    values: Mapping[str, str]


def is_true(value: str | None) -> bool:
    """Whether git would read a value as true, as it does that of a key without one."""
    return value is None or value.lower() in _TRUE


def read_config(path: Path) -> Config:
    """Read the settings of one file; includes are entries.

    Raises:
        InvalidError: A line is not in the plain form git itself writes.
        OSError: The file cannot be read.
    """
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    entries: list[ConfigEntry] = []
    group = middle = None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.removesuffix("\r").strip(" \t")
        if not line or line[0] in "#;":
            continue
        match = (_SECTION if line[0] == "[" else _KEY).fullmatch(line)
        if match is None or _CONTROL.search(line):
            raise _not_plain(path, number)
        if line[0] == "[":
            group, middle = match[1], match[2]
            if middle is not None:
                middle = re.sub(r"\\(.)", r"\1", middle)
            continue
        if group is None:
            raise _not_plain(path, number)
        between = "." if middle is None else f".{middle}."
        value = match[2] and match[2][1:].strip(" \t")
        if value and _SPECIAL.search(value):
            value = _unquote(value)
            if value is None:
                raise _not_plain(path, number)
        entries.append(
            ConfigEntry(
                key=f"{group.lower()}{between}{match[1].lower()}",
                section=group.lower(),
                subsection=middle,
                name=match[1].lower(),
                written=f"{group}{between}{match[1]}",
                value=value,
                line=number,
            )
        )
    values = {entry.key: entry.value or "" for entry in entries}
    return Config(entries=tuple(entries), values=values)


def _unquote(value: str) -> str | None:
    """Take quotes, escapes and a comment away; ``None`` when they do not close."""
    out: list[str] = []
    quoted = False
    solid = 0  # what stands before here is no trailing white space
    chars = iter(value)
    for char in chars:
        if char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        elif char == "\\":
            escaped = _ESCAPES.get(next(chars, ""))
            if escaped is None:
                return None
            out.append(escaped)
        else:
            out.append(char)
            if char in " \t" and not quoted:
                continue
        solid = len(out)
    return None if quoted else "".join(out[:solid])


def _not_plain(file: Path, line: int) -> InvalidError:
    problem = Problem(
        code="config",
        message="not a plain git config line",
        hint="write one section or 'key = value' a line",
        file=str(file),
        line=line,
    )
    return InvalidError((problem,))


def is_mirror(entry: ConfigEntry) -> bool:
    """Whether a setting makes a remote a mirror."""
    return entry.section == "remote" and entry.name == "mirror"


def problem_at(
    code: str, place: Path, message: str, hint: str | None = None
) -> Problem:
    """Return what is wrong with one place of a store."""
    return Problem(code=code, message=message, hint=hint, file=str(place))


def is_shared(config: Config) -> bool:
    """Whether a group may write to the repository, as its config says."""
    value = config.values.get("core.sharedrepository")
    if value is None:
        return False
    value = value.lower()
    if re.fullmatch(r"0[0-7]{3}", value):
        return bool(int(value, 8) & stat.S_IWGRP)
    return value in _SHARED or value in ("", "true", "yes", "on")


def check_config(path: Path, config: Config) -> Iterator[Problem]:
    """Yield what may not stand in the config of the store at ``path``."""
    for entry in config.entries:
        reason = _find_refusal(entry)
        if reason is None:
            continue
        hint = (
            "if you know how it came there: git config --file "
            f"{quote_word(str(path / 'config'))} --unset-all "
            f"{quote_word(entry.written)}"
        )
        if is_mirror(entry):
            hint = f"uwf init --store {quote_word(str(path))}"
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
        return f"'{entry.written}' is not allowed in a store's config"
    is_plain = entry.name == "tagopt" and value in ("--tags", "--no-tags")
    if entry.subsection.startswith("-") or (value.startswith("-") and not is_plain):
        return f"'{entry.written}' starts with '-', as an option would"
    if _COMMAND_URL.match(value) or _COMMAND_URL.match(entry.subsection):
        return f"'{entry.written}' runs a command"
    return None


def config_hint(path: Path) -> str:
    """Return what makes a store's config again, whose file was lost or cut."""
    file, store = quote_word(str(path / "config")), quote_word(str(path))
    return (
        f"git config --file {file} core.bare true && uwf init --store {store}; "
        "remotes are to be added again"
    )


def _check_format(path: Path, config: Config) -> Iterator[Problem]:
    if not config.entries:
        yield problem_at(SHAPE, path / "config", "is empty", config_hint(path))
        return
    bare = [entry for entry in config.entries if entry.key == "core.bare"]
    if not bare or not is_true(bare[-1].value):
        yield problem_at(
            SHAPE,
            path,
            "is not a bare repository",
            "'git clone --bare' makes one of it",
        )
    if (config.values.get("extensions.objectformat") or "sha1").lower() != "sha1":
        yield problem_at(
            FORMAT,
            path,
            "uses sha256 object names; uwf reads sha1 only",
            "convert it: git init --bare --object-format=sha1 NEW && "
            f"git --git-dir={quote_word(str(path))} fast-export --all | "
            "git --git-dir=NEW fast-import",
        )
    if (config.values.get("extensions.refstorage") or "files").lower() != "files":
        yield problem_at(
            FORMAT,
            path,
            "keeps its refs as reftable; uwf reads the files format only",
            f"convert it: git --git-dir={quote_word(str(path))} refs migrate "
            "--ref-format=files",
        )


class Setting(Struct, frozen=True, kw_only=True):
    """A setting that is not as uwf writes it; ``found`` is ``None`` when missing."""

    key: str
    wanted: str
    found: str | None


def check_settings(config: Config) -> tuple[Setting, ...]:
    """Return the settings of a store that are missing, or differ where none may.

    How long unreachable objects and reflogs stay is the user's own affair.
    """
    found = []
    for key, wanted in SETTINGS.items():
        value = config.values.get(key.lower())
        if value is None or not (key in _FREE or _is_same(value, wanted)):
            found.append(Setting(key=key, wanted=wanted, found=value))
    return tuple(found)


def _is_same(value: str, wanted: str) -> bool:
    return _ALIASES.get(value.lower(), value.lower()) == wanted.lower()
