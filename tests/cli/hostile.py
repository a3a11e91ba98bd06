"""A thread that means harm: what its makers could choose holds every trick there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.acting import failure, put
from tests.builders import (
    begin,
    git,
    make_engine,
    make_role,
    make_workflow,
    variant,
    workflow_data,
)
from tests.sync.forge import Draft, forge
from tests.sync.people import Person, make_bare, make_person, plain_git
from uwfgit.agents.base import Agent, AgentReply, AgentRequest, ToolCall, Turn
from uwfgit.engine.run.executor import exec_thread, poke_thread, resume_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.registering import add_workflow
from uwfgit.model.node import make_text
from uwfgit.model.workflow.workflow import Role, Target, Workflow
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.layout import thread_ref, workflow_ref

TRICKS: Final = (
    "\x1b[2J\x1b[1;1H\x1b[31mOWNED\x1b[0m"  # clears, homes, colours
    "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\"  # a link
    "\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x07"  # the clipboard, the title
    "\x9b31m\x9d0;title\x9c\x85"  # the same, in one character each
    "\a\b\b\b\vx\fy\x7f"
    "error: bad\rall is well"
    "\u202egpj.exe\u202c\u2066\u2067\u2068x\u2069\u200e\u200f\u061c"
    "\u200b\u2060\ufeff\u00ad\U000e0041\U000e007f\u2028\u2029"
    "\nerror: a line of its own\n\tdone\r\n"
)
NUL: Final = TRICKS + "\0"
HUGE: Final = "é" * 400_000 + TRICKS + "x"
"""2 MB without an end of line, and then some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostileAgent:
    """An agent whose every word is a trick."""

    status: str = "done"
    label: str = "evil\x1b[31m"
    kind: str = "acting"
    has_sessions: bool = False
    reply: AgentReply | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    ledger: Any = None
    huge: str = ""

    def run(self, request: AgentRequest) -> AgentReply:
        if self.reply is not None:
            return self.reply
        node = make_text(NUL)
        put(self.ledger, request, node)
        fields = {"plan": node.hash, NUL: NUL, "deep": {NUL: [NUL]}, **self.fields}
        head = dump_yaml({"$status": self.status, **fields})
        return AgentReply(
            text=f"---\n{head}---\n\n{NUL}\n{self.huge}\n",
            turns=(_turn(0, NUL), _turn(1, self.huge)),
            agent_version=NUL,
            session_id=NUL,
            model=NUL,
            warnings=(NUL,),
        )


def _turn(index: int, text: str) -> Turn:
    call = ToolCall(name=NUL, arguments={NUL: NUL}, result=NUL)
    return Turn(
        index=index,
        role=NUL,
        content=text,
        tool_calls=(call,),
        reasoning=NUL,
        at_ms=1_800_000_000_000,
    )


def _role(*variants: Mapping[str, Any]) -> Role:
    plain = make_role(*variants)
    return Role(
        description=NUL,
        goal=NUL,
        capabilities=(NUL,),
        procedure=NUL,
        output=NUL,
        schema={**plain.schema, "title": NUL, "description": NUL},
    )


def hostile_workflow() -> Workflow:
    """Make one whose texts are tricks; its names are what the rules allow."""
    anything = {"additionalProperties": True}
    return make_workflow(
        name="evil",
        description=NUL,
        roles={
            "worker": _role({**variant("done", ["plan"], plan={}), **anything}),
            "critic": _role(
                {**variant("good"), **anything}, {**variant("bad"), **anything}
            ),
        },
        graph={
            "$START": {
                "new": Target(role="worker", prompt=NUL, location=f"/{TRICKS}"),
                "resume": Target(role="worker", prompt=NUL),
            },
            "worker": {"done": Target(role="critic", prompt=f"{NUL}{{{{deep}}}}")},
            "critic": {
                "good": Target(role="$END", prompt=NUL),
                "bad": Target(role="worker", prompt=NUL),
            },
        },
    )


