"""Who judges runs from outside: supervisors, and summaries by hand or at an end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from uwfgit.cli.frame.arguments import read_budget
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import now_ms
from uwfgit.config import JudgeSettings
from uwfgit.errors import ConfigError, UwfError
from uwfgit.ids import ThreadId

if TYPE_CHECKING:
    from uwfgit.engine.judge.judging import Judge, Supervisor
    from uwfgit.engine.run.engine import Engine
    from uwfgit.model.ledger.ledger import Ledger


def with_judges(
    context: CommandContext, engine: Engine, budget: Sequence[str]
) -> Engine:
    """Return an engine with the supervisor and the budgets that the user wants.

    Raises:
        ConfigError: The supervisor is not configured rightly.
        UsageError: A word of ``--budget`` is not NAME=N.
    """
    limits = read_budget(engine.settings.limits, budget)
    who = context.settings.supervise
    supervisor: Supervisor | None = None
    if who is not None:
        from uwfgit.engine.judge.judging import Supervisor

        judge = _make_judge(context, engine, "supervise", who)
        supervisor = Supervisor(every=who.every, judge=judge)
    return replace(
        engine,
        settings=replace(engine.settings, limits=limits),
        supervisor=supervisor,
    )


def _make_judge(
    context: CommandContext, engine: Engine, section: str, who: JudgeSettings
) -> Judge:
    from uwfgit.agents.registry import make_judge

    return make_judge(
        context.settings,
        who,
        section=section,
        choose=lambda spec: engine.choose(spec, "", "judge"),
        environment=engine.environment,
        variables=context.variables,
        now_ms=now_ms,
    )


def summarize_at_end(context: CommandContext, ledger: Ledger, thread: ThreadId) -> None:
    """Have a thread summarised that has just ended; a failure is a warning."""
    try:
        write_summary(context, ledger, thread)
    except UwfError as exc:
        context.output.warn(shown(exc.message))


def write_summary(
    context: CommandContext,
    ledger: Ledger,
    thread: ThreadId,
    *,
    model: str | None = None,
    agent: str | None = None,
) -> tuple[str, str]:
    """Have a thread summarised; returns the summary and who wrote it.

    Raises:
        ConfigError: No model or agent is configured for it.
        AgentError: There is no summary; the thread is as it was.
    """
    from uwfgit.cli.frame.engine import make_engine
    from uwfgit.engine.judge.supervise import summarise
    from uwfgit.engine.run.hold import hold_thread
    from uwfgit.store.objects import read_commit

    who = context.settings.summarize
    if model is not None or agent is not None:
        who = JudgeSettings(model=model, agent=agent)
    if who is None:
        raise ConfigError(
            "no model is set for summaries",
            key="summarize.model",
            hint="`uwf config set summarize.model MODEL`, or use --model",
        )
    engine = make_engine(context, ledger)
    judge = _make_judge(context, engine, "summarize", who)
    with hold_thread(ledger, thread, command=context.command):
        tip, text = summarise(ledger, thread, judge, masker=context.masker)
    return text, read_commit(ledger.store, tip.commit).author.name
