"""Talk to a remote: list, fetch, push. The only place that asks git to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from uwfgit.errors import AuthError, RejectedError, RemoteError
from uwfgit.ids import Oid, is_oid
from uwfgit.store.git.gitcmd import GitResult, check_operand
from uwfgit.store.git.scratch import open_scratch
from uwfgit.store.git.streaming import stream_git
from uwfgit.store.handle import Store
from uwfgit.store.locks.git_lock import ANY
from uwfgit.store.locks.holding import announce
from uwfgit.store.refs import find_ref

_REASON_CHARS: Final = 300
_REFS_BYTES: Final = 64 * 1024 * 1024
"""What a remote may send as its list of refs: most of a million."""
_BUNDLE_BYTES: Final = 8 * 1024 * 1024
"""What a bundle may name as its refs: those of some eighty thousand threads."""
MAX_BUNDLE_REFS: Final = 5_000
"""git compares each that is fetched with all there are."""
_LINE: Final = 3
_NO_ATOMIC: Final = b"does not support --atomic"
# git tells a refused login from a dead host in words only. They choose between
# two classes with the same exit code, and the hint.
_LOGIN: Final = (
    "authentication failed",
    "could not read password",
    "could not read username",
    "http basic: access denied",
    "permission denied",
    "returned error: 401",
    "returned error: 403",
    "terminal prompts disabled",
)
_PROGRESS: Final = re.compile(r"\d+% \(\d+/\d+\)|, done\.$")
_VAGUE: Final = "could not read from remote repository"


class Wire(Struct, frozen=True, kw_only=True):
    """How to talk: the environment git starts from, and who hears of progress.

    ``can_ask`` says whether someone is there to type a password; ``folder`` is
    what relative paths in settings are taken from.
    """

    environment: Mapping[str, str]
    folder: Path | None = None
    on_progress: Callable[[str], None] | None = None
    can_ask: bool = False


class Update(Struct, frozen=True, kw_only=True):
    """One ref to push: what it shall be there, and what it is called."""

    oid: Oid
    ref: str


def list_refs_there(
    wire: Wire,
    url: str,
    *,
    name: str,
    git_dir: Path | None,
    only_branches: bool = False,
    patterns: Sequence[str] = (),
    peels: bool = False,
) -> dict[str, Oid]:
    """Return the refs of a remote, by their names there.

    Args:
        url: Its address.
        name: What it is called here.
        git_dir: Whose own settings hold as well; ``None``: the user's alone.
        only_branches: Leave out all but branches and tags, which a server then
            need not send.
        patterns: Only refs that match one of these.
        peels: Also tell ``HEAD``, and as ``TAG^{}`` what an annotated tag is of.

    Raises:
        AuthError, RemoteError: It cannot be asked.
    """
    some = ["--heads", "--tags"] if only_branches else []
    some += [] if peels else ["--refs"]
    done = stream_git(
        [
            *("ls-remote", "--quiet", *some, "--"),
            *(check_operand(url), *patterns),
        ],
        git_dir=git_dir,
        environment=_environment(wire),
        on_line=_ignore,
        # Not the working folder, whose repository may set what it likes.
        cwd=wire.folder if git_dir else Path("/"),
        most_bytes=_REFS_BYTES,
    )
    if done.code:
        raise failure_of(done, name)
    return _parse_refs(done)


def list_bundle(wire: Wire, file: Path, *, git_dir: Path) -> dict[str, Oid]:
    """Return the refs in a bundle.

    Raises:
        RemoteError: It is not a bundle, or names more refs than a store could hold.
    """
    _require_short_header(file)
    done = stream_git(
        ["bundle", "list-heads", str(file)],
        git_dir=git_dir,
        environment=_environment(wire),
        on_line=_ignore,
        most_bytes=_BUNDLE_BYTES,
    )
    if done.code:
        raise failure_of(done, str(file))
    found = _parse_refs(done, separator=" ")
    if len(found) > MAX_BUNDLE_REFS:
        message = f"names {len(found):,} refs, more than {MAX_BUNDLE_REFS:,}"
        raise RemoteError(message, remote=str(file))
    return found


_BUNDLE_STARTS: Final = (b"# v2 git bundle\n", b"# v3 git bundle\n")


def _require_short_header(file: Path) -> None:
    """Make sure that a bundle's list of refs, which git holds in memory, ends soon."""
    try:
        with file.open("rb") as stream:
            start = stream.read(_BUNDLE_BYTES + 1)
    except OSError as exc:
        raise RemoteError(f"cannot be read: {exc.strerror}", remote=str(file)) from exc
    if not start.startswith(_BUNDLE_STARTS):
        hint = "name a file that `uwf bundle create` wrote"
        raise RemoteError("is not a bundle", remote=str(file), hint=hint)
    if b"\n\n" not in start and len(start) > _BUNDLE_BYTES:
        raise RemoteError(
            f"names more than {_BUNDLE_BYTES // 1024 // 1024} MiB of refs",
            remote=str(file),
        )


