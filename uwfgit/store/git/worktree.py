"""The repository a person works in, and who they are to git; read, never written.

It is not the store: its objects are not ours, it may be of any format, and
nothing in it is trusted.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import CorruptError, StoreError
from uwfgit.store.git.asking import ask_identity, ask_settings
from uwfgit.store.git.enclosing import Enclosing, find_common_dir, find_git_dir
from uwfgit.store.git.gitcmd import find_git, run_git
from uwfgit.store.libgit2 import RepositoryOpenFlag, pygit2
from uwfgit.store.private import write_private
from uwfgit.store.raw import RawObjects
from uwfgit.store.safety.plainfile import read_start

if sys.platform != "win32":
    import pwd

_GIT_SECONDS: Final = 30.0
_WALK_SECONDS: Final = 120.0
"""For a whole history, which is walked once."""
_NEAR: Final = 1000
_OID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NO_ENVIRONMENT: Final[Mapping[str, str]] = {}
# Brackets end a name for git; the others turn text around on a screen, and
# verify refuses a commit whose author or committer holds one.
_REFUSED: Final = frozenset("<>\u061c\u200e\u200f\u2028\u2029\ufeff") | frozenset(
    chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
)
_CRUD: Final = " .,:;<>\"\\'"


class Identity(Struct, frozen=True, kw_only=True):
    """Who commits; ``is_default`` when a part is made up from login and host."""

    name: str
    email: str
    is_default: bool = False

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


def read_head(
    root: Path, *, environment: Mapping[str, str] = _NO_ENVIRONMENT
) -> str | None:
    """Return the oid HEAD of the work tree at ``root`` stands at.

    ``None`` without a repository or a commit. A repository that libgit2 does
    not open (sha256, reftable, another owner) is asked through git, if
    ``environment`` has one; git refuses strangers' repositories itself.
    """
    git_dir = find_git_dir(root / ".git")
    if git_dir is None:
        return None
    try:
        repo = _open_once(git_dir)
        return None if repo.head_is_unborn else str(repo.head.target)
    except (pygit2.GitError, KeyError, OSError, ValueError):
        options = ("--verify", "--quiet")
        return _ask_git(root, "rev-parse", *options, "HEAD", environment=environment)


def root_commit(
    root: Path,
    *,
    environment: Mapping[str, str] = _NO_ENVIRONMENT,
    memory: Path | None = None,
) -> str | None:
    """Return the oid of the first commit of the work tree's repository.

    Found along first parents, so it is one. ``None`` without a commit, and in
    a shallow clone, which does not have it.

    Args:
        root: The top of the work tree.
        environment: Finds git.
        memory: The user's own folder, where it is remembered: a history of half a
            million commits takes seconds to walk.
    """
    git_dir = find_git_dir(root / ".git")
    if git_dir is None or (find_common_dir(git_dir) / "shallow").exists():
        return None
    if find_git(environment) is None:
        return _walk_to_root(git_dir)
    head = read_head(root, environment=environment) if memory is not None else None
    if memory is None or head is None:
        return _ask_root(root, environment)
    file = _memory_of(memory, find_common_dir(git_dir))
    known = _recall(file)
    if known is not None and _goes_on(root, known[0], head, environment):
        found: str | None = known[1]
    else:
        found = _ask_root(root, environment)
    if found is not None and known != (head, found):
        with suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(file, f"{head} {found}\n")
    return found


def _ask_root(root: Path, environment: Mapping[str, str]) -> str | None:
    options = ("--first-parent", "--max-parents=0")
    return _ask_git(
        root,
        "rev-list",
        *options,
        "HEAD",
        environment=environment,
        timeout=_WALK_SECONDS,
    )


def _memory_of(memory: Path, common_dir: Path) -> Path:
    name = hashlib.sha256(os.fsencode(common_dir)).hexdigest()[:32]
    return memory / "roots" / name


def _recall(file: Path) -> tuple[str, str] | None:
    try:
        words = read_start(file, most=256).decode("ascii", "replace").split()
    except OSError:
        return None
    if len(words) != 2 or not all(map(_OID.fullmatch, words)):  # noqa: PLR2004 - head and root
        return None
    return words[0], words[1]


def _goes_on(root: Path, known: str, head: str, environment: Mapping[str, str]) -> bool:
    """Whether one commit is on the chain of first parents of another, and near it."""
    if known == head:
        return True
    words = ("--first-parent", "--parents", f"--max-count={_NEAR}", head, f"^{known}")
    try:
        done = run_git(
            ["rev-list", *words, "--"],
            git_dir=None,
            cwd=root,
            environment=environment,
            timeout=_GIT_SECONDS,
        )
    except StoreError:
        return False
    last = done.text.rpartition("\n")[2].split()
    # Its first parent is the first commit of the chain that the other reaches.
    return done.code == 0 and last[1:2] == [known]


def find_identity(
    environment: Mapping[str, str],
    *,
    enclosing: Enclosing | None = None,
    home: Path | None = None,
) -> Identity:
    """Find who commits: the environment, the repository's config, the user's.

    Never fails: what is missing is made up of login and host. Characters that
    a commit may not hold are left out.

    Args:
        home: The user's home folder, if not the environment's ``HOME``.
    """
    told = ask_identity(environment, root=enclosing.root if enclosing else None)
    if told is not None:
        name, email = map(_clean, told)
        if name and email:
            return Identity(name=name, email=email)
    configs = tuple(_iter_configs(environment, enclosing, home))
    name = _find_part("name", environment, configs)
    email = _find_part("email", environment, configs)
    email = email or _clean(environment.get("EMAIL", ""))
    if name and email:
        return Identity(name=name, email=email)
    login = _find_login(environment)
    host = _clean(socket.gethostname()) or "localhost"
    return Identity(
        name=name or login, email=email or f"{login}@{host}", is_default=True
    )


def find_settings(
    keys: Iterable[str],
    environment: Mapping[str, str],
    *,
    enclosing: Enclosing | None = None,
    home: Path | None = None,
) -> dict[str, str]:
    """Return those settings there are: of the repository's config, else the user's.

    Never fails: what does not parse has no effect. A key without a value is
    ``true``, as for git.

    Args:
        home: The user's home folder, if not the environment's ``HOME``.
    """
    found: dict[str, str] = {}
    wanted = tuple(keys)
    told = ask_settings(environment, root=enclosing.root if enclosing else None)
    if told is not None:
        folded = {key: told.get(_fold(key)) for key in wanted}
        return {key: value for key, value in folded.items() if value is not None}
    for config in _iter_configs(environment, enclosing, home):
        for key in wanted:
            if key not in found and key in config:
                value: object = config[key]
                found[key] = str(value) if value is not None else "true"
    return found


def _fold(key: str) -> str:
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    parts = (section.lower(), middle, name.lower())
    return ".".join(part for part in parts if part)


def _open(git_dir: Path) -> pygit2.Repository:
    return pygit2.Repository(str(git_dir), RepositoryOpenFlag.NO_SEARCH)


@lru_cache(maxsize=8)
def _open_once(git_dir: Path) -> pygit2.Repository:
    # Asked twice a step. Refs are read anew each time; config would not be.
    return _open(git_dir)


def _ask_git(
    root: Path,
    *args: str,
    environment: Mapping[str, str],
    timeout: float = _GIT_SECONDS,
) -> str | None:
    if find_git(environment) is None:
        return None
    try:
        result = run_git(
            args, git_dir=None, cwd=root, environment=environment, timeout=timeout
        )
    except StoreError:
        return None
    return result.text if result.code == 0 and _OID.fullmatch(result.text) else None


def _walk_to_root(git_dir: Path) -> str | None:
    objects = RawObjects(find_common_dir(git_dir) / "objects")
    try:
        oid = str(_open(git_dir).head.target)
        while parents := objects.read_links(oid).parents:
            oid = parents[0]
    except (CorruptError, pygit2.GitError, KeyError, OSError, ValueError):
        return None
    return oid


def _iter_configs(
    environment: Mapping[str, str], enclosing: Enclosing | None, home: Path | None
) -> Iterator[pygit2.Config]:
    if enclosing is not None:
        yield from _iter_repository_config(enclosing)
    for path in _list_user_configs(environment, home):
        try:
            yield pygit2.Config(str(path))
        except (pygit2.GitError, OSError, ValueError):
            continue


def _iter_repository_config(enclosing: Enclosing) -> Iterator[pygit2.Config]:
    try:
        # With libgit2's reading of the user's files behind the repository's
        # own, so that includeIf "gitdir:" holds.
        yield _open(enclosing.git_dir).config
    except (pygit2.GitError, OSError, ValueError):
        path = enclosing.common_dir / "config"
        try:
            if path.stat().st_uid == os.geteuid():
                yield pygit2.Config(str(path))
        except (pygit2.GitError, OSError, ValueError):
            return


def _list_user_configs(
    environment: Mapping[str, str], home: Path | None
) -> tuple[Path, ...]:
    """List the user's config files, the one that wins first."""
    if environment.get("GIT_CONFIG_GLOBAL"):
        return (Path(environment["GIT_CONFIG_GLOBAL"]),)
    if home is None and environment.get("HOME"):
        home = Path(environment["HOME"])
    base = environment.get("XDG_CONFIG_HOME")
    config_home = Path(base) if base else home and home / ".config"
    found = []
    if home is not None:
        found.append(home / ".gitconfig")
    if config_home is not None:
        found.append(config_home / "git" / "config")
    return tuple(path for path in found if path.is_file())


def _find_part(
    part: str, environment: Mapping[str, str], configs: Sequence[pygit2.Config]
) -> str:
    given = _clean(environment.get(f"GIT_COMMITTER_{part.upper()}", ""))
    if given:
        return given
    for key in (f"committer.{part}", f"user.{part}"):
        for config in configs:
            if key in config and (value := _clean(config[key] or "")):
                return value
    return ""


def _find_login(environment: Mapping[str, str]) -> str:
    for variable in ("LOGNAME", "USER"):
        if login := _clean(environment.get(variable, "")):
            return login
    try:
        return _clean(pwd.getpwuid(os.geteuid()).pw_name) or "uwf"
    except KeyError:
        return "uwf"


def _clean(text: str) -> str:
    """Leave out what git or verify would not take, as git does at the ends."""
    kept = (
        "\ufffd" if unicodedata.category(char) == "Cs" else char
        for char in text
        if char not in _REFUSED and unicodedata.category(char) != "Cc"
    )
    return "".join(kept).strip(_CRUD)
