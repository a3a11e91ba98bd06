"""A remote of which nothing came: empty, of the other kind, or of code alone."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from uwfgit.errors import UsageError
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.layout import HEAD_REF
from uwfgit.store.refs import is_ancestor
from uwfgit.sync.exchange.remotes import Remote, shown_url
from uwfgit.sync.exchange.transport import Wire, fetched_aside, list_refs_there

_HEADS = "refs/heads/"
_REVIEWS = "refs/heads/uwf/"


def require_kind(store: Store, remote: Remote, *, wire: Wire) -> None:
    """See to it that nothing came because nothing is there.

    Args:
        store: Ours; nothing that is looked at stays in it.
        remote: The remote, of the kind that it was taken for.
        wire: How to ask.

    Raises:
        UsageError: Threads stand there in the other way, or it holds code.
        AuthError, RemoteError: It cannot be asked.
    """
    there = list_refs_there(wire, remote.url, name=remote.name, git_dir=store.path)
    if any(remote.ours(ref) for ref in there):
        return
    where = shown_url(remote.url)
    is_shared = remote.kind == "shared"
    other = replace(remote, kind="dedicated" if is_shared else "shared")
    if any(other.ours(ref) for ref in there):
        stand = "as its branches" if is_shared else "beside code"
        raise UsageError(
            f"'{where}' holds threads {stand}", hint=f"ask for them: --{other.kind}"
        )
    if not is_shared and _holds_code(store, remote, there, wire):
        raise UsageError(
            f"'{where}' holds code, and no threads",
            hint="for a store that shares threads beside it: --shared",
        )


def _holds_code(
    store: Store, remote: Remote, there: Mapping[str, Oid], wire: Wire
) -> bool:
    """Whether the branches of a remote are of a history that is not ours."""
    main = there.get(HEAD_REF)
    if main is None:
        heads = [ref for ref in there if ref.startswith(_HEADS)]
        return any(not ref.startswith(_REVIEWS) for ref in heads)
    return not starts_at_genesis(store, remote, remote.url, HEAD_REF, main, wire=wire)


def starts_at_genesis(
    store: Store, remote: Remote, url: str, ref: str, oid: Oid, *, wire: Wire
) -> bool:
    """Whether a branch of a remote has a merge base with threads.

    Only its whole history tells code from a base with a job or reviewed threads.

    Args:
        store: Ours; what has to be brought to look at stays out of it.
        remote: The remote.
        url: Its address.
        ref: The branch there.
        oid: What it is at.
        wire: How to ask.

    Raises:
        RemoteError: It cannot be brought.
    """
    if oid == GENESIS_OID or is_ancestor(store, GENESIS_OID, oid):
        return True
    with fetched_aside(wire, store, url, ref, name=remote.name) as (scratch, found):
        return is_ancestor(scratch, GENESIS_OID, found or oid)
