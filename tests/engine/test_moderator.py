from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import make_step, make_workflow
from uwfgit.engine.decide.moderator import (
    RESUME_PROMPT,
    Routed,
    RoutingError,
    base_prompt,
    is_routing_error,
    outcome_of,
    route,
)
from uwfgit.errors import ConfigError
from uwfgit.model.thread.state import StepOutcome
from uwfgit.model.thread.step import Step
from uwfgit.model.workflow.workflow import Choice, Edges, Target, Workflow
from uwfgit.store.canonical import Json


def _to(role: str, prompt: str = "Go.", location: str | None = None) -> Target:
    return Target(role=role, prompt=prompt, location=location)


GRAPH: Mapping[str, Edges] = {
    "$START": {"new": _to("planner"), "resume": _to("reviewer", "Look again.")},
    "planner": {
        "ready": _to("coder", "Do {{{plan}}} & {{a.b.c}}.", "{{{path}}}"),
        "text": _to("coder", "Fix {{x}}"),
        "only": _to("coder", " {{x}}\n"),
        "static": _to("coder", "Go.", "/srv"),
        "two": _to("coder", "Go.", "{{path}}/{{sub}}"),
        "blank-place": _to("coder", "Go.", " {{path}} "),
        "status": _to("coder", "It is {{$status}}."),
        "body": _to("coder", "{{_body}} {{_prompt}} {{_thread}}"),
        "huge": _to("coder", "{{x}}"),
        "huge-place": _to("coder", "Go.", "{{x}}"),
        "broken": _to("coder", "{{#x}}"),
        "end": _to("$END", "Over."),
        "blank-end": _to("$END", "{{x}}"),
    },
    "chooser": (
        Choice(role="coder", prompt="First {{x}}."),
        Choice(role="planner", prompt="Go."),
    ),
    "empty": (),
    "lonely": {},
}
INJECTED = {"_body": "B", "_prompt": "P", "_thread": "T"}


def _routed(
    role: str,
    prompt: str = "Go.",
    location: str | None = None,
    missing: tuple[str, ...] = (),
) -> Routed:
    return Routed(role=role, prompt=prompt, location=location, missing=missing)


@pytest.mark.parametrize(
    ("role", "output", "expected"),
    [
        pytest.param("$START", {"$status": "new"}, _routed("planner"), id="new"),
        pytest.param(
            "$START",
            {"$status": "resume"},
            _routed("reviewer", "Look again."),
            id="resume",
        ),
        pytest.param(
            "planner",
            {"$status": "ready", "plan": '<b> & "c"', "a": {"b": {"c": 1}}},
            _routed("coder", 'Do <b> & "c" & 1.', None, ("path",)),
            id="values-as-they-are",
        ),
        pytest.param(
            "planner",
            {"$status": "text"},
            _routed("coder", "Fix ", None, ("x",)),
            id="text-beside-a-missing-variable",
        ),
        pytest.param(
            "planner",
            {"$status": "static"},
            _routed("coder", "Go.", "/srv"),
            id="place",
        ),
        pytest.param(
            "planner",
            {"$status": "two", "path": "/a", "sub": "b"},
            _routed("coder", "Go.", "/a/b"),
            id="rendered-place",
        ),
        pytest.param(
            "planner",
            {"$status": "blank-place", "path": ""},
            _routed("coder"),
            id="blank-place-is-none",
        ),
        pytest.param(
            "planner",
            {"$status": "status"},
            _routed("coder", "It is status."),
            id="status-as-a-variable",
        ),
        pytest.param(
            "planner",
            {"$status": "body", "_body": "mine"},
            _routed("coder", "B P T"),
            id="injected-values-win",
        ),
        pytest.param("planner", {"$status": "end"}, _routed("$END", "Over."), id="end"),
        pytest.param(
            "chooser", {"x": 1}, _routed("coder", "First 1."), id="list-without-status"
        ),
    ],
)
def test_route_leads_to(
    role: str, output: Mapping[str, Json], expected: Routed
) -> None:
    assert route(GRAPH, role, output, injected=INJECTED) == expected


