from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import WORKFLOW, Uwf

SCRIPT = ("--script", "replies.yaml")
TEXT = """\
1. writer
   │ Write it.
   → done

2. checker
   │ Check one
   → bad

3. writer
   │ Fix: too short
   → done

4. checker
   │ Check two
   → good

5. $END
   │ Good.

end
"""
ALL_PATHS = """\
1. writer   $START: new
   │ Write it.

2. checker   writer: done
   │ Check <text>

3. $END   checker: good
   │ Good.

4. writer   $START: resume
   │ Write it again.

5. $END   writer: stuck
   │ Stuck.

6. writer   $START: resume (as above)

7. checker   writer: done (as above)

8. writer   checker: bad
   │ Fix: <why>

6 of 6 edges taken
"""


def test_a_script_gives_the_steps_a_thread_would_have(uwf: Uwf, home: Path) -> None:
    walked = uwf("workflow", "simulate", "ping.yaml", *SCRIPT)

    assert (walked.code, walked.out) == (0, TEXT)
    assert "note: 1 reply of 'writer' not used" in walked.err.splitlines()
    assert not (home / "store").exists()


def test_replies_without_a_status_are_used_too(uwf: Uwf, work: Path) -> None:
    (work / "one.yaml").write_text(
        "version: 1\nname: one\ndescription: d\nroles:\n"
        "  a: { description: A, goal: g, capabilities: [], procedure: p, output: o,\n"
        "    frontmatter: { type: object, properties: { n: { type: integer } } } }\n"
        "graph:\n  $START:\n    new: { role: a, prompt: Go }\n"
        "    resume: { role: a, prompt: On }\n  a: [{ role: $END, prompt: Done }]\n"
    )
    (work / "one.replies.yaml").write_text(
        'replies: { a: ["---\\nn: 1\\n---\\n", "---\\nn: 2\\n---\\n"] }\n'
    )

    walked = uwf("workflow", "simulate", "one.yaml", "--script", "one.replies.yaml")

    assert walked.code == 0
    assert walked.err == "note: 1 reply of 'a' not used\n"


def test_it_agrees_with_the_thread_that_the_script_runs(uwf: Uwf, ended: str) -> None:
    walked = uwf("workflow", "simulate", "ping.yaml", *SCRIPT, "--json").json
    items = uwf("step", "list", ended, "--json").json["items"]
    prompts = [
        uwf("step", "show", item["hash"], "--json").json["edgePrompt"] for item in items
    ]

    assert [(s["role"], s["status"], s["prompt"]) for s in walked["steps"][:-1]] == [
        (item["role"], item["status"], prompt)
        for item, prompt in zip(items, prompts, strict=True)
    ]


def test_json_names_what_is_missing(uwf: Uwf, work: Path) -> None:
    text = WORKFLOW.replace("Write it.", "Write {{lost}} now.")
    (work / "ping.yaml").write_text(text)

    walked = uwf("workflow", "simulate", "ping.yaml", *SCRIPT, "--json").json

    assert list(walked) == ["steps", "status", "done", "message"]
    assert (walked["status"], walked["done"]) == ("end", True)
    assert walked["steps"][0] == {
        "number": 1,
        "role": "writer",
        "status": "done",
        "prompt": "Write  now.",
        "location": None,
        "missing": ["lost"],
        "optional": [],
        "warnings": [],
        "problems": [],
        "error": None,
        "walk": 1,
    }


def test_a_role_that_waits_is_asked_again(uwf: Uwf) -> None:
    script = ("--script", "asking.yaml")

    walked = uwf("workflow", "simulate", "ping.yaml", *script, "--json")

    assert walked.code == 0
    assert [s["status"] for s in walked.json["steps"]] == ["$SUSPEND", "stuck", None]


