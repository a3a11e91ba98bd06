"""Workflows that others keep in their repositories: fetched aside, read and pinned.

Nothing of such a repository comes into the store but the text of one workflow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import (
    AmbiguousError,
    CorruptError,
    InvalidError,
    NotFoundError,
    RemoteError,
)
from uwfgit.ids import Oid, is_oid
from uwfgit.model.workflow.committed import (
    CommittedTree,
    find_beside,
    find_committed,
    read_committed,
)
from uwfgit.model.workflow.origin import DEFAULT, Origin
from uwfgit.model.workflow.source import WorkflowSource
from uwfgit.spelling import find_similar
from uwfgit.store.git.reading import resolve_commit
from uwfgit.store.git.scratch import open_scratch
from uwfgit.store.handle import Store
from uwfgit.store.objects import Commit, read_commit
from uwfgit.sync.exchange.transport import (
    Wire,
    failure_of,
    fetch_refs,
    list_refs_there,
)

_FETCHED: Final = "refs/uwf/fetched"
_KINDS: Final = {"refs/heads/": "branch", "refs/tags/": "tag"}
_NOT_GIVEN: Final = (
    "name a branch or a tag: the server has no such commit, or gives none by its oid"
)


class Fetched(Struct, frozen=True, kw_only=True):
    """A workflow of a repository elsewhere.

    Args:
        origin: Where it is, with the commit that it is pinned to.
        source: The workflow.
        commit: Who committed what, by their own account.
        kind: What REV is there: ``branch``, ``tag``, ``commit`` or ``ref``.
        is_tip: Whether a branch or tag ends there; else nothing says who put it there.
        beside: Workflows that do its roles and stand in the same folder.
    """

    origin: Origin
    source: WorkflowSource
    commit: Commit
    kind: str
    is_tip: bool
    beside: Mapping[str, Origin]


def fetch_workflow(wire: Wire, store: Store, origin: Origin) -> Fetched:
    """Fetch one commit aside and read a workflow of it.

    Args:
        wire: How to talk.
        store: Which one is to have the workflow.
        origin: Where it is. A commit in it must be what its REV is.

    Raises:
        NotFoundError, AmbiguousError: No such branch, tag or file; or several.
        AuthError, RemoteError: The repository cannot be fetched from, or its REV is
            another commit.
        InvalidError, WorkflowError: What stands there is no workflow that can be had.
    """
    with _hiding(origin):
        there = list_refs_there(
            wire, origin.url, name=origin.place, git_dir=None, peels=True
        )
    ref, kind = _choose_ref(there, origin)
    with open_scratch(store, borrows=False) as aside:
        has_secret = origin.url != origin.place
        done = fetch_refs(
            wire,
            origin.url,
            [f"{ref}:{_FETCHED}"],
            git_dir=aside.path,
            is_shallow=True,
            # git notes the address of whoever left something out.
            most_bytes=None if has_secret else YAML_MAX_BYTES,
        )
        if done.code:
            with _hiding(origin):
                error = failure_of(done, origin.place)
                error.hint = error.hint or (_NOT_GIVEN if kind == "commit" else None)
                raise error
        oid = _find_commit(aside, origin)
        commit = read_commit(aside, oid)
        tree = CommittedTree(store=aside, tree=commit.tree, name=origin.repository)
        path = find_committed(tree, origin.path)
        source = read_committed(tree, path)
        pinned = replace(origin, path=path, oid=oid)
        return Fetched(
            origin=pinned,
            source=source,
            commit=commit,
            kind=kind,
            is_tip=kind != "commit" or oid in there.values(),
            beside=_find_beside(tree, source, pinned),
        )


@contextmanager
def _hiding(origin: Origin) -> Iterator[None]:
    """Take what may be a secret out of what git says of an address."""
    try:
        yield
    except RemoteError as exc:
        exc.message = origin.hide(exc.message)
        raise


def _choose_ref(there: Mapping[str, Oid], origin: Origin) -> tuple[str, str]:
    """Return the name to fetch REV by, and what it is."""
    rev = origin.rev
    if rev == DEFAULT:
        return rev, "branch"
    if is_oid(rev):
        return rev, "commit"
    if rev.startswith("refs/"):
        if rev in there:
            return rev, "ref"
        raise NotFoundError("ref", rev, hint=f"it is not in {origin.place}")
    found = {prefix + rev: kind for prefix, kind in _KINDS.items()}
    found = {ref: kind for ref, kind in found.items() if ref in there}
    if len(found) > 1:
        raise AmbiguousError(
            "branch or tag", rev, found, hint="give its full name as REV"
        )
    if not found:
        short = [
            ref.removeprefix(each)
            for ref in there
            for each in _KINDS
            if ref.startswith(each) and not ref.endswith("^{}")
        ]
        near = find_similar(rev, short)
        hint = f"did you mean '{near}'?" if near else f"it is not in {origin.place}"
        raise NotFoundError("branch or tag", rev, hint=hint)
    return next(iter(found.items()))


def _find_commit(aside: Store, origin: Origin) -> Oid:
    found = resolve_commit(aside, _FETCHED)
    if found is None:
        raise InvalidError(
            f"'{origin.rev}' of {origin.place} is not a commit",
            hint="name a branch, a tag or a commit as REV",
        )
    oid = found[1]
    if origin.oid is not None and oid != origin.oid:
        raise RemoteError(
            f"'{origin.rev}' is commit {oid}, not {origin.oid}",
            remote=origin.place,
            hint="it moved, or was never that; leave the oid out to take what it is",
        )
    return oid


def _find_beside(
    tree: CommittedTree, source: WorkflowSource, origin: Origin
) -> dict[str, Origin]:
    names = {role.workflow for role in source.workflow.roles.values()}
    found: dict[str, Origin] = {}
    for name in sorted(name for name in names if name is not None):
        try:
            path = find_beside(tree, origin.path or "", name)
        except CorruptError:
            path = None
        if path is not None and name != source.workflow.name:
            found[name] = replace(origin, path=path)
    return found
