"""Who a person is to git, and what they set: git is asked, and read for without it.

Which address, which identity, which setting: git reads a dozen files and variables
for that, with conditions in them. Nobody reads them as git does but git.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import StoreError
from uwfgit.store.git.enclosing import Enclosing
from uwfgit.store.git.gitcmd import GitResult, run_git
from uwfgit.store.libgit2 import RepositoryOpenFlag, pygit2

if sys.platform != "win32":
    import pwd

_SECONDS: Final = 30.0
_NOWHERE: Final = Path("/")
"""No repository's folder: what holds there is the user's own."""
_OWN: Final = frozenset({"local", "worktree"})
_PASSED: Final = re.compile(
    r"url\..*|http\..*|credential\..*|core\.sshcommand|ssh\.variant", re.DOTALL
)
_PASSED_OF_REMOTE: Final = (
    "proxy",
    "proxyauthmethod",
    "receivepack",
    "serveroption",
    "uploadpack",
)
_COUNT: Final = "GIT_CONFIG_COUNT"
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


class Addresses(Struct, frozen=True, kw_only=True):
    """Where git fetches a remote from, and all the places it pushes it to."""

    fetch: str
    push: tuple[str, ...]


def _ask(
    args: list[str], environment: Mapping[str, str], root: Path | None
) -> GitResult | None:
    try:
        done = run_git(
            args,
            git_dir=None,
            cwd=root or _NOWHERE,
            environment=environment,
            timeout=_SECONDS,
        )
    except (StoreError, ValueError):
        # There is no git, or a NUL in a variable, which no program takes.
        return None
    return done if done.code == 0 else None


def ask_remotes(root: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Name the remotes of a work tree's repository."""
    done = _ask(["remote"], environment, root)
    return tuple(done.text.split("\n")) if done is not None and done.text else ()


def ask_addresses(
    root: Path, name: str, environment: Mapping[str, str]
) -> Addresses | None:
    """Return where a remote of a work tree's repository is, all rewriting done.

    ``None`` when there is no such remote.
    """
    fetch = _ask(["remote", "get-url", "--", name], environment, root)
    push = _ask(["remote", "get-url", "--push", "--all", "--", name], environment, root)
    if fetch is None or push is None or not fetch.text or not push.text:
        return None
    return Addresses(fetch=fetch.text, push=tuple(push.text.split("\n")))


def ask_push_addresses(
    git_dir: Path, name: str, environment: Mapping[str, str], *, folder: Path
) -> tuple[str, ...]:
    """Return all places that a push to a bare repository's remote goes to."""
    done = run_git(
        ["remote", "get-url", "--push", "--all", "--", name],
        git_dir=git_dir,
        cwd=folder,
        environment=environment,
        timeout=_SECONDS,
    )
    return tuple(done.text.split("\n")) if done.code == 0 and done.text else ()


def pass_settings(
    root: Path, remote: str, environment: Mapping[str, str], *, called: str
) -> dict[str, str]:
    """Return an environment in which git talks to a remote as it does in a work tree.

    Of the repository's own settings only those go along that say how to reach a
    remote: rewriting of addresses, ssh, http, credentials, and the remote's own.

    Args:
        root: Top of the work tree.
        remote: Which of its remotes.
        environment: What git's starts from.
        called: The remote's name in the repository that will talk to it.
    """
    done = _ask(["config", "-z", "--show-scope", "--list"], environment, root)
    if done is None:
        return dict(environment)
    fields = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    own = [
        item.partition("\n")
        for scope, item in zip(fields[::2], fields[1::2], strict=False)
        if scope in _OWN
    ]
    renamed = ((_rename(key, remote, called), value) for key, _, value in own)
    return _with_settings(environment, [(key, value) for key, value in renamed if key])


def _rename(key: str, remote: str, called: str) -> str | None:
    """Name a setting as it is to be passed on; ``None`` for one that stays."""
    if _PASSED.fullmatch(key):
        return key
    for name in _PASSED_OF_REMOTE:
        if key == f"remote.{remote}.{name}":
            return f"remote.{called}.{name}"
    return None


