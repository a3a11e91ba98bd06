"""Chains of code to and from the code's own remote: ``push --code``, ``pull``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from uwfgit.cli.code.place import list_known
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import InvalidError, RemoteError, StateError, UwfError
from uwfgit.model.wording import count_of

if TYPE_CHECKING:
    from uwfgit.cli.frame.context import CommandContext
    from uwfgit.code.exchange import Parcel
    from uwfgit.code.worktree import WorkTree
    from uwfgit.ids import Oid, ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.sync.secrets.text import Match

_SHOWN: Final = 5
_MOST_BYTES: Final = 256 * 1024 * 1024


def push_code(
    context: CommandContext,
    ledger: Ledger,
    names: Sequence[str],
    *,
    tree: WorkTree | None = None,
    remote: str | None,
    send_all: bool,
    with_commits: bool,
    dry_run: bool,
    allow: Sequence[str],
) -> dict[str, Any]:
    """Send the chains of threads to the code's remote; return what was done.

    Args:
        tree: A work tree of the code; else that around the working directory.

    Raises:
        StateError: This is not a work tree.
        InvalidError: A secret would leave, or a thread is private.
        RemoteError: The remote cannot be reached, or takes none.
    """
    from uwfgit.code.exchange import choose_remote, list_remote, pack_chain, push_chains
    from uwfgit.code.exchange import list_commits as list_travelling
    from uwfgit.code.worktree import WorkTree

    tree = tree or WorkTree.find(context.cwd, context.environment)
    if tree is None:
        raise StateError("this is not a git work tree", hint="run it in a clone")
    there_name = choose_remote(tree, remote)
    threads = _choose(ledger, tree, names, send_all=send_all)
    there = list_remote(tree, there_name)
    parcels = [
        pack_chain(tree, there_name, each, there, with_commits=with_commits)
        for each in threads
    ]
    new = [parcel for parcel in parcels if parcel.is_new]
    _require_clean(context, ledger, tree, new, there, allow=allow, dry_run=dry_run)
    commits = list_travelling(tree, new, there)
    if not dry_run:
        push_chains(tree, there_name, new)
    return {
        "remote": there_name,
        "dryRun": dry_run,
        "threads": [_item(parcel) for parcel in parcels],
        "commits": [{"oid": oid, "subject": text} for oid, text in commits],
    }


def _item(parcel: Parcel) -> dict[str, Any]:
    result = "up-to-date"
    if parcel.is_new:
        result = "new" if parcel.old is None else "updated"
    return {
        "threadId": parcel.thread,
        "result": result,
        "old": parcel.old,
        "new": parcel.tip,
        "withoutCommits": list(parcel.without),
    }


def code_text(payload: dict[str, Any]) -> str:
    """Write what a push of code did."""
    lines = [f"{each['result']:<11} {each['threadId']}" for each in payload["threads"]]
    if not lines:
        lines = ["no code to send"]
    without = {oid for each in payload["threads"] for oid in each["withoutCommits"]}
    if without:
        lines.append(
            f"without {count_of(len(without), 'commit')} that the remote does not "
            "have (--with-commits sends them too)"
        )
    lines += [
        shown(f"with commit {each['oid'][:12]} {each['subject']}")
        for each in payload["commits"]
    ]
    return "\n".join(lines)


def _choose(
    ledger: Ledger, tree: WorkTree, names: Sequence[str], *, send_all: bool
) -> list[ThreadId]:
    """Choose the threads: those named, else those shared, else all there are.

    Raises:
        InvalidError: One is private.
    """
    from uwfgit.code.chain import list_chain_refs
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.model.thread.private import find_private
    from uwfgit.store.layout import thread_ref

    if names:
        wanted = [resolve_thread(ledger, name) for name in names]
    else:
        wanted = [
            thread
            for thread in list_chain_refs(tree)
            if send_all or _is_shared(ledger, thread)
        ]
    private = find_private(ledger.store, [thread_ref(thread) for thread in wanted])
    for ref, why in private.items():
        if names:
            raise InvalidError(f"thread {ref.rpartition('/')[2]}: {why}")
    return [thread for thread in wanted if thread_ref(thread) not in private]


def _is_shared(ledger: Ledger, thread: ThreadId) -> bool:
    from uwfgit.model.thread.tip import find_sharing, load_tip

    try:
        tip = load_tip(ledger.store, thread)
    except UwfError:
        return False
    return find_sharing(ledger.store, thread, tip.commit).shared != "never"


def _require_clean(
    context: CommandContext,
    ledger: Ledger,
    tree: WorkTree,
    parcels: Sequence[Parcel],
    there: Mapping[str, Oid],
    *,
    allow: Sequence[str],
    dry_run: bool,
) -> None:
    """Require that no secret would leave with some chains.

    Raises:
        InvalidError: One would; names where it stands.
    """
    from uwfgit.cli.check.checks import allow_findings
    from uwfgit.sync.secrets.allowed import read_allowed

    if allow and not dry_run:
        allow_findings(context, ledger.store, allow)
    allowed = read_allowed(ledger.store).union(allow)
    found = [
        f"{path}:{match.line}: {match.rule} {match.shown} ({match.id})"
        for path, match in _scan(tree, [each.tip for each in parcels], there)
        if match.id not in allowed
    ]
    if found:
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise InvalidError(
            f"secrets stand in {'; '.join(found[:_SHOWN])}{more}",
            hint="nothing was sent; for what only looks like one: --allow ID",
        )


def _scan(
    tree: WorkTree, tips: Sequence[Oid], there: Mapping[str, Oid]
) -> Iterator[tuple[str, Match]]:
    from uwfgit.code.exchange import list_new_objects, read_objects
    from uwfgit.sync.secrets.text import scan_text

    if not tips:
        return
    paths = list_new_objects(tree, tips, there)
    for path in dict.fromkeys(paths.values()):
        yield from ((path, match) for match in scan_text(path))
    left = set(paths)
    for oid, kind, data in read_objects(tree, list(paths), most_bytes=_MOST_BYTES):
        left.discard(oid)
        path = paths[oid] or f"{kind} {oid}"
        if kind != "tree":
            yield from ((path, match) for match in _scan_file(path, data))
    for oid in left:
        raise InvalidError(f"'{paths[oid]}' is too large to be looked through")


def _scan_file(path: str, data: bytes) -> Sequence[Match]:
    from uwfgit.sync.secrets.text import scan_json, scan_text

    text = data.decode("utf-8", "replace")
    if path.endswith(".json"):
        with suppress(ValueError, RecursionError):
            return scan_json(text, json.loads(text))
    return scan_text(text)


def pull_code(
    context: CommandContext,
    ledger: Ledger,
    threads: Sequence[ThreadId],
    *,
    tree: WorkTree | None = None,
    remote: str | None = None,
) -> tuple[ThreadId, ...]:
    """Bring the code of threads whose newest step's is not here, if there is some.

    What goes wrong is a warning: the threads are here all the same.
    """
    from uwfgit.code.exchange import choose_remote, fetch_chains
    from uwfgit.code.worktree import WorkTree

    if tree is None and context.folder is not None:
        tree = WorkTree.find(context.folder, context.environment)
    wanted = [] if tree is None else [t for t in threads if _lacks(ledger, tree, t)]
    if tree is None or not wanted:
        return ()
    try:
        return fetch_chains(tree, choose_remote(tree, remote), wanted)
    except (UwfError, RemoteError) as exc:
        context.output.warn(f"the code of the threads was not brought: {exc}")
        return ()


def _lacks(ledger: Ledger, tree: WorkTree, thread: ThreadId) -> bool:
    from uwfgit.code.exchange import list_chained
    from uwfgit.model.thread.record import open_record

    try:
        steps = list_known(open_record(ledger.store, thread))
    except UwfError:
        return False
    trees = {each for step in steps for each in (step.before, step.after) if each}
    return not trees <= (list_chained(tree, thread) if trees else set())
