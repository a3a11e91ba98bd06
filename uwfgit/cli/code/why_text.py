"""Origins of lines as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from uwfgit.cli.frame.screen import shown
from uwfgit.model.wording import count_of, format_time

if TYPE_CHECKING:
    from uwfgit.code.blame.porcelain import Commit
    from uwfgit.code.blame.why import Origin

_SHORT: Final = 5
_OID: Final = 8
_LABEL: Final = 30
_MS: Final = 1000


def why_text(found: Sequence[tuple[str, tuple[Origin, ...]]]) -> str:
    """Write which step wrote each line, lines of one origin together."""
    parts = []
    for path, origins in found:
        lines = [shown(path)] if len(found) > 1 else []
        # Lines that follow each other and have one answer share it.
        for _, run in groupby(
            enumerate(origins),
            lambda at: (
                at[1].number - at[0],
                at[1].steps,
                at[1].commit,
                at[1].shared,
                at[1].not_asked,
            ),
        ):
            group = [each for _, each in run]
            first, last = group[0].number, group[-1].number
            place = str(first) if first == last else f"{first}-{last}"
            lines += [
                f"{place:<9} {line}" if number == 0 else f"{'':<9} {line}"
                for number, line in enumerate(_tell(group[0]))
            ]
        parts.append("\n".join(lines) if lines else "no lines")
    return "\n\n".join(parts)


def _tell(origin: Origin) -> Iterator[str]:
    answers = [
        f"step {step.number} of {step.thread}: {step.role} by {step.agent}, "
        f"{step.status or '-'}, {format_time(step.completed_at * _MS)}"
        for step in origin.steps
    ]
    answers += [
        f"thread {thread}, at work in the same folder" for thread in origin.shared
    ]
    if origin.commit is not None:
        answers.append(_name_commit(origin.commit, alone=not answers))
    told = " or ".join(answers)
    if origin.not_asked:
        told += f"; {count_of(origin.not_asked, 'thread')} not asked (--all asks)"
    yield shown(told)
    for step in origin.steps:
        yield shown(f"asked: {_first_line(step.prompt)}")
        if step.note:
            yield shown(f"note:  {_first_line(step.note)}")
        yield f"more:  uwf step show {step.name}"


def _name_commit(commit: Commit, *, alone: bool) -> str:
    if commit.is_uncommitted:
        return "not committed, and of no known step" if alone else "a person since"
    when = format_time(commit.authored_at * _MS)
    who = f"{commit.author} <{commit.mail}>"
    return f"commit {commit.oid[:_OID]} {who} {when}: {commit.summary}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def blame_text(origins: tuple[Origin, ...]) -> str:
    """Write a file with the step, or the commit, before each line."""
    digits = len(str(len(origins)))
    lines = []
    for each in origins:
        label = shown(_label(each))[:_LABEL]
        text = shown(each.text.decode("utf-8", "replace"))
        lines.append(f"{label:<{_LABEL}} {each.number:>{digits}}) {text}")
    return "\n".join(lines) + "\n"


def _label(origin: Origin) -> str:
    names = [
        f"{step.thread[-_SHORT:]}:{step.number} {step.role}" for step in origin.steps
    ]
    names += [f"thread {thread[-_SHORT:]}" for thread in origin.shared]
    commit = origin.commit
    if commit is not None:
        is_open = commit.is_uncommitted
        names.append(
            "not committed" if is_open else f"{commit.oid[:_OID]} {commit.author}"
        )
    if origin.not_asked:
        names.append("not asked")
    return " or ".join(names)
