"""Ask git what it would do in the repository a person works in.

Which address, which identity, which setting: git reads a dozen files and
variables for that, with conditions in them. Nobody reads them as git does but git.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import StoreError
from uwfgit.store.git.gitcmd import GitResult, find_git, run_git

_SECONDS: Final = 30.0
_NOWHERE: Final = Path("/")
"""No repository's folder: what holds there is the user's own."""
_IDENTITY: Final = re.compile(r"(.*) <(.*)> [0-9]+ [+-][0-9]{4}")
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


class Addresses(Struct, frozen=True, kw_only=True):
    """Where git fetches a remote from, and all the places it pushes it to."""

    fetch: str
    push: tuple[str, ...]


def _ask(
    args: list[str], environment: Mapping[str, str], root: Path | None
) -> GitResult | None:
    if find_git(environment) is None:
        return None
    try:
        done = run_git(
            args,
            git_dir=None,
            cwd=root or _NOWHERE,
            environment=environment,
            timeout=_SECONDS,
        )
    except (StoreError, ValueError):
        # No program takes a NUL in a variable.
        return None
    return done if done.code == 0 else None


def ask_identity(
    environment: Mapping[str, str], *, root: Path | None
) -> tuple[str, str] | None:
    """Return name and address of who would commit, if git was told both.

    Args:
        environment: What git's starts from.
        root: Top of the work tree; ``None`` outside of any.
    """
    # What git would make up from login and host is made up by us alike.
    only_told = ["-c", "user.useConfigOnly=true"]
    done = _ask([*only_told, "var", "GIT_COMMITTER_IDENT"], environment, root)
    found = _IDENTITY.fullmatch(done.text) if done is not None else None
    return (found[1], found[2]) if found is not None else None


def ask_settings(
    environment: Mapping[str, str], *, root: Path | None
) -> dict[str, str] | None:
    """Return all settings that hold in a work tree, the last value of each.

    A key without a value is ``true``, as for git. ``None`` when git cannot tell.
    """
    done = _ask(["config", "-z", "--list"], environment, root)
    if done is None:
        return None
    items = done.stdout.decode("utf-8", "replace").split("\0")
    pairs = (item.partition("\n") for item in items if item)
    return {key: value if sign else "true" for key, sign, value in pairs}


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
