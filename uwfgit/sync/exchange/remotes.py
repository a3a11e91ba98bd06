"""The remotes of a store: which there are, and what goes where on each.

The only place that knows refspecs. What is written into the store's config is
what plain git then does, and what uwf does itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from uwfgit.errors import InvalidError, NotFoundError, RemoteError, UsageError
from uwfgit.ids import ThreadId, find_thread_id, is_hash, is_thread_id
from uwfgit.shell import quote_word
from uwfgit.store.care.config_edit import append_section
from uwfgit.store.git.gitcmd import check_operand, run_git
from uwfgit.store.handle import Store, git_errors
from uwfgit.store.layout import (
    HEAD_REF,
    THREAD_PREFIX,
    WORKFLOW_PREFIX,
    is_workflow_name,
)
from uwfgit.store.refs import BUNDLE, tracking_ref
from uwfgit.store.safety.config import ConfigEntry, read_config
from uwfgit.sync.exchange.transport import Wire, list_refs_there

RemoteKind = Literal["dedicated", "shared", "other"]

APPROVED_PREFIX: Final = "refs/tags/approved/"
DEFAULT_NAME: Final = "origin"

_SHARED: Final = {
    THREAD_PREFIX: "refs/uwf/thread/",
    WORKFLOW_PREFIX: "refs/uwf/workflow/",
    APPROVED_PREFIX: "refs/uwf/approved/",
}
"""Our names → those in a repository that has branches and tags of its own."""
_DEDICATED: Final = {ref: ref for ref in _SHARED}
_PREFIXES: Final[Mapping[RemoteKind, Mapping[str, str]]] = {
    "dedicated": _DEDICATED,
    "shared": _SHARED,
    "other": {},
}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*", re.ASCII)
_NAME_CHARS: Final = 64
_FOLLOWS: Final = "uwfFollows"
_MEMORY: Final = "uwfMemory"
_APPROVAL: Final = re.compile(r"([^/]+)/([^/]+)")
_STEP_NUMBER: Final = re.compile(r"[0-9]{1,5}", re.ASCII)
_USER: Final = re.compile(r"^([a-z][a-z0-9+.-]*://)([^/]*)@", re.IGNORECASE)
_LOGIN: Final = re.compile(r"[A-Za-z0-9._+-]{0,19}", re.ASCII)
"""A token is longer; the scan's ``url-credentials`` draws the same line."""
_SCP: Final = re.compile(r"[^/]+:")


class Remote(Struct, frozen=True, kw_only=True):
    """A remote as the store's config has it.

    One of kind ``other`` was not set up by uwf: its refspecs are not ours.
    ``push_urls`` are all the places a push goes to. ``follows`` names the remote
    of the repository around the store that it was taken from; ``memory`` tells that
    the agents' memory goes there too.
    """

    name: str
    url: str
    push_urls: tuple[str, ...]
    kind: RemoteKind
    follows: str | None = None
    memory: bool = False

    @property
    def push_url(self) -> str:
        """The first of the places a push goes to."""
        return self.push_urls[0]

    def theirs(self, ref: str) -> str:
        """Name one of our refs as it is called there.

        Raises:
            ValueError: Such a ref is never sent to or taken from it.
        """
        if ref == HEAD_REF and self.kind == "dedicated":
            return ref
        if is_exchanged(ref):
            for ours, theirs in _PREFIXES[self.kind].items():
                if ref.startswith(ours):
                    return theirs + ref[len(ours) :]
        raise ValueError(f"'{ref}' is not exchanged with remote '{self.name}'")

    def ours(self, ref: str) -> str | None:
        """Name one of its refs as it is called here; ``None`` for all others."""
        for ours, theirs in _PREFIXES[self.kind].items():
            if ref.startswith(theirs) and is_exchanged(ours + ref[len(theirs) :]):
                return ours + ref[len(theirs) :]
        return None

    def is_misnamed(self, ref: str) -> bool:
        """Whether a ref stands where threads do, but may not be called so."""
        return self.ours(ref) is None and any(
            f"{ref}/".startswith(theirs) for theirs in _PREFIXES[self.kind].values()
        )

    def tracking(self, ref: str) -> str:
        """Name the ref that keeps what it had of one of our branches."""
        return tracking_ref(self.name, ref)


def is_exchanged(ref: str) -> bool:
    """Whether a ref of ours may travel: a thread, a workflow, an approval."""
    if ref.startswith(THREAD_PREFIX):
        return is_thread_id(ref[len(THREAD_PREFIX) :])
    if ref.startswith(WORKFLOW_PREFIX):
        return is_workflow_name(ref[len(WORKFLOW_PREFIX) :])
    return find_approved(ref) is not None


def find_approved(ref: str) -> ThreadId | None:
    """Read the thread that an approval's name is about."""
    match = _APPROVAL.fullmatch(ref.removeprefix(APPROVED_PREFIX))
    if not ref.startswith(APPROVED_PREFIX) or match is None:
        return None
    thread, step = match.groups()
    is_step = is_hash(step) or _STEP_NUMBER.fullmatch(step)
    return ThreadId(thread) if is_thread_id(thread) and is_step else None


