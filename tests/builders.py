"""What tests are built of: plain functions with defaults."""

# ruff: noqa: ANN401 - defaults that any keyword may change

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uwfgit.agents.registry import choose_agent
from uwfgit.config import Settings
from uwfgit.engine.run.executor import Engine, RunReport, exec_thread
from uwfgit.engine.run.thread import start_thread
from uwfgit.ids import Hash, Oid, ThreadId
from uwfgit.model.ledger.kept import Kept
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import STEP_TYPE
from uwfgit.model.thread.record import Record, open_record
from uwfgit.model.thread.step import Code, Step
from uwfgit.model.thread.tip import Tip
from uwfgit.model.workflow.workflow import Role, Target, Workflow
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.git.settings import Identity
from uwfgit.store.handle import Store
from uwfgit.store.local import Local
from uwfgit.store.lookup.table import Lookup
from uwfgit.store.objects import TreeEntry
from uwfgit.store.pack import Batch


@dataclass(slots=True)
class Clock:
    """A clock of whatever times it is given, in ms."""

    times: Iterator[int]

    def __call__(self) -> int:
        return next(self.times)


_FIRST = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) << 32


@dataclass(slots=True)
class Dice:
    """Random bytes that are not: counted up, so ids are stable and unique.

    Each process of the suite has its own: what a run leaves at work is found by its
    id, and a test beside this one must not end it.
    """

    rolled: int = _FIRST
    seen: list[int] = field(default_factory=list)

    def __call__(self, count: int) -> bytes:
        self.rolled += 1
        return self.rolled.to_bytes(count)


_MADE: list[Ledger] = []


def make_ledger(store: Store, clock: Clock, **changes: Any) -> Ledger:
    """Make a ledger; its files are closed when the test ends."""
    facts: dict[str, Any] = {
        "store": store,
        "lookup": Lookup(store, step_type=STEP_TYPE),
        "kept": Kept(store=store),
        "local": Local(store),
        "identity": Identity(name="Ada", email="ada@example.com", is_default=False),
        "now_ms": clock,
        "random": Dice(),
    }
    _MADE.append(Ledger(**{**facts, **changes}))
    return _MADE[-1]


def close_ledgers() -> None:
    """Close what ledgers opened in this thread, which alone may."""
    while _MADE:
        ledger = _MADE.pop()
        for file in (ledger.lookup, ledger.local):
            with suppress(sqlite3.ProgrammingError):
                file.close()


def variant(
    status: str, required: Sequence[str] = (), **properties: Any
) -> dict[str, Any]:
    """Make one ``$status`` variant of a role's schema."""
    return {
        "properties": {"$status": {"const": status}, **properties},
        "required": ["$status", *required],
    }


def make_role(*variants: Mapping[str, Any]) -> Role:
    return Role(
        description="Does it",
        goal="You do it.",
        capabilities=("doing",),
        procedure="Do it.",
        output="Say what you did.",
        schema={"oneOf": list(variants)},
    )


TEXT = {"type": "string"}


def make_workflow(**changes: Any) -> Workflow:
    """Make a workflow of two roles: worker and critic, who may send it back."""
    facts: dict[str, Any] = {
        "version": 1,
        "name": "work",
        "description": "Work and criticism",
        "roles": {
            "worker": make_role(variant("done", ["plan"], plan=TEXT)),
            "critic": make_role(
                variant("good"), variant("bad", ["reason"], reason=TEXT)
            ),
        },
        "graph": {
            "$START": {
                "new": Target(role="worker", prompt="Begin: {{_prompt}}"),
                "resume": Target(role="worker", prompt="Go on."),
            },
            "worker": {"done": Target(role="critic", prompt="Judge {{plan}}.")},
            "critic": {
                "good": Target(role="$END", prompt="Over."),
                "bad": Target(role="worker", prompt="Fix it: {{reason}}"),
            },
        },
    }
    return Workflow(**{**facts, **changes})


def workflow_data(workflow: Workflow) -> bytes:
    """Write a workflow as the file a person would have written."""
    document = {
        "version": workflow.version,
        "name": workflow.name,
        "description": workflow.description,
        "roles": {
            name: {
                "description": role.description,
                "goal": role.goal,
                "capabilities": list(role.capabilities),
                "procedure": role.procedure,
                "output": role.output,
                "frontmatter": role.schema,
            }
            for name, role in workflow.roles.items()
        },
        "graph": {
            name: [_target(t) for t in edges]
            if isinstance(edges, tuple)
            else {status: _target(t) for status, t in edges.items()}
            for name, edges in workflow.graph.items()
        },
    }
    return dump_yaml(document).encode()