@pytest.mark.parametrize(
    ("role", "output", "code", "words"),
    [
        pytest.param("planner", {}, "no-status planner -", "planner", id="no-status"),
        pytest.param(
            "planner", {"$status": 1}, "no-status planner -", "planner", id="number"
        ),
        pytest.param(
            "planner", {"$status": ""}, "no-status planner -", "planner", id="no-text"
        ),
        pytest.param("gone", {}, "no-status gone -", "gone", id="neither"),
        pytest.param(
            "gone", {"$status": "x"}, "no-node gone x", "no edges", id="no-node"
        ),
        pytest.param(
            "planner",
            {"$status": "pending"},
            "no-edge planner pending",
            "'pending' (it has 'ready', 'text'",
            id="no-edge",
        ),
        pytest.param(
            "lonely", {"$status": "x"}, "no-edge lonely x", "it has none", id="no-edges"
        ),
        pytest.param(
            "empty", {"$status": "x"}, "no-match empty x", "matches", id="no-match"
        ),
        pytest.param("empty", {}, "no-match empty -", "matches", id="no-match-status"),
        pytest.param(
            "planner",
            {"$status": "only"},
            "blank planner only",
            "'planner' on 'only' to 'coder' renders blank: '{{x}}'",
            id="blank",
        ),
        pytest.param(
            "planner",
            {"$status": "only", "x": " \n"},
            "blank planner only",
            "",
            id="ws",
        ),
        pytest.param(
            "planner", {"$status": "blank-end"}, "blank planner blank-end", "", id="end"
        ),
        pytest.param(
            "planner",
            {"$status": "huge", "x": "y" * 2**21},
            "blank planner huge",
            "1 MiB",
            id="too-large",
        ),
        pytest.param(
            "planner",
            {"$status": "huge-place", "x": "y" * 2**21},
            "blank planner huge-place",
            "1 MiB",
            id="place-too-large",
        ),
        pytest.param(
            "planner",
            {"$status": "broken"},
            "blank planner broken",
            "never closed",
            id="template-that-does-not-parse",
        ),
    ],
)
def test_route_finds_nothing(
    role: str, output: Mapping[str, Json], code: str, words: str
) -> None:
    found = route(GRAPH, role, output, injected=INJECTED)

    assert isinstance(found, RoutingError)
    assert found.code == f"routing: {code}"
    assert words in found.message


def test_start_without_resume_leads_to_the_first_role_again() -> None:
    graph: Mapping[str, Edges] = {"$START": {"new": _to("planner", "x", "/srv")}}

    found = route(graph, "$START", {"$status": "resume"}, injected=INJECTED)

    assert found == _routed("planner", RESUME_PROMPT, "/srv")


def test_only_start_has_a_resume_of_its_own() -> None:
    graph: Mapping[str, Edges] = {"planner": {"new": _to("planner")}}

    found = route(graph, "planner", {"$status": "resume"}, injected=INJECTED)

    assert isinstance(found, RoutingError)


def test_a_condition_before_the_first_plain_edge_names_the_extra() -> None:
    first = Choice(role="coder", prompt="Go.", when="steps[0].output.ok")
    plain = Choice(role="b", prompt="Go.")

    with pytest.raises(ConfigError) as raised:
        route({"a": (first, plain)}, "a", {}, injected=INJECTED)

    assert raised.value.message.endswith("pip install 'uwfgit[jsonata]'")


