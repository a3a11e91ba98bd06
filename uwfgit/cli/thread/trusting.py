"""Running what others made: the one screen, the question, and the folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.output import agrees, talk
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import StateError, UntrustedError, UwfError
from uwfgit.store.files import folder_below

_NEWS: Final = 10
"""Events that are told of one by one."""

if TYPE_CHECKING:
    from uwfgit.agents.base import Agent
    from uwfgit.engine.run.engine import Ground
    from uwfgit.ids import Oid, ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record
    from uwfgit.model.thread.tip import Tip
    from uwfgit.store.objects import Commit

    Choose: TypeAlias = Callable[[str | None, str, str], Agent]


def admit(
    context: CommandContext,
    ledger: Ledger,
    choose: Choose,
    record: Record,
    role: str,
    agent: str | None,
    cwd: Path | None,
    *,
    trust: bool,
) -> Ground | None:
    """Look at a thread before anything of it runs.

    Args:
        context: The command's.
        ledger: Where the thread is.
        choose: Gives the agent for (``--agent`` flag, workflow, role).
        record: The thread.
        role: Whose turn it is.
        agent: The ``--agent`` flag.
        cwd: The folder that was named.
        trust: The ``--trust`` flag.

    Raises:
        UntrustedError: Others made it, and the user does not agree.
        StateError: It needs a folder that nobody named.
    """
    from uwfgit.engine.run.engine import Ground
    from uwfgit.store.git.enclosing import find_enclosing
    from uwfgit.store.local import Agreed

    tip = record.tip
    named = partial(choose, agent, record.workflow.name, role)
    foreign = _list_foreign(context, ledger, record, named)
    is_own = all(each.record is not record for each in foreign)
    folder = Path(os.path.realpath(cwd)) if cwd is not None else None
    if folder is None:
        folder = find_folder_of(context, ledger, record, is_own=is_own)
        if is_own:
            _follow_rename(context, ledger, record, folder)
    new = [each for each in foreign if each.events]
    if new:
        lines = list(_screen(ledger, record, new, folder, role))
        lines.append(f"  agent:     {choose(agent, record.workflow.name, role).label}")
        lines += _delegated(record, partial(choose, agent))
        lines += _memory_lines(ledger, tip.thread)
        _require_trust(context, tip, lines, trust=trust, folder=folder)
        for each in new if folder is not None else ():
            seen = each.record.tip
            agreed = Agreed(workflow=seen.state.workflow_oid, tip=seen.commit)
            ledger.local.set_trusted(seen.thread, agreed)
    if is_own:
        return None
    if folder is None:
        raise StateError(
            f"thread {tip.thread} was made on another machine: "
            "its folder there means nothing here",
            hint="choose one with --cwd DIR, or run this in a work tree of its "
            "repository",
        )
    if new or ledger.local.find_folder(tip.thread) is None:
        ledger.local.set_folder(tip.thread, folder)
    enclosing = find_enclosing(folder)
    trusted = (Path(os.path.realpath(p)) for p in context.settings.trusted_roots)
    root = enclosing.root if enclosing is not None else folder
    return Ground(cwd=folder, roots=(root, *trusted))


class _Foreign(Struct, frozen=True, kw_only=True):
    """A thread that others had a hand in; ``events`` are not agreed to yet."""

    record: Record
    events: tuple[Oid, ...]


def _list_foreign(
    context: CommandContext,
    ledger: Ledger,
    record: Record,
    choose: Callable[[], Agent],
) -> list[_Foreign]:
    """Return a thread and those that do its steps, as far as others made them.

    Args:
        choose: Gives the agent that is to play the next role.

    Raises:
        CorruptError: One of them does not verify.
    """
    from uwfgit.agents.base import WorkflowAgent
    from uwfgit.model.ledger.kin import iter_below

    # A thread that none can do a step of is spared the look for them.
    delegates = any(role.workflow for role in record.workflow.roles.values())
    if not delegates:
        with suppress(UwfError):
            delegates = isinstance(choose(), WorkflowAgent)
    threads = (record, *(iter_below(ledger, record) if delegates else ()))
    is_foreign = ledger.local.is_foreign
    foreign = [each for each in threads if is_foreign(each.tip.thread, each.tip.commit)]
    if not foreign:
        return []
    from uwfgit.cli.check.checks import make_verify
    from uwfgit.sync.exchange.foreign import list_unagreed, require_verified

    found = []
    for each in foreign:
        require_verified(ledger, each, make_verify(context))
        events = list_unagreed(ledger, each.tip)
        if events and _is_vouched(context, ledger, each.tip, events):
            events = ()
        found.append(_Foreign(record=each, events=events))
    return found


def _delegated(record: Record, choose: Callable[[str, str], Agent]) -> Iterator[str]:
    """Tell of the workflows that do roles: what each would have done, and by whom."""
    for name in record.start.children:
        workflow = record.child_workflow(name)
        for role, made in workflow.roles.items() if workflow is not None else ():
            if made.workflow is not None:
                by = f"workflow {made.workflow}"
            else:
                try:
                    by = choose(name, role).label
                except UwfError:
                    by = "no agent"
            yield f"  through:   {name}, {role}: {by}"


def _follow_rename(
    context: CommandContext, ledger: Ledger, record: Record, folder: Path | None
) -> None:
    """Take a thread along whose repository was renamed or moved since."""
    thread = record.tip.thread
    known = ledger.local.find_folder(thread) or Path(record.start.cwd)
    if folder is not None and folder != known:
        ledger.local.set_folder(thread, folder)
        context.output.say(
            f"'{shown(str(known))}' is gone; the thread goes on in "
            f"'{shown(str(folder))}', of the same repository"
        )


def find_others_memory(ledger: Ledger, thread: ThreadId) -> Commit | None:
    """Return the newest memory of a thread, if another machine recorded it."""
    from uwfgit.model.memory.memory import iter_memory
    from uwfgit.store.layout import memory_ref
    from uwfgit.store.refs import find_ref

    tip = find_ref(ledger.store, memory_ref(thread))
    runs = [] if tip is None else list(iter_memory(ledger.store, tip))
    newest = next((commit for commit in runs if len(commit.parents) == 1), None)
    is_ours = newest is not None and ledger.local.is_made_here(newest.oid)
    return None if is_ours else newest


def _memory_lines(ledger: Ledger, thread: ThreadId) -> Iterator[str]:
    """Tell of the memory that others' agents left, if there is any."""
    from uwfgit.model.memory.memory import read_session

    newest = find_others_memory(ledger, thread)
    if newest is None:
        return
    size = read_session(ledger.store, newest.oid).size
    yield (
        f"  memory:    {size:,} bytes by {shown(newest.committer.name)}, which nothing "
        "proves; left out without --memory"
    )