def _parse_refs(done: GitResult, separator: str = "\t") -> dict[str, Oid]:
    found = {}
    for line in done.stdout.decode("utf-8", "surrogateescape").split("\n"):
        oid, _, ref = line.partition(separator)
        if is_oid(oid) and ref:
            found[ref] = Oid(oid)
    return found


def fetch_refs(
    wire: Wire,
    url: str,
    refspecs: Sequence[str],
    *,
    git_dir: Path,
    is_shallow: bool = False,
    most_bytes: int | None = None,
) -> GitResult:
    """Fetch some refs by name into a repository; a failure is a value.

    Args:
        wire: How to talk.
        url: The remote's address.
        refspecs: What to fetch, and what to call it here.
        git_dir: The repository.
        is_shallow: Leave out all that came before.
        most_bytes: Leave out larger files, where the server can.
    """
    depth = ["--depth=1"] if is_shallow else []
    if most_bytes is not None:
        depth.append(f"--filter=blob:limit={most_bytes + 1}")
    return _run(
        wire,
        [
            *("fetch", "--no-tags", "--recurse-submodules=no", *depth, "--"),
            *(check_operand(url), *refspecs),
        ],
        git_dir,
    )


@contextmanager
def fetched_aside(
    wire: Wire, store: Store, url: str, ref: str, *, name: str
) -> Iterator[tuple[Store, Oid | None]]:
    """Bring one ref of a remote into a store of its own, gone after the block.

    Args:
        wire: How to talk.
        store: Whose objects need not be brought.
        url: The remote's address.
        ref: Its name there.
        name: What the remote is called here.

    Raises:
        RemoteError: It cannot be brought.
    """
    with open_scratch(store) as scratch:
        done = fetch_refs(wire, url, [f"{ref}:{ref}"], git_dir=scratch.path)
        if done.code:
            raise RemoteError(reason_of(done), remote=name)
        yield scratch, find_ref(scratch, ref)


def push_refs(
    wire: Wire,
    store: Store,
    name: str,
    updates: Sequence[Update],
    *,
    all_or_none: bool = False,
) -> dict[str, str]:
    """Push some refs to a remote of the config: all of them, or none.

    Nothing is forced. What the remote then has is kept under ``refs/remotes``.

    Args:
        wire: How to talk.
        store: Whose refs.
        name: The remote.
        updates: What to push.
        all_or_none: Refuse a remote that knows no such thing, rather than push one
            after another, in the order given, until one is refused.

    Returns:
        The letter git gives each ref: a blank for a fast-forward, ``*`` for a
        new one, ``=`` for one that was there.

    Raises:
        RejectedError: It took none, or not this one of several.
        AuthError, RemoteError: It cannot be reached.
    """
    # git moves what it notes of the remote, and may be killed at it.
    with announce(store, [ANY], command="push"):
        done = _push(wire, name, updates, store.path)
        # git says it in words only.
        is_refused = done.code and _NO_ATOMIC in done.stderr
        if not all_or_none and is_refused and len(updates) > 1:
            letters: dict[str, str] = {}
            for update in updates:
                done = _push(wire, name, [update], store.path)
                letters |= _read_push(done, name)
            return letters
    return _read_push(done, name)


