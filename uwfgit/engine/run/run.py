"""A cycle before the agent is asked: role, folder, environment, what it may link."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.json import decode

from uwfgit.agents.base import (
    Agent,
    AgentRequest,
    NeedsProgram,
    ReplyCount,
    WorkflowAgent,
)
from uwfgit.code.snapshots.watch import Watch
from uwfgit.engine.ask.live import Recorder
from uwfgit.engine.decide.conditions import require_conditions
from uwfgit.engine.run.engine import Cycle, Engine, Ground
from uwfgit.engine.run.hold import prompt_path
from uwfgit.errors import (
    ConfigError,
    CorruptError,
    NotFoundError,
    RoutingFailedError,
    SizeError,
    StateError,
)
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.append import StepPlace
from uwfgit.model.ledger.commit import committer, require_recordable
from uwfgit.model.ledger.ledger import Ledger, find_linkable
from uwfgit.model.node import META_TYPE, Node, make_node
from uwfgit.model.thread.derive import find_hash_words
from uwfgit.model.thread.event import STEP_EVENTS, iter_events
from uwfgit.model.thread.links import LinkRule, can_link
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.step import Child, Step, Usage
from uwfgit.model.thread.tip import Tip, load_tip
from uwfgit.model.workflow.workflow import Role
from uwfgit.store.canonical import Json, encode_json
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.local import AgentSession
from uwfgit.store.refs import iter_first_parents

_VARIABLE_BYTES: Final = 100_000
MAX_ASKED_BYTES: Final = 3 * 1024 * 1024
"""As JSON, so that a StepNode has room for an answer beside it."""


class Run(Struct, frozen=True, kw_only=True):
    """A cycle with everything found out before the agent is asked."""

    engine: Engine
    record: Record
    thread: ThreadId
    cycle: Cycle
    role: Role
    listed: bool
    """Whether the role's graph node is a list."""
    agent: Agent
    is_budgeted: bool
    """Whether anything bounds what the thread may cost."""
    number: int
    nodes: str
    """The folder of this run's nodes."""
    prev: Hash | None
    replaced: Step | None
    cwd: Path
    output_type: Hash
    token: str
    prompt_file: Path
    """Where the assembled prompt stands while the agent runs."""
    recorder: Recorder
    started_at_ms: int = 0
    code_before: str | None = None
    watch: Watch | None = None
    """What looks after the code around it."""
    used: Usage | None = None
    """What the thread has used so far, as far as a budget asks for it."""
    session: AgentSession | None = None
    """The agent's own session, which it is asked to go on with."""
    remarks: tuple[str, ...] = ()
    """What to say on the step about what was found out before."""
    child: Child | None = None
    """The thread that did the step."""
    linked: Record | None = None
    """That thread, whose nodes the answer may link."""

    @classmethod
    def prepare(cls, engine: Engine, record: Record, cycle: Cycle) -> Run:
        """Find out what the cycle needs; nothing is written yet.

        Raises:
            StateError: The working directory is missing.
            SizeError: The thread has no room for another run of the step, what it
                would be asked is too long to be recorded, or no reader would accept
                who would record it now.
            RoutingFailedError: The workflow lacks the role.
            ConfigError: No agent is configured, or not rightly, or its program is
                not here; or the workflow has conditions, which cannot be evaluated
                here.
        """
        workflow, name = record.workflow, cycle.routed.role
        # Else the agent's work would end where nothing can say what follows.
        if workflow.has_lists:
            require_conditions(workflow)
        role = workflow.roles.get(name)
        if role is None:
            raise RoutingFailedError(f"workflow '{workflow.name}' has no role '{name}'")
        state = record.tip.state
        is_poke = cycle.event == "poke"
        replaced = record.step(state.head, state.steps) if is_poke else None
        # Before the agent is asked: what it says must find room, and somebody whom
        # every reader accepts must record it.
        committer(engine.ledger)
        place = StepPlace.of(record, name, replaces=is_poke)
        require_short(
            "the step's prompt with its note", [cycle.routed.prompt, cycle.note]
        )
        works_in = engine.ledger.local.find_folder(state.thread)
        cwd = _find_cwd(record, cycle, replaced, folder=works_in)
        if role.workflow is not None:
            label = role.workflow
            agent: Agent = WorkflowAgent(label=label, workflow=label)
        else:
            agent = engine.choose(cycle.agent, workflow.name, name)
            require_program(agent, engine.environment, cwd)
        limits = engine.settings.limits
        bounds = (limits.max_cost_usd, limits.max_tokens, limits.max_turns)
        token = f"{state.thread}:{place.number}:{engine.ledger.random(8).hex()}"
        return cls(
            engine=engine,
            record=record,
            thread=state.thread,
            cycle=cycle,
            role=role,
            listed=isinstance(workflow.graph.get(name), tuple),
            agent=agent,
            is_budgeted=any(most is not None for most in (*bounds, limits.max_minutes)),
            number=place.number,
            nodes=place.nodes,
            prev=place.prev,
            replaced=replaced,
            cwd=cwd,
            output_type=make_node(META_TYPE, dict(role.schema)).hash,
            token=token,
            prompt_file=prompt_path(engine.ledger.store, token),
            recorder=Recorder(
                masker=engine.masker,
                tool_results=engine.settings.tool_results,
                schema=role.schema,
                masked=set(cycle.masked),
            ),
        )

    def may_remember(self, memory: Oid) -> bool:
        """Whether the agent may be given what an agent remembered, by its commit.

        Nothing proves the memory of others: it is taken when the user says so, or
        knows who signed it.
        """
        return (
            self.cycle.ground is None
            or self.engine.recall == "any"
            or self.engine.ledger.local.is_made_here(memory)
            or self.engine.is_trusted(memory)
        )

    def rule(self) -> LinkRule:
        """What the answer may link, as far as the agent has put nodes by now."""
        ledger, start = self.engine.ledger, self.record.start
        named = {*find_hash_words([self.cycle.note or ""])}
        asked = find_hash_words([start.prompt])
        near = [] if self.linked is None else [self.linked]
        # A stranger's task could name, and so take along, nodes of private threads;
        # so could agents' texts, of which the task of a child is made.
        if start.parent is not None:
            # It may not be here.
            with suppress(NotFoundError):
                if asked:
                    tip = load_tip(ledger.store, start.parent.thread)
                    near.append(open_record(ledger.store, tip))
                    named |= {word for word in asked if word in near[-1].places}
        elif asked and _began_here(ledger, self.record.tip):
            named |= {*asked}
        theirs = frozenset(self.linked.places if self.linked is not None else ())

        def find(node: Hash) -> Node | None:
            there = next((each for each in near if node in each.places), None)
            return there.node(node) if there else find_linkable(ledger, node)

        return LinkRule(
            put=frozenset(ledger.local.puts_of(self.token)) | theirs,
            named=frozenset(named),
            find=find,
        )

    def is_link(self, text: str) -> bool:
        """Whether a string may link a node."""
        try:
            return can_link(self.record, self.rule(), Hash(text))
        except CorruptError:
            # Recording the answer says it again, with both contents named.
            return True

    def make_request(self, prompt: str) -> AgentRequest:
        """Make a call with a prompt, in the session that the run goes on with."""
        limits, routed = self.engine.settings.limits, self.cycle.routed
        total = self.session.total if self.session else None
        # Linux takes at most 128 KiB in one variable, and no NUL; the prompt's file
        # has it whole.
        edge = routed.prompt.replace("\0", "").encode()[:_VARIABLE_BYTES]
        environment = {
            **self.engine.environment,
            "UWF_STORE": str(self.engine.ledger.store.path),
            "UWF_HOME": str(self.engine.home),
            "UWF_THREAD": self.thread,
            "UWF_ROLE": routed.role,
            "UWF_STEP": self.token,
            "UWF_EDGE_PROMPT": edge.decode(errors="ignore"),
            "UWF_PROMPT_FILE": str(self.prompt_file),
            "UWF_START": self.record.tip.state.start,
            "UWF_PREV": self.prev or "",
            "UWF_OUTPUT_TYPE": self.output_type,
            "UWF_CWD": str(self.cwd),
            "UWF_AGENT": self.agent.label,
            "UWF_STARTED_AT_MS": str(self.started_at_ms),
        }
        return AgentRequest(
            thread=self.thread,
            role=routed.role,
            number=self.number,
            prompt=prompt,
            edge_prompt=routed.prompt,
            schema=self.role.schema,
            cwd=self.cwd,
            environment=environment,
            count_replies=self.count_replies,
            session_id=self.session.id if self.session else None,
            session_total=decode(total, type=Usage) if total else None,
            idle_seconds=limits.idle_seconds,
            wall_seconds=limits.wall_seconds,
            now_ms=self.engine.ledger.now_ms,
        )

    def count_replies(self) -> ReplyCount:
        """Count the replies the record holds: steps, replaced ones, answers tried."""
        replies = self.record.replies
        if replies is None:
            replies = []
            for event in iter_events(self.record.store, self.record.tip.commit):
                if event.role is None or event.node is None:
                    continue
                is_step, is_try = event.name in STEP_EVENTS, event.name == "attempt"
                # A try that failed before the agent said a word is no reply.
                if is_step or (is_try and self.record.run(event.node).body):
                    replies.append(event.role)
            self.record.replies = replies
        role = self.cycle.routed.role
        return ReplyCount(of_role=replies.count(role), of_all=len(replies))


