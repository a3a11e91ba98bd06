"""``workflow graph``: a workflow as a picture, and a thread's way through it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import count_of, write
from uwfgit.errors import UsageError, WorkflowError
from uwfgit.model.picture.columns import one_line

if TYPE_CHECKING:
    from uwfgit.model.picture.chart import Chart
    from uwfgit.model.thread.step import Step

FORMS: Final = ("text", "mermaid", "dot")


def graph_command(
    ctx: typer.Context,
    workflow: Annotated[
        str | None,
        typer.Argument(
            metavar="[WORKFLOW]",
            help="A path, a name, NAME@HASH, or a workflow's hash; else --thread's.",
        ),
    ] = None,
    form: Annotated[
        str,
        typer.Option("--as", metavar="FORM", help="text, mermaid or dot (Graphviz)."),
    ] = "text",
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            metavar="THREAD",
            help="Show this thread's way, with a count on each edge it took.",
        ),
    ] = None,
) -> None:
    """Draw the graph of a workflow.

    Edges that lead back go up in the text, and are dotted or dashed in the
    others; what cannot be reached stands apart. A file with errors is drawn as
    far as it goes.
    """
    context = get_context(ctx)
    if form not in FORMS:
        raise UsageError(
            f"--as: '{form}' is not a form", hint=f"forms: {', '.join(FORMS)}"
        )
    if workflow is None and thread is None:
        raise UsageError("name a workflow, or a thread with --thread")
    steps: tuple[Step, ...] = ()
    if thread is not None:
        chart, steps = _chart_of_thread(context, workflow, thread)
    else:
        chart = _chart_of_workflow(context, str(workflow))
    if not context.output.is_text:
        context.output.emit(_payload(chart, form, steps), str)
    elif form == "text":
        picture = _draw(chart, form, context.output.width)
        context.output.emit_document(picture + "".join(_child_lines(steps)))
    else:
        write(_draw(chart, form, None))


def _child_lines(steps: Sequence[Step]) -> Iterator[str]:
    """Lead from the picture of a thread to the threads that did its steps."""
    done = [step for step in steps if step.child is not None]
    if done:
        yield "\n"
    for step in done:
        assert step.child is not None  # noqa: S101 - chosen so
        yield f"step {step.number}, {one_line(step.role)}: {step.child.thread}\n"


def _draw(chart: Chart, form: str, width: int | None) -> str:
    if form == "mermaid":
        from uwfgit.model.picture.mermaid import mermaid_picture

        return mermaid_picture(chart)
    if form == "dot":
        from uwfgit.model.picture.dot import dot_picture

        return dot_picture(chart)
    from uwfgit.model.picture.text import WIDTH, text_picture

    return text_picture(chart, width=width or WIDTH)


def _payload(chart: Chart, form: str, steps: Sequence[Step]) -> dict[str, Any]:
    threads: dict[str, list[str]] = {}
    for step in steps:
        if step.child is not None:
            threads.setdefault(step.role, []).append(step.child.thread)
    return {
        "name": chart.name,
        "as": form,
        "text": _draw(chart, form, None),
        "nodes": [
            {
                "name": box.name,
                "kind": box.kind,
                "reachable": box.reachable,
                "stuck": box.stuck,
                "visits": box.visits,
                "mark": box.mark,
                "workflow": box.workflow,
                "threads": list(dict.fromkeys(threads.get(box.name, ()))),
            }
            for box in chart.boxes
        ],
        "edges": [
            {
                "from": arrow.source,
                "status": arrow.label,
                "to": arrow.target,
                "loop": arrow.loop,
                "count": arrow.count,
            }
            for arrow in chart.arrows
        ],
    }


def _chart_of_thread(
    context: CommandContext, workflow: str | None, thread: str
) -> tuple[Chart, tuple[Step, ...]]:
    from uwfgit.cli.workflow.workflows import find_workflow
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.picture.chart import chart_of
    from uwfgit.model.picture.edge_counts import trips_of
    from uwfgit.model.thread.record import open_record

    ledger = context.open_ledger()
    record = open_record(ledger.store, find_tip(ledger, thread))
    shown = record.workflow
    if workflow is not None:
        shown = find_workflow(context, ledger, workflow).workflow
    steps = record.steps()
    return chart_of(shown, trips_of(shown, record.tip.state, steps)), steps


def _chart_of_workflow(context: CommandContext, argument: str) -> Chart:
    from uwfgit.cli.workflow.workflows import find_ledger, find_workflow
    from uwfgit.model.picture.chart import chart_of

    ledger = find_ledger(context)
    try:
        return chart_of(find_workflow(context, ledger, argument).workflow)
    except WorkflowError as exc:
        chart = _chart_of_broken(context, argument, len(exc.problems))
        if chart is None:
            raise
        return chart


def _chart_of_broken(
    context: CommandContext, argument: str, errors: int
) -> Chart | None:
    """Draw what there is of a file with errors: that is when a picture helps."""
    from uwfgit.model.legacy.read import normalise_document
    from uwfgit.model.picture.chart import chart_of_document
    from uwfgit.model.workflow.include import open_includes
    from uwfgit.model.workflow.source import read_file, resolve_workflow
    from uwfgit.model.yaml.core import read_yaml

    paths = context.settings.workflow_paths
    path = resolve_workflow(argument.strip(), cwd=context.cwd, workflow_paths=paths)
    if path is None:
        return None
    # A file that is too large or cannot be read was refused before.
    content = read_file(path)
    located, _ = read_yaml(content, file=str(path), include=open_includes(path))
    document = None if located is None else normalise_document(located).doc.value
    chart = chart_of_document(document)
    if chart is not None:
        count = count_of(errors, "error")
        context.output.warn(
            f"{argument} has {count}; 'uwf workflow validate' lists them"
        )
    return chart
