"""Pictures in text, Mermaid and DOT.

What the real Mermaid and Graphviz make of them was looked at by hand; the
forms they accepted are fixed here.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import make_role, make_workflow, variant
from tests.model.drawing import ODD, chart
from uwfgit.model.picture.chart import chart_of
from uwfgit.model.picture.columns import display_width
from uwfgit.model.picture.dot import dot_picture
from uwfgit.model.picture.mermaid import mermaid_picture
from uwfgit.model.picture.text import text_picture
from uwfgit.model.workflow.source import read_workflow
from uwfgit.model.workflow.workflow import Edges, Target

EXAMPLES = Path(__file__).parents[2] / "examples"
LOST = {
    "$START": {"new": "a"},
    "a": {"done": "$END", "odd": "ghost", "again": "a"},
    "lost": {"done": "a", "back": "lost"},
}

SOLVE_ISSUE = """\
$START
 │ new, resume
 ▼
planner ◀────────────────────────┐
 ├─ insufficient_info ──▶ $END   │
 │ ready                         │
 ▼                               │
developer ◀──────────────────────│───┐
 ├─ blocked ─────────────────────┤   │
 │ done                          │   │
 ▼                               │   │
reviewer                         │   │
 ├─ rejected ────────────────────│───┤
 │ approved                      │   │
 ▼                               │   │
tester                           │   │
 ├─ fix_code ────────────────────│───┤
 ├─ fix_spec ────────────────────┘   │
 │ passed                            │
 ▼                                   │
committer                            │
 ├─ hook_failed ─────────────────────┘
 │ committed
 ▼
$END
"""
NARROW = """\
$START
 │ new, resume
 ▼
planner
 ├─ insufficient_info ──▶ $END
 │ ready
 ▼
developer ◀──────────────────┐
 ├─ blocked ──▶ planner ↑    │
 │ done                      │
 ▼                           │
reviewer                     │
 ├─ rejected ────────────────┤
 │ approved                  │
 ▼                           │
tester                       │
 ├─ fix_code ────────────────┤
 ├─ fix_spec ──▶ planner ↑   │
 │ passed                    │
 ▼                           │
committer                    │
 ├─ hook_failed ─────────────┘
 │ committed
 ▼
$END
"""
WITH_LOST = """\
$START
 │ new
 ▼
a
 ├─ odd ──▶ ghost (no such role)
 ├─ again ──↺ a
 │ done
 ▼
$END

not reachable from $START:

lost
 ├─ done ──▶ a
 └─ back ──↺ lost