def test_a_script_of_another_workflow_is_told_and_fails(uwf: Uwf, work: Path) -> None:
    (work / "other.yaml").write_text("replies: {someone: [x]}\n")

    walked = uwf("workflow", "simulate", "ping.yaml", "--script", "other.yaml")

    assert walked.code == 1
    assert walked.out.endswith(
        "idle: script 'other.yaml' has no replies of role 'writer' (someone)\n"
    )


def test_a_reply_that_does_not_fit_is_refused_with_its_problems(
    uwf: Uwf, work: Path
) -> None:
    bad = "---\\n$status: done\\n---\\n"
    (work / "bad.yaml").write_text(f'replies: {{writer: ["{bad}"]}}\n')

    walked = uwf("workflow", "simulate", "ping.yaml", "--script", "bad.yaml")

    assert walked.code == 1
    assert "   refused: text: is required but missing\n   → error\n" in walked.out
    assert "ends at number 1 of role 'writer', asked for number 2" in walked.out


def test_corrections_of_a_script_are_used(uwf: Uwf, work: Path) -> None:
    (work / "script.yaml").write_text(
        'replies: {writer: [["no block", "---\\n$status: stuck\\n---\\n"]]}\n'
    )

    walked = uwf(
        "workflow", "simulate", "ping.yaml", "--script", "script.yaml", "--json"
    )

    assert [s["status"] for s in walked.json["steps"]] == ["stuck", None]


def test_all_paths_take_every_edge(uwf: Uwf, home: Path) -> None:
    walked = uwf("workflow", "simulate", "ping.yaml", "--all-paths")

    assert (walked.code, walked.out) == (0, ALL_PATHS)
    assert not (home / "store").exists()


def test_all_paths_fail_on_a_prompt_that_renders_blank(uwf: Uwf, work: Path) -> None:
    (work / "ping.yaml").write_text(WORKFLOW.replace('"Write it."', '"{{lost}}"'))

    walked = uwf("workflow", "simulate", "ping.yaml", "--all-paths", "--json")

    assert walked.code == 1
    assert "renders blank" in walked.json["steps"][0]["error"]
    assert walked.json["edges"] == 6
    assert len(walked.json["left"]) == 5


def test_the_task_stands_in_the_prompts(uwf: Uwf, work: Path) -> None:
    (work / "ping.yaml").write_text(WORKFLOW.replace("Write it.", "Do {{{_prompt}}}"))

    walked = uwf("workflow", "simulate", "ping.yaml", *SCRIPT, "-p", "this", "--json")

    assert walked.json["steps"][0]["prompt"] == "Do this"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param((), "there is no terminal to ask for statuses", id="no-terminal"),
        pytest.param(
            (*SCRIPT, "--all-paths"),
            "--script and --all-paths exclude each other",
            id="both",
        ),
    ],
)
def test_misuse_is_one_line(uwf: Uwf, words: tuple[str, ...], message: str) -> None:
    walked = uwf("workflow", "simulate", "ping.yaml", *words, "--json", stdin=b"")

    assert (walked.code, walked.error["message"]) == (2, message)


def test_on_a_terminal_it_asks_for_each_status(work: Path) -> None:
    controller, terminal = pty.openpty()
    os.write(controller, b"1\nlost\nbad\n$SUSPEND\n\n")
    done = subprocess.run(
        [sys.executable, "-m", "uwfgit", "workflow", "simulate", "ping.yaml"],
        cwd=work,
        stdin=terminal,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    os.close(terminal)
    os.close(controller)

    assert done.returncode == 0, done.stderr
    chosen = [line for line in done.stdout.splitlines() if "→" in line]
    assert chosen == ["   → done", "   → bad", "   → $SUSPEND"]
    assert "   │ Fix: <why>\n" in done.stdout
    assert done.stdout.endswith("idle: stopped here\n")
    assert "status (1 done, 2 stuck, 3 $SUSPEND; Enter stops): " in done.stderr
    assert "'lost' is none of them" in done.stderr