def _refspecs(kind: RemoteKind, name: str) -> tuple[list[str], list[str]]:
    """Return the refspecs to fetch and to push; none forces anything."""
    prefixes = _PREFIXES[kind]
    fetch = [
        f"{theirs}*:{ours if ours == APPROVED_PREFIX else tracking_ref(name, ours)}*"
        for ours, theirs in prefixes.items()
    ]
    push = [f"{ours}*:{theirs}*" for ours, theirs in prefixes.items()]
    if kind == "dedicated":
        fetch.append(f"{HEAD_REF}:{tracking_ref(name, HEAD_REF)}")
        push.append(f"{HEAD_REF}:{HEAD_REF}")
    return fetch, push


def list_remotes(store: Store) -> tuple[Remote, ...]:
    """Return the remotes in the store's config, in its order.

    Raises:
        InvalidError: The config is not as git writes it.
        StoreError: It cannot be read.
    """
    with git_errors("read the store's config"):
        entries = read_config(store.path / "config").entries
    sections: dict[str, list[ConfigEntry]] = {}
    for entry in entries:
        if entry.section == "remote" and entry.subsection:
            sections.setdefault(entry.subsection, []).append(entry)
    return tuple(_make_remote(name, found) for name, found in sections.items())


def _make_remote(name: str, entries: Iterable[ConfigEntry]) -> Remote:
    values: dict[str, list[str]] = {}
    for entry in entries:
        values.setdefault(entry.name, []).append(entry.value or "")
    found = (sorted(values.get("fetch", [])), sorted(values.get("push", [])))
    kind: RemoteKind = "other"
    for each in ("dedicated", "shared"):
        fetch, push = _refspecs(each, name)
        if found == (sorted(fetch), sorted(push)):
            kind = each
    urls = values.get("url", [""])
    return Remote(
        name=name,
        url=urls[0],
        push_urls=tuple(values.get("pushurl", urls)),
        kind=kind,
        follows=values.get(_FOLLOWS.lower(), [None])[0],
        memory=values.get(_MEMORY.lower()) == ["true"],
    )


def get_remote(store: Store, name: str) -> Remote:
    """Return a remote by its name.

    Raises:
        NotFoundError: There is none.
        RemoteError: uwf did not set it up, or it has no address.
    """
    found = find_remote(store, name)
    if found is None:
        raise NotFoundError(
            "remote",
            name,
            hint=f"set it up: uwf remote add {quote_word(name)} URL, or "
            "'uwf remote add' alone for the origin of the code here",
        )
    if found.kind == "other" or not found.url:
        raise RemoteError(
            "its refspecs are not those of threads (a mirror is never one)",
            remote=name,
            hint=f"set it up: uwf remote add {quote_word(name)} "
            "(--shared for one with code in it)",
        )
    return found


def find_remote(store: Store, name: str) -> Remote | None:
    """Return a remote by its name, however it is set up; ``None`` without one."""
    return next((each for each in list_remotes(store) if each.name == name), None)


def choose_remote(store: Store, name: str | None, *, share: str | None) -> Remote:
    """Return the remote that was named, or else the one to take.

    That is the repository's own choice (``share``), the only one there is, or
    ``origin``.

    Raises:
        NotFoundError: There is none.
        UsageError: There are several, and none is called ``origin``.
        RemoteError: uwf did not set it up.
    """
    if name is not None or share is not None:
        return get_remote(store, name or share or DEFAULT_NAME)
    names = [remote.name for remote in list_remotes(store)]
    if len(names) == 1:
        return get_remote(store, names[0])
    if names and DEFAULT_NAME not in names:
        raise UsageError(
            f"which remote? there are {', '.join(names)}", hint="name one of them"
        )
    return get_remote(store, DEFAULT_NAME)


def check_name(name: str) -> str:
    """Return what may be the name of a remote.

    Raises:
        UsageError: It may not.
    """
    fits = _NAME.fullmatch(name) and len(name) <= _NAME_CHARS
    if not fits or name.endswith(".lock") or name == BUNDLE or find_thread_id(name):
        raise UsageError(
            f"'{name}' cannot be the name of a remote",
            hint="a name is letters, digits, '-', '_' and '.'; then comes the URL",
        )
    return name


def absolute_url(url: str, base: Path) -> str:
    """Make an address hold from any folder: a path is taken from ``base``.

    Raises:
        UsageError: It would be taken for an option, or runs a command.
    """
    check_operand(url)
    if not url:
        raise UsageError("the URL is empty")
    is_path = "://" not in url and not _SCP.match(url)
    return os.path.normpath(base / url) if is_path else url


def same_place(one: str, other: str) -> bool:
    """Whether two addresses are written for the same repository."""
    return _plain(one) == _plain(other)


def _plain(url: str) -> str:
    return url.removeprefix("file://").rstrip("/").removesuffix(".git").rstrip("/")


