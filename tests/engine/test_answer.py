"""What an adapter's node amounts to: recorded, or an attempt that says why not."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.acting import acting, go
from tests.builders import Clock, begin, make_engine, make_ledger, record_of, reply
from tests.collision import COLLIDING
from tests.history import check_store, check_thread, files, names, state_of
from uwfgit.agents.base import AgentReply, AgentRequest, Usage
from uwfgit.constants import MAX_TIME
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.executor import RunReport, exec_thread, poke_thread
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.keep import drop_node, put_nodes
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import (
    DETAIL_TYPE,
    ERROR_TYPE,
    JSON_TYPES,
    META_TYPE,
    STEP_TYPE,
    SUSPEND_TYPE,
    TEXT_TYPE,
    Node,
    make_node,
    make_text,
)
from uwfgit.model.thread.step import Step
from uwfgit.store.canonical import Json
from uwfgit.store.handle import Store

USAGE: Final = {
    "turns": 3,
    "inputTokens": 10,
    "outputTokens": 20,
    "durationMs": 30,
    "costUsd": 0.25,
}
DETAIL: Final = {
    "kind": "homemade",
    "agentVersion": "1",
    "sessionId": "s",
    "model": "m",
    "exitCode": 0,
    "assembledPrompt": "my own",
    "turns": [],
}
GOOD: Final = {"$status": "done", "plan": "x"}


@dataclass(slots=True)
class Adapter:
    """An adapter in the test's own process: puts nodes, prints one's hash."""

    ledger: Ledger
    make: Callable[[AgentRequest], tuple[Node, ...]]
    said: str = "log line\n"
    asked: list[AgentRequest] = field(default_factory=list)

    def __call__(self, request: AgentRequest) -> AgentReply:
        self.asked.append(request)
        nodes = self.make(request)
        put_nodes(self.ledger, nodes)
        step = request.environment["UWF_STEP"]
        self.ledger.local.record_put(step, [node.hash for node in nodes])
        return AgentReply(text=self.said, node=nodes[-1].hash)


def output_of(request: AgentRequest, payload: Json = None) -> Node:
    node_type = Hash(request.environment["UWF_OUTPUT_TYPE"])
    return make_node(node_type, GOOD if payload is None else payload)


def step_of(
    request: AgentRequest, output: Node, detail: Node | None = None, **changes: Json
) -> tuple[Node, ...]:
    """Make a StepNode as the protocol wants it, after its output and detail."""
    told = request.environment
    detail = detail or make_node(DETAIL_TYPE, DETAIL)
    payload = {
        "start": told["UWF_START"],
        "prev": told["UWF_PREV"] or None,
        "role": told["UWF_ROLE"],
        "output": output.hash,
        "body": "By hand.",
        "detail": detail.hash,
        "agent": "forged",
        "edgePrompt": told["UWF_EDGE_PROMPT"],
        "note": "forged",
        "cwd": told["UWF_CWD"],
        "startedAtMs": int(told["UWF_STARTED_AT_MS"]) + 1,
        "completedAtMs": int(told["UWF_STARTED_AT_MS"]) + 60_000,
        "usage": USAGE,
        "previousAttempts": None,
        "code": {"before": "f" * 40, "after": "f" * 40},
        "extractedBy": "model",
        "warnings": ["forged"],
    }
    return output, detail, make_node(STEP_TYPE, {**payload, **changes})


@pytest.fixture
def thread(ledger: Ledger, tmp_path: Path) -> ThreadId:
    return begin(ledger, tmp_path).thread


def _run(
    ledger: Ledger,
    thread: ThreadId,
    make: Callable[[AgentRequest], tuple[Node, ...]],
) -> RunReport:
    report = exec_thread(acting(ledger, Adapter(ledger, make)), thread, count=1)
    check_thread(ledger.store, thread)
    return report


def _last(ledger: Ledger, thread: ThreadId) -> Step:
    return record_of(ledger, thread).steps()[-1]


def test_of_a_step_node_the_work_is_the_adapters_and_the_rest_the_engines(
    ledger: Ledger, thread: ThreadId
) -> None:
    report = _run(ledger, thread, lambda r: step_of(r, output_of(r)))

    step = _last(ledger, thread)
    detail = record_of(ledger, thread).node(step.detail_hash).payload
    assert report.end is RunEnd.DONE
    assert (step.output, step.body) == (GOOD, "By hand.")
    assert detail == make_node(DETAIL_TYPE, DETAIL).payload
    assert step.usage == Usage(
        turns=3, input_tokens=10, output_tokens=20, duration_ms=30, cost_usd=0.25
    )
    assert step.completed_at_ms - step.started_at_ms == 59_999
    assert (step.agent, step.note, step.warnings) == ("acting", None, ())
    assert (step.code.before, step.code.after) == (None, None)
    assert (step.extracted_by, step.previous_attempts) == (None, None)
    assert state_of(ledger.store, thread).usage == step.usage


def test_of_an_output_node_only_the_output_is_the_adapters(
    ledger: Ledger, thread: ThreadId
) -> None:
    report = _run(ledger, thread, lambda r: (output_of(r),))

    step = _last(ledger, thread)
    detail = record_of(ledger, thread).node(step.detail_hash).payload
    assert report.end is RunEnd.DONE
    assert (step.output, step.body, step.usage) == (GOOD, "", None)
    assert detail["kind"] == "acting"
    assert [turn["content"] for turn in detail["turns"]] == ["log line\n"]


@pytest.mark.parametrize("whole", [True, False], ids=["step", "output"])
def test_a_suspend_output_suspends(
    ledger: Ledger,
    thread: ThreadId,
    whole: bool,  # noqa: FBT001 - a table's column
) -> None:
    output = make_node(SUSPEND_TYPE, {"$status": "$SUSPEND", "reason": "which?"})

    report = _run(ledger, thread, lambda r: step_of(r, output) if whole else (output,))

    state = state_of(ledger.store, thread)
    assert report.end is RunEnd.WAITING
    assert (state.status, state.suspend_message, state.steps) == (
        "suspended",
        "which?",
        1,
    )


@pytest.mark.parametrize("whole", [True, False], ids=["step", "output"])
def test_an_error_output_is_an_attempt(
    ledger: Ledger,
    thread: ThreadId,
    whole: bool,  # noqa: FBT001 - a table's column
) -> None:
    output = make_node(
        ERROR_TYPE, {"$status": "error", "error": "no key", "phase": "agent"}
    )

    report = _run(ledger, thread, lambda r: step_of(r, output) if whole else (output,))

    assert (report.end, report.problem) == (RunEnd.AGENT_FAILED, "no key")
    assert state_of(ledger.store, thread).steps == 0
    attempt = files(ledger.store, thread)[
        "history/000/00001-worker/attempts/1/output.md"
    ]
    assert attempt.endswith(b"\n\nlog line\n")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("start", "0123456789ABC", id="start"),
        pytest.param("prev", "0123456789ABC", id="prev"),
        pytest.param("role", "critic", id="role"),
        pytest.param("edgePrompt", "Something else.", id="edge-prompt"),
        pytest.param("cwd", "/tmp", id="cwd"),  # noqa: S108 - only text
    ],
)
def test_a_step_node_of_another_step_is_an_attempt_that_names_the_difference(
    ledger: Ledger, thread: ThreadId, key: str, value: str
) -> None:
    changes: dict[str, Any] = {key: value}

    report = _run(ledger, thread, lambda r: step_of(r, output_of(r), **changes))

    assert report.end is RunEnd.AGENT_FAILED
    assert report.problem is not None
    assert report.problem.endswith(f": {key}")


def _text_of_step(_: AgentRequest) -> tuple[Node, ...]:
    return (make_text("not an output"),)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(_text_of_step, id="a-text"),
        pytest.param(
            lambda _: (make_node(JSON_TYPES["object"], GOOD),), id="another-type"
        ),
        pytest.param(lambda _: (make_node(META_TYPE, {}),), id="a-schema"),
        pytest.param(
            lambda r: (output_of(r, {"$status": "done"}),), id="a-field-missing"
        ),
        pytest.param(
            lambda r: (output_of(r, {"$status": "odd", "plan": "x"}),),
            id="unknown-status",
        ),
        pytest.param(
            lambda r: step_of(r, make_node(JSON_TYPES["object"], GOOD)),
            id="a-step-with-output-of-another-type",
        ),
        pytest.param(
            lambda r: step_of(r, output_of(r, {"$status": "done", "plan": 1})),
            id="a-step-with-an-output-that-does-not-fit",
        ),
        pytest.param(
            lambda r: step_of(r, output_of(r), make_text("no detail")),
            id="a-step-whose-detail-is-a-text",
        ),
        pytest.param(
            lambda r: step_of(r, output_of(r))[1:],
            id="a-step-whose-output-is-nowhere",
        ),
        # The rest was put past the checks of `uwf cas put`, say by plain git.
        pytest.param(lambda _: (make_node(STEP_TYPE, {}),), id="an-empty-step"),
        pytest.param(lambda _: (make_node(STEP_TYPE, []),), id="a-step-that-is-a-list"),
        pytest.param(lambda _: (make_node(ERROR_TYPE, {}),), id="an-empty-error"),
        pytest.param(lambda _: (make_node(SUSPEND_TYPE, {}),), id="an-empty-suspend"),
        pytest.param(
            lambda r: step_of(r, output_of(r), make_node(DETAIL_TYPE, {"kind": 1})),
            id="a-step-with-a-detail-that-does-not-fit",
        ),
        pytest.param(
            lambda r: step_of(r, output_of(r), startedAtMs=-1), id="before-all-time"
        ),
        pytest.param(
            lambda r: step_of(r, output_of(r), completedAtMs=MAX_TIME * 1000),
            id="beyond-all-time",
        ),
        pytest.param(
            lambda r: step_of(r, output_of(r), usage={**USAGE, "turns": "3"}),
            id="usage-that-does-not-fit",
        ),
    ],
)
def test_a_node_that_is_no_answer_is_an_attempt(
    ledger: Ledger, thread: ThreadId, make: Callable[[AgentRequest], tuple[Node, ...]]
) -> None:
    report = _run(ledger, thread, make)

    assert report.end is RunEnd.AGENT_FAILED
    assert report.problem
    assert names(ledger.store, thread) == ["start", "attempt"]
    assert state_of(ledger.store, thread).steps == 0


def _printing(node: Hash) -> Callable[[AgentRequest], AgentReply]:
    return lambda _: AgentReply(text="log line\n", node=node)


def test_a_hash_of_nothing_is_an_attempt(ledger: Ledger, thread: ThreadId) -> None:
    agent = _printing(Hash("0123456789ABC"))

    report = exec_thread(acting(ledger, agent), thread, count=1)

    assert report.end is RunEnd.AGENT_FAILED
    assert report.problem is not None
    assert "0123456789ABC" in report.problem


def test_another_threads_node_is_no_answer(
    ledger: Ledger, thread: ThreadId, tmp_path: Path
) -> None:
    other = begin(ledger, tmp_path).thread
    go(ledger, other, reply(plan="private"))
    agent = _printing(_last(ledger, other).output_hash)

    report = exec_thread(acting(ledger, agent), thread, count=1)

    assert report.end is RunEnd.AGENT_FAILED
    assert names(ledger.store, thread) == ["start", "attempt"]


def test_an_answer_that_collides_with_a_node_of_the_thread_is_an_attempt(
    ledger: Ledger, thread: ThreadId
) -> None:
    theirs, ours = (make_text(text) for text in COLLIDING)
    output = {"$status": "done", "plan": theirs.hash}
    _run(ledger, thread, lambda r: (theirs, output_of(r, output)))
    drop_node(ledger, theirs.hash)
    bad = {"$status": "bad", "reason": ours.hash}

    report = _run(ledger, thread, lambda r: (ours, output_of(r, bad)))

    assert report.end is RunEnd.AGENT_FAILED
    assert record_of(ledger, thread).node(theirs.hash) == theirs


def test_what_an_adapter_put_and_named_is_linked(
    ledger: Ledger, thread: ThreadId
) -> None:
    plan = make_text("The plan")
    output = {"$status": "done", "plan": plan.hash}

    _run(ledger, thread, lambda r: (plan, *step_of(r, output_of(r, output))))

    assert record_of(ledger, thread).places[plan.hash][0] == TEXT_TYPE
    found = files(ledger.store, thread)
    assert found["history/000/00001-worker/links/plan.md"] == b"The plan"


def test_an_adapter_can_answer_a_poke(ledger: Ledger, thread: ThreadId) -> None:
    go(ledger, thread, reply(plan="x"), reply("bad", reason="y"))
    good = {"$status": "good"}
    adapter = Adapter(ledger, lambda r: step_of(r, output_of(r, good)))

    report = poke_thread(acting(ledger, adapter), thread, note="Again.")

    first, second = record_of(ledger, thread).steps()
    assert (report.end, report.status) == (RunEnd.DONE, "end")
    assert (second.prev, second.note) == (first.hash, "Again.")
    check_thread(ledger.store, thread)


def test_an_answer_of_an_earlier_time_does_not_turn_the_clock_back(
    ledger: Ledger, thread: ThreadId
) -> None:
    _run(
        ledger,
        thread,
        lambda r: step_of(r, output_of(r), startedAtMs=5, completedAtMs=6),
    )

    step, state = _last(ledger, thread), state_of(ledger.store, thread)
    assert (step.started_at_ms, step.completed_at_ms) == (5, state.updated_at_ms)


@pytest.mark.parametrize(
    "usage",
    [
        pytest.param({**USAGE, "costUsd": 1e308}, id="costs-more-than-a-number-can"),
        pytest.param(
            {**USAGE, "turns": 2**53 - 1}, id="more-turns-than-an-integer-can"
        ),
    ],
)
def test_a_sum_of_usage_that_no_number_holds_does_not_make_the_thread_unreadable(
    ledger: Ledger, thread: ThreadId, usage: dict[str, Any]
) -> None:
    bad = {"$status": "bad", "reason": "again"}

    first = _run(ledger, thread, lambda r: step_of(r, output_of(r), usage=usage))
    second = _run(ledger, thread, lambda r: step_of(r, output_of(r, bad), usage=usage))

    assert (first.end, second.end) == (RunEnd.DONE, RunEnd.AGENT_FAILED)
    assert names(ledger.store, thread) == ["start", "step", "attempt"]


def test_an_answer_is_found_in_keep_though_the_lookup_cannot_be_used(
    store: Store, tmp_path: Path
) -> None:
    ledger = make_ledger(store, Clock(itertools.count(1_800_000_000_000, 1000)))
    thread = begin(ledger, tmp_path).thread

    def make(request: AgentRequest) -> tuple[Node, ...]:
        (store.state_dir / "lookup.sqlite3").write_bytes(b"garbage" * 1000)
        return (output_of(request),)

    assert _run(replace(ledger), thread, make).end is RunEnd.DONE


# --- real adapters, as their authors write them ---

PYTHON: Final = f"#!{sys.executable}\n" + textwrap.dedent(
    """
    import os, sys, time
    from pathlib import Path
    from uwfgit.ids import Hash
    from uwfgit.model.node import DETAIL_TYPE, STEP_TYPE, make_node, make_text
    from uwfgit.store.layout import KEEP_REF
    from uwfgit.store.objects import (
        Person, new_file, read_commit, write_commit,
    )
    from uwfgit.store.pack import Batch
    from uwfgit.store.refs import find_ref, move_ref
    from uwfgit.store.repository import open_store
    from uwfgit.store.local import Local

    told = os.environ
    assert sys.argv[1:] == [told["UWF_THREAD"], told["UWF_ROLE"]], sys.argv
    assert os.getcwd() == told["UWF_CWD"]
    prompt = sys.stdin.read()
    assert prompt == Path(told["UWF_PROMPT_FILE"]).read_text(encoding="utf-8")
    store = open_store(Path(told["UWF_STORE"]), home=Path(told["UWF_HOME"]), write=True)

    def put(*nodes):
        old = find_ref(store, KEEP_REF)
        tree = read_commit(store, old).tree if old else None
        changes = {
            f"nodes/{n.hash[:2]}/{n.name}": new_file(n.data)
            for n in nodes
        }
        batch = Batch(store=store)
        tree = batch.edit_tree(tree, changes)
        batch.write_loose()
        who = Person(name="Adapter", email="a@localhost", time=int(time.time()))
        new = write_commit(store, tree=tree, parents=(),
                           author=who, committer=who, message="put\\n")
        move_ref(store, KEEP_REF, old=old, new=new, reason="put")
        Local(store).record_put(told["UWF_STEP"], [n.hash for n in nodes])

    plan = make_text(f"A plan for {told['UWF_ROLE']}")
    role = told["UWF_ROLE"]
    output = make_node(Hash(told["UWF_OUTPUT_TYPE"]), (
        {"$status": "done", "plan": plan.hash} if role == "worker"
        else {"$status": "good"}
    ))
    detail = make_node(DETAIL_TYPE, {
        "kind": "homemade", "agentVersion": None, "sessionId": None, "model": None,
        "exitCode": 0, "assembledPrompt": prompt, "turns": [],
    })
    now = int(told["UWF_STARTED_AT_MS"])
    step = make_node(STEP_TYPE, {
        "start": told["UWF_START"], "prev": told["UWF_PREV"] or None, "role": role,
        "output": output.hash, "body": "By a script.", "detail": detail.hash,
        "agent": told["UWF_AGENT"], "edgePrompt": told["UWF_EDGE_PROMPT"],
        "note": None, "cwd": told["UWF_CWD"], "startedAtMs": now,
        "completedAtMs": now, "usage": None, "previousAttempts": None,
        "code": {"before": None, "after": None}, "extractedBy": None, "warnings": [],
    })
    put(plan, output, detail, step)
    print("done with", role)
    print(step.hash if role == "worker" else f'{{"stepHash": "{step.hash}"}}')
    """
)


def _script(folder: Path, text: str) -> Path:
    path = folder / "adapter"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
    return path


@pytest.mark.slow
def test_an_adapter_written_in_python_drives_a_thread(
    ledger: Ledger, home: Path, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    script = _script(tmp_path, PYTHON)

    report = exec_thread(
        make_engine(ledger, home=home), thread, count=None, agent=f"adapter:{script}"
    )

    assert report.problem is None, report
    one, two = record_of(ledger, thread).steps()
    assert (report.end, report.status) == (RunEnd.DONE, "end"), report.problem
    assert (one.body, one.agent, one.warnings) == ("By a script.", "adapter", ())
    assert two.prev == one.hash
    plan = files(ledger.store, thread)["history/000/00001-worker/links/plan.md"]
    assert plan == b"A plan for worker"
    check_thread(ledger.store, thread)
    check_store(ledger.store)


SHELL: Final = """\
#!/bin/sh
# Puts its output with plain git, and prints the hash that {hash} is known by.
blob=$(printf '%s' '{data}' | git --git-dir="$UWF_STORE" hash-object -w --stdin)
leaf=$(printf '100644 blob %s\\t{name}\\n' "$blob" | git --git-dir="$UWF_STORE" mktree)
mid=$(printf '040000 tree %s\\t{start}\\n' "$leaf" | git --git-dir="$UWF_STORE" mktree)
top=$(printf '040000 tree %s\\tnodes\\n' "$mid" | git --git-dir="$UWF_STORE" mktree)
keep=$(git --git-dir="$UWF_STORE" -c user.name=A -c user.email=a@localhost \\
  commit-tree "$top" -m put </dev/null)
git --git-dir="$UWF_STORE" update-ref refs/uwf/keep "$keep"
echo "working on $1 as $2"
printf '%s' {hash}
"""


@pytest.mark.slow
def test_an_adapter_written_as_a_shell_script_drives_a_thread(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    schema = record_of(ledger, thread).workflow.roles["worker"].schema
    output = make_node(make_node(META_TYPE, dict(schema)).hash, GOOD)
    text = SHELL.format(
        hash=output.hash,
        data=output.data.decode(),
        name=output.name,
        start=output.hash[:2],
    )
    script = _script(tmp_path, text)

    report = exec_thread(
        make_engine(ledger), thread, count=1, agent=f"adapter:{script}"
    )

    step = _last(ledger, thread)
    assert (report.end, report.status) == (RunEnd.DONE, "idle"), report.problem
    assert (step.output, step.body) == (GOOD, "")
    check_thread(ledger.store, thread)