def _with_settings(
    environment: Mapping[str, str], settings: Iterable[tuple[str, str]]
) -> dict[str, str]:
    told = environment.get(_COUNT, "0")
    count = int(told) if told.isascii() and told.isdecimal() else 0
    added = dict(environment)
    for key, value in settings:
        added[f"GIT_CONFIG_KEY_{count}"] = key
        added[f"GIT_CONFIG_VALUE_{count}"] = value
        count += 1
    added[_COUNT] = str(count)
    return added


def read_settings(
    environment: Mapping[str, str], *, enclosing: Enclosing | None = None
) -> dict[str, str]:
    """Return all settings of git's that hold: the repository's, over the user's.

    Named as git prints them, section and name in lower case; of each the value that
    counts. Never fails: what does not parse has no effect. A key without a value is
    ``true``, as for git.

    Args:
        environment: What git's starts from.
        enclosing: The repository, if there is one.
    """
    root = enclosing.root if enclosing else None
    if (done := _ask(["config", "-z", "--list"], environment, root)) is not None:
        items = done.stdout.decode("utf-8", "replace").split("\0")
        pairs = (item.partition("\n") for item in items if item)
        return {key: value if sign else "true" for key, sign, value in pairs}
    found: dict[str, str] = {}
    for config in _iter_configs(environment, enclosing):
        for key in {str(entry.name) for entry in config} - found.keys():
            value: object = config[key]
            found[key] = str(value) if value is not None else "true"
    return found


def find_identity(
    environment: Mapping[str, str], settings: Mapping[str, str]
) -> Identity:
    """Find who commits, as git does: by the environment, else by its settings.

    What is missing is made up of login and host. Characters that a commit may not
    hold are left out.
    """
    found = {}
    for part in ("name", "email"):
        given = (
            environment.get(f"GIT_COMMITTER_{part.upper()}"),
            settings.get(f"committer.{part}"),
            settings.get(f"user.{part}"),
        )
        found[part] = next(filter(None, (_clean(each or "") for each in given)), "")
    name = found["name"]
    email = found["email"] or _clean(environment.get("EMAIL", ""))
    if name and email:
        return Identity(name=name, email=email)
    login = _find_login(environment)
    host = _clean(socket.gethostname()) or "localhost"
    return Identity(
        name=name or login, email=email or f"{login}@{host}", is_default=True
    )


def _iter_configs(
    environment: Mapping[str, str], enclosing: Enclosing | None
) -> Iterator[pygit2.Config]:
    if enclosing is not None:
        yield from _iter_repository_config(enclosing)
    for path in _list_user_configs(environment):
        try:
            yield pygit2.Config(str(path))
        except (pygit2.GitError, OSError, ValueError):
            continue


def _iter_repository_config(enclosing: Enclosing) -> Iterator[pygit2.Config]:
    try:
        # With libgit2's reading of the user's files behind the repository's
        # own, so that includeIf "gitdir:" holds.
        repo = pygit2.Repository(str(enclosing.git_dir), RepositoryOpenFlag.NO_SEARCH)
        yield repo.config
    except (pygit2.GitError, OSError, ValueError):
        path = enclosing.common_dir / "config"
        try:
            if path.stat().st_uid == os.geteuid():
                yield pygit2.Config(str(path))
        except (pygit2.GitError, OSError, ValueError):
            return


def _list_user_configs(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """List the user's config files, the one that wins first."""
    if environment.get("GIT_CONFIG_GLOBAL"):
        return (Path(environment["GIT_CONFIG_GLOBAL"]),)
    home = Path(environment["HOME"]) if environment.get("HOME") else None
    base = environment.get("XDG_CONFIG_HOME")
    config_home = Path(base) if base else home and home / ".config"
    found = []
    if home is not None:
        found.append(home / ".gitconfig")
    if config_home is not None:
        found.append(config_home / "git" / "config")
    return tuple(path for path in found if path.is_file())


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
