"""The command ``thread check``: what going on with a thread needs, and lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from msgspec.structs import asdict

from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import count_of, format_time
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import UwfError

if TYPE_CHECKING:
    from uwfgit.agents.base import Agent
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record


class _Found(Struct, frozen=True, kw_only=True):
    """One thing that going on needs; ``command`` gets it where it is missing."""

    what: str
    ok: bool
    message: str
    command: str | None = None


def check_command(
    ctx: typer.Context,
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="Which thread.")],
) -> None:
    """Tell what is here for going on with a thread, and what is missing.

    Looks at its state, folder, agent, session, and for a thread of others at trust.
    Each thing that is missing comes with the command that gets it; exits 1 then.
    """
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.thread.record import open_record

    context = get_context(ctx)
    ledger = context.open_ledger()
    record = open_record(ledger.store, find_tip(ledger, thread), checked=False)
    found = list(_look(context, ledger, record))
    ok = all(each.ok for each in found)
    payload = {
        "threadId": record.tip.thread,
        "ok": ok,
        "checks": [asdict(each) for each in found],
    }
    lines = []
    for each in found:
        mark = "ok" if each.ok else "missing"
        lines.append(f"{mark:<8} {each.what:<8} {shown(each.message)}")
        lines += [] if each.command is None else [f"{'':<17} {each.command}"]
    context.output.emit(payload, lambda: "\n".join(lines))
    raise typer.Exit(0 if ok else 1)


def _look(context: CommandContext, ledger: Ledger, record: Record) -> Iterator[_Found]:
    from uwfgit.cli.thread.trusting import find_folder_of

    yield _look_at_state(ledger, record)
    is_own = not ledger.local.is_foreign(record.tip.thread, record.tip.commit)
    folder = find_folder_of(context, ledger, record, is_own=is_own)
    yield _look_at_folder(record, folder)
    role = _role(record)
    # A forged thread may name one that is none.
    made = record.workflow.roles.get(role)
    if made is not None and made.workflow is not None:
        yield from _look_at_delegated(context, record, role, made.workflow)
    else:
        agent = _choose(context, record.workflow.name, role)
        if isinstance(agent, _Found):
            yield agent
        else:
            yield _look_at_agent(context, agent, folder)
            yield _look_at_session(context, ledger, record, agent, is_own=is_own)
    yield from _look_at_children(ledger, record)
    yield from _look_at_trust(context, ledger, record)


def _look_at_delegated(
    context: CommandContext, record: Record, role: str, by: str
) -> Iterator[_Found]:
    """Look at the agents of the workflows that do a role, and roles of those."""
    lacking = [
        agent
        for name in record.start.children
        if (workflow := record.child_workflow(name)) is not None
        for each, made in workflow.roles.items()
        if made.workflow is None
        if isinstance(agent := _choose(context, name, each), _Found)
    ]
    yield from lacking
    if not lacking:
        message = f"role {role} is done by workflow '{by}'"
        yield _Found(what="agent", ok=True, message=message)


def _look_at_children(ledger: Ledger, record: Record) -> Iterator[_Found]:
    from uwfgit.model.ledger.kin import list_children
    from uwfgit.store.layout import thread_ref
    from uwfgit.store.refs import find_ref

    children = list_children(ledger, record)
    lacking = [
        each for each in children if find_ref(ledger.store, thread_ref(each)) is None
    ]
    for each in lacking:
        message = f"thread {each} that did a step is not here"
        yield _Found(
            what="child", ok=False, message=message, command=f"uwf pull {each}"
        )
    if children and not lacking:
        message = f"{count_of(len(children), 'thread')} that did steps here"
        yield _Found(what="child", ok=True, message=message)


def _look_at_state(ledger: Ledger, record: Record) -> _Found:
    from uwfgit.model.ledger.standing import is_running
    from uwfgit.model.thread.hold import why_suspended
    from uwfgit.model.thread.tip import find_sharing

    state, thread = record.tip.state, record.tip.thread
    if is_running(ledger.store, thread):
        return _Found(
            what="state",
            ok=False,
            message="someone runs it now",
            command=f"uwf thread join {thread}",
        )
    remotes = find_sharing(ledger.store, thread, record.tip.commit).diverged
    if remotes:
        return _Found(
            what="state",
            ok=False,
            message=f"diverged from {', '.join(remotes)}",
            command=f"uwf thread resolve {thread}",
        )
    if state.retry_at_ms is not None:
        until = format_time(state.retry_at_ms)
        message = f"suspended by a limit until {until}"
        return _Found(
            what="state",
            ok=True,
            message=message,
            command=f"uwf thread exec {thread} --wait",
        )
    message = state.status
    if why := why_suspended(ledger.store, record.tip.commit, state):
        message += f": {why}"
    ok = state.status != "cancelled"
    command = _way_on(record) if ok else f"uwf thread fork {thread}"
    return _Found(what="state", ok=ok, message=message, command=command)


def _way_on(record: Record) -> str:
    """Write the command that runs a thread's next step."""
    from uwfgit.model.thread.hold import find_hold

    state, thread = record.tip.state, record.tip.thread
    if state.status in {"suspended", "end"} and state.retry_at_ms is None:
        is_held = find_hold(record.store, record.tip.commit, state) is not None
        return f"uwf thread resume {thread}" + ("" if is_held else " -p TEXT")
    return f"uwf thread exec {thread}"


