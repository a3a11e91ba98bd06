"""Commands about threads: show, list, read, fork, cancel and remove; and the group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from uwfgit.cli.frame.arguments import (
    BranchOption,
    ThreadArgument,
    require_least,
    require_text,
)
from uwfgit.cli.frame.commands import add_command, add_later, make_group
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import count_of
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.thread.next_command import way_on
from uwfgit.cli.thread.runs import (
    ExecCommand,
    exec_command,
    poke_command,
    resume_command,
)
from uwfgit.constants import READ_CHARS
from uwfgit.errors import UsageError
from uwfgit.ids import find_hash

if TYPE_CHECKING:
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.tip import Tip

NewOption = Annotated[
    bool, typer.Option("--new", help="What is new since you last asked this.")
]

app = make_group("Start, run, read and fork threads.")

RemovedArgument = Annotated[
    str,
    typer.Argument(
        metavar="REMOVED",
        help="An id in the trash, or a unique start of one, or a unique end of at "
        "least 4 characters.",
    ),
]

add_later(app, "start", cls="StartCommand", where="thread.cmd_start:start_command")
add_later(app, "run", where="thread.cmd_start:run_command")
add_command(app, "exec", "step", cls=ExecCommand)(exec_command)
add_command(app, "resume")(resume_command)
add_command(app, "poke")(poke_command)
add_later(app, "join", where="thread.cmd_start:join_command")
add_later(app, "stop", where="thread.cmd_start:stop_command")
add_later(app, "pause", where="thread.cmd_start:pause_command")
add_later(app, "log", settings="LOG_SETTINGS", where="thread.cmd_compare:log_command")
add_later(app, "diff", where="thread.cmd_compare:diff_command")
add_later(app, "summarize", "summarise", where="thread.cmd_open:summarize_command")
add_later(app, "code", settings="DIFF_SETTINGS", where="code.cmd_changes:code_command")
add_later(app, "rewind", where="code.cmd_rewind:rewind_command")
add_later(app, "undo", where="code.cmd_rewind:undo_command")


@add_command(app, "show")
def show(ctx: typer.Context, thread: ThreadArgument, new: NewOption = False) -> None:
    """Show the state of a thread; with --new also what happened since you looked."""
    from uwfgit.cli.live.news import list_news, mark_seen, news_line, news_payload
    from uwfgit.cli.thread.payloads import shown_payload
    from uwfgit.cli.thread.reading import kin_fields, thread_text
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.thread.hold import find_hold
    from uwfgit.store.locks.flock import read_dead_holder

    context = get_context(ctx)
    ledger = context.open_ledger()
    tip = find_tip(ledger, thread)
    payload = shown_payload(ledger, tip)
    news = list_news(ledger, tip) if new else []
    if new:
        payload["new"] = [news_payload(event) for event in news]
        mark_seen(context, ledger, tip)
    context.output.emit(
        payload,
        lambda: "\n".join(
            [
                thread_text(
                    context,
                    payload,
                    kin=list(kin_fields(ledger, payload)),
                    held=find_hold(ledger.store, tip.commit, tip.state),
                ),
                *map(news_line, news),
            ]
        ),
    )
    if context.output.is_text:
        dead = read_dead_holder(ledger.store.locks / tip.thread)
        if dead is not None:
            context.output.say(f"note: its runner died: {shown(str(dead))}")
            stop = f"uwf thread stop {tip.thread}"
            context.output.say(f"its agent may be at work still; end it: {stop}")
        context.output.say(way_on(ledger, tip.thread, payload["status"]))


@add_command(app, "list")
def list_(  # noqa: PLR0917 - one parameter an option
    ctx: typer.Context,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="A,B", help="Only these; active is all but ended."
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Ended and cancelled ones too.")
    ] = False,
    workflow: Annotated[
        str | None,
        typer.Option("--workflow", metavar="NAME", help="Only of this workflow."),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="TEXT", help="Only those this person started."),
    ] = None,
    mine: Annotated[
        bool, typer.Option("--mine", help="Only those you started.")
    ] = False,
    after: Annotated[
        str | None,
        typer.Option(
            "--after", metavar="TIME", help="Started after 7d, 12h, or a date."
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="TIME", help="Started before that time."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="At most so many.")
    ] = None,
    offset: Annotated[
        int | None, typer.Option("--offset", metavar="N", help="Leave out the first N.")
    ] = None,
    take: Annotated[int | None, typer.Option("--take", hidden=True)] = None,
    skip: Annotated[int | None, typer.Option("--skip", hidden=True)] = None,
    trash: Annotated[
        bool, typer.Option("--trash", help="Removed threads instead.")
    ] = False,
    children: Annotated[
        bool,
        typer.Option(
            "--children", help="Those that did steps of others too, below these."
        ),
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="WHAT", help="By cost or tokens, the most first."
        ),
    ] = None,
) -> None:
    """List threads, newest first.

    One that did a step of another is folded into it, which +N counts. Ended and
    cancelled ones are left out and counted, unless --all or --status asks for them.
    """
    from uwfgit.cli.thread.listing import print_threads, read_filters

    context = get_context(ctx)
    if mine and by:
        raise UsageError("--mine and --by exclude each other")
    filters = read_filters(
        status=status,
        show_all=show_all,
        workflow=workflow,
        by=f"<{context.identity.email}>" if mine else by,
        after=after,
        before=before,
        limit=limit if limit is not None else take,
        offset=offset if offset is not None else skip,
        trash=trash,
        children=children,
        sort=sort,
    )
    print_threads(context, context.open_ledger(), filters)


@add_command(app, "running", "ps", hidden=True)
def running(ctx: typer.Context) -> None:
    """List the threads that are being run right now."""
    from uwfgit.cli.thread.listing import print_threads, read_filters

    context = get_context(ctx)
    print_threads(context, context.open_ledger(), read_filters(status="running"))


@add_command(app, "read")
def read(
    ctx: typer.Context,
    thread: ThreadArgument,
    quota: Annotated[
        int, typer.Option("--quota", metavar="N", help="Characters for the steps.")
    ] = READ_CHARS,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="STEP", help="Only steps older than this."),
    ] = None,
    with_start: Annotated[
        bool, typer.Option("--start", help="The task too, in spite of --before.")
    ] = False,
    new: NewOption = False,
) -> None:
    """Read a thread as markdown, its newest steps first to be kept."""
    from uwfgit.cli.live.news import list_news, mark_seen
    from uwfgit.cli.thread import cmd_step
    from uwfgit.cli.thread.reading import parent_note, thread_markdown
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.ledger.standing import is_running, status_of
    from uwfgit.model.thread.record import open_record
    from uwfgit.model.thread.tip import find_sharing

    context = get_context(ctx)
    require_least(1, quota=quota)
    ledger = context.open_ledger()
    tip = find_tip(ledger, thread)
    status = status_of(
        tip.state,
        running=is_running(ledger.store, tip.thread),
        sharing=find_sharing(ledger.store, tip.thread, tip.commit),
    )
    record = open_record(ledger.store, tip, checked=False)
    text = thread_markdown(
        record,
        above=parent_note(ledger, record),
        status=status,
        quota=quota,
        before=before,
        with_start=with_start,
        only={event.node for event in list_news(ledger, tip)} if new else None,
    )
    cmd_step.emit_markdown(context, {"threadId": tip.thread}, text)
    if new:
        mark_seen(context, ledger, tip)


@add_command(app, "fork")
def fork(
    ctx: typer.Context,
    thread: Annotated[
        str, typer.Argument(metavar="THREAD|STEP", help="A thread, or a step's hash.")
    ],
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="N", help="Fork after step N; 0 is the start."),
    ] = None,
    from_role: Annotated[
        str | None,
        typer.Option(
            "--from-role", metavar="ROLE", help="Fork before this role's newest step."
        ),
    ] = None,
    worktree: Annotated[
        str | None,
        typer.Option(
            "--worktree",
            metavar="DIR",
            help="Also a git work tree with the code as it was after that step.",
        ),
    ] = None,
    branch: BranchOption = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Also when others made the code.")
    ] = False,
) -> None:
    """Branch a new thread off one; nothing is copied, the old one stays."""
    from uwfgit.cli.thread import cmd_step
    from uwfgit.engine.run.thread import fork_thread
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    require_least(0, at=at)
    if branch is not None and worktree is None:
        raise UsageError("--branch goes with --worktree")
    ledger = context.open_ledger(write=True, create=False)
    if at is None and from_role is None and (find_hash(thread) or ":" in thread):
        if worktree is None:
            cmd_step.fork_step(context, thread)
            return
        thread, at = cmd_step.place_of(ledger, thread)
    found = resolve_thread(ledger, thread)
    if worktree is None:
        tip = fork_thread(ledger, found, at=at, from_role=from_role)
    else:
        tip = _fork_with_code(
            context, ledger, found, at, from_role, worktree, branch, trust
        )
    cmd_step.emit_fork(context, ledger, tip)


def _fork_with_code(
    context: CommandContext,
    ledger: Ledger,
    thread: ThreadId,
    at: int | None,
    from_role: str | None,
    worktree: str,
    branch: str | None,
    trust: bool,
) -> Tip:
    """Fork a thread together with the code as it was."""
    from uwfgit.cli.code.own_worktree import find_scene, fork_into
    from uwfgit.engine.run.thread import fork_point, fork_thread
    from uwfgit.model.thread.record import open_record

    record = open_record(ledger.store, thread)
    number = fork_point(record, at=at, from_role=from_role)
    scene = find_scene(context, ledger, record, at=number, trust=trust)
    tip = fork_thread(ledger, thread, at=number)
    folder = context.resolve(worktree)
    fork_into(context, ledger, tip, scene, folder=folder, branch=branch)
    return tip


@add_command(app, "cancel", "kill")
def cancel(
    ctx: typer.Context,
    thread: ThreadArgument,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="Why; goes into the history."),
    ] = None,
) -> None:
    """Give a thread up; it is kept, and cannot run again.

    A running agent is stopped first.
    """
    from uwfgit.cli.thread.background import stop_run
    from uwfgit.engine.run.thread import cancel_thread
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    found = resolve_thread(ledger, thread)
    if reason is not None:
        reason = require_text(reason, "--reason")
        reason = context.mask(reason, what="--reason")
    stop_run(context, ledger, found)
    tip = cancel_thread(ledger, found, reason=reason, command="uwf thread cancel")
    context.output.emit(
        {"threadId": tip.thread, "status": tip.state.status, "cancelled": True},
        lambda: f"cancelled {tip.thread}",
    )


@add_command(app, "rm")
def remove(
    ctx: typer.Context,
    thread: ThreadArgument,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Also one that did a step of another.")
    ] = False,
) -> None:
    """Move a thread to the trash; a running agent is stopped first.

    Threads that did steps of it alone go with it, and come back with it.
    'uwf thread list --trash' shows it there, 'uwf thread restore' brings it back.
    """
    from uwfgit.cli.thread.background import stop_run
    from uwfgit.cli.thread.listing import find_status
    from uwfgit.engine.beside.trash import list_going, remove_thread, require_no_parent
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    found = resolve_thread(ledger, thread)
    if not yes:
        require_no_parent(ledger, found)
    stop_run(context, ledger, found)
    status = find_status(ledger, found)
    going = list_going(ledger, found)
    remove_thread(ledger, found, command="uwf thread rm")
    context.output.emit(
        {"threadId": found, "status": status, "removed": True, "children": [*going]},
        lambda: f"removed {found}{_with_children(len(going))}",
    )
    context.output.say(f"bring it back: uwf thread restore {found}")


def _with_children(count: int) -> str:
    if not count:
        return ""
    return f", and {count_of(count, 'thread')} that did steps of it"


@add_command(app, "restore")
def restore(ctx: typer.Context, thread: RemovedArgument) -> None:
    """Bring a removed thread back from the trash.

    Threads stay there until 'uwf gc --prune' empties it, for two weeks at least.
    """
    from uwfgit.cli.thread.listing import find_status
    from uwfgit.engine.beside.trash import list_coming, restore_thread
    from uwfgit.model.ledger.ledger import resolve_removed

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    found = resolve_removed(ledger, thread)
    coming = list_coming(ledger, found)
    restore_thread(ledger, found, command="uwf thread restore")
    payload = {
        "threadId": found,
        "status": find_status(ledger, found),
        "restored": True,
        "children": [*coming],
    }
    context.output.emit(
        payload, lambda: f"restored {found}{_with_children(len(coming))}"
    )


add_later(app, "resolve", where="thread.cmd_resolve:resolve_command")
add_later(app, "redact", where="thread.cmd_redact:redact_command")
add_later(app, "forget", where="thread.cmd_redact:forget_command")
add_later(app, "open", where="thread.cmd_open:open_command")
add_later(app, "steps", hidden=True, where="thread.cmd_step:list_steps")
add_later(app, "step-details", hidden=True, where="thread.cmd_step:show_step")
