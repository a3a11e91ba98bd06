"""Commands that begin a thread: start it, or start it and run it to its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uwfgit.cli.arguments import read_text
from uwfgit.cli.context import CommandContext, get_context
from uwfgit.cli.output import format_fields
from uwfgit.cli.runs import AgentOption, find_folder, run_started
from uwfgit.cli.ways import usual_way
from uwfgit.ids import find_thread_id

if TYPE_CHECKING:
    from uwfgit.ids import Hash, ThreadId
    from uwfgit.model.ledger import Ledger
    from uwfgit.model.record import Tip

WorkflowArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORKFLOW", help="A path, a name, NAME@HASH, or a workflow's hash."
    ),
]
PromptOption = Annotated[
    str,
    typer.Option(
        "--prompt", "-p", metavar="TEXT", help="The task; - is stdin, @FILE a file."
    ),
]
StartCwdOption = Annotated[
    str | None,
    typer.Option("--cwd", metavar="DIR", help="Where its agents work; else here."),
]


def start_command(
    ctx: typer.Context,
    workflow: WorkflowArgument,
    prompt: PromptOption,
    cwd: StartCwdOption = None,
) -> None:
    """Start a thread: pin the workflow and the task; nothing runs yet."""
    context = get_context(ctx)
    ledger = context.open_ledger(write=True)
    tip = _start(context, ledger, workflow, prompt, cwd)
    state = tip.state
    payload = {
        "threadId": tip.thread,
        "workflowName": state.workflow_name,
        "workflowHash": state.workflow_hash,
        "head": state.head,
        "oid": tip.commit,
        "status": state.status,
    }
    fields = [
        ("thread", tip.thread),
        ("workflow", f"{state.workflow_name} ({state.workflow_hash})"),
    ]
    context.output.emit(payload, lambda: format_fields(context.output, fields))
    if context.output.is_text:
        context.output.say(usual_way(tip.thread, state.status))


def _start(
    context: CommandContext,
    ledger: Ledger,
    workflow: str,
    prompt: str,
    cwd: str | None,
) -> Tip:
    from uwfgit.cli.workflows import find_workflow
    from uwfgit.engine.thread import start_thread

    found = find_workflow(context, ledger, workflow)
    task = read_text(context, prompt, what="--prompt")
    task = context.mask(task, what="--prompt")
    folder = find_folder(context, cwd) or context.cwd
    place, root = _place_in_repository(context, folder)
    tip = start_thread(
        ledger,
        workflow=found.workflow,
        data=found.data,
        prompt=task,
        cwd=folder,
        cwd_in_repo=place,
        root_commit=root,
        parent=_find_parent(context, ledger),
    )
    ledger.local.set_last(tip.thread)
    return tip


def _place_in_repository(
    context: CommandContext, folder: Path
) -> tuple[str | None, str | None]:
    from uwfgit.store.worktree import find_enclosing, root_commit

    enclosing = find_enclosing(folder)
    if enclosing is None:
        return None, None
    inside = folder.resolve().relative_to(enclosing.root).as_posix()
    return inside, root_commit(enclosing.root, environment=context.environment)


def _find_parent(
    context: CommandContext, ledger: Ledger
) -> tuple[ThreadId, Hash, int] | None:
    """Find the thread whose agent runs this command, if it is in this store."""
    from uwfgit.errors import UwfError
    from uwfgit.model.record import load_tip, open_record

    thread = find_thread_id(context.environment.get("UWF_THREAD", ""))
    if thread is None:
        return None
    try:
        record = open_record(ledger.store, load_tip(ledger.store, thread))
        depth = record.start.depth
    except UwfError:
        return None
    return thread, record.tip.state.head, depth


def run_command(
    ctx: typer.Context,
    workflow: WorkflowArgument,
    prompt: PromptOption,
    cwd: StartCwdOption = None,
    agent: AgentOption = None,
) -> None:
    """Start a thread and run it until it stops."""
    context = get_context(ctx)
    ledger = context.open_ledger(write=True)
    tip = _start(context, ledger, workflow, prompt, cwd)
    if context.output.is_text:
        context.output.say(f"thread {tip.thread}")
    run_started(context, ledger, tip.thread, agent=agent)
