"""An adapter out of one function: asked, corrected, stored, reported."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import to_builtins

from uwfgit.agents.base import Agent, AgentReply, AgentRequest, Failure, ReplyCount
from uwfgit.agents.children.complaints import one_line
from uwfgit.agents.children.process import TimeLimits, run_process
from uwfgit.engine.ask.ask import Asking, Interrupted, Talk, talk_to
from uwfgit.engine.ask.extract import Extraction
from uwfgit.engine.ask.live import detail_payload
from uwfgit.errors import UsageError, UwfError
from uwfgit.ids import Hash
from uwfgit.kit.context import AgentContext, Call, read_call
from uwfgit.store.canonical import Json
from uwfgit.store.local import AgentSession, Local

Run: TypeAlias = Callable[[AgentContext], "str | AgentReply"]
"""Does the work; a text is the answer, a reply says more of how it came about."""
Main: TypeAlias = Callable[..., int]

CORRECTIONS: Final = 2
_PUT_SECONDS: Final = 60.0
_SHOWN_CHARS: Final = 500
_FAILED: Final = 1
_USAGE: Final = 2


def create_agent(name: str, run: Run) -> Main:
    """Return the main function of an adapter that ``run`` does the work of.

    It reads the step it is called for, checks the answer against the role's schema
    and has it corrected, stores the step's node and prints its hash. What ``run``
    raises is a failed attempt that says so. It takes the command line's words, by
    default the program's own, and gives the exit code.

    Args:
        name: The agent's name in steps and sessions.
        run: Does one call; called again, with what to correct as the prompt, when
            an answer does not fit.
    """
    return make_main(lambda _: _Function(label=name, run_function=run))


def make_main(make: Callable[[Mapping[str, str]], Agent]) -> Main:
    """Return the main function of an adapter around an agent of any kind."""

    def main(words: Sequence[str] | None = None) -> int:
        given = tuple(sys.argv[1:] if words is None else words)
        try:
            sys.stdout.write(f"{_serve(make, given[-2:], os.environ)}\n")
        except UsageError as exc:
            _complain(exc)
            return _USAGE
        except UwfError as exc:
            _complain(exc)
            return _FAILED
        return 0

    return main


def _complain(exc: UwfError) -> None:
    hint = f"\nhint: {exc.hint}" if exc.hint else ""
    sys.stderr.write(f"error: {exc.message}{hint}\n")


def _serve(
    make: Callable[[Mapping[str, str]], Agent],
    words: tuple[str, ...],
    environment: Mapping[str, str],
) -> Hash:
    call = read_call(words, environment)
    agent = make(environment)
    with Local(call.record.store) as local:
        key = (call.context.thread, call.context.role, f"adapter {agent.label}")
        known = local.find_session(*key)
        session = known.id if known is not None else None
        call = replace(call, context=replace(call.context, session_id=session))
        started = time.time_ns() // 1_000_000
        talk = _talk(agent, call)
        if talk.last.session_id is not None:
            local.set_session(*key, AgentSession(id=talk.last.session_id))
    return _store(call, agent, talk, started)


def _talk(agent: Agent, call: Call) -> Talk:
    context = call.context
    if isinstance(agent, _Function):
        agent.context = context
    role = context.role_definition
    request = AgentRequest(
        thread=context.thread,
        role=context.role,
        number=len(context.steps) + 1,
        prompt=context.prompt,
        edge_prompt=context.edge_prompt,
        schema=role.schema,
        cwd=context.cwd,
        environment=context.environment,
        session_id=context.session_id,
        count_replies=lambda: ReplyCount(
            of_role=sum(step.role == context.role for step in context.steps),
            of_all=len(context.steps),
        ),
        # uwf itself watches over an adapter.
        idle_seconds=float("1e9"),
        now_ms=lambda: time.time_ns() // 1_000_000,
    )
    asking = Asking(
        role=role,
        listed=call.is_listed,
        corrections=CORRECTIONS,
        # Which of them are links is for the engine to say.
        is_link=lambda _: True,
        retell=lambda: context.prompt,
    )
    return talk_to(agent, request, asking)


@dataclass(kw_only=True)
class _Function:
    """A function as an agent."""

    label: str
    run_function: Run
    kind: str = field(default="adapter", init=False)
    has_sessions: bool = field(default=True, init=False)
    context: AgentContext = field(init=False)

    def run(self, request: AgentRequest) -> AgentReply:
        context = replace(
            self.context,
            prompt=request.prompt,
            session_id=request.session_id,
            correction=request.correction,
        )
        try:
            found = self.run_function(context)
        except UwfError as exc:
            return _failed(exc.message)
        except Exception as exc:  # noqa: BLE001 - the author's function; told as its failure
            return _failed(f"{type(exc).__name__}: {exc}")
        return AgentReply(text=found) if isinstance(found, str) else found


def _failed(message: str) -> AgentReply:
    told = one_line(message, _SHOWN_CHARS)
    return AgentReply(text="", failure=Failure(phase="agent", message=told))


def _store(call: Call, agent: Agent, talk: Talk, started: int) -> Hash:
    """Store what came of a call, and return the hash to print."""
    outcome, environment = talk.outcome, call.context.environment
    if isinstance(outcome, Interrupted):
        return _put_error(environment, outcome.message, "interrupted")
    if isinstance(outcome, Failure):
        return _put_error(environment, outcome.message, outcome.phase)
    if not isinstance(outcome.found, Extraction):
        return outcome.found
    found = outcome.found
    kind = "suspend" if found.suspended else environment["UWF_OUTPUT_TYPE"]
    output = _put(environment, kind, found.output)
    detail = _put(
        environment,
        "detail",
        detail_payload(agent.kind, talk.prompt, talk.last, talk.turns),
    )
    step: dict[str, Json] = {
        "start": environment["UWF_START"],
        "prev": environment.get("UWF_PREV") or None,
        "role": call.context.role,
        "output": output,
        "body": found.body,
        "detail": detail,
        "agent": agent.label,
        "edgePrompt": call.context.edge_prompt,
        "cwd": str(call.context.cwd),
        "startedAtMs": started,
        "completedAtMs": max(started, time.time_ns() // 1_000_000),
        "usage": to_builtins(talk.usage),
    }
    return _put(environment, "step", step)


def _put_error(environment: Mapping[str, str], message: str, phase: str) -> Hash:
    output = {"$status": "error", "error": message, "phase": phase}
    return _put(environment, "error", output)


def _put(environment: Mapping[str, str], kind: str, value: Mapping[str, Json]) -> Hash:
    """Store a node through the program, which notes it for this run."""
    result = run_process(
        ("uwf", "cas", "put", kind, "-"),
        prompt=json.dumps(value),
        cwd=Path(environment["UWF_CWD"]),
        environment=environment,
        limits=TimeLimits(idle_seconds=_PUT_SECONDS, wall_seconds=_PUT_SECONDS),
    )
    if result.failure is not None:
        said = one_line(result.stderr_tail, _SHOWN_CHARS) or result.failure.message
        raise UwfError(f"cannot store a node of type {kind}: {said}")
    return Hash(result.stdout.strip())
