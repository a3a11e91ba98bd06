"""Commands that begin a thread: start it, or start it and run it to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from msgspec import Struct

from uwfgit.cli.frame.arguments import (
    AgentOption,
    BranchOption,
    InputsFileOption,
    InputsOption,
    ThreadArgument,
    read_text,
    require_least,
)
from uwfgit.cli.frame.commands import Command
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import format_fields, write
from uwfgit.cli.thread.next_command import USUAL_WAYS, tell_refusal, way_on
from uwfgit.cli.thread.runs import find_folder, finish_run, run_started, step_line
from uwfgit.errors import UsageError, UwfError
from uwfgit.ids import find_thread_id

if TYPE_CHECKING:
    from uwfgit.engine.decide.moderator import Routed
    from uwfgit.engine.run.thread import Parent
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.tip import Tip
    from uwfgit.model.workflow.workflow import Workflow

    _Check: TypeAlias = Callable[[Ledger, Workflow, Path, Routed], None]
    """Looks at the first step of a thread that is about to be started."""


def stop_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    after_step: Annotated[
        bool, typer.Option("--after-step", help="Let the step at hand finish.")
    ] = False,
) -> None:
    """End the running agent of a thread.

    What it said is kept as an attempt, and the thread waits for a person.
    """
    if after_step:
        pause_command(ctx, thread)
        return
    from uwfgit.cli.thread.background import stop_run
    from uwfgit.cli.thread.listing import find_status
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    ledger = context.open_ledger()
    found = resolve_thread(ledger, thread)
    find_status(ledger, found)
    stopped = stop_run(context, ledger, found)
    status = find_status(ledger, found)
    context.output.emit(
        {"threadId": found, "status": status, "stopped": stopped},
        lambda: f"stopped {found}" if stopped else f"{found} was not running",
    )
    if stopped and context.output.is_text:
        context.output.say(way_on(ledger, found, status))


def pause_command(ctx: typer.Context, thread: ThreadArgument) -> None:
    """Let a running thread finish its step, and run no further one."""
    from uwfgit.cli.thread.listing import find_status
    from uwfgit.engine.run.control import pause_thread
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    ledger = context.open_ledger()
    found = resolve_thread(ledger, thread)
    status = find_status(ledger, found)
    pausing = pause_thread(ledger, found)
    payload = {
        "threadId": found,
        "status": "running" if pausing else status,
        "stopped": False,
        "pausing": pausing,
    }
    context.output.emit(
        payload,
        lambda: (
            f"{found} pauses after this step" if pausing else f"{found} was not running"
        ),
    )
    if pausing and context.output.is_text:
        context.output.say(f"wait for that: uwf thread join {found}")


def join_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", metavar="SECONDS", help="Wait no longer; exits 4 then."
        ),
    ] = None,
) -> None:
    """Wait until nobody runs a thread, and tell how it then stands.

    Exits as the run itself would: 3 when the thread waits for a person, 5 when
    its newest step failed.
    """
    from uwfgit.engine.run.control import join_thread
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    require_least(0, timeout=timeout)
    ledger = context.open_ledger()
    found = resolve_thread(ledger, thread)
    try:
        report = join_thread(ledger, found, timeout=timeout)
    except UwfError as exc:
        tell_refusal(context, ledger, found, exc)
        raise
    if context.output.is_text:
        for step in report.steps:
            write(f"{step_line(context, step)}\n")
    finish_run(context, ledger, report)


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


class StartCommand(Command):
    """A command whose ``--worktree`` may name no folder."""

    alone = MappingProxyType({"--worktree": ("", r"(?s)(?!-).*")})


class _Begin(Struct, frozen=True, kw_only=True):
    """How a thread is begun, besides its workflow and task."""

    cwd: str | None = None
    worktree: str | None = None
    branch: str | None = None
    no_code: bool = False
    no_memory: bool = False
    private: bool = False
    inputs: tuple[str, ...] = ()
    inputs_file: str | None = None


def start_command(  # noqa: PLR0917 - one parameter an option
    ctx: typer.Context,
    workflow: WorkflowArgument,
    prompt: PromptOption,
    cwd: StartCwdOption = None,
    worktree: Annotated[
        str | None,
        typer.Option(
            "--worktree",
            metavar="[DIR]",
            help="Let it work in a git work tree of its own, beside this one.",
        ),
    ] = None,
    branch: BranchOption = None,
    no_code: Annotated[
        bool, typer.Option("--no-code", help="Keep no code around its steps.")
    ] = False,
    no_memory: Annotated[
        bool, typer.Option("--no-memory", help="Keep no session of its agents.")
    ] = False,
    private: Annotated[
        bool, typer.Option("--private", help="Never share it: push and bundle refuse.")
    ] = False,
    inputs: InputsOption = None,
    inputs_file: InputsFileOption = None,
) -> None:
    """Start a thread: pin the workflow and the task; nothing runs yet."""
    context = get_context(ctx)
    if worktree is not None and cwd is not None:
        raise UsageError("--worktree and --cwd exclude each other")
    if branch is not None and worktree is None:
        raise UsageError("--branch goes with --worktree")
    begin = _Begin(
        cwd=cwd,
        worktree=worktree,
        branch=branch,
        no_code=no_code,
        no_memory=no_memory,
        private=private,
        inputs=tuple(inputs or ()),
        inputs_file=inputs_file,
    )
    _, tip = _start(context, workflow, prompt, begin)
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
        context.output.say(USUAL_WAYS[state.status].format(thread=tip.thread))


def _start(
    context: CommandContext,
    workflow: str,
    prompt: str,
    begin: _Begin,
    *,
    check: _Check = lambda *_: None,
) -> tuple[Ledger, Tip]:
    """Start a thread; the store is made when nothing is wrong with what was given."""
    from uwfgit.cli.workflow.inputs import read_inputs
    from uwfgit.cli.workflow.workflows import find_child, find_workflow
    from uwfgit.engine.run.thread import require_task, start_thread
    from uwfgit.ids import mint_thread_id
    from uwfgit.model.workflow.children import resolve_children
    from uwfgit.model.workflow.inputs import require_inputs

    is_there = context.store_choice.path.exists()
    known = context.open_ledger(write=True) if is_there else None
    found = find_workflow(context, known, workflow)
    task = read_text(context, prompt, what="--prompt")
    context.warn_of_secrets(task, what="--prompt")
    values = read_inputs(
        context,
        found.workflow.inputs or {},
        given=begin.inputs,
        file=begin.inputs_file,
    )
    if known is None:
        # What a start refuses would leave a store behind that nobody asked for.
        require_task(task)
        require_inputs(found.workflow.inputs or {}, values)
        find_folder(context, begin.cwd)
    ledger = known or context.open_ledger(write=True)
    parent = _find_parent(context, ledger)
    thread = mint_thread_id(ledger.now_ms(), ledger.random(10))
    children = resolve_children(
        found.workflow,
        lambda name: find_child(context, ledger, name, beside=found.source),
    )
    with _folder_of(context, begin, found.workflow.name, thread) as folder:
        place, root = place_in_repository(context, folder)
        tip = start_thread(
            ledger,
            workflow=found.workflow,
            data=found.data,
            prompt=task,
            cwd=folder,
            cwd_in_repo=place,
            root_commit=root,
            parent=parent,
            children=children,
            inputs=values,
            thread=thread,
            private=begin.private,
            check=partial(check, ledger, found.workflow, folder),
        )
    _note_start(context, ledger, thread, begin)
    return ledger, tip


def _note_start(
    context: CommandContext, ledger: Ledger, thread: ThreadId, begin: _Begin
) -> None:
    """Keep what is this machine's alone: what is not recorded, and the last thread."""
    if begin.no_code:
        ledger.local.set_without_code(thread)
    if begin.no_memory:
        ledger.local.set_without_memory(thread)
    if "UWF_STEP" not in context.environment:
        ledger.local.set_last(thread)