def _role(record: Record) -> str:
    state = record.tip.state
    return (
        state.current_role or state.suspended_role or next(iter(record.workflow.roles))
    )


def _look_at_folder(record: Record, folder: Path | None) -> _Found:
    command = f"{_way_on(record)} --cwd DIR"
    if folder is None:
        message = (
            "none was chosen on this machine; a work tree of its repository will do"
        )
        return _Found(what="folder", ok=False, message=message, command=command)
    if not folder.is_dir():
        message = f"{folder} is not there"
        return _Found(what="folder", ok=False, message=message, command=command)
    return _Found(what="folder", ok=True, message=str(folder))


def _choose(context: CommandContext, workflow: str, role: str) -> Agent | _Found:
    from uwfgit.agents.registry import choose_agent

    try:
        return choose_agent(
            None,
            settings=context.settings,
            workflow=workflow,
            role=role,
            base_dir=context.cwd,
            environment=context.environment,
            variables=context.variables,
        )
    except UwfError as exc:
        return _Found(
            what="agent",
            ok=False,
            message=f"role {role}: {exc.message}",
            command=exc.hint or "uwf setup",
        )


def _look_at_agent(
    context: CommandContext, agent: Agent, folder: Path | None
) -> _Found:
    from uwfgit.agents.base import NeedsProgram

    problem = None
    if folder is not None and folder.is_dir() and isinstance(agent, NeedsProgram):
        problem = agent.find_missing(context.environment, cwd=folder)
    message = f"{agent.label} ({agent.kind})"
    if problem is None:
        return _Found(what="agent", ok=True, message=message)
    return _Found(
        what="agent", ok=False, message=f"{message}: {problem}", command="uwf doctor"
    )


def _look_at_session(
    context: CommandContext,
    ledger: Ledger,
    record: Record,
    agent: Agent,
    *,
    is_own: bool,
) -> _Found:
    from uwfgit.cli.thread.trusting import find_others_memory, is_trusted
    from uwfgit.store.layout import memory_ref
    from uwfgit.store.refs import find_ref

    role, thread = _role(record), record.tip.thread
    if ledger.local.find_session(thread, role, agent.label) is not None:
        message = f"{agent.label} goes on in its session of role {role}"
    elif (
        not is_own
        and (theirs := find_others_memory(ledger, thread)) is not None
        and not is_trusted(context, ledger, theirs.oid)
    ):
        message = "its memory is of others' agents, and left out without --memory"
        command = f"{_way_on(record)} --memory"
        return _Found(what="session", ok=True, message=message, command=command)
    elif find_ref(ledger.store, memory_ref(thread)) is not None:
        message = "its memory is in the store, and put back where it can be"
    else:
        message = f"{agent.label} starts over and is told what happened"
    return _Found(what="session", ok=True, message=message)


def _look_at_trust(
    context: CommandContext, ledger: Ledger, record: Record
) -> Iterator[_Found]:
    from uwfgit.model.ledger.kin import iter_below
    from uwfgit.sync.exchange.foreign import find_voucher, list_unagreed

    threads = (record, *iter_below(ledger, record))
    tips = (each.tip for each in threads)
    foreign = [tip for tip in tips if ledger.local.is_foreign(tip.thread, tip.commit)]
    if not foreign:
        return
    count, why = 0, "you agreed to run it"
    for tip in foreign:
        events = list_unagreed(ledger, tip)
        signer = find_voucher(
            ledger, events, context.settings.trust, environment=context.environment
        )
        why = f"signed by {signer}" if signer else why
        count += 0 if signer else len(events)
    if not count:
        yield _Found(what="trust", ok=True, message=why)
        return
    what = "its events" if len(threads) == 1 else "its events and its children's"
    yield _Found(
        what="trust",
        ok=False,
        message=f"others made {count} of {what}, and you have not agreed",
        command=f"{_way_on(record)} --trust",
    )