@dataclass(slots=True)
class Mallory:
    """Who makes them."""

    person: Person

    def make(self, *statuses: str, huge: str = "") -> ThreadId:
        """Start a thread and run it through these statuses."""
        ledger = self.person.ledger
        folder = self.person.folder
        tip = begin(ledger, folder, workflow=hostile_workflow(), prompt=NUL + huge)
        for status in statuses:
            self.step(tip.thread, HostileAgent(status=status, ledger=ledger, huge=huge))
        return tip.thread

    def step(self, thread: ThreadId, agent: Agent) -> None:
        engine = make_engine(self.person.ledger, choose=lambda *_: agent)
        exec_thread(engine, thread, count=1, cwd=self.person.folder)

    def ask(self, thread: ThreadId) -> None:
        """Have it wait for a person, for a reason that is a trick."""
        head = dump_yaml({"$status": "$SUSPEND", "reason": NUL})
        text = f"---\n{head}---\n\n{NUL}\n"
        self.step(thread, HostileAgent(reply=AgentReply(text=text)))

    def fail(self, thread: ThreadId) -> None:
        self.step(thread, HostileAgent(reply=failure(NUL, text=NUL)))

    def resume(self, thread: ThreadId) -> None:
        agent = HostileAgent(ledger=self.person.ledger)
        engine = make_engine(self.person.ledger, choose=lambda *_: agent)
        resume_thread(engine, thread, note=NUL, cwd=self.person.folder)
        poke_thread(engine, thread, note=NUL, cwd=self.person.folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Somebody's store with Mallory's threads in it, and the remote they came by."""

    home: Path
    store: Path
    work: Path
    remote: Path
    threads: Mapping[str, ThreadId]
    text: Hash
    """The text node that is all tricks."""


def make_world(base: Path) -> World:
    """Make Mallory's threads, and pull them; one came past all checks of ours."""
    bare = make_bare(base / "bare.git")
    mallory = Mallory(make_person(base, "mallory"))
    mallory.person.join(bare)
    victim = make_person(base, "victim", hours=1)
    victim.join(bare)
    workflow = hostile_workflow()
    add_workflow(mallory.person.ledger, workflow, workflow_data(workflow))
    threads = _make_threads(mallory)
    refs = [thread_ref(thread) for thread in threads.values()]
    _send(mallory.person, bare, *refs, workflow_ref("evil"))
    report = victim.pull(workflows=True)
    assert report.ok, report
    _diverge(mallory, victim, threads["idle"])
    forged = mallory.make("done")
    ref = thread_ref(forged)
    _send(mallory.person, bare, f"{_forge(mallory.person, forged)}:{ref}")
    git(victim.store, "fetch", "-q", str(bare), f"{ref}:{ref}")
    return World(
        home=victim.store.path.parent / ".uwf",
        store=victim.store.path,
        work=victim.folder,
        remote=bare,
        threads={**threads, "forged": forged},
        text=make_text(NUL).hash,
    )


def _make_threads(mallory: Mallory) -> dict[str, ThreadId]:
    ledger = mallory.person.ledger
    threads = {
        "ended": mallory.make("done", "bad", "done", "good", huge=HUGE),
        "idle": mallory.make("done"),
        "asking": mallory.make("done"),
        "failed": mallory.make("done", "bad"),
        "cancelled": mallory.make(),
        "new": mallory.make(),
    }
    mallory.ask(threads["asking"])
    mallory.fail(threads["failed"])
    mallory.resume(threads["failed"])
    mallory.fail(threads["failed"])
    cancel_thread(ledger, threads["cancelled"], reason=NUL, command="test")
    threads["fork"] = fork_thread(ledger, threads["ended"], at=2).thread
    mallory.step(threads["fork"], HostileAgent(status="good", ledger=ledger))
    return threads


def _diverge(mallory: Mallory, victim: Person, thread: ThreadId) -> None:
    """Let both go on with a thread; the remote has Mallory's side."""
    cancel_thread(mallory.person.ledger, thread, reason=NUL, command="test")
    cancel_thread(victim.ledger, thread, reason="ours", command="test")
    _send(
        mallory.person,
        mallory.person.folder.parents[1] / "bare.git",
        thread_ref(thread),
    )
    victim.pull()


def _send(person: Person, bare: Path, *refs: str) -> None:
    plain_git(person, "push", "--no-verify", "-q", str(bare), *refs)


def _forge(person: Person, thread: ThreadId) -> Oid:
    """Write a thread anew, with tricks where verify lets none pass."""
    tip = person.tip(thread)
    assert tip is not None
    return forge(person.store, tip, {0: _trick, 1: _trick})


def _trick(draft: Draft) -> None:
    line = TRICKS.replace("\n", " ").encode()
    draft.author = b"Ev" + line + b"il <" + line + b"@x> 1800000000 +0000"
    draft.committer = draft.author
    head, _, rest = draft.message.partition(b"\n")
    draft.message = head + line + b"\n" + line + b"\n" + rest
    texts = ("workflowName", "currentRole", "startedBy", "updatedBy")
    draft.state(**dict.fromkeys(texts, TRICKS))
    draft.put(draft.path(TRICKS.replace("/", "-")), TRICKS.encode())


def fill_folder(world: World) -> None:
    """Put files and settings full of tricks where the victim works."""
    shown = git(world.store, "show", "workflow/evil:workflows/evil/workflow.yaml")
    (world.work / "evil.yaml").write_text(shown)
    (world.work / "broken.yaml").write_text(f"name: {TRICKS}\n{TRICKS}: [\n")
    old = {"name": "old", "description": TRICKS, "roles": {}, "graph": {}}
    (world.work / "old.yaml").write_text(dump_yaml(old))
    (world.work / "evil.bundle").write_bytes(b"# v2 git bundle\n" + TRICKS.encode())
    version = world.work / "claude"
    version.write_text("#!/bin/sh\nprintf '\\033[2J\\0338\\n'; printf '\\033c' >&2\n")
    version.chmod(0o700)
    agents = {
        "claude": {"kind": "claude-code", "command": str(version)},
        "evil": {"command": TRICKS, "env": {TRICKS: TRICKS}},
    }
    world.home.joinpath("config.yaml").write_text(
        dump_yaml({"agents": agents, TRICKS: TRICKS})
    )
