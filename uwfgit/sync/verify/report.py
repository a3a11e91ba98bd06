"""What verify says: problems and, per thread, a report (pure).

The only place for the shape of a report, and for how text of a thread that
nobody vouched for is shown inside a problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.errors import CorruptError, InvalidError, Problem, UwfError
from uwfgit.ids import Hash, Oid, ThreadId

MAX_PROBLEMS: Final = 100
"""Problems told of one commit, and of one thread; the first are the cause."""

_SHOWN_CHARS: Final = 80
_MESSAGE_CHARS: Final = 400


class VerifyProblem(Struct, frozen=True, kw_only=True):
    """One thing wrong with a thread, at a commit and, where there is one, a path."""

    commit: Oid | None
    path: str | None
    code: str
    message: str

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{self.commit or '-'}: {where}{self.message} [{self.code}]"


class Fact(Struct, frozen=True, kw_only=True):
    """What a commit counts for in the report."""

    event: str
    agent: str | None = None
    """The ``kind`` of the detail: what made the reply."""
    has_note: bool = False
    is_signed: bool = False
    child: ThreadId | None = None
    """The other thread that did the step."""
    is_child_here: bool = False
    """Whether that thread could be proven along."""


class ThreadReport(Struct, frozen=True, kw_only=True):
    """What verify found about one thread; it is consistent when ``ok``.

    The counts are of the commits that could be checked, inherited ones of a
    fork included; after a commit that cannot be read nothing is checked.
    """

    thread: str
    tip: Oid | None
    problems: tuple[VerifyProblem, ...] = ()
    commits: int = 0
    checked: int = 0
    events: Mapping[str, int] = field(default_factory=dict)
    agents: Mapping[str, int] = field(default_factory=dict)
    notes: int = 0
    signed: int = 0
    children: int = 0
    """How many other threads did steps and tries of it."""
    children_here: int = 0
    """How many of those could be proven along, with all below them."""
    steps: int = 0
    status: str | None = None
    workflow_name: str | None = None
    workflow_hash: Hash | None = None
    workflow_oid: Oid | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def attempts(self) -> int:
        """How many tries failed."""
        return self.events.get("attempt", 0)

    @property
    def pokes(self) -> int:
        """How many steps were asked for again."""
        return self.events.get("poke", 0)

    @property
    def resolves(self) -> int:
        """How many divergences were resolved."""
        return self.events.get("resolve", 0)


def count_facts(facts: Iterable[Fact]) -> dict[str, object]:
    """Count what commits stand for, as fields of a :class:`ThreadReport`."""
    seen = list(facts)
    children: dict[ThreadId, list[bool]] = {}
    for fact in seen:
        if fact.child is not None:
            children.setdefault(fact.child, []).append(fact.is_child_here)
    return {
        "checked": len(seen),
        "events": dict(Counter(fact.event for fact in seen)),
        "agents": dict(Counter(fact.agent for fact in seen if fact.agent)),
        "notes": sum(fact.has_note for fact in seen),
        "signed": sum(fact.is_signed for fact in seen),
        "children": len(children),
        # Of one that did several steps each has to be here.
        "children_here": sum(map(all, children.values())),
    }


class VerifyFindings(Struct, kw_only=True):
    """Collects the problems of one commit."""

    commit: Oid
    problems: list[VerifyProblem] = field(default_factory=list)

    def note(self, code: str, message: str, path: str | None = None) -> None:
        """Note a problem; checking goes on."""
        if len(self.problems) < MAX_PROBLEMS:
            problem = VerifyProblem(
                commit=self.commit,
                path=None if path is None else plain(path)[:_MESSAGE_CHARS],
                code=code,
                message=plain(message)[:_MESSAGE_CHARS],
            )
            self.problems.append(problem)

    def note_error(self, error: UwfError) -> None:
        """Note what made further checks of this commit impossible."""
        if isinstance(error, InvalidError):
            for problem in error.problems:
                self.note(problem.code, problem.message, problem.path)
        else:
            self.note(error.code, error.message)

    def expect(
        self, what: str, found: object, wanted: object, *, code: str, path: str = ""
    ) -> None:
        """Note when something is not what it must be."""
        if found != wanted:
            message = f"{what} is {shown(found)}, must be {shown(wanted)}"
            self.note(code, message, path or None)


def refusal(code: str, message: str, path: str | None = None) -> CorruptError:
    """Make the error that ends the checks of a commit."""
    return CorruptError([Problem(code=code, message=message, path=path)])


def shown(value: object) -> str:
    """Write a value of unknown origin in a short line of plain ASCII."""
    if isinstance(value, bytes):
        value = value.decode("ascii", "backslashreplace")
    text = repr(value) if isinstance(value, str) else str(value)
    text = plain(text)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def plain(text: str) -> str:
    """Write a text of unknown origin so that no terminal acts on it."""
    safe = text.encode("ascii", "backslashreplace").decode()
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in safe)


def plain_problem(commit: Oid | None, code: str, message: str) -> VerifyProblem:
    """Make a problem that has no path; ``message`` must be safe to show."""
    return VerifyProblem(commit=commit, path=None, code=code, message=message)


def refused_report(
    name: str, message: str, tip: Oid | None = None, *, code: str = "ref"
) -> ThreadReport:
    """Return the report of a thread of which nothing could be checked."""
    problems = (plain_problem(tip, code, message),)
    return ThreadReport(thread=plain(name), tip=tip, problems=problems)


def missing_children(report: ThreadReport) -> str | None:
    """Say how many of a thread's children are here; ``None`` when all are."""
    if report.children_here == report.children:
        return None
    return f"children {report.children_here} of {report.children} here"


def require_children(report: ThreadReport) -> ThreadReport:
    """Make it a problem when a child is not here, or one below that."""
    missing = missing_children(report)
    if missing is None:
        return report
    problem = plain_problem(report.tip, "child", missing)
    return replace(report, problems=(*report.problems, problem))
