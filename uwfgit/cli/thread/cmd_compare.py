"""``thread log`` and ``thread diff``: a thread's history, and two side by side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from uwfgit.cli.frame.arguments import ThreadArgument
from uwfgit.cli.frame.context import CommandContext, get_context
from uwfgit.cli.frame.output import Output, count_of, format_duration
from uwfgit.cli.frame.screen import shown
from uwfgit.errors import UsageError
from uwfgit.model.picture.columns import cut, fill

if TYPE_CHECKING:
    from uwfgit.model.ledger.prices import Cost
    from uwfgit.model.thread.compare import Comparison, Pair, Sum
    from uwfgit.model.thread.event import Event
    from uwfgit.model.thread.record import Record
    from uwfgit.model.thread.step import Step, Usage
    from uwfgit.model.thread.tip import Tip
    from uwfgit.store.canonical import Json

LOG_SETTINGS: Final = {"ignore_unknown_options": True}
"""What stands behind the thread is git's."""

_WIDTH: Final = 80
_GUTTER: Final = 4
_SAME: Final = " │ "
_DIFFERENT: Final = " ≠ "
_CONTEXT: Final = 8
"""Characters shown before the first that differs."""


def log_command(
    ctx: typer.Context,
    thread: ThreadArgument,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[GIT-OPTIONS...]",
            help="Options of git log: --oneline, --stat, -p, -3. After -- also "
            "those that uwf has itself.",
        ),
    ] = None,
) -> None:
    """Show the events of a thread, newest first, as git log does.

    A forked thread's history goes on in the thread it was forked from.
    """
    from uwfgit.cli.thread.reading import kin_lines
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.thread.family import children_by_node
    from uwfgit.model.thread.record import open_record

    context = get_context(ctx)
    ledger = context.open_ledger()
    tip = find_tip(ledger, thread)
    words = arguments or []
    if context.output.is_text:
        code = _run_log(context, tip, words)
        for line in kin_lines(ledger, open_record(ledger.store, tip, checked=False)):
            context.output.say(line)
        raise typer.Exit(code)
    if words:
        raise UsageError("options of git log do not go with JSON and YAML")
    from uwfgit.model.thread.event import iter_events

    record = open_record(ledger.store, tip, checked=False)
    named = {step: child.thread for step, child in children_by_node(record).items()}
    items = [
        {**_event_payload(each), "child": named.get(each.node)}
        for each in iter_events(ledger.store, tip.commit)
    ]
    context.output.emit({"threadId": tip.thread, "items": items}, str)


def _run_log(context: CommandContext, tip: Tip, words: list[str]) -> int:
    from uwfgit.cli.store.git_output import run_shown
    from uwfgit.store.genesis import GENESIS_OID
    from uwfgit.store.layout import thread_ref

    decorate = [] if context.output.width is None else ["--decorate=short"]
    return run_shown(
        context.output,
        ["log", *decorate, thread_ref(tip.thread), f"^{GENESIS_OID}", *words],
        context.store_choice.path,
        environment=context.environment,
    )


def _event_payload(event: Event) -> dict[str, Any]:
    commit = event.commit
    return {
        "oid": commit.oid,
        "event": event.name,
        "threadId": event.thread,
        "node": event.node,
        "role": event.role,
        "status": event.status,
        "next": event.next,
        "timeMs": commit.committer.time * 1000,
        "author": f"{commit.author.name} <{commit.author.email}>",
        "subject": commit.message.partition("\n")[0],
    }


def diff_command(
    ctx: typer.Context,
    a: Annotated[str, typer.Argument(metavar="A", help="A thread.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another thread.")],
) -> None:
    """Show two threads side by side, from the step at which they part.

    Roles, statuses, output fields, time, tokens and cost of each step.
    """
    from uwfgit.model.ledger.ledger import find_tip
    from uwfgit.model.thread.compare import compare_chains
    from uwfgit.model.thread.record import open_record

    context = get_context(ctx)
    ledger = context.open_ledger()
    tips = find_tip(ledger, a), find_tip(ledger, b)
    records = open_record(ledger.store, tips[0]), open_record(ledger.store, tips[1])
    found = compare_chains(records[0].steps(), records[1].steps())
    if context.output.is_text:
        context.output.emit_document(_text(context.output, records, found))
    else:
        context.output.emit(_payload(records, found), str)


def _payload(records: tuple[Record, Record], found: Comparison) -> dict[str, Any]:
    point = found.fork_point
    one, other = records
    return {
        "a": _thread_payload(one.tip),
        "b": _thread_payload(other.tip),
        "forkPoint": None
        if point is None
        else {
            "number": point.number,
            "step": point.hash,
            "role": point.role,
            "status": point.status,
        },
        "steps": [
            {
                "number": pair.number,
                "a": _step_payload(one, pair.a),
                "b": _step_payload(other, pair.b),
                "differs": list(pair.differs),
            }
            for pair in found.pairs
        ],
        "totals": {
            "a": _sum_payload(found.sum_a, _sum_cost(one, (p.a for p in found.pairs))),
            "b": _sum_payload(
                found.sum_b, _sum_cost(other, (p.b for p in found.pairs))
            ),
        },
    }


def _thread_payload(tip: Tip) -> dict[str, Any]:
    state = tip.state
    return {
        "threadId": tip.thread,
        "workflowName": state.workflow_name,
        "workflowHash": state.workflow_hash,
        "status": state.status,
        "head": state.head,
        "oid": tip.commit,
        "steps": state.steps,
    }


