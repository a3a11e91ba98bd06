"""Which role comes next, and with what prompt; the only place that decides (pure)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from uwfgit.constants import NEW, RESUME, START, STATUS
from uwfgit.errors import ConfigError
from uwfgit.model.template.render import TemplateError, render
from uwfgit.model.workflow.workflow import Choice, Edges, Target
from uwfgit.store.canonical import Json

RESUME_PROMPT: Final = "Review the previous run and continue."
"""What ``$START``'s ``new`` role is told where a workflow lacks ``resume``."""

_TEMPLATE_CHARS: Final = 200

RoutingKind: TypeAlias = Literal["no-status", "no-node", "no-edge", "no-match", "blank"]


class Routed(Struct, frozen=True, kw_only=True):
    """Where a thread goes: the role, its rendered prompt and folder.

    ``missing`` names the variables that rendered empty, for a warning.
    """

    role: str
    prompt: str
    location: str | None
    missing: tuple[str, ...] = ()


class RoutingError(Struct, frozen=True, kw_only=True):
    """Why there is no next role; a value, since a thread records it."""

    kind: RoutingKind
    role: str
    status: str | None
    message: str

    @property
    def code(self) -> str:
        """The suspend message of a thread that stopped so; part of the format."""
        return f"routing: {self.kind} {self.role} {self.status or '-'}"


class Fault(Struct, frozen=True, kw_only=True):
    """Why a condition could not be evaluated."""

    message: str


Evaluate: TypeAlias = Callable[[str], bool | Fault]
"""Tells whether an expression holds for the thread as it is."""


def route(
    graph: Mapping[str, Edges],
    last_role: str,
    last_output: Mapping[str, Json],
    *,
    injected: Mapping[str, Json],
    evaluate: Evaluate | None = None,
) -> Routed | RoutingError:
    """Pick the edge for what a role reported, and render its prompt.

    A StartNode counts as role ``$START`` with ``$status`` ``new`` or
    ``resume``. ``$END`` is a target like any other.

    Args:
        graph: The workflow's graph.
        last_role: The role whose output decides.
        last_output: Its output; the templates' values.
        injected: Values of the engine, which win over fields of one name.
        evaluate: Evaluates conditions; asked only where a list has some.

    Raises:
        ConfigError: The role's edges have conditions and there is no
            ``evaluate``.
    """
    said = last_output.get(STATUS)
    status = said if isinstance(said, str) and said else None
    target = _find_target(graph, last_role, status, evaluate)
    if isinstance(target, RoutingError):
        return target
    values = {**last_output, **injected}
    try:
        prompt = render(target.prompt, values)
        location = render(target.location or "", values)
    except TemplateError as exc:
        # Checked when the workflow was read, so this is a rendering too large.
        return _refuse_prompt(
            target, last_role, status, f": {exc}: {_one_line(target.prompt)}"
        )
    if not prompt.text.strip():
        return _refuse_prompt(
            target, last_role, status, f" renders blank: '{_one_line(target.prompt)}'"
        )
    return Routed(
        role=target.role,
        prompt=prompt.text,
        location=location.text if location.text.strip() else None,
        missing=tuple(dict.fromkeys((*prompt.missing, *location.missing))),
    )


def _find_target(
    graph: Mapping[str, Edges],
    role: str,
    status: str | None,
    evaluate: Evaluate | None,
) -> Target | RoutingError:
    edges = graph.get(role)
    if isinstance(edges, tuple):
        return _choose(edges, role, status, evaluate)
    if status is None:
        return _refuse("no-status", role, status, f"role '{role}' gave no $status")
    if edges is None:
        return _refuse("no-node", role, status, f"role '{role}' has no edges")
    target, new = edges.get(status), edges.get(NEW)
    if target is None and (role, status) == (START, RESUME) and new is not None:
        return Target(role=new.role, prompt=RESUME_PROMPT, location=new.location)
    if target is None:
        known = ", ".join(f"'{name}'" for name in edges)
        message = f"role '{role}' has no edge for '{status}' (it has {known or 'none'})"
        return _refuse("no-edge", role, status, message)
    return target


def _choose(
    targets: tuple[Choice, ...],
    role: str,
    status: str | None,
    evaluate: Evaluate | None,
) -> Target | RoutingError:
    for target in targets:
        if target.when is None:
            return target
        if evaluate is None:
            raise missing_extra()
        holds = evaluate(target.when)
        if isinstance(holds, Fault):
            shown = _one_line(target.when)
            message = f"condition '{shown}' of role '{role}' fails: {holds.message}"
            return _refuse("no-match", role, status, message)
        if holds:
            return target
    tried = "; ".join(_one_line(target.when or "") for target in targets)
    message = f"role '{role}' has no edge that matches ({tried or 'it has none'})"
    return _refuse("no-match", role, status, message)


def missing_extra() -> ConfigError:
    """Make the error for conditions that cannot be evaluated here."""
    return ConfigError(
        "the workflow has conditions (when:), which need JSONata; "
        "run: pip install 'uwfgit[jsonata]'"
    )


def _one_line(expression: str) -> str:
    return " ".join(expression.split())[:_TEMPLATE_CHARS]


def _refuse_prompt(
    target: Target, role: str, status: str | None, why: str
) -> RoutingError:
    on = f" on '{status}'" if status is not None else ""
    where = f"the prompt of role '{role}'{on} to '{target.role}'"
    return _refuse("blank", role, status, f"{where}{why}")


def _refuse(
    kind: RoutingKind, role: str, status: str | None, message: str
) -> RoutingError:
    return RoutingError(kind=kind, role=role, status=status, message=message)
