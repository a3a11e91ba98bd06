"""``thread rewind`` and ``thread undo``: the files of a work tree as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from uwfgit.cli.code.foreign_code import require_agreed
from uwfgit.cli.code.place import (
    find_work_tree,
    list_known,
    require_sides,
)
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.engine import make_camera, now
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import LockedError, NotFoundError, StateError, UsageError
from uwfgit.model.wording import count_of

if TYPE_CHECKING:
    from uwfgit.code.blame.steps import KnownStep
    from uwfgit.code.rewind import Rewound
    from uwfgit.code.worktree import WorkTree
    from uwfgit.ids import Oid, ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record

ThreadArgument = Annotated[str, typer.Argument(metavar="THREAD", help="A thread.")]
YesOption = Annotated[
    bool, typer.Option("--yes", help="Also when files changed since the last snapshot.")
]
TrustOption = Annotated[
    bool, typer.Option("--trust", help="Also when others made the code.")
]


def rewind_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", metavar="N", help="As after step N; 0 is before the first."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="SNAPSHOT", help="As in a snapshot, by its oid's beginning."
        ),
    ] = None,
    yes: YesOption = False,
    trust: TrustOption = False,
) -> None:
    """Make the files of the work tree what they were after a step.

    First a snapshot of now is taken, and how to come back to it is printed. Only
    files change: HEAD, the index and branches stay, and so does the thread. What no
    snapshot holds, such as ignored files, is never overwritten.
    """
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.thread.record import open_record

    context = get_context(ctx)
    if (at is None) == (to is None):
        raise UsageError("choose one of --at and --to")
    ledger = context.open_ledger(write=True, create=False)
    record = open_record(ledger.store, find_tip(ledger, thread))
    if at is not None:
        target, what = _target_of(record, at)
    else:
        target, what = _find_snapshot(context, ledger, record, to or "")
    done, tree = rewind_to(context, ledger, record, target, discard=yes, trust=trust)
    payload = rewound_payload(record.tip.thread, at, target, done)
    context.output.emit(payload, lambda: f"the files are as {what}")
    tell_rewound(context, tree, payload)


def undo_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    yes: YesOption = False,
    trust: TrustOption = False,
) -> None:
    """Take the last step back: its files, and a fork of the thread before it.

    The thread itself stays as it is.
    """
    from uwfgit.engine.run.thread import fork_thread
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.thread.record import open_record

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    record = open_record(ledger.store, find_tip(ledger, thread))
    steps = list_known(record)
    if not steps:
        raise StateError(f"thread {record.tip.thread} has no step to undo")
    sides = require_sides(steps[-1])
    done, tree = rewind_to(
        context, ledger, record, sides.before, discard=yes, trust=trust
    )
    fork = fork_thread(ledger, record.tip.thread, at=len(steps) - 1)
    ledger.local.set_last(fork.thread)
    payload = rewound_payload(record.tip.thread, len(steps) - 1, sides.before, done)
    payload["fork"] = fork.thread
    context.output.emit(
        payload,
        lambda: (
            f"undone: step {len(steps)} of {record.tip.thread}\n"
            f"go on in its fork: {fork.thread}"
        ),
    )
    tell_rewound(context, tree, payload)


def rewind_to(
    context: CommandContext,
    ledger: Ledger,
    record: Record,
    target: Oid,
    *,
    discard: bool,
    trust: bool,
) -> tuple[Rewound, WorkTree]:
    """Rewind the work tree of a thread to a snapshot.

    Raises:
        LockedError: A thread is at work there.
        UntrustedError: Others made the snapshot, and the user has not agreed.
        StateError: As ``rewind`` says.
    """
    from uwfgit.code.chain import Label
    from uwfgit.code.rewind import rewind
    from uwfgit.code.snapshots.presence import list_at_work

    thread = record.tip.thread
    tree = find_work_tree(context, ledger, record, target)
    for other in list_at_work(ledger.store.state_dir, tree.root):
        raise LockedError(f"the work tree '{tree.root}'", holder=f"thread {other}")
    require_agreed(context, ledger, record, tree, target, trust=trust)
    done = rewind(
        tree,
        make_camera(
            ledger.store.state_dir / "code",
            settings=context.settings,
            home=context.user_home,
        ),
        Label(thread=thread, number=record.tip.state.steps, run=0, when="now"),
        target,
        discard=discard,
        time=now(),
        newest=_find_newest(tree, record),
    )
    return done, tree


def _find_newest(tree: WorkTree, record: Record) -> Oid | None:
    """Find what the newest step left, as far as it is here; else what HEAD holds."""
    steps = list_known(record)
    left = steps[-1].after if steps else None
    known = None if left is None else tree.resolve(f"{left}^{{tree}}")
    return known or tree.resolve("HEAD^{tree}")


def _target_of(record: Record, at: int) -> tuple[Oid, str]:
    steps, thread = list_known(record), record.tip.thread
    if not 0 <= at <= len(steps):
        raise NotFoundError(
            "step",
            f"{thread}:{at}",
            hint=f"the thread has {count_of(len(steps), 'step')}",
        )
    if at == 0:
        return _find_beginning(record, steps), "before step 1"
    step = steps[at - 1]
    return require_sides(step).after, f"after step {at} ({shown(step.role)})"


def _find_beginning(record: Record, steps: tuple[KnownStep, ...]) -> Oid:
    """Find the files before the first run, be it a try that failed."""
    from uwfgit.code.blame.steps import known_step
    from uwfgit.model.thread.attempts import list_attempts

    for attempt in list_attempts(record):
        if attempt.number == 1:
            tried = record.step(attempt.hash, 1)
            before = known_step(record, tried, number=None).before
            if before is not None:
                return before
    if not steps:
        raise StateError(f"thread {record.tip.thread} has no step yet")
    return require_sides(steps[0]).before


def _find_snapshot(
    context: CommandContext, ledger: Ledger, record: Record, text: str
) -> tuple[Oid, str]:
    from uwfgit.code.chain import chain_ref, list_snapshots
    from uwfgit.code.worktree import WorkTree

    thread = record.tip.thread
    tree = WorkTree.find(context.cwd, context.environment)
    folder = ledger.local.find_folder(thread) or record.start.cwd
    tree = tree or WorkTree.find(context.resolve(str(folder)), context.environment)
    chain = () if tree is None else list_snapshots(tree, chain_ref(thread))
    found = {
        each.tree
        for each in chain
        if len(text) >= 4 and each.commit.startswith(text.lower())  # noqa: PLR2004 - as git's least
    }
    if len(found) != 1:
        raise NotFoundError(
            "snapshot", text, hint=f"uwf thread code {thread} --stat lists its steps"
        )
    return found.pop(), f"in snapshot {shown(text)}"


def rewound_payload(
    thread: ThreadId, at: int | None, target: Oid, done: Rewound
) -> dict[str, Any]:
    """Return what a rewind did, as JSON has it."""
    from uwfgit.code.worktree import name_text

    return {
        "threadId": thread,
        "step": at,
        "tree": target,
        "before": {"commit": done.before.commit, "tree": done.before.tree},
        "changed": [name_text(each.path) for each in done.changes],
        "submodules": [name_text(path) for path in done.submodules],
    }


def tell_rewound(
    context: CommandContext, tree: WorkTree, payload: dict[str, Any]
) -> None:
    """Say what a rewind changed, and the way back."""
    if not context.output.is_text:
        return
    say = context.output.say
    changed = count_of(len(payload["changed"]), "file")
    say(f"{changed} changed in {shown(str(tree.root))}")
    for path in payload["submodules"]:
        say(shown(f"note: submodule '{path}' was not moved"))
    if payload["changed"]:
        commit = payload["before"]["commit"][:12]
        say(f"back: uwf thread rewind {payload['threadId']} --to {commit}")
