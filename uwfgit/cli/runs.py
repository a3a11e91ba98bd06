"""Commands that run steps: exec, run, resume and poke, and how they report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from uwfgit.cli.arguments import read_text
from uwfgit.cli.context import CommandContext, get_context
from uwfgit.cli.output import write
from uwfgit.cli.screen import shown
from uwfgit.constants import ERROR_STATUS
from uwfgit.errors import InvalidError, UsageError
from uwfgit.ids import ThreadId

if TYPE_CHECKING:
    from uwfgit.engine.executor import Engine, RunReport, StepReport
    from uwfgit.model.ledger import Ledger
    from uwfgit.store.repository import Store

ThreadArgument = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="An id, a unique start of one, a unique end of at least 4 "
        "characters, or @last.",
    ),
]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="AGENT",
        help="Who does the work: an alias, or KIND:ARG such as scripted:FILE.",
    ),
]
CwdOption = Annotated[
    str | None,
    typer.Option("--cwd", metavar="DIR", help="Let the agent work in this folder."),
]
TrustOption = Annotated[
    bool,
    typer.Option("--trust", help="Run it although others made it; asked for once."),
]
CountOption = Annotated[
    int | None,
    typer.Option("--count", "-c", metavar="N", help="Run up to N steps instead of 1."),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="Run until the thread stops (limits.maxSteps).")
]
BackgroundOption = Annotated[
    bool,
    typer.Option(
        "--background", help="Return once it runs; it goes on without the terminal."
    ),
]


def exec_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    count: CountOption = None,
    run_all: AllOption = False,
    agent: AgentOption = None,
    cwd: CwdOption = None,
    trust: TrustOption = False,
    background: BackgroundOption = False,
) -> None:
    """Run the next step of a thread.

    Exits 3 when the thread then waits for a person, 5 when the agent failed
    (what it said is kept), 4 when somebody else runs the thread.
    """
    from uwfgit.engine.executor import exec_thread

    context = get_context(ctx)
    if count is not None and count < 1:
        raise UsageError(f"--count: {count} is not 1 or more")
    if count is not None and run_all:
        raise UsageError("--count and --all exclude each other")
    if background:
        flags = ["--all"] if run_all else ["--count", str(count or 1)]
        _run_in_background(
            context, "exec", thread, flags, agent=agent, cwd=cwd, trust=trust
        )
        return

    def run(engine: Engine, found: ThreadId) -> RunReport:
        report = exec_thread(
            engine,
            found,
            count=None if run_all else (count or 1),
            agent=agent,
            cwd=_folder(context, cwd),
            on_step=_step_printer(context),
        )
        _hint_at_gc(context, engine.ledger.store)
        return report

    _run(context, thread, run, trust=trust)


def _hint_at_gc(context: CommandContext, store: Store) -> None:
    from uwfgit.store.count import MANY_LOOSE, estimate_loose

    loose = estimate_loose(store.path)
    if loose >= MANY_LOOSE:
        context.output.say(f"hint: about {loose:,} loose objects, pack them: uwf gc")


def resume_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt",
            "-p",
            metavar="TEXT",
            help="What to tell the agent; - is stdin, @FILE a file.",
        ),
    ] = None,
    agent: AgentOption = None,
    cwd: CwdOption = None,
    trust: TrustOption = False,
    background: BackgroundOption = False,
) -> None:
    """Go on with a thread that waits for a person, or that has ended.

    The role that stopped runs again and is told your text.
    """
    from uwfgit.engine.executor import resume_thread

    context = get_context(ctx)
    note = None if prompt is None else read_text(context, prompt, what="--prompt")
    if background:
        _run_in_background(
            context, "resume", thread, [], agent=agent, cwd=cwd, note=note, trust=trust
        )
        return

    def run(engine: Engine, found: ThreadId) -> RunReport:
        return resume_thread(
            engine,
            found,
            note=note,
            agent=agent,
            cwd=_folder(context, cwd),
            on_step=_step_printer(context),
        )

    _run(context, thread, run, trust=trust)


def poke_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    prompt: Annotated[
        str,
        typer.Option(
            "--prompt",
            "-p",
            metavar="TEXT",
            help="The correction; - is stdin, @FILE a file.",
        ),
    ],
    agent: AgentOption = None,
    cwd: CwdOption = None,
    trust: TrustOption = False,
    background: BackgroundOption = False,
) -> None:
    """Have the newest step done again, with a correction.

    The old step stays in the thread's history.
    """
    from uwfgit.engine.executor import poke_thread

    context = get_context(ctx)
    note = read_text(context, prompt, what="--prompt")
    if not note.strip():
        raise InvalidError("the correction is empty", hint="give one with -p TEXT")
    if background:
        _run_in_background(
            context, "poke", thread, [], agent=agent, cwd=cwd, note=note, trust=trust
        )
        return

    def run(engine: Engine, found: ThreadId) -> RunReport:
        return poke_thread(
            engine,
            found,
            note=note,
            agent=agent,
            cwd=_folder(context, cwd),
            on_step=_step_printer(context),
        )

    _run(context, thread, run, trust=trust)


def run_started(
    context: CommandContext, ledger: Ledger, thread: ThreadId, *, agent: str | None
) -> None:
    """Run a thread that was just started until it stops."""
    from uwfgit.cli.refused import refusal_told
    from uwfgit.engine.executor import exec_thread

    with refusal_told(context, ledger, thread):
        report = exec_thread(
            context.make_engine(ledger),
            thread,
            count=None,
            agent=agent,
            on_step=_step_printer(context),
        )
    finish_run(context, report)


def _run(
    context: CommandContext,
    thread: str,
    run: Callable[[Engine, ThreadId], RunReport],
    *,
    trust: bool,
) -> None:
    from uwfgit.cli.refused import refusal_told
    from uwfgit.cli.trusting import make_admit
    from uwfgit.model.ledger import resolve_thread

    ledger = context.open_ledger(write=True, create=False)
    found = resolve_thread(ledger, thread)
    with refusal_told(context, ledger, found):
        ledger.local.set_last(found)
        engine = context.make_engine(ledger)
        admit = make_admit(context, ledger, engine.choose, trust=trust)
        report = run(replace(engine, admit=admit), found)
    finish_run(context, report)


def _run_in_background(
    context: CommandContext,
    verb: Literal["exec", "resume", "poke"],
    thread: str,
    flags: list[str],
    *,
    agent: str | None,
    cwd: str | None,
    trust: bool,
    note: str | None = None,
) -> None:
    from uwfgit.cli.background import admit_here, run_in_background
    from uwfgit.cli.payloads import run_payload
    from uwfgit.cli.refused import refusal_told
    from uwfgit.model.ledger import resolve_thread

    ledger = context.open_ledger(write=True, create=False)
    found = resolve_thread(ledger, thread)
    words = ["--store", str(ledger.store.path), "--color", "never"]
    words = ["thread", verb, found, *words, *flags]
    words += ["--agent", agent] if agent is not None else []
    words += ["--trust"] if trust else []
    words += ["--prompt", "-"] if note is not None else []
    with refusal_told(context, ledger, found):
        folder = _folder(context, cwd)
        words += ["--cwd", str(folder)] if folder is not None else []
        admit_here(context, ledger, found, verb, agent=agent, cwd=folder, trust=trust)
        report, worker = run_in_background(context, ledger, found, words, note=note)
    place = {"pid": worker.pid, "log": str(worker.log)}
    if not context.output.is_text:
        context.output.emit(run_payload(report, background=place), str)
    elif report.status == "running":
        write(f"{found} runs in the background, pid {worker.pid}\n")
        context.output.say(f"its log: {shown(str(worker.log))}")
        context.output.say(f"wait for it: uwf thread join {found}")
    else:
        _tell_way_on(context, report)
    raise typer.Exit(report.exit_code)


def _folder(context: CommandContext, cwd: str | None) -> Path | None:
    if cwd is None:
        return None
    path = context.resolve(cwd)
    if not path.is_dir():
        raise InvalidError(f"--cwd: '{cwd}' is no folder")
    return path


def _step_printer(context: CommandContext) -> Any:  # noqa: ANN401 - a callable or nothing
    def print_step(step: StepReport) -> None:
        if context.output.is_text:
            write(f"{step_line(context, step)}\n")

    return print_step


def step_line(context: CommandContext, step: StepReport) -> str:
    """Write a finished cycle as one line."""
    head = f"step {step.number:<3} {shown(step.role):<12}"
    if step.error is not None:
        return f"{head}  {context.output.paint('failed', 'error')}: {shown(step.error)}"
    if step.done:
        after = context.output.paint("end", "end")
    elif step.thread_status == "suspended":
        after = context.output.paint("suspended", "suspended")
    else:
        after = f"next {shown(step.current_role or '-')}"
    return f"{head}  {shown(step.status or '-'):<12}  {after}"


def finish_run(context: CommandContext, report: RunReport) -> None:
    """Print what a run did and the way on; leave with its exit code."""
    if context.output.is_text:
        _tell_way_on(context, report)
    else:
        from uwfgit.cli.payloads import run_payload

        context.output.emit(run_payload(report), str)
    raise typer.Exit(report.exit_code)


def _tell_way_on(context: CommandContext, report: RunReport) -> None:
    say = context.output.say
    thread = report.thread
    if report.problem and (report.code or not report.steps):
        say(f"stopped: {shown(report.problem)}")
    last = report.steps[-1] if report.steps else None
    if last is not None and last.suspend_message and not last.error:
        say(f"waiting: {shown(last.suspend_message)}")
    if report.hint:
        say(f"hint: {shown(report.hint)}")
    elif last is not None and last.status == ERROR_STATUS:
        # After a failed poke the thread stands as it did before.
        again = "resume" if report.status == "suspended" else "poke"
        text = "" if again == "resume" else " -p TEXT"
        say(f"try again: uwf thread {again} {thread}{text}")
    else:
        say(way_on(report.status, thread, last.suspend_message if last else None))


def way_on(status: str, thread: ThreadId, message: str | None = None) -> str:
    """Name the command that goes on with a thread.

    Args:
        status: The thread's.
        thread: Which thread.
        message: Why it is suspended.
    """
    if status == "suspended" and message and message.startswith("routing: "):
        # Resume refuses such a thread: its graph gives no next role.
        return f"go on: uwf thread poke {thread} -p TEXT, or uwf thread fork {thread}"
    ways = {
        "idle": f"next: uwf thread exec {thread}",
        "suspended": f"go on: uwf thread resume {thread} -p TEXT",
        "end": f"done; read it with: uwf thread read {thread}",
        "cancelled": f"cancelled; go on in a fork: uwf thread fork {thread}",
        "running": f"somebody is running it: uwf thread show {thread}",
        "diverged": f"continued here and there: uwf thread resolve {thread}",
    }
    return ways[status]
