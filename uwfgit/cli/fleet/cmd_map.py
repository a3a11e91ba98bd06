"""``uwf fleet map``: a thread for each line of a file, spread over an executor."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec import Struct

from uwfgit.cli.fleet.cmd_fleet import check_name, open_queue, put_threads
from uwfgit.cli.frame.arguments import read_file, read_text, require_least
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import (
    Column,
    format_table,
    talk_over,
    talk_width,
)
from uwfgit.cli.frame.world import child_environment, require_extra
from uwfgit.constants import STATUS
from uwfgit.errors import RemoteError, UsageError
from uwfgit.model.wording import count_of

if TYPE_CHECKING:
    from uwfgit.cli.fleet.errand import Errand, LocalErrands
    from uwfgit.cli.workflow.workflows import FoundWorkflow
    from uwfgit.fleet.batch import Batch, Line
    from uwfgit.fleet.queue import Contents, Queue
    from uwfgit.fleet.spread import Spread, Standing
    from uwfgit.ids import ThreadId
    from uwfgit.model.thread.tip import Tip

_DASK: Final = "dask:"
_LEASE: Final = "300"
"""Seconds after which a line that died with its machine is run again; shorter than
a worker's own, since the other lines are waited for."""
_BAR: Final = 24
_ANSWER_SECONDS: Final = 10


class _Row(Struct, frozen=True, kw_only=True):
    """A line, its thread, and why that did not come to its end."""

    line: Line
    thread: ThreadId
    why: str | None = None


def map_command(
    ctx: typer.Context,
    workflow: Annotated[
        str, typer.Argument(metavar="WORKFLOW", help="What runs for each line.")
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- OPTIONS...]", help="Go to each `uwf worker`: --agent, --repo …"
        ),
    ] = None,
    inputs: Annotated[
        str,
        typer.Option(
            "--inputs",
            metavar="FILE",
            help="A line a thread: a JSON object of inputs, or a task in quotes. - is "
            "stdin.",
        ),
    ] = "",
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt", "-p", metavar="TEXT", help="The task of lines with inputs."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="BATCH", help="What this batch is called."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", help="Threads at a time."),
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="WHERE",
            help="process: workers on this machine. dask:ADDRESS: on those of Dask.",
        ),
    ] = "process",
    remote: Annotated[
        str | None,
        typer.Option("--remote", metavar="NAME", help="Whose queue; else the one."),
    ] = None,
) -> None:
    """Run a workflow for each line of a file of inputs.

    The results come in the order of the lines. Each line is a thread in the
    queue of a remote, which any worker may run. Run again with the same name
    it goes on with the lines that have not ended. Exits 1 when any did not.
    """
    from uwfgit.cli.workflow.workflows import find_workflow
    from uwfgit.fleet.batch import open_batch, read_lines

    context = get_context(ctx)
    if not inputs:
        raise UsageError("--inputs is missing", hint="--inputs FILE.jsonl")
    if options and not options[0].startswith("-"):
        raise UsageError(
            f"'{options[0]}' is not an option of `uwf worker`",
            hint="the queue is that of --remote NAME",
        )
    require_least(1, jobs=jobs)
    if executor != "process":
        _require_dask(executor)
    with open_queue(context, remote) as queue:
        found = find_workflow(context, queue.ledger, workflow)
        task = None if prompt is None else read_text(context, prompt, what="--prompt")
        text = read_file(context, inputs, what="--inputs")
        context.warn_of_secrets(f"{task}\n{text}", what="--inputs")
        lines = read_lines(text, task=task, schemas=found.workflow.inputs or {})
        called = check_name(
            _name_batch(found.workflow.name, inputs) if name is None else name
        )
        batch = open_batch(queue.ledger, called, found.hash)
        rows = [
            _Row(line=line, thread=thread)
            for line, thread in zip(lines, batch.thread_ids(lines), strict=True)
        ]
        left = _begin(context, queue, found, batch, rows)
        named = (remote,) if remote else ()
        words = (*named, "--lease", _LEASE, *(options or ()))
        reasons = _spread(context, queue, left, executor, jobs, words)
        items = _list_results(queue, rows, reasons)
    payload = {
        "batch": batch.name,
        "ended": sum(item["status"] == "end" for item in items),
        "items": items,
    }
    context.output.emit(payload, lambda: _text(context, payload))
    raise typer.Exit(0 if payload["ended"] == len(items) else 1)


