"""The threads above and below one, as commands tell of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from uwfgit.cli.frame.screen import shown

if TYPE_CHECKING:
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.ledger import Ledger
    from uwfgit.model.thread.record import Record
    from uwfgit.model.thread.step import Child


def done_by(child: Child) -> str:
    """Write where the work of a step is read that another thread did."""
    return f"*Done by a thread:* `uwf thread read {child.thread}`"


def parent_note(ledger: Ledger, record: Record) -> str | None:
    """Write what a thread is a step of, in a line of markdown."""
    from uwfgit.model.ledger.kin import find_parent_step

    found = find_parent_step(ledger, record)
    if found is None:
        return None
    return f"Does: {_place(*found)}"


def _place(thread: ThreadId, number: int) -> str:
    return f"step {number} of {thread}" if number else f"a step of {thread}, not here"


def kin_fields(ledger: Ledger, thread: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what ``thread show`` says of a thread's kin, by its payload."""
    from uwfgit.ids import ThreadId
    from uwfgit.model.ledger.kin import find_step_number

    if thread["parent"] is not None:
        above = ThreadId(thread["parent"]["thread"])
        number = find_step_number(ledger, above, thread["parent"]["step"])
        yield "does", _place(above, number)
    for child in thread["children"]:
        yield "child", f"{child} {_state(ledger, ThreadId(child))}"


def _state(ledger: Ledger, thread: ThreadId) -> str:
    from uwfgit.errors import NotFoundError, UwfError
    from uwfgit.model.ledger.standing import is_running
    from uwfgit.model.thread.record import load_tip

    try:
        state = load_tip(ledger.store, thread).state
    except NotFoundError:
        return "not here"
    except UwfError:
        return "corrupt"
    status = "running" if is_running(ledger.store, thread) else state.status
    return f"{shown(state.workflow_name)}, {status}"


def kin_lines(ledger: Ledger, record: Record) -> Iterator[str]:
    """Yield where the history of a thread goes on above and below, a line each."""
    from uwfgit.model.ledger.kin import find_parent_step

    above = find_parent_step(ledger, record)
    if above is not None:
        yield f"it does {_place(*above)}"
    for step in record.steps():
        if step.child is not None:
            way = f"uwf thread log {step.child.thread}"
            yield f"step {step.number} was done by a thread: {way}"
