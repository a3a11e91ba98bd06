# ruff: noqa: RUF001 - the pictures count with the sign for times

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calls import WORKFLOW, Uwf

PICTURE = """\
$START
 │ new, resume
 ▼
writer ◀─────────────┐
 ├─ stuck ──▶ $END   │
 │ done              │
 ▼                   │
checker              │
 ├─ bad ─────────────┘
 │ good
 ▼
$END
"""
WAY = """\
$START
 │ new 1×, resume
 ▼
writer 2× ◀──────────┐
 ├─ stuck ──▶ $END   │
 │ done 2×           │
 ▼                   │
checker 2×           │
 ├─ bad 1× ──────────┘
 │ good 1×
 ▼
$END (reached)
"""


def test_a_file_is_drawn_without_a_store(uwf: Uwf, home: Path) -> None:
    drawn = uwf("workflow", "graph", "ping.yaml")

    assert (drawn.code, drawn.out, drawn.err) == (0, PICTURE, "")
    assert not (home / "store").exists()


def test_a_thread_shows_its_way(uwf: Uwf, ended: str) -> None:
    assert uwf("workflow", "graph", "--thread", ended).out == WAY
    assert uwf("workflow", "graph", "ping.yaml", "--thread", ended).out == WAY


def test_json_has_the_picture_and_what_is_in_it(uwf: Uwf, ended: str) -> None:
    drawn = uwf("workflow", "graph", "--thread", ended, "--as", "dot", "--json").json

    assert list(drawn) == ["name", "as", "text", "nodes", "edges"]
    assert (drawn["name"], drawn["as"]) == ("ping", "dot")
    assert drawn["text"].startswith('digraph "ping" {')
    assert {
        "from": "checker",
        "status": "bad",
        "to": "writer",
        "loop": True,
        "count": 1,
    } in drawn["edges"]
    assert drawn["nodes"][1]["visits"] == 2


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        pytest.param(
            "mermaid", '---\ntitle: "ping"\n---\nflowchart TD\n', id="mermaid"
        ),
        pytest.param("dot", 'digraph "ping" {\n', id="dot"),
    ],
)
def test_other_languages_are_printed_bare(uwf: Uwf, form: str, begins: str) -> None:
    drawn = uwf("workflow", "graph", "ping.yaml", "--as", form)

    assert drawn.out.startswith(begins)


def test_a_file_with_errors_is_drawn_as_far_as_it_goes(uwf: Uwf, work: Path) -> None:
    (work / "ping.yaml").write_text(WORKFLOW.replace("role: checker", "role: chekcer"))

    drawn = uwf("workflow", "graph", "ping.yaml")

    assert drawn.code == 0
    assert "chekcer (no such role)" in drawn.out
    assert "not reachable from $START:\n\nchecker\n" in drawn.out
    assert "warning: ping.yaml has " in drawn.err


def test_a_file_without_a_graph_is_refused_with_its_errors(
    uwf: Uwf, work: Path
) -> None:
    (work / "ping.yaml").write_text("name: ping\n")

    drawn = uwf("workflow", "graph", "ping.yaml", "--json")

    assert (drawn.code, drawn.out) == (1, "")
    assert drawn.error["code"] == "invalid-workflow"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param((), "name a workflow, or a thread with --thread", id="nothing"),
        pytest.param(
            ("ping.yaml", "--as", "svg"), "--as: 'svg' is not a form", id="as"
        ),
    ],
)
def test_misuse_is_one_line(uwf: Uwf, words: tuple[str, ...], message: str) -> None:
    drawn = uwf("workflow", "graph", *words, "--json")

    assert (drawn.code, drawn.error["message"]) == (2, message)


def test_an_older_file_with_another_error_shows_its_conditions(
    uwf: Uwf, work: Path
) -> None:
    (work / "ping.yaml").write_text(
        WORKFLOW.replace(
            '    good: { role: $END, prompt: "Good." }\n'
            '    bad: { role: writer, prompt: "Fix: {{{why}}}" }\n',
            "    - { role: writer, prompt: Fix., condition: poor }\n"
            "    - { role: $END, prompt: Good. }\n",
        )
        .replace("graph:\n", "conditions: { poor: 1 = 2 }\ngraph:\n")
        .replace("    goal: ", "    gaol: ", 1)
    )

    drawn = uwf("workflow", "graph", "ping.yaml")

    assert drawn.code == 0
    assert "1 = 2" in drawn.out
