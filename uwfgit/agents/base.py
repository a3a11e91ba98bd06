"""What the engine and an agent say to each other; the only place for that contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

from uwfgit.ids import Hash, ThreadId
from uwfgit.model.thread.step import Usage, add_usage
from uwfgit.store.canonical import Json

__all__ = [
    "Agent",
    "AgentReply",
    "AgentRequest",
    "ChecksUp",
    "Failure",
    "NeedsProgram",
    "Opens",
    "Phase",
    "Remembers",
    "ReplyCount",
    "SessionFiles",
    "SessionFilesError",
    "TellsCost",
    "ToolCall",
    "Turn",
    "Usage",
    "WorkflowAgent",
    "add_usage",
]

Phase = Literal["agent", "output", "limit", "budget", "size", "child", "interrupted"]
"""What failed: the ``phase`` of an error output."""


class ToolCall(Struct, frozen=True, kw_only=True):
    """A tool an agent used in a turn; ``result`` is ``None`` when none was seen."""

    name: str
    arguments: Json
    result: str | None = None


class Turn(Struct, frozen=True, kw_only=True):
    """One message inside an agent's own session."""

    index: int
    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] | None = None
    reasoning: str | None = None
    at_ms: int


class ReplyCount(Struct, frozen=True, kw_only=True):
    """Replies a thread's record already holds: of the asked role, and of all."""

    of_role: int
    of_all: int


class AgentRequest(Struct, frozen=True, kw_only=True):
    """One call of an agent.

    ``environment`` is the child's whole environment. ``correction`` is 0 for the
    first call of a step and counts up with each correction of its reply.
    ``session_id`` is the session to go on with, and ``session_total`` what that had
    cost before, as the agent counts it.
    ``count_replies`` is asked only by kinds that need it, since it reads the thread.
    ``schema`` is the role's, for kinds that offer it to a model; the prompt words it.
    ``on_turn`` is told each turn as it comes, by kinds that know them before they
    end: turns of one index are parts of one, each cut where no secret goes on.
    ``on_usage`` is told what the run has cost so far, by kinds that know.
    """

    thread: ThreadId
    role: str
    number: int
    prompt: str
    edge_prompt: str
    schema: Json = None
    cwd: Path
    environment: Mapping[str, str]
    correction: int = 0
    session_id: str | None = None
    session_total: Usage | None = None
    count_replies: Callable[[], ReplyCount]
    idle_seconds: float
    wall_seconds: float | None = None
    now_ms: Callable[[], int]
    on_turn: Callable[[Turn], None] | None = None
    on_usage: Callable[[Usage], None] | None = None


class Failure(Struct, frozen=True, kw_only=True):
    """Why a run gave no usable reply, in one line.

    ``retry_at_ms`` is when a vendor's limit ends, if it said so.
    """

    phase: Phase
    message: str
    retry_at_ms: int | None = None
    """When a limit that the agent met is over."""


class AgentReply(Struct, frozen=True, kw_only=True):
    """What an agent said, and how it ended.

    With a ``failure`` the text is all that was said until then. ``node`` is the
    hash an adapter printed; other kinds leave it ``None``. ``usage`` is this run's
    alone; ``session_total`` is the whole session's, where the agent counts that.
    ``is_session_refused`` says that the session asked for was not gone on with and
    nothing was done: a fresh one can be asked instead.
    """

    text: str
    turns: tuple[Turn, ...] = ()
    usage: Usage | None = None
    agent_version: str | None = None
    session_id: str | None = None
    session_total: Usage | None = None
    is_session_refused: bool = False
    model: str | None = None
    exit_code: int | None = None
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None
    node: Hash | None = None


class SessionFilesError(Exception):
    """A session's files cannot be kept, or not be put back; no failure of a step."""


class SessionFiles(Protocol):
    """Where a kind of agent keeps its sessions on this machine.

    Both methods take the folder of the step and the agent's environment.
    """

    def read(
        self, session: str, *, cwd: Path, environment: Mapping[str, str]
    ) -> Mapping[str, bytes]:
        """Read a session's files by name, its own first; empty when it is not here.

        Raises:
            SessionFilesError: They cannot be kept; says why.
        """

    def write(
        self,
        session: str,
        files: Mapping[str, bytes],
        *,
        renew: bool,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> str:
        """Put a session's files where the agent looks for them.

        A file that is there with other bytes is left alone: the session is then
        given a new id, as with ``renew``.

        Returns:
            The id under which the agent can go on.

        Raises:
            SessionFilesError: They cannot be put there; says why.
        """


@runtime_checkable
class Remembers(Protocol):
    """An agent whose sessions are files that can be kept and restored."""

    @property
    def session_files(self) -> SessionFiles | None:
        """Where they are; ``None`` for a kind that keeps none."""


class WorkflowAgent(Struct, frozen=True, kw_only=True):
    """Stands for a workflow that does a role; the engine runs it by itself."""

    label: str
    workflow: str
    kind: str = "workflow"
    has_sessions: bool = False
    tells_cost: bool = True

    def run(self, request: AgentRequest) -> AgentReply:
        """Refuse: a workflow is no agent that can be asked a question."""
        message = f"workflow '{self.workflow}' runs as a thread; it cannot be asked"
        failure = Failure(phase="child", message=f"{message} ({request.role})")
        return AgentReply(text="", failure=failure)


@runtime_checkable
class ChecksUp(Protocol):
    """An agent that can say, before it is needed, why it cannot be run."""

    def check_up(self, environment: Mapping[str, str], *, cwd: Path) -> str | None:
        """Say why it cannot be run, and how to fix it, in one line."""


@runtime_checkable
class NeedsProgram(Protocol):
    """An agent that is a program on this machine."""

    def find_missing(self, environment: Mapping[str, str], *, cwd: Path) -> str | None:
        """Say why it cannot be started, and how to fix it; ``None`` when it can."""


@runtime_checkable
class TellsCost(Protocol):
    """An agent that knows whether its replies say what they cost."""

    @property
    def tells_cost(self) -> bool:
        """Whether it does, or costs nothing itself."""


@runtime_checkable
class Opens(Protocol):
    """An agent whose sessions a person can go on with at a terminal."""

    def open_command(self, session: str | None) -> tuple[str, ...]:
        """Return the command of its own interactive session."""


class Agent(Protocol):
    """Who does the work of a role.

    ``label`` names the agent in the record: the alias, else the kind.
    """

    @property
    def kind(self) -> str:
        """The kind's name in the registry."""

    @property
    def label(self) -> str:
        """The name in commits and steps: ``[A-Za-z0-9._-]`` only."""

    @property
    def has_sessions(self) -> bool:
        """Whether a correction can go on in the session of the call before."""

    def run(self, request: AgentRequest) -> AgentReply:
        """Do one call and give what came of it; a failure is a value, not raised."""
