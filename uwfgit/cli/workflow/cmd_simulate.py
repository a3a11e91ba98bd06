"""``workflow simulate``: a walk through a workflow without agents or writes."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from uwfgit.cli.frame.arguments import InputsFileOption, InputsOption
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Output, ask, talk, write
from uwfgit.cli.frame.screen import shown, shown_lines
from uwfgit.cli.frame.world import now_ms
from uwfgit.constants import STATUS, SUSPEND
from uwfgit.errors import UsageError

if TYPE_CHECKING:
    from uwfgit.agents.scripted import Script, ScriptedAgent
    from uwfgit.engine.simulate.coverage import Coverage
    from uwfgit.engine.simulate.simulate import (
        Asked,
        SimulatedAnswer,
        SimulatedStep,
        Simulation,
    )
    from uwfgit.model.workflow.workflow import Workflow

_TASK = "<the task>"
_BAR = "   │ "


def simulate_command(
    ctx: typer.Context,
    workflow: Annotated[
        str,
        typer.Argument(
            metavar="WORKFLOW", help="A path, a name, NAME@HASH, or a workflow's hash."
        ),
    ],
    script: Annotated[
        str | None,
        typer.Option(
            "--script",
            metavar="FILE",
            help="Take the answers from this file, as the agent scripted:FILE does.",
        ),
    ] = None,
    all_paths: Annotated[
        bool,
        typer.Option("--all-paths", help="Take every edge once, with made-up answers."),
    ] = False,
    prompt: Annotated[
        str,
        typer.Option("--prompt", "-p", metavar="TEXT", help="The task."),
    ] = _TASK,
    inputs: InputsOption = None,
    inputs_file: InputsFileOption = None,
) -> None:
    """Walk through a workflow without agents, with each prompt shown.

    Runs no agent and writes nothing. Without --script and --all-paths it asks
    for a status at each step, and makes the other fields up, and inputs that are not
    given. Exits 1 when the walk cannot go on.
    """
    from uwfgit.cli.frame.arguments import read_text
    from uwfgit.cli.workflow.workflows import find_ledger, find_workflow

    context = get_context(ctx)
    if script is not None and all_paths:
        raise UsageError("--script and --all-paths exclude each other")
    found = find_workflow(context, find_ledger(context), workflow).workflow
    task = read_text(context, prompt, what="--prompt")
    run = _Run(
        workflow=found,
        task=task,
        inputs=_read_inputs(context, found, inputs or [], inputs_file),
    )
    if all_paths:
        code = _show_all_paths(context, run)
    elif script is not None:
        code = _follow_script(context, run, context.resolve(script))
    else:
        code = _ask_person(context, run)
    raise typer.Exit(code)


class _Run(Struct, frozen=True, kw_only=True):
    """What is walked through, and what it is given."""

    workflow: Workflow
    task: str
    inputs: Mapping[str, Any] | None


def _read_inputs(
    context: CommandContext, workflow: Workflow, given: Sequence[str], file: str | None
) -> dict[str, Any] | None:
    """Return what the run is given; what is missing is made up, not asked for.

    Raises:
        InvalidError: A value that is given does not fit, or is not asked for.
    """
    from uwfgit.cli.workflow.inputs import given_inputs
    from uwfgit.engine.simulate.coverage import make_up_inputs
    from uwfgit.model.workflow.inputs import require_given

    schemas = workflow.inputs or {}
    values = given_inputs(context, schemas, given=given, file=file)
    require_given(schemas, values)
    return make_up_inputs(schemas, values) if workflow.inputs else None


def _show_all_paths(context: CommandContext, run: _Run) -> int:
    from uwfgit.engine.simulate.coverage import cover_edges

    coverage = cover_edges(run.workflow, task=run.task, inputs=run.inputs)
    payload = {
        "steps": [step_payload(step) for step in coverage.steps],
        "edges": coverage.edges,
        "left": list(coverage.left),
    }
    context.output.emit(payload, lambda: _coverage_text(context.output, coverage))
    failed = any(step.error for step in coverage.steps)
    return 1 if failed or coverage.left else 0


def _coverage_text(output: Output, coverage: Coverage) -> str:
    lines: list[str] = []
    seen: set[tuple[str, str] | None] = set()
    walk = 0
    for step in coverage.steps:
        if step.walk != walk and coverage.steps[-1].walk > 1:
            lines += [f"Walk {step.walk}", ""]
        walk = step.walk
        again = step.edge in seen
        seen.add(step.edge)
        lines += _step_lines(output, step, again=again)
        lines += [*_answer_lines(step), ""]
    taken = coverage.edges - len(coverage.left)
    lines.append(f"{taken} of {coverage.edges} edges taken")
    lines += [f"never taken: {shown(name)}" for name in coverage.left]
    return "\n".join(lines)


def _step_lines(output: Output, step: SimulatedStep, *, again: bool) -> list[str]:
    came = f"   {step.edge[0]}: {step.edge[1]}" if step.edge else ""
    head = f"{step.number}. {step.role}{came}"
    if again:
        return [shown(f"{head} (as above)")]
    notes = _note_lines(output, step)
    lines = shown_lines(step.prompt).rstrip("\n").split("\n") if step.prompt else []
    return [shown(head), *(f"{_BAR}{line}".rstrip() for line in lines), *notes]


def _note_lines(output: Output, step: SimulatedStep) -> list[str]:
    notes = []
    if step.error:
        notes.append(output.paint("error", "error") + f": {shown(step.error)}")
    if step.location:
        notes.append(f"in folder {shown(step.location)}")
    word = output.paint("missing", "warning")
    if step.missing:
        notes.append(f"{word}: {shown(', '.join(step.missing))}")
    if step.optional:
        names = shown(", ".join(step.optional))
        notes.append(f"{word} when optional fields are left out: {names}")
    return [f"   {note}" for note in notes]


def step_payload(step: SimulatedStep) -> dict[str, Any]:
    """Return a simulated step as JSON."""
    from uwfgit.engine.ask.prompt import describe_problem

    return {
        "number": step.number,
        "role": step.role,
        "status": step.status,
        "prompt": step.prompt,
        "location": step.location,
        "missing": list(step.missing),
        "optional": list(step.optional),
        "warnings": list(step.warnings),
        "problems": [describe_problem(each) for each in step.problems],
        "error": step.error,
        "walk": step.walk,
    }


def _follow_script(context: CommandContext, run: _Run, path: Path) -> int:
    from uwfgit.agents.scripted import ScriptedAgent, read_script

    script = read_script(path)
    agent = ScriptedAgent(label="scripted", script=script)
    corrections = context.settings.limits.corrections

    def answer(asked: Asked) -> SimulatedAnswer:
        return _ask_agent(agent, asked, corrections=corrections)

    done = _simulate(context, run, answer)
    for role, count in _unused_replies(script, done).items():
        left = "1 reply" if count == 1 else f"{count} replies"
        context.output.say(shown(f"note: {left} of '{role}' not used"))
    return 0 if done.status == "end" else 1


def _ask_agent(
    agent: ScriptedAgent, asked: Asked, *, corrections: int
) -> SimulatedAnswer:
    from uwfgit.agents.base import AgentRequest, ReplyCount
    from uwfgit.engine.ask.extract import Extraction, extract_reply
    from uwfgit.engine.simulate.simulate import THREAD, Refused, Said, Silent
    from uwfgit.ids import ThreadId, is_hash

    found: SimulatedAnswer = Silent(reason="nobody was asked")
    for correction in range(corrections + 1):
        reply = agent.run(
            AgentRequest(
                thread=ThreadId(THREAD),
                role=asked.role,
                number=asked.number,
                prompt=asked.prompt,
                edge_prompt=asked.prompt,
                cwd=Path(),
                environment={},
                correction=correction,
                count_replies=lambda: ReplyCount(
                    of_role=asked.of_role, of_all=asked.of_all
                ),
                idle_seconds=0,
                now_ms=now_ms,
            )
        )
        if reply.failure is not None:
            return Silent(reason=reply.failure.message)
        read = extract_reply(
            reply.text, schema=asked.schema, listed=asked.listed, is_link=is_hash
        )
        if isinstance(read, Extraction):
            return Said(output=read.output, body=read.body, warnings=read.warnings)
        found = Refused(problems=read)
    return found


def _unused_replies(script: Script, done: Simulation) -> dict[str, int]:
    if done.status != "end":
        return {}
    # Roles whose edges have conditions may report no status.
    used = Counter(step.role for step in done.steps)
    left = {role: len(texts) - used[role] for role, texts in script.replies.items()}
    return {role: count for role, count in left.items() if count > 0}


def _simulate(
    context: CommandContext,
    run: _Run,
    answer: Callable[[Asked], SimulatedAnswer],
) -> Simulation:
    from uwfgit.engine.simulate.simulate import simulate

    output = context.output
    done = simulate(
        run.workflow,
        task=run.task,
        inputs=run.inputs,
        answer=answer,
        max_steps=context.settings.limits.max_steps,
        on_prompt=lambda step: _print_prompt(output, step),
        on_step=lambda step: _print_answer(output, step),
    )
    payload = {
        "steps": [step_payload(step) for step in done.steps],
        "status": done.status,
        "done": done.status == "end",
        "message": done.message,
    }
    closing = output.paint(done.status, done.status)
    if done.message:
        closing += f": {shown(done.message)}"
    output.emit(payload, lambda: closing)
    return done


def _print_prompt(output: Output, step: SimulatedStep) -> None:
    if output.is_text:
        lines = _step_lines(output, step, again=False)
        write("\n".join([*lines, ""]))


def _print_answer(output: Output, step: SimulatedStep) -> None:
    if not output.is_text:
        return
    lines = _answer_lines(step)
    if step.status is not None:
        lines.append(f"   → {output.paint(shown(step.status), step.status)}")
    write("\n".join([*lines, "", ""]) if lines else "\n")


def _answer_lines(step: SimulatedStep) -> list[str]:
    from uwfgit.engine.ask.prompt import describe_problem

    notes = [f"refused: {shown(describe_problem(each))}" for each in step.problems]
    notes += [f"warning: {shown(warning)}" for warning in step.warnings]
    return [f"   {note}" for note in notes]


def _ask_person(context: CommandContext, run: _Run) -> int:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "there is no terminal to ask for statuses",
            hint="give --script FILE or --all-paths",
        )

    def answer(asked: Asked) -> SimulatedAnswer:
        return _ask_status(asked, shows_prompt=not context.output.is_text)

    done = _simulate(context, run, answer)
    return 1 if done.status == "suspended" else 0


def _ask_status(asked: Asked, *, shows_prompt: bool) -> SimulatedAnswer:
    from uwfgit.engine.simulate.coverage import list_statuses, make_up_output
    from uwfgit.engine.simulate.simulate import Said, Silent

    statuses = list_statuses(asked.schema)
    if shows_prompt:
        talk(f"{asked.number}. {shown(asked.role)}\n{shown_lines(asked.prompt)}")
    chosen = _choose((*(statuses or ("go on",)), SUSPEND))
    if chosen is None:
        return Silent(reason="stopped here")
    if chosen == SUSPEND:
        return Said(output={STATUS: SUSPEND, "reason": "<what is needed>"})
    status = chosen if statuses else None
    output = make_up_output(asked.schema, status)
    return Said(output=output, body=f"<what {asked.role} wrote>")


def _choose(choices: Sequence[str]) -> str | None:
    """Ask until the answer is one of the choices; ``None`` when there is none."""
    listed = ", ".join(f"{i} {shown(name)}" for i, name in enumerate(choices, start=1))
    while True:
        word = ask(f"status ({listed}; Enter stops): ").strip()
        if not word:
            return None
        if word in choices:
            return word
        if word.isascii() and word.isdigit() and 0 < int(word) <= len(choices):
            return choices[int(word) - 1]
        talk(f"'{shown(word)}' is none of them")
