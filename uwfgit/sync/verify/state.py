"""The ``thread.json`` and the trailers that an event must leave (pure).

The design's table of events as functions of the state before, the commit and
what the event added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from uwfgit.ids import Hash
from uwfgit.model.thread.state import (
    ThreadState,
    decode_state,
    state_payload,
)
from uwfgit.model.thread.step import Step

_CANCEL: Final = "cancel:"


def may_give_reason(subject: str, quote: str) -> bool:
    """Tell whether some reason gives a cancel this subject and this quote.

    Either may hold less than the other of a long one, and a blank or a control
    character comes out differently in each, so they are compared without.
    """
    told, given = ("".join(text.split()) for text in (subject, quote))
    if not given:
        # A reason of nothing but control characters leaves the colon.
        return subject in {"cancel", _CANCEL}
    given = _CANCEL + given
    told = told.removesuffix("…")
    return subject.startswith(_CANCEL) and (
        given.startswith(told) or told.startswith(given)
    )


def find_differences(
    data: bytes, wanted: ThreadState
) -> Iterator[tuple[str, object, object]]:
    """Give the fields of a ``thread.json`` that are not what they must be.

    Raises:
        CorruptError: The bytes are those of no state.
    """
    found = state_payload(decode_state(data))
    for key, value in state_payload(wanted).items():
        if found[key] != value:
            yield key, found[key], value


def pending_after(
    before: Mapping[str, tuple[Hash, ...]], step: Step, *, is_attempt: bool
) -> dict[str, tuple[Hash, ...]]:
    """Give the attempts that the next good step of each role must list."""
    if is_attempt:
        return {**before, step.role: (*before.get(step.role, ()), step.hash)}
    return {role: tries for role, tries in before.items() if role != step.role}
