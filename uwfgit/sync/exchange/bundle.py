"""Bundles: threads in a file, for people without a common remote."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from uwfgit.errors import InvalidError, NotFoundError, StoreError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.family import family_of
from uwfgit.store.files import read_start
from uwfgit.store.git.gitcmd import run_git
from uwfgit.store.git.refbatch import move_many
from uwfgit.store.git.scratch import open_scratch
from uwfgit.store.handle import Store
from uwfgit.store.layout import WORKFLOW_PREFIX, find_ref_thread, thread_ref
from uwfgit.store.refs import BUNDLE, find_ref, scan_refs
from uwfgit.sync.exchange.exchange import ExchangeSource, RefOutcome, Verify
from uwfgit.sync.exchange.incoming import bring_in
from uwfgit.sync.exchange.known import verify_unknown
from uwfgit.sync.exchange.pull import PullReport, make_report
from uwfgit.sync.exchange.push import Scan
from uwfgit.sync.exchange.remotes import APPROVED_PREFIX, find_approved, is_exchanged
from uwfgit.sync.exchange.signatures import check_approval
from uwfgit.sync.exchange.transport import (
    MAX_BUNDLE_REFS,
    Wire,
    list_bundle,
    reason_of,
)

_START: Final = re.compile(rb"# v[0-9]+ git bundle\n")
_START_BYTES: Final = 64


def create_bundle(
    ledger: Ledger,
    file: Path,
    threads: Sequence[ThreadId],
    *,
    wire: Wire,
    verify: Verify,
    scan: Scan,
) -> dict[str, Oid]:
    """Write threads into a file that any git can fetch from.

    It is whole in itself: nothing has to be there where it is opened. It holds
    what was looked through, however the branches move meanwhile.

    Args:
        ledger: Whose.
        file: Replaced when it is a bundle; nothing else is.
        threads: Which.
        wire: The environment git starts from.
        verify: Verifies what this machine neither made nor verified.
        scan: Says what may not leave.

    Returns:
        The refs in it.

    Raises:
        NotFoundError: A thread does not exist.
        InvalidError: One does not verify, or may not leave; they are too many; or
            something else has the file's name.
        StoreError: The file cannot be written.
    """
    _require_replaceable(file)
    store = ledger.store
    tips: dict[ThreadId, Oid] = {}
    for thread in threads:
        for each in (*family_of(store, thread), thread):
            oid = find_ref(store, thread_ref(each))
            if oid is None:
                raise NotFoundError("thread", each)
            tips[each] = oid
    problems = {
        thread_ref(thread): f"it does not verify: {problem}"
        for thread, problem in verify_unknown(ledger, tips, verify).items()
    }
    refs = {thread_ref(thread): oid for thread, oid in tips.items()}
    refs |= {
        ref: oid
        for ref, oid in scan_refs(store, APPROVED_PREFIX).items()
        if (approved := find_approved(ref))
        and approved in tips
        # With one of another commit, commits would leave that nobody verified.
        and check_approval(store, ref, oid, [tips[approved]]) is None
    }
    if len(refs) > MAX_BUNDLE_REFS:
        raise InvalidError(
            f"{len(refs):,} threads and approvals are more than one bundle holds "
            f"({MAX_BUNDLE_REFS:,})",
            hint="make several",
        )
    leaving = [(ref, oid, None) for ref, oid in refs.items() if ref not in problems]
    problems |= scan(leaving)
    for ref, problem in problems.items():
        name = find_ref_thread(ref) or ref.removeprefix("refs/tags/")
        raise InvalidError(f"{name} stays here: {problem}")
    _write(store, file, refs, wire)
    return refs


def _require_replaceable(file: Path) -> None:
    # git puts its own in place of whatever has the name, a device too.
    try:
        start = read_start(file, most=_START_BYTES)
    except FileNotFoundError:
        return
    except OSError:
        start = None
    if start is None or (start and not _START.match(start)):
        raise InvalidError(
            f"'{file}' is there already and is not a bundle", hint="choose another name"
        )


def _write(store: Store, file: Path, refs: Mapping[str, Oid], wire: Wire) -> None:
    # git takes names, which go into the file, and follows them again. Aside,
    # nobody moves them.
    with open_scratch(store) as scratch:
        move_many(
            scratch,
            {ref: (None, oid) for ref, oid in refs.items()},
            reason="bundle",
            environment=wire.environment,
        )
        done = run_git(
            ["bundle", "create", "--quiet", str(file), *refs],
            git_dir=scratch.path,
            environment=wire.environment,
        )
    if done.code:
        raise StoreError(f"cannot write bundle '{file}': {reason_of(done)}")


def require_bundle(file: Path) -> None:
    """See that there is a file that may be a bundle.

    Raises:
        NotFoundError: There is none.
        InvalidError: It is a folder or a pipe.
    """
    if not file.exists():
        raise NotFoundError("file", str(file))
    if not file.is_file():
        hint = "name a file that `uwf bundle create` wrote"
        raise InvalidError(f"'{file}' is not a regular file", hint=hint)


def open_bundle(
    ledger: Ledger, file: Path, *, wire: Wire, verify: Verify, command: str
) -> PullReport:
    """Bring the threads in a bundle, verified like those of a pull.

    Raises:
        NotFoundError: There is no such file.
        InvalidError: It is a folder or a pipe.
        RemoteError: It is no bundle, or a broken one.
    """
    require_bundle(file)
    there = list_bundle(wire, file, git_dir=ledger.store.path)
    names = {
        ref: ref
        for ref in there
        if is_exchanged(ref) and not ref.startswith(WORKFLOW_PREFIX)
    }
    told = [
        RefOutcome(ref=ref, result="refused", message="no name of a thread")
        for ref in there
        if ref not in names and ref.startswith("refs/heads/thread")
    ]
    source = ExchangeSource(url=str(file), name=BUNDLE, names=names, is_remote=False)
    outcomes = bring_in(ledger, source, wire=wire, verify=verify, command=command)
    return make_report(ledger, str(file), [*told, *outcomes])