"""


def widest(picture: str) -> int:
    return max(map(display_width, picture.splitlines()))


def test_solve_issue_in_text() -> None:
    workflow = read_workflow(EXAMPLES / "solve-issue.yaml").workflow

    assert text_picture(chart_of(workflow)) == SOLVE_ISSUE


def test_where_lanes_do_not_fit_edges_name_their_target() -> None:
    workflow = read_workflow(EXAMPLES / "solve-issue.yaml").workflow

    assert text_picture(chart_of(workflow), width=34) == NARROW


def test_what_cannot_be_reached_stands_apart() -> None:
    assert text_picture(chart(LOST, "a", "lost")) == WITH_LOST


def test_that_the_end_cannot_be_reached_is_told() -> None:
    picture = text_picture(chart({"$START": {"new": "a"}, "a": {"x": "a"}}))

    assert "a (no way to $END)\n" in picture
    assert picture.endswith("\n$END is not reachable.\n")


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda f: f.name)
def test_every_example_fits_a_terminal(file: Path) -> None:
    if file.stem.endswith(".replies"):
        return
    picture = text_picture(chart_of(read_workflow(file).workflow))

    assert widest(picture) <= 80


_NAMES = ["$START", "$END", *"abcdefgh", "a-very-long-name-" + "x" * 47]
_EDGES = st.lists(
    st.tuples(st.sampled_from(_NAMES), st.text(max_size=70), st.sampled_from(_NAMES)),
    max_size=25,
)


@given(_EDGES, st.integers(20, 120))
def test_no_graph_is_wider_than_asked_for(
    edges: list[tuple[str, str, str]], width: int
) -> None:
    graph: dict[str, dict[str, str]] = {"$START": {"new": "a"}}
    for source, status, target in edges:
        graph.setdefault(source, {})[status] = target
    drawn = chart(graph, *_NAMES[2:])

    picture = text_picture(drawn, width=width)

    sentences = ("not reachable from $START:", "$END is not reachable.")
    lines = [line for line in picture.splitlines() if line not in sentences]
    assert max(map(display_width, lines)) <= width
    assert all(line.isprintable() for line in lines)


def test_every_edge_is_drawn_once() -> None:
    dice = random.Random(7)  # noqa: S311 - the same graph each time
    names = [f"r{i}" for i in range(9)]
    graph: dict[str, dict[str, str]] = {"$START": {"new": "r0"}}
    for name in names:
        targets = dice.sample([*names, "$END"], 3)
        graph[name] = {f"{name}s{i}": target for i, target in enumerate(targets)}

    picture = text_picture(chart(graph))

    labels = re.findall(r"\br\ds\d\b", picture)
    assert sorted(labels) == sorted(f"{name}s{i}" for name in names for i in range(3))


def test_mermaid_has_a_node_and_an_arrow_for_each() -> None:
    assert mermaid_picture(chart(LOST, "a", "lost")) == (
        "---\n"
        'title: "odd"\n'
        "---\n"
        "flowchart TD\n"
        '    n0(["$START"])\n'
        '    n1["a"]\n'
        '    n2["ghost (no such role)"]\n'
        '    n3(["$END"])\n'
        '    subgraph lost["not reachable from $START"]\n'
        '        n4["lost"]\n'
        "    end\n"
        '    n0 -->|"new"| n1\n'
        '    n1 -->|"done"| n3\n'
        '    n1 -->|"odd"| n2\n'
        '    n1 -.->|"again"| n1\n'
        '    n4 -->|"done"| n1\n'
        '    n4 -.->|"back"| n4\n'
        "    classDef terminal stroke-width:2px\n"
        "    class n0,n3 terminal\n"
        "    classDef unknown stroke:#c00,stroke-width:2px,stroke-dasharray:4 3\n"
        "    class n2 unknown\n"
        "    classDef lost stroke-dasharray:4 3\n"
        "    class n4 lost\n"
    )


def test_mermaid_gets_no_character_that_means_anything_to_it() -> None:
    picture = mermaid_picture(chart({"$START": {"new": "a"}, "a": ODD, "b": {}}))

    labels = re.findall(r'\|"(.*)"\|', picture)
    assert len(labels) == len(ODD) + 1
    for label in labels:
        plain = re.sub(r"#[0-9]+;", "", label)
        assert not set(plain) & set("\"'`<>[]{}|#;%&*.\\")
    decoded = [
        re.sub(r"#([0-9]+);", lambda m: chr(int(m[1])), label) for label in labels
    ]
    assert decoded == ["new", *ODD]


def test_dot_quotes_ids_and_labels() -> None:
    picture = dot_picture(
        chart({"$START": {"new": "a"}, "a": ODD, "b": {}}, name='odd "name"\\')
    )

    assert picture.startswith('digraph "odd \\"name\\"\\\\" {\n')
    assert r'label=" say \"hi\" <b>&amp;amp; [x]{y}|z| "' in picture
    assert r'label=" back\\slash\\ "' in picture
    assert '"a" -> "a" [label=" - minus ", style=dashed]' in picture


@pytest.mark.compat
@pytest.mark.skipif(shutil.which("dot") is None, reason="no Graphviz here")
@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(LOST, id="lost"),
        pytest.param({"$START": {"new": "a"}, "a": ODD, "b": {}}, id="odd"),
    ],
)
def test_graphviz_reads_dot(graph: dict[str, dict[str, str]]) -> None:
    done = subprocess.run(
        ["dot", "-Tplain"],
        input=dot_picture(chart(graph, "a", "b", "lost")).encode(),
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_picture_of_hundreds_of_roles_takes_its_time_and_no_more() -> None:
    role = make_role(variant("done"), variant("a"), variant("b"))
    names = [f"r{number}" for number in range(250)]
    start = Target(role=names[0], prompt="x")
    graph: dict[str, Edges] = {"$START": {"new": start, "resume": start}}
    for index, name in enumerate(names):
        graph[name] = {
            "done": Target(role=[*names, "$END"][index + 1], prompt="x"),
            "a": Target(role=names[index * 89 % 250], prompt="x"),
            "b": Target(role=names[index * 151 % 250], prompt="x"),
        }
    large = chart_of(make_workflow(roles=dict.fromkeys(names, role), graph=graph))

    before = time.process_time()
    drawn = text_picture(large)

    assert time.process_time() - before < 4
    assert drawn.count("\n") > 500
