"""Conditions of list nodes: what expressions see, and what they may not do."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from tests.acting import acting, go, saying
from tests.builders import make_step, make_workflow
from tests.proof import assert_verified
from uwfgit.engine.decide.conditions import (
    MAX_DEPTH,
    Fault,
    evaluate,
    find_syntax_error,
    is_truthy,
    make_evaluator,
    require_conditions,
)
from uwfgit.engine.decide.moderator import (
    Routed,
    RoutingError,
    base_prompt,
    outcome_of,
    route,
)
from uwfgit.engine.run.executor import poke_thread, resume_thread
from uwfgit.engine.run.thread import fork_thread, start_thread
from uwfgit.errors import ConfigError, OverrunError
from uwfgit.ids import Hash
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.step import Start, Step
from uwfgit.model.thread.tip import load_tip
from uwfgit.model.workflow.document import workflow_document
from uwfgit.model.workflow.workflow import Choice, Edges, Target, Workflow
from uwfgit.model.yaml.dump import dump_yaml
from uwfgit.store.canonical import Json
from uwfgit.store.handle import Store

HASH: Final = Hash("0123456789ABC")


def _step(
    role: str, number: int = 1, /, *outputs: Mapping[str, Json], **fields: Json
) -> Step:
    output = {**fields, **(outputs[0] if outputs else {})}
    return make_step(role, number, output=output)


START: Final = Start(
    hash=HASH,
    workflow=Hash("WORKFLOW00000"),
    rules=1,
    prompt="the task",
    cwd="/srv",
    cwd_in_repo=None,
    root_commit=None,
    depth=2,
    values=None,
)


def _holds(expression: str, *steps: Step) -> bool | Fault:
    evaluator = make_evaluator(
        reversed(steps), task="the task", thread="T", start=START
    )
    return evaluator(expression)


PLANNED: Final = _step("planner", status="x", phases=[])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("steps[-1].meta.status = 'x'", True, id="negative-index"),
        pytest.param("steps[-1].meta.status = 'y'", False, id="another-value"),
        pytest.param("steps[role='planner'].meta.status = 'x'", True, id="singleton"),
        pytest.param("steps[0].output.status = 'x'", True, id="output-is-meta"),
        pytest.param("$last('planner').output.status = 'x'", True, id="last"),
        pytest.param("$last('coder').output.status = 'x'", False, id="last-of-none"),
        pytest.param("$exists($first('coder'))", False, id="first-of-none"),
        pytest.param("$count(steps) = 1", True, id="count"),
        pytest.param("threadId = 'T' and depth = 2", True, id="thread"),
        pytest.param("workflowHash = 'WORKFLOW00000'", True, id="workflow"),
        pytest.param("start.prompt = 'the task'", True, id="task"),
        pytest.param("start.cwd = '/srv'", True, id="folder"),
        pytest.param("steps[0].agent = 'acting'", True, id="agent"),
        pytest.param("steps[0].detail = 'DETAIL0000000'", True, id="detail"),
        pytest.param("steps[0].timestamp = 1000", True, id="timestamp"),
        pytest.param("nothing", False, id="nothing"),
        pytest.param("null", False, id="null"),
        pytest.param("0", False, id="zero"),
        pytest.param('""', False, id="empty-text"),
        pytest.param("false", False, id="false"),
        pytest.param("[]", True, id="empty-list"),
        pytest.param("{}", True, id="empty-mapping"),
        pytest.param('"false"', True, id="text"),
        pytest.param("function($x){$x}", True, id="function"),
    ],
)
def test_an_expression_sees_the_thread(expression: str, *, expected: bool) -> None:
    assert _holds(expression, PLANNED) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [(float("nan"), False), (0.0, False), (1.5, True), (True, True)],
)
def test_a_number_is_true_unless_zero_or_none(value: Json, *, expected: bool) -> None:
    assert is_truthy(value) is expected


def test_first_and_last_tell_the_steps_of_a_role_apart() -> None:
    steps = (_step("a", 1, n=1), _step("b", 2, n=2), _step("a", 3, n=3))

    assert (
        _holds("$first('a').output.n = 1 and $last('a').output.n = 3", *steps) is True
    )


def test_a_status_can_be_written_without_back_quotes() -> None:
    step = _step("a", 1, {"$status": "done"})

    assert _holds("steps[-1].output.status = 'done'", step) is True
    assert _holds("steps[-1].output.`$status` = 'done'", step) is True


def test_a_field_of_that_name_is_not_hidden_by_the_status() -> None:
    step = _step("a", 1, {"$status": "done", "status": "mine"})

    assert _holds("steps[-1].output.status = 'mine'", step) is True


# --- the first generation: a list a role, named conditions in place ---

REVIEWED: Final[Mapping[str, Edges]] = {
    "reviewer": (
        Choice(
            role="coder",
            prompt="Mend.",
            when="$last('reviewer').output.approved = false",
        ),
        Choice(role="$END", prompt="Over.", when="steps[-1].output.approved = true"),
    ),
}


def _route(graph: Mapping[str, Edges], *steps: Step) -> Routed | RoutingError:
    role, output = (steps[-1].role, steps[-1].output) if steps else ("$START", {})
    evaluator = make_evaluator(reversed(steps), task="t", thread="T")
    return route(graph, role, output, injected={}, evaluate=evaluator)


@pytest.mark.parametrize(
    ("approved", "role"), [(False, "coder"), (True, "$END")], ids=["no", "yes"]
)
def test_the_first_condition_that_holds_decides(role: str, *, approved: bool) -> None:
    found = _route(REVIEWED, _step("reviewer", approved=approved))

    assert isinstance(found, Routed)
    assert found.role == role


def test_no_condition_that_holds_is_an_error_that_names_them() -> None:
    found = _route(REVIEWED, _step("reviewer", approved="perhaps"))

    assert isinstance(found, RoutingError)
    assert found.code == "routing: no-match reviewer -"
    assert "'reviewer'" in found.message
    assert "$last('reviewer').output.approved = false" in found.message
    assert "steps[-1].output.approved = true" in found.message


def test_a_condition_that_fails_is_an_error_and_not_merely_false() -> None:
    graph: Mapping[str, Edges] = {
        "a": (
            Choice(role="b", prompt="x", when="$sum('x')"),
            Choice(role="$END", prompt="x"),
        )
    }

    found = _route(graph, _step("a"))

    assert isinstance(found, RoutingError)
    assert found.kind == "no-match"
    assert "$sum('x')" in found.message


# --- the generation before: rules of from, to and when ---

ALL_DONE: Final = (
    "($phases := $last('planner').meta.phases; "
    "$done := steps[role='coder'].meta.completedPhase; "
    "$count($phases) = 0 or "
    "$count($filter($phases, function($p){ $p.hash in $done })) >= $count($phases))"
)


def _to(role: str, when: str | None = None) -> Choice:
    return Choice(role=role, prompt="Go.", when=when)


DEVELOP: Final[Mapping[str, Edges]] = {
    "$START": (_to("planner"),),
    "planner": (_to("$END", "steps[-1].meta.status = 'aborted'"), _to("coder")),
    "coder": (_to("reviewer", ALL_DONE), _to("coder")),
    "reviewer": (_to("tester", "$last('reviewer').meta.approved"), _to("coder")),
    "tester": (_to("committer", "steps[-1].meta.passed"), _to("coder")),
    "committer": (_to("$END"),),
}


def _plan(*phases: str) -> Step:
    return _step("planner", phases=[{"hash": phase} for phase in phases])


def _code(phase: str) -> Step:
    return _step("coder", completedPhase=phase)


@pytest.mark.parametrize(
    ("steps", "role"),
    [
        pytest.param((), "planner", id="initial"),
        pytest.param((_plan("a"),), "coder", id="planned"),
        pytest.param((_step("planner", status="aborted"),), "$END", id="aborted"),
        pytest.param((_plan("a"), _code("a")), "reviewer", id="single-phase"),
        pytest.param((_plan(), _code("a")), "reviewer", id="no-phases"),
        pytest.param((_plan("a", "b"), _code("a")), "coder", id="incomplete"),
        pytest.param(
            (_plan("a", "b"), _code("a"), _code("b")), "reviewer", id="complete"
        ),
        pytest.param((_step("reviewer", approved=True),), "tester", id="approved"),
        pytest.param((_step("reviewer", approved=False),), "coder", id="changes"),
        pytest.param((_step("tester", passed=True),), "committer", id="passed"),
        pytest.param((_step("tester", passed=False),), "coder", id="failed"),
        pytest.param((_step("committer"),), "$END", id="committed"),
    ],
)
def test_a_workflow_of_phases_goes_on_until_all_are_done(
    steps: tuple[Step, ...], role: str
) -> None:
    found = _route(DEVELOP, *steps)

    assert isinstance(found, Routed)
    assert found.role == role


# --- bounds ---


@pytest.mark.parametrize(
    "name", ["$now()", "$millis()", "$random()", "$shuffle([1,2])", "$eval('1')"]
)
def test_what_verify_could_not_repeat_is_refused(name: str) -> None:
    found = _holds(name)

    assert isinstance(found, Fault)
    assert "not allowed" in found.message


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        pytest.param("($f := function($x){$f($x)}; $f(1))", "evaluations", id="loop"),
        pytest.param(
            "($f := function($x){1 + $f($x)}; $f(1))", f"{MAX_DEPTH} levels", id="deep"
        ),
        pytest.param("(" * 5000 + ")" * 5000, "nested", id="nested"),
        pytest.param("1 +", "end of expression", id="syntax"),
        pytest.param("$nothing()", "non-function", id="unknown-function"),
        pytest.param("$error('no\\nway')", "no way", id="own-error"),
        pytest.param(
            "$length($reduce([1..40], function($x, $i){$x & $x}, 'aaaa')) > 1",
            "text longer than",
            id="doubling",
        ),
    ],
)
def test_an_expression_that_cannot_be_evaluated_is_a_fault(
    expression: str, words: str
) -> None:
    found = _holds(expression)

    assert isinstance(found, Fault)
    assert words in found.message
    assert "\n" not in found.message


@pytest.mark.parametrize(
    ("expression", "limit"),
    [
        pytest.param("$length($pad('x', 3000000000)) > 1", "512 MiB of memory"),
        pytest.param(
            f"$contains('{'a' * 60}!', /^(a+)+$/)",
            "5 seconds",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["memory", "pattern"],
)
def test_out_of_time_or_memory_is_no_answer(expression: str, limit: str) -> None:
    with pytest.raises(OverrunError) as told:
        _holds(expression)

    assert told.value.limit == limit
    assert told.value.what.startswith("condition '$")


def test_a_reply_whose_condition_runs_out_is_kept_and_not_routed(
    store: Store, ledger: Ledger, tmp_path: Path
) -> None:
    endless = Choice(role="critic", prompt="x", when="$length($pad('x', 3000000000))")
    workflow = make_workflow(graph={**make_workflow().graph, "worker": (endless,)})
    tip = start_thread(
        ledger, workflow=workflow, data=_data(workflow), prompt="t", cwd=tmp_path
    )

    go(ledger, tip.thread, DONE)

    state = load_tip(store, tip.thread).state
    assert (state.status, state.steps) == ("suspended", 0)
    assert state.suspend_message is not None
    assert state.suspend_message.startswith("condition '$length(")
    assert_verified(store)


def test_evaluating_leaves_the_interpreter_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = sys.getrecursionlimit()

    _holds("$count(steps)", PLANNED)

    assert sys.getrecursionlimit() == before
    assert capsys.readouterr().out == ""


def test_an_expression_cannot_change_what_the_next_one_sees() -> None:
    evaluator = make_evaluator((PLANNED,), task="t", thread="T")

    evaluator("steps ~> |$|{'role': 'x'}|")

    assert evaluator("steps[0].role = 'planner'") is True


@pytest.mark.parametrize(
    ("expression", "is_wrong"), [("a.b = 1", False), ("a.(", True)], ids=["good", "bad"]
)
def test_a_syntax_error_is_found_without_a_thread(
    expression: str, *, is_wrong: bool
) -> None:
    assert (find_syntax_error(expression) is not None) is is_wrong


# --- in the engine ---

LOOP: Final = make_workflow(
    graph={
        **make_workflow().graph,
        "worker": (
            Choice(role="worker", prompt="Again.", when="$count(steps) < 2"),
            Choice(role="critic", prompt="Judge.", when="$last('worker')"),
        ),
    }
)


def test_steps_are_read_only_where_there_is_a_condition() -> None:
    def steps() -> Iterator[Step]:
        yield _step("critic", 1, {"$status": "bad", "reason": "x"})
        pytest.fail("an older step was read")

    assert isinstance(base_prompt(LOOP, steps(), task="t", thread="T"), Routed)


def test_the_base_prompt_sees_the_steps_up_to_the_one_it_follows() -> None:
    worker = _step("worker", 1, {"$status": "done", "plan": "p"})
    waiting = _step("worker", 1, {"$status": "$SUSPEND", "reason": "?"})

    found = base_prompt(LOOP, (waiting, worker), task="t", thread="T")

    assert isinstance(found, Routed)
    assert found.prompt == "Again."


def test_the_outcome_of_a_step_sees_that_step() -> None:
    worker = _step("worker", 1, {"$status": "done", "plan": "p"})
    chain = (worker, worker)

    one, two = (
        outcome_of(
            LOOP,
            "worker",
            worker.output,
            "",
            task="t",
            thread="T",
            newest_first=steps,
        )
        for steps in (chain[:1], chain)
    )

    assert (one.current_role, two.current_role) == ("worker", "critic")


def _data(workflow: Workflow) -> bytes:
    return dump_yaml(workflow_document(workflow)).encode()


DONE: Final = "---\n$status: done\nplan: p\n---\n"


def _begin(ledger: Ledger, folder: Path, workflow: Workflow) -> None:
    tip = start_thread(
        ledger,
        workflow=workflow,
        data=_data(workflow),
        prompt="t",
        cwd=folder,
    )
    go(ledger, tip.thread, DONE)


def test_without_the_extra_nothing_is_started(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jsonata", None)

    with pytest.raises(ConfigError) as raised:
        _begin(ledger, tmp_path, LOOP)

    assert raised.value.message.endswith("pip install 'uwfgit[jsonata]'")
    assert "\n" not in raised.value.message


def test_without_the_extra_no_agent_works_in_vain(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tip = start_thread(
        ledger,
        workflow=LOOP,
        data=_data(LOOP),
        prompt="t",
        cwd=tmp_path,
    )
    monkeypatch.setitem(sys.modules, "jsonata", None)

    with pytest.raises(ConfigError):
        go(ledger, tip.thread, DONE)


def test_without_the_extra_other_workflows_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jsonata", None)
    last = Choice(role="worker", prompt="x")

    require_conditions(make_workflow())
    require_conditions(replace(LOOP, graph={"worker": (last,)}))
    assert isinstance(base_prompt(make_workflow(), (), task="t", thread="T"), Routed)
    assert find_syntax_error("a.(") is None


def test_an_expression_is_evaluated_over_the_context_alone() -> None:
    assert evaluate("$count(steps) = 0 and x = 1", {"steps": [], "x": 1}) is True


CHOOSING: Final = make_workflow(
    graph={
        "$START": (
            Choice(role="critic", prompt="No.", when="depth > 0 or workflowHash = ''"),
            Choice(
                role="worker",
                prompt="Begin.",
                when="start.prompt = 't' and $exists(start.cwd) and threadId != ''",
            ),
        ),
        "worker": (
            Choice(role="worker", prompt="Again.", when="$count(steps) < 2"),
            Choice(
                role="critic",
                prompt="Judge {{plan}}.",
                when="steps[-1].detail != '' and steps[-1].timestamp > 0",
            ),
        ),
        "critic": {
            "good": Target(role="$END", prompt="Over."),
            "bad": Target(role="worker", prompt="Fix it: {{reason}}"),
        },
    }
)

ASK: Final = "---\n$status: $SUSPEND\nreason: why?\n---\n"
BAD: Final = "---\n$status: bad\nreason: x\n---\n"
GOOD: Final = "---\n$status: good\n---\n"


def test_a_thread_with_conditions_verifies(
    store: Store, ledger: Ledger, tmp_path: Path
) -> None:
    thread = start_thread(
        ledger,
        workflow=CHOOSING,
        data=_data(CHOOSING),
        prompt="t",
        cwd=tmp_path,
    ).thread
    go(ledger, thread, DONE, ASK)
    resume_thread(acting(ledger, saying(DONE)), thread, note="so")
    go(ledger, thread, BAD)
    poke_thread(acting(ledger, saying(BAD)), thread, note="again")
    fork = fork_thread(ledger, thread, at=1).thread
    go(ledger, thread, DONE, GOOD)
    resume_thread(acting(ledger, saying(DONE)), thread, note="more")
    go(ledger, fork, DONE, GOOD)

    steps = open_record(store, thread).steps()

    assert_verified(store)
    assert [step.role for step in steps] == [
        "worker",
        "worker",
        "worker",
        "critic",
        "worker",
        "critic",
        "worker",
    ]