def _step_payload(record: Record, step: Step | None) -> dict[str, Any] | None:
    from uwfgit.cli.thread.payloads import step_item

    if step is None:
        return None
    return {**step_item(record, step), "output": dict(step.output), "body": step.body}


def _sum_cost(record: Record, steps: Iterable[Step | None]) -> Cost | None:
    """Return what the steps of one side cost."""
    from uwfgit.model.ledger.prices import step_cost

    total: Cost | None = None
    for step in steps:
        cost = None if step is None else step_cost(record, step)
        if cost is not None:
            total = cost if total is None else total + cost
    return total


def _sum_payload(total: Sum, cost: Cost | None) -> dict[str, Any]:
    from msgspec import to_builtins

    from uwfgit.model.ledger.prices import cost_payload

    return {
        "steps": total.steps,
        "durationMs": total.duration_ms,
        "usage": to_builtins(total.usage),
        "cost": cost_payload(cost),
    }


def _text(output: Output, records: tuple[Record, Record], found: Comparison) -> str:
    one, other = records
    tips = one.tip, other.tip
    table = _Table(width=output.width or _WIDTH)
    lines = [
        table.row(" ", f"A {tips[0].thread}", f"B {tips[1].thread}"),
        table.row(" ", _about(tips[0]), _about(tips[1])),
        "",
        _shared_text(found),
        "",
    ]
    for pair in found.pairs:
        costs = (_cost_text(one, pair.a), _cost_text(other, pair.b))
        lines += [*_pair_lines(table, pair), table.row("", *costs), ""]
    if found.pairs:
        cost_a = _sum_cost(one, (pair.a for pair in found.pairs))
        cost_b = _sum_cost(other, (pair.b for pair in found.pairs))
        a, b = _sum_text(found.sum_a, cost_a), _sum_text(found.sum_b, cost_b)
        lines.append(table.row("sum", a, b))
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def _about(tip: Tip) -> str:
    state = tip.state
    return f"{state.workflow_name}, {state.status}, {count_of(state.steps, 'step')}"


def _shared_text(found: Comparison) -> str:
    point = found.fork_point
    rest = "" if found.pairs else "; neither goes on from there"
    if point is None:
        return "no step in common" if found.pairs else "no steps"
    status = f" {point.status}" if point.status else ""
    return shown(f"the same up to step {point.number}, {point.role}{status}{rest}")


class _Table:
    """Two columns of equal width behind a narrow one for numbers."""

    def __init__(self, *, width: int) -> None:
        self.cell = max((width - _GUTTER - len(_SAME)) // 2, 10)

    def row(self, head: str, a: str, b: str, *, same: bool = True) -> str:
        a, b = shown(a), shown(b)
        if not same:
            a, b = self._from_difference(a, b)
        left = fill(cut(a, self.cell), self.cell)
        mark = _SAME if same else _DIFFERENT
        return f"{head[:3]:>3} {left}{mark}{cut(b, self.cell)}"

    def _from_difference(self, a: str, b: str) -> tuple[str, str]:
        """Leave out what two long texts have in common before they differ."""
        name, colon, _ = a.partition(": ")
        shared = 0
        while shared < min(len(a), len(b)) and a[shared] == b[shared]:
            shared += 1
        start = shared - _CONTEXT
        lead = name + colon if b.startswith(name + colon) else ""
        if shared < self.cell // 2 or start <= len(lead):
            return a, b
        return f"{lead}…{a[start:]}", f"{lead}…{b[start:]}"


def _pair_lines(table: _Table, pair: Pair) -> Iterator[str]:
    from uwfgit.model.thread.compare import list_fields

    both = pair.a is not None and pair.b is not None
    a, b = _role_text(pair.a), _role_text(pair.b)
    yield table.row(str(pair.number), a, b, same=not both or a == b)
    if _child_text(pair.a) or _child_text(pair.b):
        yield table.row("", _child_text(pair.a), _child_text(pair.b))
    for name in list_fields(pair.a, pair.b):
        same = not both or f"output.{name}" not in pair.differs
        yield table.row(
            "", _field_text(pair.a, name), _field_text(pair.b, name), same=same
        )
    if "body" in pair.differs:
        yield table.row("", _body_text(pair.a), _body_text(pair.b), same=False)


def _role_text(step: Step | None) -> str:
    if step is None:
        return ""
    return f"{step.role} → {step.status}" if step.status else step.role


def _child_text(step: Step | None) -> str:
    child = step.child if step is not None else None
    return f"by {child.thread}" if child is not None else ""


def _field_text(step: Step | None, name: str) -> str:
    if step is None or name not in step.output:
        return ""
    return f"{name}: {_value_text(step.output[name])}"


def _value_text(value: Json) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return " ".join(value.split())


def _body_text(step: Step | None) -> str:
    return "" if step is None else f"body: {_value_text(step.body)}"


def _cost_text(record: Record, step: Step | None) -> str:
    from uwfgit.model.thread.compare import step_duration

    if step is None:
        return ""
    return _spent_text(step_duration(step), step.usage, _sum_cost(record, (step,)))


def _sum_text(total: Sum, cost: Cost | None) -> str:
    spent = _spent_text(total.duration_ms, total.usage, cost)
    return f"{count_of(total.steps, 'step')}, {spent}"


def _spent_text(duration_ms: int, usage: Usage | None, cost: Cost | None) -> str:
    """Write what was spent; where that is cut, the tokens go first."""
    parts = [format_duration(duration_ms) or "-"]
    if usage is not None and cost is not None:
        parts.append(str(cost))
    if usage is not None and (usage.input_tokens or usage.output_tokens):
        parts.append(f"{usage.input_tokens}+{usage.output_tokens} tokens")
    return ", ".join(parts)