def _require_dask(executor: str) -> None:
    """See that an executor is one of Dask, and that this uwf can reach it."""
    if not executor.removeprefix(_DASK):
        raise UsageError("--executor: no address", hint="dask:tcp://HOST:8786")
    if not executor.startswith(_DASK):
        raise UsageError(
            f"--executor: '{executor}' is neither 'process' nor 'dask:ADDRESS'"
        )
    require_extra("fleet", ("distributed",), what="--executor dask")


def _name_batch(workflow: str, inputs: str) -> str:
    stem = "stdin" if inputs == "-" else Path(inputs).stem
    return re.sub(r"[^A-Za-z0-9._-]", "-", f"{workflow}-{stem}")[:64]


def _begin(
    context: CommandContext,
    queue: Queue,
    found: FoundWorkflow,
    batch: Batch,
    rows: Sequence[_Row],
) -> tuple[ThreadId, ...]:
    """Start and queue the threads that are missing; return those not at their end."""
    from uwfgit.cli.share.cmd_sync import pull_threads
    from uwfgit.model.thread.tip import load_tip
    from uwfgit.store.layout import thread_ref
    from uwfgit.store.refs import find_ref

    store = queue.store
    missing = [row for row in rows if find_ref(store, thread_ref(row.thread)) is None]
    if len(missing) < len(rows):
        # Others may have gone on with them since.
        pull_threads(context, queue.ledger, queue.remote, queue.wire)
    _start(context, queue, found, missing)
    tips = [load_tip(store, row.thread) for row in rows]
    left = tuple(
        tip.thread for tip in tips if tip.state.status not in {"end", "cancelled"}
    )
    context.output.say(
        f"batch {batch.name}: {count_of(len(rows), 'line')}, {len(missing)} new, "
        f"{len(left)} to run"
    )
    contents = queue.fetch()
    wanted = [tip.thread for tip in tips if _is_to_queue(queue, contents, tip)]
    if wanted:
        for item in put_threads(context, queue, wanted):
            if item["why"] is not None:
                context.output.warn(f"{item['threadId']} is not queued: {item['why']}")
    return left


def _start(
    context: CommandContext,
    queue: Queue,
    found: FoundWorkflow,
    rows: Sequence[_Row],
) -> None:
    from uwfgit.cli.thread.cmd_start import place_in_repository
    from uwfgit.cli.workflow.workflows import find_child
    from uwfgit.engine.run.thread import start_thread
    from uwfgit.model.workflow.children import resolve_children

    if not rows:
        return
    children = resolve_children(
        found.workflow,
        lambda name: find_child(context, queue.ledger, name, beside=found.source),
    )
    place, root = place_in_repository(context, context.cwd)
    for row in rows:
        start_thread(
            queue.ledger,
            workflow=found.workflow,
            data=found.data,
            prompt=row.line.prompt,
            cwd=context.cwd,
            cwd_in_repo=place,
            root_commit=root,
            children=children,
            inputs=row.line.values,
            thread=row.thread,
        )


def _is_to_queue(queue: Queue, contents: Contents, tip: Tip) -> bool:
    """Whether a thread is to be run, and nobody was told so yet.

    What waits for a person's word is left to wait: to ask again changes nothing.
    """
    from uwfgit.model.thread.attempts import find_last_attempt
    from uwfgit.model.thread.record import open_record

    state = tip.state
    entry = contents.entries.get(tip.thread)
    if state.status in {"end", "cancelled"}:
        return False
    if entry is not None and entry.state.word in {"queued", "claimed"}:
        return False
    if state.status != "suspended" or state.retry_at_ms is not None:
        return True
    return find_last_attempt(open_record(queue.store, tip)) is not None