def is_trusted(context: CommandContext, ledger: Ledger, commit: Oid) -> bool:
    """Whether someone in ``trust`` signed the commit of a memory."""
    from uwfgit.sync.exchange.foreign import find_signer

    principals, environment = context.settings.trust, context.environment
    signer = find_signer(ledger.store, commit, principals, environment=environment)
    return signer is not None


def _is_vouched(
    context: CommandContext, ledger: Ledger, tip: Tip, events: Sequence[Oid]
) -> bool:
    """Whether someone in ``trust``, or the user's own key, signed for what is new."""
    from uwfgit.sync.exchange.foreign import find_voucher

    principals = (*context.settings.trust, *own_keys(context))
    signer = find_voucher(ledger, events, principals, environment=context.environment)
    if signer is None:
        return False
    context.output.say(shown(f"thread {tip.thread} is signed by {signer}, see 'trust'"))
    return True


def own_keys(context: CommandContext) -> tuple[str, ...]:
    """Name the user's own signing key as git does in what it says of a signature."""
    from uwfgit.store.git.signing import name_key

    setting = context.git_settings.get("user.signingkey", "")
    name = name_key(setting, home=context.user_home)
    return (name,) if name else ()


def _screen(
    ledger: Ledger,
    record: Record,
    foreign: Sequence[_Foreign],
    folder: Path | None,
    role: str,
) -> Iterator[str]:
    """Write what a user has to know before a thread of others runs."""
    tip = record.tip
    events = [oid for each in foreign if each.record is record for oid in each.events]
    known = ledger.local.find_trusted(tip.thread)
    is_known = known is not None and known.workflow == tip.state.workflow_oid
    if not events:
        yield f"others had a hand in what does steps of thread {tip.thread}"
    elif is_known:
        yield f"thread {tip.thread} has events that you have not agreed to"
        yield from _news(ledger, events)
    else:
        yield f"thread {tip.thread} was not made on this machine alone"
    if events:
        yield f"  by:        {_people(ledger, events)}"
    for each in foreign:
        if each.record is not record:
            child = each.record.tip
            told = f"{child.state.workflow_name}, {child.state.status}"
            yield f"  child:     {child.thread} {told}"
            yield f"             by {_people(ledger, each.events)}"
    yield f"  workflow:  {tip.state.workflow_name} ({tip.state.workflow_hash})"
    yield f"  directory: {folder or 'none yet: choose one with --cwd DIR'}"
    yield f"  next role: {role}"


