"""The last look before anything leaves: secrets in what the other side lacks."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from uwfgit.constants import MAX_BLOB_BYTES
from uwfgit.errors import CorruptError, StoreError
from uwfgit.ids import Oid, is_oid, is_thread_id
from uwfgit.model.thread.private import find_private
from uwfgit.shell import quote_word
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.git.gitcmd import run_git
from uwfgit.store.handle import Store
from uwfgit.store.layout import (
    WORKFLOWS,
    find_node_name,
    find_ref_thread,
    find_step_name,
)
from uwfgit.store.raw import KINDS, TREE_ENTRY
from uwfgit.store.refs import has_object
from uwfgit.sync.secrets.allowed import read_allowed
from uwfgit.sync.secrets.text import Match, scan_json, scan_text, without_gaps

_NUMBER = re.compile(r"[0-9]{1,5}")
_COMMIT: Final = "commit "
_PART_CHARS: Final = 60
"""So much of a secret that was cut is compared: words may follow the cut."""
_JOINED: Final = 100
"""Parts of secrets in messages whose wholes are looked for."""
_TOLD: Final = 20
"""Places that one refusal names."""
_DESCRIBED: Final = 5
"""Secrets that one line names."""

Leaving = tuple[str, Oid, Oid | None]
"""A ref, what is to be sent of it, and what the other side has of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFinding:
    """A secret and a place where it stands; never printed in full.

    ``path`` is a file's, or names a commit, a tag or a ref.
    """

    id: str
    rule: str
    shown: str
    path: str
    line: int
    oid: Oid | None
    secret: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule} {self.shown} ({self.id})"


def find_secrets(
    store: Store,
    oids: Collection[Oid],
    known: Collection[Oid],
    *,
    environment: Mapping[str, str],
    names: Iterable[str] = (),
    allowed: Collection[str] | None = None,
) -> tuple[SecretFinding, ...]:
    """Look for secrets in all that is reachable from some objects but not from others.

    Every new file is read, decoded where it is JSON; and every commit's and
    tag's message, people and names.

    Args:
        store: Where the objects are.
        oids: What is to be sent: commits or tags.
        known: What the receiving side has; one that is not here counts for
            nothing.
        environment: What git's starts from.
        names: Of the refs that are sent.
        allowed: Ids to leave out; ``None``: those that the user let through.

    Raises:
        StoreError: git cannot list the objects, or there is no git.
        CorruptError: An object is missing or damaged.
    """
    if allowed is None:
        allowed = read_allowed(store)
    seen: set[bytes] = set()
    found = [
        finding
        for oid, path in _list_new(store, oids, known, environment)
        for finding in _scan_object(store, oid, path, seen)
    ]
    found += _found("ref name", None, scan_text("\n".join(names)))
    kept = [finding for finding in _join(found) if finding.id not in allowed]
    shown = {finding.secret: finding.shown for finding in kept}
    sizes = sorted({len(secret) for secret in shown}, reverse=True)
    paths = {each.path: _cut(each.path, shown, sizes) for each in kept}
    return tuple(replace(each, path=paths[each.path]) for each in kept)


def _join(findings: Sequence[SecretFinding]) -> Iterator[SecretFinding]:
    """Yield the part of a secret that a message quotes the id of the whole."""
    wholes = [f for f in findings if not f.path.startswith(_COMMIT)]
    ids = {f.id for f in wholes}
    parts = {
        (f.rule, without_gaps(f.secret)[:_PART_CHARS]): f.id
        for f in findings
        if f.path.startswith(_COMMIT) and f.id not in ids
    }
    plain: dict[str, dict[str, str]] = {}
    for each in wholes if parts else ():
        plain.setdefault(each.rule, {})[without_gaps(each.secret)] = each.id
    known = {}
    for rule, part in list(parts)[:_JOINED]:
        same = plain.get(rule, {}).items()
        known[rule, part] = next((id_ for whole, id_ in same if part in whole), None)
    for finding in findings:
        key = finding.rule, without_gaps(finding.secret)[:_PART_CHARS]
        is_part = finding.path.startswith(_COMMIT) and finding.id not in ids
        whole = known.get(key) if is_part else None
        yield replace(finding, id=whole) if whole else finding


def _cut(path: str, shown: Mapping[str, str], sizes: Sequence[int]) -> str:
    """Return a path that shows no secret which is a name in it.

    Args:
        path: Which.
        shown: What may be shown of each secret.
        sizes: Their lengths, the longest first. By these a path is looked through,
            since there may be very many secrets.
    """
    for size in sizes:
        place = 0
        while place + size <= len(path):
            instead = shown.get(path[place : place + size])
            if instead is None:
                place += 1
            else:
                path = path[:place] + instead + path[place + size :]
                place += len(instead)
    return path


def _list_new(
    store: Store,
    oids: Collection[Oid],
    known: Collection[Oid],
    environment: Mapping[str, str],
) -> Iterator[tuple[Oid, str]]:
    if not oids:
        return
    without = {oid for oid in known if has_object(store, oid)}
    lines = [*oids, *(f"^{oid}" for oid in without)]
    done = run_git(
        ["rev-list", "--objects", "--stdin"],
        git_dir=store.path,
        environment=environment,
        input="".join(f"{line}\n" for line in lines).encode(),
    )
    if done.code:
        raise StoreError(f"cannot list what would be sent: {done.complaint}")
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        oid, _, path = line.partition(" ")
        if is_oid(oid):
            yield Oid(oid), path