def shown_url(url: str) -> str:
    """Return an address without the secret in it.

    That is a password, and what stands in its place: a user that is no short
    plain login name is a token.
    """
    return _USER.sub(_hide_secret, url)


def _hide_secret(match: re.Match[str]) -> str:
    scheme, whole = match.groups()
    user, colon, password = whole.partition(":")
    login = user if _LOGIN.fullmatch(user) else "***"
    return f"{scheme}{login}{colon}{'***' if password else ''}@"


def add_remote(
    store: Store,
    name: str,
    url: str,
    *,
    kind: RemoteKind,
    environment: Mapping[str, str],
    push_urls: Sequence[str] = (),
    follows: str | None = None,
    memory: bool = False,
) -> Remote:
    """Write a remote into the store's config, with the refspecs of its kind.

    One of that name that uwf did not set up is set up by it.

    Args:
        store: Whose.
        name: What it is called here.
        url: Where to fetch from.
        kind: What else it holds.
        environment: What git's starts from.
        push_urls: Where to push to; without any, ``url``.
        follows: The remote of the repository around the store that it is.
        memory: Whether the agents' memory goes there too.

    Raises:
        UsageError: The name cannot be one.
        RemoteError: There is another remote of that name.
        InvalidError: The config is not as git writes it, or the URL cannot stand
            in it.
        LockedError, StoreError: The config cannot be written.
    """
    wanted = Remote(
        name=check_name(name),
        url=url,
        push_urls=tuple(push_urls) or (url,),
        kind=kind,
        follows=follows,
        memory=memory,
    )
    known = find_remote(store, name)
    if known == wanted:
        return known
    if known is not None:
        is_other = (known.kind, known.url) != (kind, url)
        if known.kind != "other" and known.url and is_other:
            raise RemoteError(
                f"is there already: {shown_url(known.url)} ({known.kind})",
                remote=name,
                hint=f"remove it first: uwf remote rm {quote_word(name)}",
            )
        args = ["config", "--remove-section", f"remote.{name}"]
        done = run_git(args, git_dir=store.path, environment=environment)
        if done.code:
            raise InvalidError(f"cannot change the store's config: {done.complaint}")
    append_section(store.path / "config", "remote", name, _list_values(wanted))
    added = find_remote(store, name)
    if added != wanted:
        raise InvalidError(f"remote '{name}' could not be written to the config")
    return wanted


def _list_values(remote: Remote) -> list[tuple[str, str]]:
    fetch, push = _refspecs(remote.kind, remote.name)
    # Written out, no setting for pushes alone changes it once more.
    is_plain = remote.follows is None and remote.push_urls == (remote.url,)
    pushed = () if is_plain else remote.push_urls
    return [
        ("url", remote.url),
        *(("pushurl", each) for each in pushed),
        *([(_FOLLOWS, remote.follows)] if remote.follows else []),
        *([(_MEMORY, "true")] if remote.memory else []),
        # Tags of a code repository are no business of a store's.
        ("tagOpt", "--no-tags"),
        *(("fetch", refspec) for refspec in fetch),
        *(("push", refspec) for refspec in push),
    ]


def remove_remote(store: Store, name: str, *, environment: Mapping[str, str]) -> None:
    """Take a remote out of the config, with what it had at the last fetch.

    Raises:
        NotFoundError: There is none of that name.
        RemoteError: git could not.
        InvalidError, StoreError: The config cannot be read.
    """
    if find_remote(store, name) is None:
        raise NotFoundError("remote", name, hint="list them: uwf remote list")
    done = run_git(
        ["remote", "remove", "--", name], git_dir=store.path, environment=environment
    )
    if done.code:
        raise RemoteError(done.complaint, remote=name)


def holds_shared(wire: Wire, remote: Remote) -> bool:
    """Whether there are threads or workflows beside the code in a shared remote.

    Raises:
        AuthError, RemoteError: It cannot be asked.
    """
    patterns = [f"{prefix}*" for prefix in _SHARED.values()]
    return bool(
        list_refs_there(
            wire, remote.url, name=remote.name, git_dir=None, patterns=patterns
        )
    )


def find_kind(wire: Wire, url: str, *, name: str, shared: bool | None) -> RemoteKind:
    """Look at a remote whether it holds threads as branches, or beside code.

    Args:
        wire: How to ask.
        url: Its address.
        name: What it is called in messages.
        shared: What the user says; nobody is asked then.

    Raises:
        AuthError, RemoteError: It cannot be asked.
    """
    if shared is not None:
        return "shared" if shared else "dedicated"
    there = list_refs_there(wire, url, name=name, git_dir=None)
    found = {
        kind: any(ref.startswith(theirs) for ref in there for theirs in prefixes)
        for kind, prefixes in (
            ("shared", tuple(_SHARED.values())),
            ("dedicated", (THREAD_PREFIX,)),
        )
    }
    return "shared" if found["shared"] and not found["dedicated"] else "dedicated"
