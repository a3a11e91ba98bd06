"""``bisect``: the step whose code makes a command fail."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uwfgit.cli.code.foreign_code import require_agreed
from uwfgit.cli.code.place import find_tree, list_known
from uwfgit.cli.frame.commands import add_command, make_single
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.screen import shown
from uwfgit.cli.frame.world import child_environment
from uwfgit.errors import NotFoundError, StateError, UsageError
from uwfgit.model.wording import count_of

if TYPE_CHECKING:
    from uwfgit.code.bisect import Culprit, Point, Verdict
    from uwfgit.code.blame.steps import KnownStep
    from uwfgit.ids import ThreadId

app = make_single()

_SKIP: Final = 125
"""What a command exits with to say that it cannot test this one, as for git."""
_NOT_RUN: Final = (126, 127)


@add_command(app, "bisect", settings={"ignore_unknown_options": True})
def bisect(
    ctx: typer.Context,
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="A thread.")],
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- COMMAND...",
            help="What passes (exit 0) or fails; 125 says that it cannot tell.",
        ),
    ],
    start: Annotated[
        int, typer.Option("--from", metavar="A", help="A step after which it passes.")
    ] = 0,
    end: Annotated[
        int | None,
        typer.Option("--to", metavar="B", help="A step after which it fails."),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Also when others made the code.")
    ] = False,
) -> None:
    """Find the first step whose code makes a command fail.

    The command runs in a work tree of its own that is gone afterwards; yours is
    not touched. What its last run left there, such as build results, stays for the
    next.
    """
    from uwfgit.cli.code.cmd_changes import require_here
    from uwfgit.code.bisect import find_culprit
    from uwfgit.code.scene import open_scene, set_files
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.thread.record import open_record

    context = get_context(ctx)
    ledger = context.open_ledger(write=True, create=False)
    record = open_record(ledger.store, find_tip(ledger, thread))
    steps = list_known(record)
    points = _points(steps, start, end, record.tip.thread)
    tree = find_tree(context, ledger, record, points[-1].tree)
    require_here(tree, *dict.fromkeys(point.tree for point in points))
    require_agreed(context, ledger, record, tree, points[-1].tree, trust=trust)
    with open_scene(tree) as scene:

        def judge(point: Point) -> Verdict:
            set_files(scene, point.tree)
            verdict = _run(context, command, scene.root)
            context.output.say(f"step {point.number}: {verdict}")
            return verdict

        found = find_culprit(points, judge)
    payload = _payload(record.tip.thread, steps, found)
    context.output.emit(payload, lambda: _text(payload))


def _points(
    steps: tuple[KnownStep, ...], start: int, end: int | None, thread: ThreadId
) -> list[Point]:
    from uwfgit.code.bisect import Point

    last = len(steps) if end is None else end
    if not 0 <= start < last <= len(steps):
        raise NotFoundError(
            "steps",
            f"{start} to {last}",
            hint=f"thread {thread} has {count_of(len(steps), 'step')}",
        )
    found = []
    if start == 0 and steps[0].before is not None:
        found.append(Point(number=0, tree=steps[0].before))
    found += [
        Point(number=number, tree=step.after)
        for number, step in enumerate(steps, 1)
        if max(start, 1) <= number <= last and step.after is not None
    ]
    if len(found) < 2:  # noqa: PLR2004 - a good one and a bad one
        raise StateError(f"too little code of thread {thread} was kept to compare")
    return found


def _run(context: CommandContext, command: list[str], folder: Path) -> Verdict:
    environment = child_environment(context.environment)
    # What the command does with git is done there.
    for name in [name for name in environment if name.startswith("GIT_")]:
        del environment[name]
    try:
        done = subprocess.run(  # noqa: S603 - the user's own words
            command,
            cwd=folder,
            env=environment,
            # stdout is for what this command finds.
            stdout=2 if not context.output.is_text else None,
            check=False,
        )
    except OSError as exc:
        raise UsageError(f"cannot run '{command[0]}': {exc.strerror}") from exc
    if done.returncode in _NOT_RUN or done.returncode < 0:
        raise UsageError(
            f"'{command[0]}' did not run: exit code {done.returncode}",
            hint="a command that tests code exits with 0 to 124, or 125 to skip",
        )
    if done.returncode == _SKIP:
        return "skip"
    return "bad" if done.returncode else "good"


def _payload(
    thread: ThreadId, steps: tuple[KnownStep, ...], found: Culprit
) -> dict[str, Any]:
    return {
        "threadId": thread,
        "sure": len(found.steps) == 1,
        "steps": [
            {
                "number": number,
                "hash": steps[number - 1].hash,
                "role": steps[number - 1].role,
                "agent": steps[number - 1].agent,
                "status": steps[number - 1].status,
                "prompt": steps[number - 1].prompt,
            }
            for number in found.steps
        ],
        "tested": [
            {"number": number, "verdict": verdict} for number, verdict in found.tested
        ],
    }


def _text(payload: dict[str, Any]) -> str:
    steps = payload["steps"]
    if not payload["sure"]:
        names = ", ".join(str(step["number"]) for step in steps)
        return f"one of steps {names} broke it; the others cannot be tested"
    step, thread = steps[0], payload["threadId"]
    return (
        shown(
            f"step {step['number']} broke it: {step['role']} by {step['agent']}, "
            f"{step['status'] or '-'}"
        )
        + f"\nits change: uwf step diff {thread}:{step['number']}"
    )