def _push(wire: Wire, name: str, updates: Sequence[Update], git_dir: Path) -> GitResult:
    atomic = ["--atomic"] if len(updates) > 1 else []
    return _run(
        wire,
        [
            *("push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no"),
            *(*atomic, "--", check_operand(name)),
            *(f"{update.oid}:{update.ref}" for update in updates),
        ],
        git_dir,
    )


def _read_push(done: GitResult, name: str) -> dict[str, str]:
    letters, reasons = _parse_push(done)
    if done.code and not reasons:
        raise failure_of(done, name)
    if reasons:
        raise RejectedError(reasons, remote=name)
    return letters


def delete_ref_there(
    wire: Wire, name: str, ref: str, *, expected: Oid, git_dir: Path
) -> None:
    """Delete a ref of a remote of the config, if it still points where it did.

    Raises:
        RejectedError: It moved meanwhile, or the server refused.
        AuthError, RemoteError: It cannot be reached.
    """
    done = _run(
        wire,
        [
            *("push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no"),
            *(f"--force-with-lease={ref}:{expected}", "--", check_operand(name)),
            f":{ref}",
        ],
        git_dir,
    )
    _, reasons = _parse_push(done)
    if done.code and not reasons:
        raise failure_of(done, name)
    if reasons:
        raise RejectedError(reasons, remote=name)


def _parse_push(done: GitResult) -> tuple[dict[str, str], dict[str, str]]:
    letters: dict[str, str] = {}
    reasons: dict[str, str] = {}
    for line in done.stdout.decode("utf-8", "replace").split("\n"):
        parts = line.split("\t")
        if len(parts) != _LINE:
            continue
        letter, names, summary = parts
        ref = names.rpartition(":")[2]
        if letter == "!":
            reasons[ref] = _told_why(done, summary)
        elif letters.get(ref, "=") == "=":
            # A remote with several addresses is told of several times.
            letters[ref] = letter
    return letters, reasons


def _told_why(done: GitResult, summary: str) -> str:
    """Add to git's word for a rejection what the remote said of it."""
    said = [
        line.removeprefix("remote:").strip()
        for line in _lines(done)
        if line.startswith("remote:")
    ]
    told = next((line for line in said if line and not _PROGRESS.search(line)), "")
    return f"{summary}: {told}"[:_REASON_CHARS] if told else summary


def _run(wire: Wire, args: Sequence[str], git_dir: Path) -> GitResult:
    command, *rest = args
    # Heard line by line in any case: a remote may say more than memory holds.
    return stream_git(
        [command, *(["--progress"] if wire.on_progress else []), *rest],
        git_dir=git_dir,
        environment=_environment(wire),
        on_line=wire.on_progress or _ignore,
        cwd=wire.folder,
        most_bytes=_REFS_BYTES,
    )


def _ignore(_: str) -> None:
    return


def _environment(wire: Wire) -> dict[str, str]:
    environment = {**wire.environment, "LC_ALL": "C"}
    environment.pop("LANGUAGE", None)
    if not wire.can_ask:
        environment["GIT_TERMINAL_PROMPT"] = "0"
    return environment


def failure_of(done: GitResult, name: str) -> RemoteError:
    """Return the error of a remote that could not be asked, or refused."""
    lines = list(_lines(done))
    reason = _reason(lines) or done.complaint
    whole = "\n".join(lines).lower()
    if any(word in whole for word in _LOGIN):
        return AuthError(
            reason, remote=name, hint="git's own credentials and ssh keys are used"
        )
    return RemoteError(reason, remote=name)


def reason_of(done: GitResult) -> str:
    """Return git's own reason for a failure, in one line."""
    return _reason(list(_lines(done))) or done.complaint


def _reason(lines: Sequence[str]) -> str | None:
    before = None
    for line in lines:
        word, _, text = line.partition(": ")
        if word in {"fatal", "error"}:
            # Behind a refused login stands only that reading was not possible.
            reason = before if before and _VAGUE in text.lower() else text
            return reason[:_REASON_CHARS]
        before = line
    return None


def _lines(done: GitResult) -> Iterable[str]:
    text = done.stderr.decode("utf-8", "replace").replace("\r", "\n")
    return (line.strip() for line in text.split("\n") if line.strip())
