"""``thread open`` and ``step ask``: an agent's session, outside of the record."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from uwfgit.cli.frame.app import EXIT_CODES
from uwfgit.cli.frame.arguments import (
    AgentOption,
    CwdOption,
    FreshOption,
    MemoryOption,
    ThreadArgument,
    TrustOption,
    read_text,
)
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.screen import shown, shown_lines
from uwfgit.cli.live.judges import write_summary
from uwfgit.cli.thread.runs import find_folder, recall_of
from uwfgit.cli.thread.trusting import admit, is_trusted
from uwfgit.errors import AgentError, InvalidError, StateError, UsageError
from uwfgit.shell import quote_word, quote_words

if TYPE_CHECKING:
    from uwfgit.engine.beside.opening import Opened
    from uwfgit.engine.beside.question import Asked
    from uwfgit.engine.run.engine import Engine
    from uwfgit.model.ledger.ledger import Ledger


def _engine_beside(
    context: CommandContext, ledger: Ledger, *, trust: bool, fresh: bool, memory: bool
) -> Engine:
    """Make the engine of a command that runs nothing of the thread."""
    from uwfgit.cli.frame.engine import make_engine

    engine = make_engine(context, ledger)
    return replace(
        engine,
        admit=partial(admit, context, ledger, engine.choose, trust=trust),
        recall=recall_of(fresh=fresh, memory=memory),
        is_trusted=partial(is_trusted, context, ledger),
    )


def open_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    role: Annotated[
        str | None,
        typer.Option("--role", metavar="ROLE", help="Whose session; else the newest."),
    ] = None,
    agent: AgentOption = None,
    cwd: CwdOption = None,
    trust: TrustOption = False,
    memory: MemoryOption = False,
    print_only: Annotated[
        bool, typer.Option("--print", help="Only print the command.")
    ] = False,
) -> None:
    """Go on by hand in the agent's own session.

    Its memory is put back first where it is missing. What is said there is not
    part of the thread: the next run of the role goes on from what is recorded.
    """
    from uwfgit.engine.beside.opening import open_session
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    engine = _engine_beside(context, ledger, trust=trust, fresh=False, memory=memory)
    opened = open_session(
        engine,
        resolve_thread(ledger, thread),
        role=role,
        agent=agent,
        cwd=find_folder(context, cwd),
    )
    if opened.warning is not None:
        context.output.warn(opened.warning)
    if opened.session is None:
        context.output.say(f"role {shown(opened.role)} has no session yet: a new one")
    if print_only or not context.output.is_text:
        _print(context, opened)
        return
    _become(engine, opened)


def _print(context: CommandContext, opened: Opened) -> None:
    line = f"cd {quote_word(str(opened.cwd))} && {quote_words(opened.command)}"
    context.output.emit(
        {
            "role": opened.role,
            "agent": opened.agent,
            "session": opened.session,
            "cwd": str(opened.cwd),
            "command": list(opened.command),
        },
        lambda: shown(line),
    )


def _become(engine: Engine, opened: Opened) -> None:
    os.chdir(opened.cwd)
    try:
        os.execvpe(opened.command[0], opened.command, dict(engine.environment))  # noqa: S606 - the user's own agent
    except OSError as exc:
        raise StateError(
            f"cannot start '{opened.command[0]}': {exc.strerror}",
            hint="--print shows the command",
        ) from exc


def ask_command(
    ctx: typer.Context,
    step: Annotated[
        str, typer.Argument(metavar="STEP", help="A step's hash, or THREAD:NUMBER.")
    ],
    prompt: Annotated[
        str,
        typer.Option(
            "--prompt",
            "-p",
            metavar="TEXT",
            help="The question; - is stdin, @FILE a file.",
        ),
    ],
    agent: AgentOption = None,
    cwd: CwdOption = None,
    trust: TrustOption = False,
    fresh: FreshOption = False,
    memory: MemoryOption = False,
) -> None:
    """Ask the agent of an old step something; nothing is recorded.

    It answers in a copy of the session it had then, where that is kept; else it
    is told what had happened until then. Exits 5 when it fails.
    """
    from uwfgit.engine.beside.question import ask_step
    from uwfgit.model.ledger.ledger import resolve_step

    context = get_context(ctx)
    question = read_text(context, prompt, what="--prompt")
    if not question.strip():
        raise InvalidError("the question is empty", hint="give one with -p TEXT")
    ledger = context.open_ledger(write=True, create=False)
    record, found = resolve_step(ledger, step)
    asked = ask_step(
        _engine_beside(context, ledger, trust=trust, fresh=fresh, memory=memory),
        record.tip.thread,
        found.number,
        question,
        agent=agent,
        cwd=find_folder(context, cwd),
    )
    _tell(context, asked)
    raise typer.Exit(0 if asked.reply.failure is None else EXIT_CODES[AgentError])


def _tell(context: CommandContext, asked: Asked) -> None:
    reply = asked.reply
    for warning in reply.warnings:
        context.output.warn(warning)
    if reply.failure is not None:
        context.output.warn(f"agent {asked.agent} failed: {reply.failure.message}")
    elif not asked.remembers:
        context.output.say(
            "note: it was told the whole thread again, its session is not here"
        )
    payload = {
        "hash": asked.step.hash,
        "number": asked.step.number,
        "role": asked.step.role,
        "agent": asked.agent,
        "remembers": asked.remembers,
        "answer": reply.text,
        "error": reply.failure.message if reply.failure else None,
    }
    context.output.emit(payload, lambda: shown_lines(reply.text).rstrip())


def summarize_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="Ask this model; else as set."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="AGENT", help="Ask this agent instead."),
    ] = None,
) -> None:
    """Summarise a thread that has ended, waits or was cancelled.

    The summary is kept with the thread, beside those before it, and names who wrote
    it; no agent is ever given it. Set summarize.model to have one at each end.
    """
    from uwfgit.model.ledger.ledger import resolve_thread

    context = get_context(ctx)
    if model is not None and agent is not None:
        raise UsageError("--model and --agent exclude each other")
    ledger = context.open_ledger(write=True, create=False)
    found = resolve_thread(ledger, thread)
    text, by = write_summary(context, ledger, found, model=model, agent=agent)
    context.output.emit(
        {"threadId": found, "summary": {"text": text, "by": by}},
        lambda: shown_lines(text),
    )
