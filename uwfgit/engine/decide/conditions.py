"""Conditions of list nodes: the only place that evaluates JSONata.

What an expression sees, and what counts as true, is part of the routing rules:
verify evaluates recorded threads again. So the answer may depend on nothing
but the recorded steps, and the bounds count evaluations instead of seconds. What
they do not see, such as a pattern that never ends, meets the limits of time and
memory that hold for all work on what others wrote.
"""

from __future__ import annotations

import contextlib
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from uwfgit.constants import INPUTS, MAX_BLOB_BYTES, STATUS
from uwfgit.errors import ConfigError, OverrunError
from uwfgit.model.bounded import run_bounded
from uwfgit.model.workflow.workflow import Workflow
from uwfgit.store.canonical import Json

if TYPE_CHECKING:
    # Checking a file imports this module, and may not cost the git library.
    from uwfgit.model.thread.step import Start, Step

MAX_EVALUATIONS: Final = 200_000
MAX_DEPTH: Final = 500
MAX_CHARS: Final = MAX_BLOB_BYTES
"""Length of a text that an expression makes; doubling it makes all memory too small."""

_PACKAGE: Final = "jsonata"
_STACK: Final = 10_000
"""Frames of Python that ``MAX_DEPTH`` levels of an expression may need."""
_REFUSED: Final = ("eval", "millis", "now", "random", "shuffle")
_PLAIN_STATUS: Final = "status"
_WHOLE: Final = frozenset({"output", "meta"})
_SHOWN: Final = 200


class Fault(Struct, frozen=True, kw_only=True):
    """Why a condition could not be evaluated."""

    message: str


Evaluate: TypeAlias = Callable[[str], bool | Fault]
"""Tells whether an expression holds for the thread as it is."""


