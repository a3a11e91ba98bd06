"""A thread that is not recorded: the same moderator over answers given by hand (pure).

Nothing is written and no agent runs. Who answers is handed in, so that a file
of replies, a person or nobody at all can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from uwfgit.constants import END, ERROR_STATUS, STATUS
from uwfgit.engine.decide.moderator import (
    Routed,
    RoutingError,
    base_prompt,
    is_routing_error,
    make_router,
    outcome_of,
)
from uwfgit.errors import Problem
from uwfgit.ids import Hash
from uwfgit.model.thread.step import Code, Step
from uwfgit.model.wording import count_of
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.store.canonical import Json

THREAD: Final = "0" * 26
"""What ``{{_thread}}`` shows: the id no thread has."""
_NO_HASH: Final = Hash("0" * 13)

Status: TypeAlias = Literal["idle", "suspended", "end"]


class Asked(Struct, frozen=True, kw_only=True):
    """A role's turn; the counts are of replies so far, of the role and of all."""

    number: int
    role: str
    prompt: str
    schema: Mapping[str, Json]
    listed: bool
    of_role: int
    of_all: int


class Said(Struct, frozen=True, kw_only=True):
    """An answer that counts."""

    output: Mapping[str, Json]
    body: str = ""
    warnings: tuple[str, ...] = ()


class Refused(Struct, frozen=True, kw_only=True):
    """An answer that satisfies no form of the role's schema."""

    problems: tuple[Problem, ...]


class Silent(Struct, frozen=True, kw_only=True):
    """Nobody answers; the simulation stops there."""

    reason: str


SimulatedAnswer: TypeAlias = Said | Refused | Silent


class SimulatedStep(Struct, frozen=True, kw_only=True):
    """What a role would be asked, and what it reported.

    ``status`` is ``error`` for an answer that was refused, ``None`` where
    nobody answered and at ``$END``. ``missing`` names the variables that had
    no value; ``optional`` those that have none when fields are left out that
    may be. ``error`` is why there is no prompt.
    """

    number: int
    role: str
    prompt: str
    location: str | None = None
    missing: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    status: str | None = None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None
    walk: int = 1
    edge: tuple[str, str] | None = None


class Simulation(Struct, frozen=True, kw_only=True):
    """The steps, the status the thread would have, and why it went no further."""

    steps: tuple[SimulatedStep, ...]
    status: Status
    message: str | None = None


def _ignore(step: SimulatedStep) -> None:
    del step


def simulate(
    workflow: Workflow,
    *,
    task: str,
    answer: Callable[[Asked], SimulatedAnswer],
    max_steps: int,
    inputs: Mapping[str, Json] | None = None,
    on_prompt: Callable[[SimulatedStep], None] = _ignore,
    on_step: Callable[[SimulatedStep], None] = _ignore,
) -> Simulation:
    """Run a thread until its end, or until nobody answers.

    A role that asks for a person, or whose answer is refused, is asked again,
    as if somebody had resumed the thread.

    Args:
        workflow: The workflow.
        task: The thread's prompt.
        answer: Gives each role's answer.
        max_steps: After so many answers it stops.
        inputs: What the run is given.
        on_prompt: Told of each step before it is answered.
        on_step: Told of each step when it is.
    """
    run = _Run(workflow=workflow, task=task, inputs=inputs)
    for step in run.steps(answer, max_steps, on_prompt):
        run.done.append(step)
        on_step(step)
    return Simulation(steps=tuple(run.done), status=run.status, message=run.message)


class _Run(Struct, kw_only=True):
    workflow: Workflow
    task: str
    inputs: Mapping[str, Json] | None
    chain: list[Step] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    done: list[SimulatedStep] = field(default_factory=list)
    status: Status = "idle"
    message: str | None = None

    def steps(
        self,
        answer: Callable[[Asked], SimulatedAnswer],
        max_steps: int,
        on_prompt: Callable[[SimulatedStep], None],
    ) -> Iterator[SimulatedStep]:
        while len(self.replies) < max_steps:
            routed = base_prompt(
                self.workflow,
                reversed(self.chain),
                task=self.task,
                thread=THREAD,
                inputs=self.inputs,
            )
            if isinstance(routed, RoutingError):
                self.status, self.message = "suspended", routed.message
                return
            step = SimulatedStep(
                number=len(self.chain) + 1,
                role=routed.role,
                prompt=routed.prompt,
                location=routed.location,
                missing=routed.missing,
            )
            on_prompt(step)
            said = answer(self._ask(routed))
            yield _answered(step, said)
            if isinstance(said, Silent):
                self.message = said.reason
                return
            self.replies.append(routed.role)
            if isinstance(said, Said) and self._is_over(routed.role, said):
                if self.status == "end":
                    last = self._end()
                    on_prompt(last)
                    yield last
                return
        self.message = f"stopped after {count_of(max_steps, 'step')}"

    def _ask(self, routed: Routed) -> Asked:
        return Asked(
            number=len(self.chain) + 1,
            role=routed.role,
            prompt=routed.prompt,
            schema=self.workflow.roles[routed.role].schema,
            listed=isinstance(self.workflow.graph.get(routed.role), tuple),
            of_role=self.replies.count(routed.role),
            of_all=len(self.replies),
        )

    def _is_over(self, role: str, said: Said) -> bool:
        """Record an answer; tell whether the thread stops there for good."""
        self.chain.append(_step_of(len(self.chain) + 1, role, said))
        outcome = outcome_of(
            self.workflow,
            role,
            said.output,
            said.body,
            task=self.task,
            thread=THREAD,
            newest_first=reversed(self.chain),
            inputs=self.inputs,
        )
        if outcome.status == "end":
            self.status = "end"
            return True
        if is_routing_error(outcome.suspend_message):
            self.status, self.message = "suspended", outcome.suspend_message
            return True
        return False

    def _end(self) -> SimulatedStep:
        """Show what the edge to ``$END`` says."""
        last = self.chain[-1]
        follow = make_router(
            self.workflow,
            last.body,
            reversed(self.chain),
            task=self.task,
            thread=THREAD,
            inputs=self.inputs,
        )
        routed = follow(last.role, last.output)
        found = routed if isinstance(routed, Routed) else None
        return SimulatedStep(
            number=len(self.chain) + 1,
            role=END,
            prompt=found.prompt if found else "",
            missing=found.missing if found else (),
        )


def _answered(step: SimulatedStep, said: SimulatedAnswer) -> SimulatedStep:
    if isinstance(said, Refused):
        return replace(step, status=ERROR_STATUS, problems=said.problems)
    if isinstance(said, Silent):
        return step
    status = said.output.get(STATUS)
    return replace(
        step,
        status=status if isinstance(status, str) else None,
        warnings=said.warnings,
    )


def _step_of(number: int, role: str, said: Said) -> Step:
    """Make the step a thread would have recorded; only its answer is looked at."""
    return Step(
        number=number,
        hash=_NO_HASH,
        start=_NO_HASH,
        prev=None,
        role=role,
        output_hash=_NO_HASH,
        output=said.output,
        body=said.body,
        detail_hash=_NO_HASH,
        agent="",
        edge_prompt="",
        note=None,
        cwd="",
        started_at_ms=0,
        completed_at_ms=0,
        usage=None,
        previous_attempts=None,
        code=Code(before=None, after=None),
        extracted_by=None,
        warnings=(),
    )