def test_a_condition_after_the_first_plain_edge_is_never_reached() -> None:
    plain = Choice(role="b", prompt="Go.")
    last = Choice(role="coder", prompt="Go.", when="true")

    found = route({"a": (plain, last)}, "a", {}, injected=INJECTED)

    assert found == _routed("b")


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text("x {}é\n", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abx.", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
_NAMES = st.sampled_from(["$status", "plan", "path", "x", "a", "_body"])
_STATUSES = st.sampled_from([*GRAPH["planner"], "new", "resume", "other"])


@given(
    role=st.sampled_from([*GRAPH, "gone"]),
    output=st.dictionaries(_NAMES, _JSON, max_size=4),
    status=_STATUSES,
)
def test_route_is_total_and_deterministic(
    role: str, output: dict[str, Json], status: str
) -> None:
    output["$status"] = status

    found = route(GRAPH, role, output, injected=INJECTED)

    assert isinstance(found, (Routed, RoutingError))
    if isinstance(found, Routed):
        assert found.prompt.strip()
        assert found.location is None or found.location.strip()
    assert found == route(GRAPH, role, output, injected=INJECTED)


FLOW: Final = make_workflow(
    graph={
        "$START": {
            "new": Target(role="worker", prompt="Begin {{_thread}}: {{_prompt}}"),
            "resume": Target(role="critic", prompt="Again: {{_body}}|{{$status}}"),
        },
        "worker": {
            "done": Target(
                role="critic", prompt="Judge {{plan}}: {{_body}}", location="{{plan}}"
            ),
            "blank": Target(role="critic", prompt="{{nothing}} "),
        },
        "critic": {
            "good": Target(role="$END", prompt="Over."),
            "bad": Target(role="worker", prompt="Fix {{reason}}"),
        },
        "listed": (Choice(role="critic", prompt="Go on."),),
        "closed": (),
    }
)


def _step(role: str, body: str = "", **output: Json) -> Step:
    said = {key.replace("status", "$status"): item for key, item in output.items()}
    return make_step(role, body=body, output=said)


SUSPENDED: Final = _step("critic", status="$SUSPEND", reason="why?")


def _base(*newest_first: Step, flow: Workflow = FLOW) -> Routed | RoutingError:
    return base_prompt(flow, newest_first, task="the task", thread="T")


def test_a_thread_begins_with_new() -> None:
    assert _base() == Routed(role="worker", prompt="Begin T: the task", location=None)


def test_a_step_follows_the_newest_before_it() -> None:
    older = _step("critic", status="bad", reason="x")
    newest = _step("worker", "\n Did it. \n", status="done", plan="p")

    assert _base(newest, older) == Routed(
        role="critic", prompt="Judge p: Did it.", location="p"
    )


@pytest.mark.parametrize("count", [1, 2, 5])
def test_suspended_steps_are_passed_over(count: int) -> None:
    done = _step("worker", status="done", plan="p")

    assert _base(*[SUSPENDED] * count, done) == _base(done)


def test_with_only_suspended_steps_a_thread_begins_anew() -> None:
    assert _base(SUSPENDED, SUSPENDED) == _base()


def test_an_ended_thread_goes_on_with_resume_and_what_was_said_last() -> None:
    good = _step("critic", "Well done.", status="good")

    assert _base(good) == Routed(
        role="critic", prompt="Again: Well done.|resume", location=None
    )


def test_a_resumed_thread_that_waits_begins_with_resume_again() -> None:
    good = _step("critic", "Well done.", status="good")

    assert _base(SUSPENDED, good) == _base(good)


def test_without_resume_the_first_role_reviews() -> None:
    graph = {**FLOW.graph, "$START": {"new": Target(role="worker", prompt="x")}}

    found = _base(_step("critic", status="good"), flow=make_workflow(graph=graph))

    assert found == Routed(role="worker", prompt=RESUME_PROMPT, location=None)


def test_no_more_steps_are_read_than_needed() -> None:
    def steps() -> Iterator[Step]:
        yield SUSPENDED
        yield _step("worker", status="done", plan="p")
        pytest.fail("an older step was read")

    found = base_prompt(FLOW, steps(), task="t", thread="T")

    assert isinstance(found, Routed)


def test_an_injected_value_wins_over_a_field_of_its_name() -> None:
    flow = make_workflow(
        graph={"worker": {"done": Target(role="critic", prompt="{{_prompt}}")}}
    )

    found = _base(_step("worker", status="done", _prompt="forged"), flow=flow)

    assert isinstance(found, Routed)
    assert found.prompt == "the task"


def _outcome(role: str, output: Mapping[str, Json]) -> StepOutcome:
    return outcome_of(FLOW, role, output, "", task="the task", thread="T")


@pytest.mark.parametrize(
    ("role", "output", "expected"),
    [
        pytest.param(
            "worker",
            {"$status": "done", "plan": "p"},
            StepOutcome(status="idle", current_role="critic", next="critic"),
            id="a-role",
        ),
        pytest.param(
            "critic",
            {"$status": "good"},
            StepOutcome(status="end", next="$END"),
            id="the-end",
        ),
        pytest.param(
            "listed",
            {"x": 1},
            StepOutcome(status="idle", current_role="critic", next="critic"),
            id="a-list-without-status",
        ),
        pytest.param(
            "critic",
            {"$status": "$SUSPEND", "reason": "which?"},
            StepOutcome(
                status="suspended", suspended_role="critic", suspend_message="which?"
            ),
            id="a-person-is-asked",
        ),
        pytest.param(
            "unknown",
            {"$status": "$SUSPEND", "reason": "which?"},
            StepOutcome(
                status="suspended", suspended_role="unknown", suspend_message="which?"
            ),
            id="the-moderator-is-not-asked",
        ),
        *(
            pytest.param(
                role,
                output,
                StepOutcome(
                    status="suspended",
                    suspended_role=role,
                    suspend_message=f"routing: {code}",
                ),
                id=code.partition(" ")[0],
            )
            for role, output, code in (
                ("worker", {"x": 1}, "no-status worker -"),
                ("unknown", {"$status": "done"}, "no-node unknown done"),
                ("worker", {"$status": "lost"}, "no-edge worker lost"),
                ("closed", {"$status": "done"}, "no-match closed done"),
                ("worker", {"$status": "blank"}, "blank worker blank"),
            )
        ),
    ],
)
def test_a_step_leaves_the_thread_in_one_state(
    role: str, output: dict[str, Any], expected: StepOutcome
) -> None:
    assert _outcome(role, output) == expected


@pytest.mark.parametrize(
    ("message", "is_error"),
    [
        pytest.param(None, False, id="none"),
        pytest.param("which?", False, id="a-question"),
        pytest.param("routing: blank worker done", True, id="routing"),
    ],
)
def test_a_routing_error_is_told_by_its_message(
    message: str | None,
    is_error: bool,  # noqa: FBT001 - a table's column
) -> None:
    assert is_routing_error(message) is is_error