@contextmanager
def _folder_of(
    context: CommandContext, begin: _Begin, workflow: str, thread: ThreadId
) -> Iterator[Path]:
    """Yield the folder a thread is started in; a new work tree is gone on failure."""
    if begin.worktree is None:
        yield find_folder(context, begin.cwd) or context.cwd
        return
    from uwfgit.cli.code.own_worktree import branch_name, start_worktree

    place = context.resolve(begin.worktree) if begin.worktree else None
    branch = begin.branch or branch_name(workflow, thread)
    with start_worktree(context, place, branch) as folder:
        yield folder


def place_in_repository(
    context: CommandContext, folder: Path
) -> tuple[str | None, str | None]:
    """Return where a folder is in its repository, and that one's first commit."""
    from uwfgit.store.git.enclosing import find_enclosing
    from uwfgit.store.git.worktree import root_commit

    enclosing = find_enclosing(folder)
    if enclosing is None:
        return None, None
    inside = folder.resolve().relative_to(enclosing.root).as_posix()
    found = root_commit(
        enclosing.root, environment=context.environment, memory=context.home
    )
    return inside, found


def _find_parent(context: CommandContext, ledger: Ledger) -> Parent | None:
    """Find the thread whose agent runs this command, if it is in this store."""
    from uwfgit.engine.run.thread import Parent
    from uwfgit.errors import UwfError
    from uwfgit.model.thread.record import open_record

    thread = find_thread_id(context.environment.get("UWF_THREAD", ""))
    if thread is None:
        return None
    try:
        record = open_record(ledger.store, thread)
    except UwfError:
        return None
    most = context.settings.limits.depth
    return Parent(record=record, head=record.tip.state.head, most=most)


def run_command(
    ctx: typer.Context,
    workflow: WorkflowArgument,
    prompt: PromptOption,
    cwd: StartCwdOption = None,
    agent: AgentOption = None,
    inputs: InputsOption = None,
    inputs_file: InputsFileOption = None,
) -> None:
    """Start a thread and run it until it stops."""
    from uwfgit.cli.frame.engine import make_engine
    from uwfgit.engine.run.run import require_program

    context = get_context(ctx)
    begin = _Begin(cwd=cwd, inputs=tuple(inputs or ()), inputs_file=inputs_file)

    def check(ledger: Ledger, workflow: Workflow, folder: Path, first: Routed) -> None:
        # Where a location leads is for the run itself to find out.
        role = workflow.roles.get(first.role)
        if role is not None and role.workflow is None:
            engine = make_engine(context, ledger)
            chosen = engine.choose(agent, workflow.name, first.role)
            if first.location is None:
                require_program(chosen, engine.environment, folder)

    ledger, tip = _start(context, workflow, prompt, begin, check=check)
    if context.output.is_text:
        context.output.say(f"thread {tip.thread}")
    run_started(context, ledger, tip.thread, agent=agent)