def _spread(
    context: CommandContext,
    queue: Queue,
    threads: tuple[ThreadId, ...],
    where: str,
    jobs: int | None,
    options: tuple[str, ...],
) -> Mapping[ThreadId, str | None]:
    from uwfgit.cli.fleet.errand import Errand, LocalErrands
    from uwfgit.cli.share.cmd_sync import pull_threads
    from uwfgit.fleet.spread import Spread

    if not threads:
        return {}
    most = jobs
    take: Errand | LocalErrands = Errand(options=options)
    if where == "process":
        most = jobs or max(1, context.settings.max_running)
        errand = Errand(
            options=("--store", str(queue.store.path), *options),
            cwd=str(context.cwd),
            environment=child_environment(context.environment),
        )
        take = LocalErrands(errand=errand)
    width = talk_width(quiet=context.options.quiet)
    with _open_executor(where, most) as executor:
        spread = Spread(
            queue=queue,
            executor=executor,
            take=take,
            threads=threads,
            most=most,
            monotonic=time.monotonic,
            sleep=time.sleep,
            tell=lambda counts: _tell(counts, width),
        )
        with _stopped_in_peace(context, spread, take, width):
            reasons = spread.run()
    if where != "process":
        pull_threads(context, queue.ledger, queue.remote, queue.wire)
    return reasons


@contextmanager
def _open_executor(where: str, most: int | None) -> Iterator[Executor]:
    """Open what tasks are handed to; workers here are processes of their own.

    Raises:
        RemoteError: Dask's scheduler does not answer.
    """
    if not where.startswith(_DASK):
        with ThreadPoolExecutor(most) as pool:
            yield pool
        return
    from distributed import Client

    address = where.removeprefix(_DASK)
    try:
        client = Client(address, timeout=_ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError) as exc:
        raise RemoteError(f"Dask does not answer: {exc}", remote=address) from exc
    with client, client.get_executor() as executor:
        yield executor


@contextmanager
def _stopped_in_peace(
    context: CommandContext,
    spread: Spread,
    take: Errand | LocalErrands,
    width: int | None,
) -> Iterator[None]:
    """Let a Ctrl-C or SIGTERM give back what is at work; a second one ends at once."""
    try:
        yield
    except KeyboardInterrupt:
        spread.cancel()
        context.output.say("stopping; run it again to go on")
        stop = getattr(take, "stop", None)
        if stop is not None:
            stop()
            try:
                spread.executor.shutdown()
            except KeyboardInterrupt:
                stop()
                raise
        raise
    finally:
        if width is not None:
            talk_over("", width)


def _tell(counts: Mapping[Standing, int], width: int | None) -> None:
    if width is None:
        return
    total = max(sum(counts.values()), 1)
    over = counts["done"] + counts["failed"]
    full = _BAR * over // total
    bar = "#" * full + "-" * (_BAR - full)
    failed = f", {counts['failed']} failed" if counts["failed"] else ""
    talk_over(f"[{bar}] {over}/{total}, {counts['at work']} at work{failed}", width)


def _list_results(
    queue: Queue, rows: Sequence[_Row], reasons: Mapping[ThreadId, str | None]
) -> list[dict[str, Any]]:
    from uwfgit.model.thread.hold import why_suspended
    from uwfgit.model.thread.record import open_record
    from uwfgit.model.thread.tip import load_tip

    items = []
    for row in rows:
        tip = load_tip(queue.store, row.thread)
        state = tip.state
        is_ended = state.status == "end"
        last = open_record(queue.store, tip).steps()[-1] if state.steps else None
        why = reasons.get(row.thread) or why_suspended(queue.store, tip.commit, state)
        items.append(
            {
                "line": row.line.number,
                "threadId": row.thread,
                "status": state.status,
                "steps": state.steps,
                "output": dict(last.output) if last is not None else None,
                "why": None if is_ended else why,
            }
        )
    return items


def _text(context: CommandContext, payload: Mapping[str, Any]) -> str:
    columns = (
        Column(title="line", right=True),
        Column(title="thread"),
        Column(title="status", status=True),
        Column(title="result", flexible=True),
    )
    items = payload["items"]
    rows = []
    for item in items:
        output = {k: v for k, v in (item["output"] or {}).items() if k != STATUS}
        told = json.dumps(output, ensure_ascii=False) if output else ""
        line = str(item["line"])
        rows.append((line, item["threadId"], item["status"], item["why"] or told))
    table = format_table(context.output, columns, rows)
    return f"{table}\n{payload['ended']} of {len(items)} ended"
