from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwfgit.engine.decide.moderator import RESUME_PROMPT, Routed, RoutingError, route
from uwfgit.errors import ConfigError
from uwfgit.model.workflow.workflow import Choice, Edges, Target
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
