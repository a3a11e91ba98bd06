"""Workflows whose roles are done by workflows, and agents that play them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.builders import TEXT, begin, make_engine, make_role, variant, write_script
from uwfgit.engine.run.executor import (
    RunReport,
    exec_thread,
    poke_thread,
    resume_thread,
)
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.record import open_record
from uwfgit.model.workflow.document import workflow_document
from uwfgit.model.workflow.workflow import Role, Target, Workflow
from uwfgit.model.yaml.dump import dump_yaml


def by(workflow: str, *variants: Mapping[str, Any]) -> Role:
    """Make a role that a workflow does."""
    return Role(
        description="Delegated",
        goal="",
        capabilities=(),
        procedure="",
        output="",
        schema={"oneOf": list(variants)},
        workflow=workflow,
    )


BUILT = variant("built", ["what"], what=TEXT)


def line(name: str, *roles: tuple[str, Role, str]) -> Workflow:
    """Make a workflow whose roles follow each other: name, role, its status."""
    names = [role for role, _, _ in roles] + ["$END"]
    start = Target(role=names[0], prompt="Begin: {{_prompt}}")
    again = Target(role=names[0], prompt="Once more: {{_prompt}}")
    graph: dict[str, Any] = {"$START": {"new": start, "resume": again}}
    for number, (role, _, status) in enumerate(roles):
        prompt = f"After {role}: {{{{_body}}}}"
        graph[role] = {status: Target(role=names[number + 1], prompt=prompt)}
    return Workflow(
        version=1,
        name=name,
        description=name,
        roles={role: made for role, made, _ in roles},
        graph=graph,
    )


def child() -> Workflow:
    return line(
        "develop",
        ("coder", make_role(variant("coded", ["what"], what=TEXT)), "coded"),
        ("tester", make_role(BUILT), "built"),
    )


def parent() -> Workflow:
    return line(
        "deliver",
        ("preparer", make_role(variant("ready")), "ready"),
        ("builder", by("develop", BUILT), "built"),
        ("sender", make_role(variant("sent")), "sent"),
    )


def start(
    ledger: Ledger, folder: Path, workflow: Workflow, *children: Workflow
) -> ThreadId:
    return begin(
        ledger,
        folder,
        workflow=workflow,
        data=dump_yaml(workflow_document(workflow)).encode(),
        children={each.name: each for each in children},
    ).thread


class Play:
    """One thread and the scripted replies of all its roles, children's too."""

    def __init__(
        self, ledger: Ledger, folder: Path, thread: ThreadId, replies: Mapping[str, Any]
    ) -> None:
        self.ledger, self.thread = ledger, thread
        agent = write_script(folder, replies)
        default = make_engine(ledger).choose
        self.engine = make_engine(
            ledger, choose=lambda _, workflow, role: default(agent, workflow, role)
        )

    def go(self, count: int | None = None) -> RunReport:
        return exec_thread(self.engine, self.thread, count=count)

    def resume(self, note: str | None = None) -> RunReport:
        return resume_thread(self.engine, self.thread, note=note)

    def poke(self, note: str) -> RunReport:
        return poke_thread(self.engine, self.thread, note=note)


def children_of(ledger: Ledger, thread: ThreadId) -> list[ThreadId]:
    """Return the threads that a thread started, oldest first."""
    ledger.lookup.refresh()
    found = []
    for row in ledger.lookup.list_threads():
        record = open_record(ledger.store, row.thread)
        if record.start.parent is not None and record.start.parent.thread == thread:
            found.append(row.thread)
    return sorted(found)