def make_step(role: str, number: int = 1, **changes: Any) -> Step:
    """Make a step that stands in no thread."""
    nowhere = Hash("0123456789ABC")
    fields = {
        "number": number,
        "hash": nowhere,
        "start": nowhere,
        "prev": None,
        "role": role,
        "output_hash": nowhere,
        "output": {},
        "body": "",
        "detail_hash": Hash("DETAIL0000000"),
        "agent": "acting",
        "edge_prompt": "",
        "note": None,
        "cwd": "/",
        "started_at_ms": 0,
        "completed_at_ms": 1000 * number,
        "usage": None,
        "previous_attempts": None,
        "code": Code(before=None, after=None),
        "extracted_by": None,
        "warnings": (),
    }
    return Step(**{**fields, **changes})


def _target(target: Target) -> dict[str, Any]:
    fields = {"role": target.role, "prompt": target.prompt}
    if target.location is not None:
        fields["location"] = target.location
    return fields


def reply(status: str = "done", body: str = "Did it.", **fields: Any) -> str:
    """Write an agent's answer."""
    lines = [f"{key}: {json.dumps(value)}" for key, value in fields.items()]
    return "\n".join(
        ["---", f"$status: {json.dumps(status)}", *lines, "---", "", body, ""]
    )


def write_script(folder: Path, replies: Mapping[str, Any]) -> str:
    """Write a replies file and give the ``--agent`` value that uses it."""
    path = folder / f"replies-{len(list(folder.iterdir()))}.yaml"
    path.write_text(dump_yaml({"replies": dict(replies)}), encoding="utf-8")
    return f"scripted:{path}"


def make_engine(ledger: Ledger, **changes: Any) -> Engine:
    settings = changes.pop("settings", Settings())

    def choose(flag: str | None, workflow: str, role: str) -> Any:
        return choose_agent(
            flag,
            settings=settings,
            workflow=workflow,
            role=role,
            base_dir=Path("/"),
            environment={"PATH": "/usr/bin:/bin"},
        )

    facts: dict[str, Any] = {
        "ledger": ledger,
        "settings": settings,
        "choose": choose,
        "environment": {"PATH": "/usr/bin:/bin"},
        "home": ledger.store.path,
        "code_head": lambda _path: None,
    }
    return Engine(**{**facts, **changes})


def begin(ledger: Ledger, cwd: Path, **changes: Any) -> Tip:
    """Start a thread of the two-role workflow."""
    workflow = changes.pop("workflow", None) or make_workflow()
    facts: dict[str, Any] = {
        "workflow": workflow,
        "data": workflow_data(workflow),
        "prompt": "Fix the bug",
        "cwd": cwd,
    }
    return start_thread(ledger, **{**facts, **changes})


def run(
    ledger: Ledger, thread: ThreadId, agent: str, count: int | None = 1
) -> RunReport:
    """Run cycles of a thread with an agent."""
    return exec_thread(make_engine(ledger), thread, count=count, agent=agent)


def record_of(ledger: Ledger, thread: ThreadId) -> Record:
    return open_record(ledger.store, thread)


def edit_tree(
    store: Store, base: Oid | None, changes: Mapping[str, TreeEntry | None]
) -> Oid:
    """Write a tree with some paths set or removed, its objects loose."""
    batch = Batch(store=store)
    tree = batch.edit_tree(base, changes)
    batch.write_loose()
    return tree


def object_file(store: Store | Path, oid: str) -> Path:
    """Return the file of one object, all packs of the store taken apart first."""
    path = store.path if isinstance(store, Store) else store
    for pack in (path / "objects" / "pack").glob("*.pack"):
        aside = path / pack.name
        pack.rename(aside)
        for suffix in (".idx", ".rev"):
            pack.with_suffix(suffix).unlink(missing_ok=True)
        with aside.open("rb") as file:
            words = ["git", f"--git-dir={path}", "unpack-objects", "-q"]
            subprocess.run(words, stdin=file, check=True)
        aside.unlink()
    return path / "objects" / oid[:2] / oid[2:]


def settle(database: Path) -> None:
    """Copy the log, which would stand in for a damaged file, into it."""
    with closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def git(store: Store | Path, *args: str) -> str:
    """Run plain git in a repository and give what it prints."""
    path = store.path if isinstance(store, Store) else store
    done = subprocess.run(
        ["git", f"--git-dir={path}", *args],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def git_in(folder: Path, *args: str) -> str:
    """Run git in a work tree as somebody, and return what it printed."""
    words = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@y"]
    done = subprocess.run([*words, *args], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def flip_byte(file: Path) -> None:
    """Damage a file in its middle."""
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.chmod(0o600)
    file.write_bytes(data)


@contextmanager
def files_of(most: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