def _people(ledger: Ledger, events: Sequence[Oid]) -> str:
    from uwfgit.sync.exchange.foreign import list_hands

    hands = list_hands(ledger, events)
    more = f" and {hands.more} more" if hands.more else ""
    return f"{', '.join(hands.people)}{more} (as the commits say)"


def _news(ledger: Ledger, events: Sequence[Oid]) -> Iterator[str]:
    """Tell of each event that is new, the oldest first."""
    from uwfgit.store.objects import read_commit

    ordered = events[::-1]
    for oid in ordered[-_NEWS:]:
        subject = read_commit(ledger.store, oid).message.partition("\n")[0]
        yield f"  new:       {oid[:12]} {subject}"
    if len(ordered) > _NEWS:
        yield f"  new:       and {len(ordered) - _NEWS} before them"


def _require_trust(
    context: CommandContext,
    tip: Tip,
    lines: list[str],
    *,
    trust: bool,
    folder: Path | None,
) -> None:
    """Show the screen and ask; also for a folder, so that nothing is asked twice.

    Raises:
        UntrustedError: The user does not agree, or cannot be asked.
    """
    needs = ("--trust",) if folder is not None else ("--trust", "--cwd DIR")
    options = " ".join(needs)
    error = UntrustedError(
        f"thread {tip.thread} was not made on this machine alone",
        hint=f"read it first: uwf thread read {tip.thread}; then run it with {options}",
        needs=needs,
    )
    if not trust and not context.output.is_text:
        raise error
    # An error stands alone on stderr unless the output is text.
    tell = talk if context.output.is_text else context.output.say
    for line in lines:
        tell(shown(line))
    tell("  its workflow and prompts will drive your agent, which can do what you can")
    if trust:
        return
    if folder is None or not agrees("run it? [y/N] "):
        raise error


def find_folder_of(
    context: CommandContext, ledger: Ledger, record: Record, *, is_own: bool
) -> Path | None:
    """Choose where a thread works that no folder is named for.

    Args:
        is_own: Whether it was made on this machine alone. Another never works in
            the folder it recorded, but in one that was chosen here. One of our own
            whose folder is gone, and another that has none, works in this work tree
            when it began in this repository.

    Returns:
        ``None`` when the user has to name one.
    """
    from uwfgit.model.ledger.ledger import lineage

    threads = (record.tip.thread,) if is_own else lineage(ledger, record.tip)
    known = next(filter(None, map(ledger.local.find_folder, threads)), None)
    if is_own:
        known = known or Path(record.start.cwd)
        if not os.path.isdir(known):  # noqa: PTH112 - pathlib's raises at a long name
            return _find_same_repository(context, record) or known
    return known or _find_same_repository(context, record)


def _find_same_repository(context: CommandContext, record: Record) -> Path | None:
    from uwfgit.store.git.worktree import root_commit

    start, enclosing = record.start, context.enclosing
    if enclosing is None or start.root_commit is None or start.cwd_in_repo is None:
        return None
    folder = folder_below(enclosing.root, start.cwd_in_repo)
    if folder is None:
        return None
    here = root_commit(
        enclosing.root, environment=context.environment, memory=context.home
    )
    return folder if here == start.root_commit else None
