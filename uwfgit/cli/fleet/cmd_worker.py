"""``uwf worker``: takes threads off a remote's queue and runs them."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uwfgit.cli.fleet.cmd_fleet import check_name, open_queue
from uwfgit.cli.frame.arguments import require_least
from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import talk, write
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import InvalidError, StateError, UsageError
from uwfgit.ids import find_thread_id

if TYPE_CHECKING:
    from uwfgit.cli.fleet.own_trees import OwnTrees
    from uwfgit.fleet.hands import Terms
    from uwfgit.fleet.queue import Queue
    from uwfgit.fleet.worker import Worker
    from uwfgit.ids import Oid
    from uwfgit.model.ledger.ledger import Ledger

worker_app = make_single()

_STOPS: Final = (signal.SIGTERM, signal.SIGINT)
_LINES: Final = {
    "claimed": "took {thread} ({workflow})",
    "pushed": "pushed a step of {thread}",
    "done": "done {thread}",
    "queued": "gave back {thread}: {why}",
    "waiting": "{thread} waits: {why}",
    "skipped": "passed by {thread}: {why}",
    "missed": "another worker took {thread}",
    "refused": "the remote refused the claim on {thread}: {why}",
    "lost": "lost the claim on {thread}: another worker has it",
    "set-aside": "what was done of {thread} is kept here as thread {copy}",
    "not-set-aside": "cannot set aside what was done of {thread}: {why}",
    "no-worktree": "cannot make a work tree for {thread}: {why}",
    "without-code": "the code of {thread} was not sent: {why}",
    "without-memory": "what agents remember of {thread} was not sent: {why}",
    "no-memory": "what agents remember of {thread} did not come: {why}",
    "paused": "the queue is paused; to open it: uwf fleet unpause",
    "unreachable": "the remote does not answer: {why}",
    "stopping": "stopping; steps at work: {jobs}",
}


@add_command(worker_app, "worker")
def worker(  # noqa: PLR0917 - one parameter an option
    ctx: typer.Context,
    remote: Annotated[
        str | None,
        typer.Argument(metavar="[REMOTE]", help="Whose queue; else the one there is."),
    ] = None,
    slots: Annotated[
        int, typer.Option("--jobs", "-j", metavar="N", help="Steps at a time.")
    ] = 1,
    workflow: Annotated[
        list[str] | None,
        typer.Option(
            "--workflow",
            metavar="NAME",
            help="Run only versions of this workflow that are registered here.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="AGENT", help="Who does the steps."),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="DIR", help="Where threads work; else here."),
    ] = None,
    worktrees: Annotated[
        bool,
        typer.Option(
            "--worktrees",
            help="Give each thread a work tree of its own, with the code of its "
            "newest step, and send that code after every step.",
        ),
    ] = False,
    once: Annotated[
        bool, typer.Option("--once", help="Take one thread, or none, and end.")
    ] = False,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="ID", help="Take no other thread than this."),
    ] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="When stopped, let steps finish.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only say what would be taken, and why not.")
    ] = False,
    trust_pushers: Annotated[
        bool,
        typer.Option(
            "--trust-pushers",
            help="Run whatever is queued: whoever can push there can run commands "
            "here.",
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="What this worker is called."),
    ] = None,
    poll: Annotated[
        float, typer.Option("--poll", metavar="SECONDS", help="How often to look.")
    ] = 30.0,
    lease: Annotated[
        int,
        typer.Option(
            "--lease", metavar="SECONDS", help="How long a claim holds; 3600 at most."
        ),
    ] = 1800,
    grace: Annotated[
        float,
        typer.Option(
            "--grace", metavar="SECONDS", help="What a step gets when stopped."
        ),
    ] = 20.0,
    idle_exit: Annotated[
        float | None,
        typer.Option("--idle-exit", metavar="SECONDS", help="End after so long idle."),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", metavar="USD", help="Take no more after so much."),
    ] = None,
) -> None:
    """Take threads off a remote's queue, run them, and push each step.

    A thread is run when its newest event and its place in the queue are signed
    by someone in 'trust', or with --trust-pushers. SIGTERM ends it in peace: the
    step at work is recorded and pushed, and its thread goes back to the queue.
    """
    from uwfgit.fleet.hands import Terms
    from uwfgit.sync.exchange.queue_state import MAX_LEASE

    context = get_context(ctx)
    called = check_name(name or f"w-{os.urandom(4).hex()}")
    if not 0 < lease <= MAX_LEASE:
        raise UsageError(f"--lease: {lease} is not between 1 and {MAX_LEASE}")
    require_least(1, jobs=slots)
    require_least(0, poll=poll, grace=grace, idle_exit=idle_exit, max_cost=max_cost)
    only = find_thread_id(thread) if thread is not None else None
    if thread is not None and only is None:
        raise UsageError(f"--thread: '{thread}' is not the id of a thread")
    folder = context.resolve(repo) if repo else context.cwd
    if not folder.is_dir():
        raise InvalidError(f"--repo: '{folder}' is not a directory")
    terms = Terms(
        name=called,
        slots=slots,
        max_steps=context.settings.limits.max_steps,
        lease=lease,
        poll=poll,
        grace=grace,
        once=once,
        drain=drain,
        idle_exit=idle_exit,
        max_cost=max_cost,
        only=only,
    )
    with open_queue(context, remote) as queue:
        at_work = _make_worker(
            context,
            queue,
            terms=terms,
            folder=folder,
            worktrees=worktrees,
            workflows=_find_workflows(queue.ledger, workflow),
            agent=agent,
            trust_pushers=trust_pushers,
        )
        if check:
            _tell_check(context, at_work)
        else:
            _run(context, at_work)


def _find_workflows(ledger: Ledger, names: list[str] | None) -> frozenset[Oid] | None:
    """Return the oids of all registered versions of some workflows.

    Raises:
        NotFoundError: One is not registered here.
    """
    from uwfgit.model.ledger.registry import workflow_history

    if not names:
        return None
    return frozenset(
        version.oid for name in names for version in workflow_history(ledger, name)
    )


def _make_worker(
    context: CommandContext,
    queue: Queue,
    *,
    terms: Terms,
    folder: Path,
    worktrees: bool,
    workflows: frozenset[Oid] | None,
    agent: str | None,
    trust_pushers: bool,
) -> Worker:
    from uwfgit.cli.fleet.hands import WorkerHands
    from uwfgit.cli.fleet.own_agents import OwnAgents
    from uwfgit.fleet.worker import Worker

    def say(event: str, facts: dict[str, Any]) -> None:
        if context.output.is_text:
            context.output.say(shown(_LINES[event].format_map(facts)))
        else:
            talk(json.dumps({"event": event, **facts}))

    ledger = queue.ledger
    agents = OwnAgents(context=context, ledger=ledger, repo=folder, flag=agent)
    agents.require_flag()
    hands = WorkerHands(
        context=context,
        ledger=ledger,
        remote=queue.remote,
        wire=queue.wire,
        repo=folder,
        workflows=workflows,
        agent=agent,
        trust_pushers=trust_pushers,
        agents=agents,
        say=say,
        trees=_make_trees(context, ledger, folder) if worktrees else None,
    )
    chance = random.SystemRandom()
    return Worker(
        queue=queue,
        hands=hands,
        terms=terms,
        monotonic=time.monotonic,
        choose=chance.choice,
        sleep=time.sleep,
        jitter=chance.random,
    )


def _make_trees(context: CommandContext, ledger: Ledger, folder: Path) -> OwnTrees:
    """Return what gives threads work trees of the code around a folder.

    Raises:
        StateError: There is none.
    """
    from uwfgit.cli.fleet.own_trees import OwnTrees
    from uwfgit.code.worktree import WorkTree

    repo = WorkTree.find(folder, context.environment)
    if repo is None:
        raise StateError(
            f"--worktrees: '{folder}' is not a git work tree",
            hint="name a clone of the code with --repo DIR",
        )
    return OwnTrees(context=context, ledger=ledger, repo=repo)


def _run(context: CommandContext, worker: Worker) -> None:
    """Work until it is enough; SIGTERM and Ctrl-C ask for an end."""

    def ask(_number: int, _frame: object) -> None:
        worker.ask_to_stop()

    before = {number: signal.signal(number, ask) for number in _STOPS}
    try:
        worker.run()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    ran = worker.jobs.ran
    if context.output.is_text:
        if worker.terms.once and not ran:
            write("nothing to run\n")
        return
    payload = {
        "worker": worker.terms.name,
        "ran": next(reversed(ran), None) if worker.terms.once else list(ran),
        "left": ran,
        "costUsd": worker.jobs.cost,
    }
    context.output.emit(payload, str)


def _tell_check(context: CommandContext, worker: Worker) -> None:
    """Say of each thread in the queue whether this worker would take it."""
    offers, reasons = worker.look_over()
    items: list[dict[str, Any]] = [
        {"threadId": entry.state.thread, "take": True, "why": None} for entry in offers
    ]
    items += [
        {"threadId": thread, "take": False, "why": why}
        for thread, why in sorted(reasons.items())
    ]

    def text() -> str:
        lines = [
            f"would take  {each['threadId']}"
            if each["take"]
            else f"passes by   {each['threadId']}  {shown(each['why'])}"
            for each in items
        ]
        return "\n".join(lines or ["the queue is empty"])

    context.output.emit({"items": items}, text)
