"""What agents are told over a whole thread, kept as files for people to read.

A loop of three roles with two questions, a crash, a correction by a person and a
fork, once with an agent that keeps its sessions and once with one that keeps none.
A file that is missing is written, and the test fails until it was read and kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.acting import ActingAgent, failure, suspend
from tests.builders import TEXT, begin, make_engine, make_role, make_workflow, reply
from tests.builders import variant as form
from uwfgit.agents.base import AgentReply, AgentRequest
from uwfgit.engine.ask.prompt import output_format
from uwfgit.engine.run.executor import (
    Engine,
    exec_thread,
    poke_thread,
    resume_thread,
)
from uwfgit.engine.run.thread import fork_thread
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.workflow.workflow import Target, Workflow

KEPT: Final = Path(__file__).parent / "told"


def _workflow() -> Workflow:
    return make_workflow(
        roles={
            "planner": make_role(form("ready", ["plan"], plan=TEXT)),
            "developer": make_role(form("done", ["summary"], summary=TEXT)),
            "reviewer": make_role(
                form("approved"), form("rejected", ["reason"], reason=TEXT)
            ),
        },
        graph={
            "$START": {
                "new": Target(role="planner", prompt="Plan it."),
                "resume": Target(role="planner", prompt="Go on."),
            },
            "planner": {"ready": Target(role="developer", prompt="Build: {{plan}}")},
            "developer": {"done": Target(role="reviewer", prompt="Review it.")},
            "reviewer": {
                "approved": Target(role="$END", prompt="Over."),
                "rejected": Target(role="developer", prompt="Fix: {{reason}}"),
            },
        },
    )


@dataclass(slots=True, kw_only=True)
class Stage:
    """The agents of a thread, which keep what they are told."""

    ledger: Ledger
    has_sessions: bool
    thread: ThreadId
    names: dict[str, str] = field(default_factory=dict)
    told: list[tuple[str, str]] = field(default_factory=list)

    def engine(self, answer: str | AgentReply) -> Engine:
        def act(request: AgentRequest) -> AgentReply:
            self.told.append((request.role, request.prompt))
            said = answer if isinstance(answer, AgentReply) else AgentReply(text=answer)
            session = f"s-{request.thread}-{request.role}"
            if not self.has_sessions:
                return said
            return AgentReply(text=said.text, failure=said.failure, session_id=session)

        agent = ActingAgent(act=act, has_sessions=self.has_sessions)
        return make_engine(self.ledger, choose=lambda *_: agent)

    def run(self, answer: str | AgentReply) -> None:
        exec_thread(self.engine(answer), self.thread, count=1)

    def resume(self, answer: str | AgentReply, note: str | None = None) -> None:
        resume_thread(self.engine(answer), self.thread, note=note)

    def poke(self, answer: str, note: str) -> None:
        poke_thread(self.engine(answer), self.thread, note=note)

    def shown(self, prompt: str) -> str:
        """Leave out what is the same every time, or different in each run."""
        for schema in (role.schema for role in _workflow().roles.values()):
            prompt = prompt.replace(output_format(schema, listed=False), "[format]")
        for name, stands in self.names.items():
            prompt = prompt.replace(name, stands)
        return prompt


def _play(stage: Stage) -> None:
    ledger = stage.ledger
    stage.names[stage.thread] = "THREAD"
    stage.run(suspend("Which database?", "There are two."))
    stage.resume(suspend("Which version?", "It matters."), "Postgres.")
    stage.resume(reply("ready", "First the table.", plan="a table"), "17, please.")
    stage.run(failure("it broke"))
    stage.resume(failure("it broke again"), "Mind the index.")
    stage.resume(reply("done", "Table with index.", summary="built"))
    stage.run(reply("rejected", "The names are odd.", reason="names"))
    stage.run(reply("done", "Renamed all.", summary="renamed"))
    stage.poke(reply("done", "Renamed, shorter.", summary="shorter"), "Shorter.")
    stage.poke(reply("done", "Renamed, plain.", summary="plain"), "And plain.")
    stage.run(reply("rejected", "One is left.", reason="one name"))
    fork = fork_thread(ledger, stage.thread, at=5).thread
    stage.thread, stage.names[fork] = fork, "FORK"
    stage.run(reply("done", "Renamed otherwise.", summary="otherwise"))


@pytest.mark.parametrize("has_sessions", [True, False], ids=["session", "none"])
def test_what_agents_are_told_is_as_it_was_read_and_kept(
    has_sessions: bool,  # noqa: FBT001 - a parameter of the test
    ledger: Ledger,
    tmp_path: Path,
) -> None:
    thread = begin(ledger, tmp_path, workflow=_workflow()).thread
    stage = Stage(ledger=ledger, has_sessions=has_sessions, thread=thread)

    _play(stage)

    folder = KEPT / ("session" if has_sessions else "none")
    found = {
        f"{number:02}-{role}.md": stage.shown(prompt)
        for number, (role, prompt) in enumerate(stage.told, 1)
    }
    missing = [name for name in found if not (folder / name).exists()]
    for name in missing:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(found[name], encoding="utf-8")
    kept = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    assert (missing, found) == ([], kept)
