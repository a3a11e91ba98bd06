"""Commands that run steps: exec, run, resume and poke, and how they report."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from msgspec import Struct
from msgspec.structs import replace

from uwfgit.cli.frame.app import RUN_EXITS
from uwfgit.cli.frame.arguments import (
    AgentOption,
    AllOption,
    BackgroundOption,
    BudgetOption,
    CountOption,
    CwdOption,
    FreshOption,
    MemoryOption,
    TellOption,
    ThreadArgument,
    TrustOption,
    WaitOption,
    read_text,
    require_least,
)
from uwfgit.cli.frame.commands import Command
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import write
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.thread.next_command import USUAL_WAYS, tell_refusal, with_detour
from uwfgit.constants import ERROR_STATUS
from uwfgit.engine.run.ends import RunEnd
from uwfgit.errors import InvalidError, UsageError, UwfError, first_of
from uwfgit.ids import ThreadId
from uwfgit.model.picture.columns import cut

if TYPE_CHECKING:
    from uwfgit.cli.thread.background import Worker
    from uwfgit.engine.run.executor import Engine, RunReport, StepReport
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.workflow.workflow import Workflow

_UNDER: Final = " " * 10


class _Call(Struct, frozen=True, kw_only=True):
    """What the three commands that run a thread have in common."""

    verb: Literal["exec", "resume", "poke"]
    agent: str | None
    cwd: str | None
    trust: bool
    background: bool
    note: str | None = None
    fresh: bool = False
    memory: bool = False
    budget: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """What else a worker in the background is called with."""


class ExecCommand(Command):
    """A command whose ``--wait`` may name no time."""

    alone = MappingProxyType({"--wait": ("6h", r"[0-9]+[dhm]")})


def exec_command(  # noqa: PLR0917 - its options, as typer reads them
    ctx: typer.Context,
    thread: ThreadArgument,
    count: CountOption = None,
    run_all: AllOption = False,
    agent: AgentOption = None,
    cwd: CwdOption = None,
    trust: TrustOption = False,
    fresh: FreshOption = False,
    memory: MemoryOption = False,
    budget: BudgetOption = None,
    wait: WaitOption = None,
    background: BackgroundOption = False,
    taken: Annotated[int, typer.Option("--taken", hidden=True)] = 0,
) -> None:
    """Run the next step of a thread.

    Exits 3 when the thread then waits for a person, 5 when the agent failed
    (what it said is kept), 4 when somebody else runs the thread.
    """
    from uwfgit.cli.live.waiting import (
        add_report,
        count_good,
        read_duration,
        wait_for_limit,
    )
    from uwfgit.engine.run.executor import exec_thread
    from uwfgit.store.pack import MANY_LOOSE, estimate_loose

    context = get_context(ctx)
    most = None if run_all else 1
    if count is not None:
        require_least(1, count=count)
        if run_all:
            raise UsageError("--count and --all exclude each other")
        most = count
    patience = None if wait is None else read_duration(wait)

    def run(engine: Engine, found: ThreadId, **how: Any) -> RunReport:  # noqa: ANN401 - as executor takes them
        engine = replace(engine, taken=taken)
        report = exec_thread(engine, found, count=most, **how)
        while patience is not None and wait_for_limit(context, engine, found, patience):
            left = None if most is None else max(1, most - count_good(report))
            report = add_report(report, exec_thread(engine, found, count=left, **how))
        loose = estimate_loose(engine.ledger.store.path)
        if loose >= MANY_LOOSE:
            context.output.say(
                f"hint: about {loose:,} loose objects, pack them: uwf gc"
            )
        return report

    call = _Call(
        verb="exec",
        agent=agent,
        cwd=cwd,
        trust=trust,
        background=background,
        fresh=fresh,
        memory=memory,
        budget=tuple(budget or ()),
        flags=(
            *(("--all",) if most is None else ("--count", str(most))),
            *(() if wait is None else ("--wait", wait)),
        ),
    )
    _run(context, thread, call, run)


def resume_command(  # noqa: PLR0917 - its options, as typer reads them
    ctx: typer.Context,
    thread: ThreadArgument,
    prompt: TellOption = None,
    agent: AgentOption = None,
    cwd: CwdOption = None,
    trust: TrustOption = False,
    fresh: FreshOption = False,
    memory: MemoryOption = False,
    budget: BudgetOption = None,
    background: BackgroundOption = False,
) -> None:
    """Go on with a thread that waits for a person, or that has ended.

    The role that stopped runs again and is told your text.
    """
    from uwfgit.engine.run.executor import resume_thread

    context = get_context(ctx)
    note = None if prompt is None else read_text(context, prompt, what="--prompt")
    call = _Call(
        verb="resume",
        agent=agent,
        cwd=cwd,
        trust=trust,
        background=background,
        fresh=fresh,
        memory=memory,
        budget=tuple(budget or ()),
        note=note,
    )
    _run(context, thread, call, partial(resume_thread, note=note))


def poke_command(  # noqa: PLR0917 - its options, as typer reads them
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
    fresh: FreshOption = False,
    memory: MemoryOption = False,
    budget: BudgetOption = None,
    background: BackgroundOption = False,
) -> None:
    """Have the newest step done again, with a correction.

    The old step stays in the thread's history.
    """
    from uwfgit.engine.run.executor import poke_thread

    context = get_context(ctx)
    note = read_text(context, prompt, what="--prompt")
    if not note.strip():
        raise InvalidError("the correction is empty", hint="give one with -p TEXT")
    call = _Call(
        verb="poke",
        agent=agent,
        cwd=cwd,
        trust=trust,
        background=background,
        fresh=fresh,
        memory=memory,
        budget=tuple(budget or ()),
        note=note,
    )
    _run(context, thread, call, partial(poke_thread, note=note))


def run_started(
    context: CommandContext, ledger: Ledger, thread: ThreadId, *, agent: str | None
) -> None:
    """Run a thread that was just started until it stops."""
    from uwfgit.cli.frame.engine import make_engine
    from uwfgit.cli.live.watching import watching
    from uwfgit.engine.run.executor import exec_thread
    from uwfgit.store.handle import map_little

    map_little()
    began = time.monotonic()
    try:
        engine = make_engine(context, ledger)
        with watching(context) as watcher:
            report = exec_thread(
                replace(engine, watcher=watcher),
                thread,
                count=None,
                agent=agent,
                on_step=partial(_print_step, context, set()),
            )
    except UwfError as exc:
        tell_refusal(context, ledger, thread, exc)
        raise
    finish_run(context, ledger, report, began=began)


def _run(
    context: CommandContext, thread: str, call: _Call, run: Callable[..., RunReport]
) -> None:
    """Run a thread here, or see it run by a worker; print what came of it."""
    from uwfgit.cli.frame.engine import make_engine
    from uwfgit.cli.live.watching import watching
    from uwfgit.cli.thread.trusting import admit, is_trusted
    from uwfgit.model.ledger.ledger import resolve_thread
    from uwfgit.store.handle import map_little

    ledger = context.open_ledger(write=True, create=False)
    map_little()
    found = resolve_thread(ledger, thread)
    worker: Worker | None = None
    began = time.monotonic()
    try:
        ledger.local.set_last(found)
        folder = find_folder(context, call.cwd)
        engine = make_engine(context, ledger)
        if call.budget or engine.settings.supervise is not None:
            from uwfgit.cli.live.judges import with_judges

            engine = with_judges(context, engine, call.budget)
        engine = replace(
            engine,
            admit=partial(admit, context, ledger, engine.choose, trust=call.trust),
            find_workflow=partial(_find_workflow, context, ledger),
            recall=recall_of(fresh=call.fresh, memory=call.memory),
            is_trusted=partial(is_trusted, context, ledger),
        )
        if call.background:
            report, worker = _start_worker(context, engine, found, call, folder)
        else:
            printer = partial(_print_step, context, set())
            with watching(context) as watcher:
                engine = replace(engine, watcher=watcher)
                report = run(
                    engine, found, agent=call.agent, cwd=folder, on_step=printer
                )
    except UwfError as exc:
        tell_refusal(context, ledger, found, exc)
        raise
    if worker is not None:
        if report.status == "suspended":
            report = with_detour(ledger, report)
        _finish_start(context, report, worker)
    finish_run(context, ledger, report, began=began)


def _find_workflow(context: CommandContext, ledger: Ledger, name: str) -> Workflow:
    from uwfgit.cli.workflow.workflows import find_workflow

    return find_workflow(context, ledger, name).workflow


def recall_of(*, fresh: bool, memory: bool) -> Literal["proven", "any", "none"]:
    """Return what agents may remember, by the options ``--fresh`` and ``--memory``.

    Raises:
        UsageError: Both were given.
    """
    if fresh and memory:
        raise UsageError("--fresh and --memory exclude each other")
    return "none" if fresh else "any" if memory else "proven"


def _start_worker(
    context: CommandContext,
    engine: Engine,
    thread: ThreadId,
    call: _Call,
    folder: Path | None,
) -> tuple[RunReport, Worker]:
    from uwfgit.cli.thread.background import run_in_background
    from uwfgit.engine.run.executor import admit_thread

    ledger = engine.ledger
    words = ["thread", call.verb, thread, "--store", str(ledger.store.path)]
    words += ["--color", "never", *call.flags]
    words += ["--agent", call.agent] if call.agent is not None else []
    words += ["--trust"] if call.trust else []
    words += ["--fresh"] if call.fresh else []
    words += ["--memory"] if call.memory else []
    words += [f"--budget={word}" for word in call.budget]
    words += ["--prompt", "-"] if call.note is not None else []
    words += ["--cwd", str(folder)] if folder is not None else []
    # The user is asked about a foreign thread here: a worker has no terminal.
    admit_thread(engine, thread, call.verb, agent=call.agent, cwd=folder)
    return run_in_background(context, ledger, thread, words, note=call.note)


def _finish_start(context: CommandContext, report: RunReport, worker: Worker) -> None:
    """Print that a thread runs now, or what the worker found; leave."""
    place = {"pid": worker.pid, "log": str(worker.log)}
    if not context.output.is_text:
        from uwfgit.cli.thread.payloads import run_payload

        context.output.emit(run_payload(report, background=place), str)
    elif report.status == "running":
        write(f"{report.thread} runs in the background, pid {worker.pid}\n")
        context.output.say(f"its log: {shown(str(worker.log))}")
        context.output.say(f"wait for it: uwf thread join {report.thread}")
    else:
        _tell_way_on(context, report)
    raise typer.Exit(RUN_EXITS[report.end])


def find_folder(context: CommandContext, cwd: str | None) -> Path | None:
    """Find the folder that ``--cwd`` names.

    Raises:
        InvalidError: It is none.
    """
    if cwd is None:
        return None
    path = context.resolve(cwd)
    if not path.is_dir():
        raise InvalidError(f"--cwd: '{cwd}' is not a folder")
    return path


def _print_step(context: CommandContext, warned: set[str], step: StepReport) -> None:
    """Print a finished cycle; what one before it in this run warned of is known."""
    if not context.output.is_text:
        return
    write(f"{step_line(context, step)}\n")
    if step.said and step.error is not None:
        write(f"{_UNDER}it said last: {shown(step.said)}\n")
    elif step.said and context.output.width is not None:
        write(f"{_UNDER}{cut(shown(step.said), context.output.width - 10)}\n")
    new = [each for each in step.warnings if each not in warned]
    warned.update(new)
    if new:
        context.output.warn(f"step {step.number}: {first_of(new)}")


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


def finish_run(
    context: CommandContext,
    ledger: Ledger,
    report: RunReport,
    *,
    began: float | None = None,
) -> None:
    """Print what a run did and the way on; leave with its exit code."""
    if report.status == "suspended":
        report = with_detour(ledger, report)
    if began is not None and report.steps and report.status in {"suspended", "end"}:
        from uwfgit.cli.live.notify import tell_end

        tell_end(context, report, began=began)
    if report.status == "end" and report.steps and context.settings.summarize:
        from uwfgit.cli.live.judges import summarize_at_end

        summarize_at_end(context, ledger, report.thread)
    if context.output.is_text:
        _tell_way_on(context, report)
    else:
        from uwfgit.cli.thread.payloads import run_payload

        context.output.emit(run_payload(report), str)
    raise typer.Exit(RUN_EXITS[report.end])


def _tell_way_on(context: CommandContext, report: RunReport) -> None:
    say = context.output.say
    thread = report.thread
    last = report.steps[-1] if report.steps else None
    # A supervisor's word, or nothing ran at all; a $SUSPEND is told below.
    is_held = report.end is RunEnd.WAITING
    is_told = last is not None and last.error == report.problem
    if report.problem and not is_told and (report.code or last is None or is_held):
        word = "" if report.end is RunEnd.HELD else "stopped: "
        say(f"{word}{shown(report.problem)}")
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
        say(USUAL_WAYS[report.status].format(thread=thread))