class _Output(dict[str, Json]):
    """What a role said: its fields, and itself as its own ``output`` and ``meta``."""

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return a field; for those two names the whole, unless it has such a field."""
        return self if key in _WHOLE and key not in self else super().get(key, default)


class _RefusedError(Exception):
    """An expression does what would make routing unprovable or unbounded."""


class _Meter(Struct):
    """Counts what one evaluation has used up."""

    evaluations: int = 0
    depth: int = 0

    def enter(self, *_: object) -> None:
        self.evaluations += 1
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _RefusedError(f"it goes deeper than {MAX_DEPTH} levels")
        if self.evaluations > MAX_EVALUATIONS:
            raise _RefusedError(f"it takes more than {MAX_EVALUATIONS:,} evaluations")

    def leave(self, *arguments: object) -> None:
        self.depth -= 1
        result = arguments[-1]
        if isinstance(result, str) and len(result) > MAX_CHARS:
            raise _RefusedError(f"it makes a text longer than {MAX_CHARS:,} characters")


def is_installed() -> bool:
    """Whether conditions can be evaluated here."""
    return find_spec(_PACKAGE) is not None


def missing_extra() -> ConfigError:
    """Make the error for conditions that cannot be evaluated here."""
    return ConfigError(
        "the workflow has conditions (when:), which need JSONata; "
        "run: pip install 'uwfgit[jsonata]'"
    )


def require_conditions(workflow: Workflow) -> None:
    """Refuse a workflow whose conditions cannot be evaluated here.

    Raises:
        ConfigError: It has conditions, and the extra is not installed.
    """
    for edges in workflow.graph.values():
        targets = edges if isinstance(edges, tuple) else ()
        if any(target.when is not None for target in targets) and not is_installed():
            raise missing_extra()


def find_syntax_error(expression: str) -> str | None:
    """Say what is wrong with an expression; ``None`` when it parses.

    Also ``None`` without the extra, since there is no telling then.
    """
    if not is_installed():
        return None

    def parse() -> None:
        with _room():
            _jsonata()(expression)

    try:
        run_bounded(parse, "it")
    except (_error(), RecursionError, OverrunError) as exc:
        return _said(exc)
    return None


def make_evaluator(
    newest_first: Iterable[Step],
    *,
    task: str,
    thread: str,
    start: Start | None = None,
    inputs: Mapping[str, Json] | None = None,
) -> Evaluate:
    """Return what tells whether an expression holds after some steps.

    Args:
        newest_first: The steps, the one that is routed from first; read only
            when an expression is evaluated.
        task: The thread's prompt.
        thread: The thread of the event.
        start: The thread's StartNode; without it, depth is 0 and the
            workflow's hash empty.
        inputs: What the run is given.

    The result raises ConfigError where the extra is not installed, and
    OverrunError where an expression takes too much time or memory.
    """

    @cache
    def context() -> Mapping[str, Json]:
        if not is_installed():
            raise missing_extra()
        steps = [_step(step) for step in newest_first][::-1]
        given = {} if inputs is None else {INPUTS: dict(inputs)}
        return {
            **given,
            "threadId": thread,
            "depth": start.depth if start else 0,
            "workflowHash": start.workflow if start else "",
            "start": {"prompt": task, "cwd": start.cwd if start else None},
            "steps": steps,
        }

    return lambda expression: evaluate(expression, context())


def _step(step: Step) -> dict[str, Json]:
    output = dict(step.output)
    if STATUS in output:
        # '$status' cannot be written in a path without back quotes.
        output.setdefault(_PLAIN_STATUS, output[STATUS])
    return {
        "role": step.role,
        "output": output,
        "meta": output,
        "detail": step.detail_hash,
        "agent": step.agent,
        "timestamp": step.completed_at_ms,
    }


def evaluate(expression: str, context: Mapping[str, Json]) -> bool | Fault:
    """Whether an expression holds over a context.

    Raises:
        ModuleNotFoundError: The extra is not installed.
        OverrunError: It takes too much time or memory. No answer, and no fault
            either: on another machine it may be evaluated.
    """
    shown = " ".join(expression.split())[:_SHOWN]
    return run_bounded(lambda: _evaluate(expression, context), f"condition '{shown}'")


def _evaluate(expression: str, context: Mapping[str, Json]) -> bool | Fault:
    steps = context["steps"]
    meter = _Meter()
    try:
        with _room():
            parsed = _jsonata()(expression)
            parsed.environment.set_evaluate_entry_callback(meter.enter)
            parsed.environment.set_evaluate_exit_callback(meter.leave)
            for name in _REFUSED:
                parsed.register_lambda(name, _refuse(name))
            parsed.register_lambda("first", lambda *role: _find(steps, *role))
            parsed.register_lambda("last", lambda *role: _find(steps[::-1], *role))
            return is_truthy(parsed.evaluate(context))
    except (_error(), _RefusedError, RecursionError, *_FAULTS) as exc:
        return Fault(message=_said(exc))


_FAULTS: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What the library lets through for an odd expression, all of it harmless."""


def is_truthy(value: Json) -> bool:
    """Whether a result counts as true: nothing, false, 0, NaN and "" do not."""
    if value is None or value is False or value == "":
        return False
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value != 0 and not math.isnan(value)
    return True


def _find(steps: Iterable[Mapping[str, Json]], role: Json = None, *_: Json) -> Json:
    said = (step["output"] for step in steps if step["role"] == role)
    return next(map(_Output, said), None)


def _refuse(name: str) -> Callable[..., Json]:
    def refuse(*_: Json) -> Json:
        raise _RefusedError(f"${name} is not allowed, routing must be provable")

    return refuse


def _said(exc: BaseException) -> str:
    if isinstance(exc, RecursionError):
        return "it is nested too deeply"
    text = " ".join(str(exc).split()) or type(exc).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@contextlib.contextmanager
def _room() -> Iterator[None]:
    """Give the library the stack it needs, and keep what it prints off stdout."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _STACK))
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.setrecursionlimit(before)


def _jsonata() -> Any:  # noqa: ANN401 - the library is optional
    before = sys.getrecursionlimit()
    try:
        return import_module(_PACKAGE).Jsonata
    finally:
        # Its import raises the limit of the whole process.
        sys.setrecursionlimit(before)


def _error() -> type[Exception]:
    found: type[Exception] = import_module(f"{_PACKAGE}.jexception").JException
    return found
