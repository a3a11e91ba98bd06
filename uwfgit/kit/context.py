"""What an adapter is told: read from its environment and from the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from uwfgit.engine.ask.prompt import output_format
from uwfgit.errors import NotFoundError, UsageError
from uwfgit.ids import ThreadId, is_thread_id
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.step import Start, Step
from uwfgit.model.workflow.workflow import Role, Workflow
from uwfgit.store.files import read_plain
from uwfgit.store.repository import open_store

_NEEDED: Final = (
    "UWF_STORE",
    "UWF_HOME",
    "UWF_THREAD",
    "UWF_ROLE",
    "UWF_STEP",
    "UWF_START",
    "UWF_OUTPUT_TYPE",
    "UWF_PROMPT_FILE",
    "UWF_CWD",
)
_MOST_PROMPT: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """All that an agent may want to know of the step it is asked for.

    Attributes:
        thread: The thread's id.
        role: The role to play, by name.
        role_definition: What the workflow says of it, with the answer's schema.
        workflow: The pinned workflow.
        start: What the thread was started with.
        steps: The steps so far, oldest first, with outputs and bodies.
        prompt: What to tell the agent: everything, or what is to be corrected.
        edge_prompt: What the workflow asks for in this step.
        output_format: How the answer must look; it stands in the prompt too.
        store: Where the store is.
        cwd: The folder to work in.
        environment: The variables the agent's programs should see.
        session_id: The session that was kept of this agent in this thread and role.
        correction: 0, or which correction of the answer this is.
    """

    thread: ThreadId
    role: str
    role_definition: Role
    workflow: Workflow
    start: Start
    steps: tuple[Step, ...]
    prompt: str
    edge_prompt: str
    output_format: str
    store: Path
    cwd: Path
    environment: Mapping[str, str] = field(repr=False)
    session_id: str | None = None
    correction: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An adapter's call, and the record it is about."""

    context: AgentContext
    record: Record
    is_listed: bool


def read_call(words: tuple[str, ...], environment: Mapping[str, str]) -> Call:
    """Read what uwf called an adapter for.

    Args:
        words: The last two words of the command line: thread and role.
        environment: The adapter's environment.

    Raises:
        UsageError: It was not called by uwf.
        UwfError: The store or the thread cannot be read.
    """
    missing = [name for name in _NEEDED if not environment.get(name)]
    if missing or len(words) != 2 or not is_thread_id(words[0]):  # noqa: PLR2004 - thread and role
        raise UsageError(
            "this is an agent, to be run by uwf",
            hint="uwf thread exec THREAD --agent adapter:COMMAND",
        )
    home, path = Path(environment["UWF_HOME"]), Path(environment["UWF_STORE"])
    store = open_store(path, home=home)
    record = open_record(store, ThreadId(words[0]), checked=False)
    role = record.workflow.roles.get(words[1])
    if role is None:
        raise NotFoundError("role", words[1])
    is_listed = isinstance(record.workflow.graph.get(words[1]), tuple)
    prompt = read_plain(Path(environment["UWF_PROMPT_FILE"]), most=_MOST_PROMPT)
    context = AgentContext(
        thread=ThreadId(words[0]),
        role=words[1],
        role_definition=role,
        workflow=record.workflow,
        start=record.start,
        steps=tuple(record.steps()),
        prompt=prompt.decode(),
        edge_prompt=environment.get("UWF_EDGE_PROMPT", ""),
        output_format=output_format(role.schema, listed=is_listed),
        store=path,
        cwd=Path(environment["UWF_CWD"]),
        environment=environment,
    )
    return Call(context=context, record=record, is_listed=is_listed)