def require_program(agent: Agent, environment: Mapping[str, str], cwd: Path) -> None:
    """Refuse an agent that cannot be started: its try would say nothing of the task.

    Raises:
        ConfigError: Its program is not here; says how to fix that.
    """
    if not isinstance(agent, NeedsProgram):
        return
    missing = agent.find_missing(environment, cwd=cwd)
    if missing is not None:
        raise ConfigError(
            f"agent '{agent.label}': {missing}",
            hint="to run it by another: `--agent NAME` (`uwf doctor` lists yours)",
        )


def require_short(what: str, asked: Json, *, most: int = MAX_ASKED_BYTES) -> None:
    """Refuse what would be too long to be recorded, as JSON.

    Raises:
        SizeError: It is.
    """
    size = len(encode_json(asked))
    if size > most:
        raise SizeError(what, found=size, limit=most)


def _began_here(ledger: Ledger, tip: Tip) -> bool:
    """Whether the task of a thread is this machine's user's text."""
    if not ledger.local.is_known_foreign(tip.thread):
        return True
    first = tip.commit
    for oid in iter_first_parents(ledger.store, tip.commit):
        if oid != GENESIS_OID:
            first = oid
    return ledger.local.is_made_here(first)


def _find_cwd(
    record: Record, cycle: Cycle, replaced: Step | None, *, folder: Path | None
) -> Path:
    """Choose a step's folder: by flag, as the old step's, by the edge, the thread's.

    Args:
        folder: Where the thread works on this machine, if not where it was started.

    Raises:
        StateError: The chosen one does not exist.
        InvalidError: It has a name that cannot be recorded.
    """
    base = folder or Path(record.start.cwd)
    if cycle.ground is not None:
        chosen, why = _find_ground(cycle, cycle.ground), ""
    elif cycle.cwd is not None:
        chosen, why = cycle.cwd, "(--cwd) "
    elif not folder and replaced is not None and os.path.isdir(replaced.cwd):  # noqa: PTH112
        chosen, why = Path(replaced.cwd), "(of the replaced step) "
    elif cycle.routed.location is not None:
        chosen, why = base / _trim(cycle.routed.location), "(named by the workflow) "
    else:
        chosen, why = base, "(of the thread) "
    # pathlib's own raises where a name is too long, as a workflow may render it.
    if not os.path.isdir(chosen):  # noqa: PTH112
        location = _trim(cycle.routed.location or "")
        hint = "choose one with --cwd DIR"
        if cycle.cwd is None and location.startswith("~"):
            hint = f"'~' is a shell's: write the whole path; or {hint}"
        raise StateError(f"working directory '{chosen}' {why}does not exist", hint=hint)
    require_recordable(chosen)
    return chosen


def _trim(location: str) -> str:
    """Return a location without the line ends that a block of YAML leaves on it."""
    return location.strip("\r\n")


def _find_ground(cycle: Cycle, ground: Ground) -> Path:
    """Choose the folder of a foreign thread's step; no recorded one is used.

    Raises:
        StateError: The workflow names one that is outside.
    """
    chosen = cycle.cwd or ground.cwd
    if cycle.cwd is None and cycle.routed.location is not None:
        # No path holds a NUL, and realpath gives up at one.
        location = _trim(cycle.routed.location).replace("\0", "\ufffd")
        chosen = Path(os.path.realpath(ground.cwd / location))
        if not any(chosen.is_relative_to(root) for root in ground.roots):
            raise StateError(
                f"the workflow wants to work in '{chosen}', outside of "
                f"{', '.join(map(str, ground.roots))}",
                hint="choose a folder with --cwd DIR, or list it in trustedRoots",
            )
    return chosen