def _scan_object(
    store: Store, oid: Oid, path: str, seen: set[bytes]
) -> Iterator[SecretFinding]:
    number, size, data = store.raw.load(oid, limit=MAX_BLOB_BYTES)
    if data is None:
        raise CorruptError(
            f"object {oid} has {size} bytes, the limit is {MAX_BLOB_BYTES}"
        )
    kind = KINDS[number]
    if kind == "tree":
        names = "\n".join(_odd_names(data, seen))
        yield from _found(f"{path or '.'}/", oid, scan_text(names) if names else ())
        return
    text = data.decode("utf-8", "replace")
    if kind != "blob":
        path = f"{kind} {oid}"
    elif path.endswith(".json"):
        with suppress(ValueError, RecursionError):
            yield from _found(path, oid, scan_json(text, json.loads(text)))
            return
    yield from _found(path, oid, scan_text(text))


def _odd_names(tree: bytes, seen: set[bytes]) -> Iterator[str]:
    """Yield the names in a tree that were not seen and that no rule of uwf's gives."""
    names = {name for _, name, _ in TREE_ENTRY.findall(tree)} - seen
    seen |= names
    for name in sorted(names):
        text = name.decode("utf-8", "replace")
        if not (
            find_node_name(text)
            or find_step_name(text)
            or is_thread_id(text)
            or _NUMBER.fullmatch(text)
        ):
            yield text


def _found(path: str, oid: Oid | None, matches: Iterable[Match]) -> list[SecretFinding]:
    return [
        SecretFinding(
            id=match.id,
            rule=match.rule,
            shown=match.shown,
            path=path,
            line=match.line,
            oid=oid,
            secret=match.secret,
        )
        for match in matches
    ]


def find_leaving(
    store: Store,
    leaving: Sequence[Leaving],
    *,
    environment: Mapping[str, str],
    allowed: Collection[str] | None = None,
) -> tuple[SecretFinding, ...]:
    """Look for secrets in what a push of some refs would send.

    Args:
        store: Ours.
        leaving: The refs.
        environment: What git's starts from.
        allowed: As ``find_secrets`` has it.

    Raises:
        StoreError, CorruptError: As ``find_secrets`` says.
    """
    return find_secrets(
        store,
        [oid for _, oid, _ in leaving],
        {GENESIS_OID, *(old for _, _, old in leaving if old is not None)},
        environment=environment,
        names=[ref for ref, _, _ in leaving],
        allowed=allowed,
    )


def find_in_texts(store: Store, texts: Mapping[str, str]) -> tuple[SecretFinding, ...]:
    """Look for secrets in texts that are to leave beside a push, each by its name."""
    allowed = read_allowed(store)
    found = [
        finding
        for name, text in texts.items()
        for finding in _found(name, None, scan_text(text))
    ]
    return tuple(finding for finding in _join(found) if finding.id not in allowed)


def find_blocked(
    store: Store,
    leaving: Sequence[Leaving],
    *,
    environment: Mapping[str, str],
    allowed: Collection[str] | None = None,
) -> dict[str, str]:
    """Say which refs may not leave: a secret stands in them, or they are private.

    Args, Raises: as ``find_leaving`` has them.
    """
    if allowed is None:
        allowed = read_allowed(store)
    private = find_private(store, [ref for ref, _, _ in leaving])
    if private:
        rest = [each for each in leaving if each[0] not in private]
        return private | find_blocked(
            store, rest, environment=environment, allowed=allowed
        )
    found = find_leaving(store, leaving, environment=environment, allowed=allowed)
    if not found:
        return {}
    if len(leaving) == 1:
        return {leaving[0][0]: describe_findings(found, leaving)}
    half = len(leaving) // 2
    return {
        ref: message
        for part in (leaving[:half], leaving[half:])
        for ref, message in find_blocked(
            store, part, environment=environment, allowed=allowed
        ).items()
    }


def describe_findings(
    findings: Sequence[SecretFinding], leaving: Sequence[Leaving] = ()
) -> str:
    """Say in one line what would have left, each secret once, and the ways out."""
    found = _one_each(findings)
    places = "; ".join(map(str, found[:_DESCRIBED]))
    more = len(found) - _DESCRIBED
    tail = f"; and {more} more" if more > 0 else ""
    what = "a secret stands" if len(found) == 1 else "secrets stand"
    return f"{what} in {places}{tail}; {way_out(findings, leaving)}"


def _one_each(findings: Sequence[SecretFinding]) -> list[SecretFinding]:
    """Return each secret where it stands best to be read: in a file, if in one."""
    ordered = sorted(findings, key=lambda each: each.path.startswith(_COMMIT))
    return list({each.id: each for each in reversed(ordered)}.values())[::-1]


def list_findings(findings: Sequence[SecretFinding]) -> list[str]:
    """Write findings a line each; of very many the first, and how many more."""
    lines = [str(finding) for finding in findings[:_TOLD]]
    more = len(findings) - _TOLD
    return [*lines, f"and {more} more places"] if more > 0 else lines


def way_out(findings: Sequence[SecretFinding], leaving: Sequence[Leaving] = ()) -> str:
    """Name the commands that take a secret out, or let through what is none.

    A message stands in no thread's folder: then it is the one that was to leave.
    """
    ids = " ".join(each.id for each in _one_each(findings)[:_DESCRIBED])
    names = [name for each in findings for name in each.path.split("/")[:2]]
    refs = [ref for ref, _, _ in leaving if find_ref_thread(ref)]
    names += refs[0].split("/") if len(refs) == 1 else []
    thread = next(filter(is_thread_id, names), None)
    if thread is not None:
        way = f": uwf thread redact {thread}"
    elif names[0] == WORKFLOWS:
        name = quote_word(names[1])
        way = f": uwf workflow rm {name}, then add its file again without it"
    else:
        way = ""
    return f"take it out{way}; or, if it is none, let it through: uwf hooks allow {ids}"
