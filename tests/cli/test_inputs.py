"""What a run is given, from the command line to the prompt that an agent reads."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.calls import WORKFLOW, Result, Uwf

INPUTS = """\
inputs:
  url: { type: string, minLength: 3, description: Where it is }
  depth: { type: integer, minimum: 1, default: 2 }
  rate: { type: number, default: 0.5 }
  deep: { type: boolean, default: false }
  tags: { type: array, items: { enum: [a, b] }, default: [] }
  mode: { enum: [fast, slow], default: fast }
  more:
    type: object
    properties: { who: { type: object, properties: { name: { type: string } } } }
    default: {}
  none: { type: [string, "null"], default: null }
"""
GIVEN = WORKFLOW.replace("name: ping", "name: given").replace(
    'new: { role: writer, prompt: "Write it." }',
    'new: { role: writer, prompt: "Write {{{_inputs.url}}}, {{_inputs.depth}} deep'
    '{{#_inputs.deep}}, all of it{{/_inputs.deep}}." }',
)
DEFAULTS: dict[str, Any] = {
    "url": "htt",
    "depth": 2,
    "rate": 0.5,
    "deep": False,
    "tags": [],
    "mode": "fast",
    "more": {},
    "none": None,
}
START = ("thread", "start", "given.yaml", "-p", "the task", "--json")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _given(work: Path) -> None:
    (work / "given.yaml").write_text(GIVEN + INPUTS)
    (work / "text").write_text("htt from a file\n")
    (work / "values.json").write_text('{"url": "https://j", "depth": 3}')
    (work / "values.yaml").write_text("url: https://y\ntags: [b]\n")
    (work / "list.json").write_text("[1]")
    (work / "broken.json").write_text("{")


def slow(*facts: Any, name: str) -> Any:  # noqa: ANN401 - a row of a table
    return pytest.param(*facts, id=name, marks=pytest.mark.slow)


def values_of(uwf: Uwf, started: Result) -> dict[str, Any]:
    """Read what a thread was given off its record."""
    assert started.code == 0, started.err
    thread = started.json["threadId"]
    found: dict[str, Any] = uwf("thread", "show", thread, "--json").json["inputs"]
    return found


URL = ("-i", "url=htt")


@pytest.mark.parametrize(
    ("words", "values"),
    [
        pytest.param(URL, {}, id="defaults"),
        pytest.param((*URL, "-i", "depth=5"), {"depth": 5}, id="integer"),
        slow((*URL, "-i", "depth=5.0"), {"depth": 5}, name="whole-number"),
        slow((*URL, "-i", "rate=1e-3"), {"rate": 0.001}, name="number"),
        slow((*URL, "-i", "deep=true"), {"deep": True}, name="boolean"),
        slow((*URL, "-i", 'tags=["a","b"]'), {"tags": ["a", "b"]}, name="json"),
        slow((*URL, "-i", "tags=[a, b]"), {"tags": ["a", "b"]}, name="yaml"),
        pytest.param((*URL, "-i", "mode=slow"), {"mode": "slow"}, id="enum"),
        pytest.param(
            (*URL, "-i", 'more={"who": {"name": "Ada"}}'),
            {"more": {"who": {"name": "Ada"}}},
            id="nested",
        ),
        slow((*URL, "-i", "none=null"), {"none": "null"}, name="text-or-null"),
        slow(("-i", "url=123"), {"url": "123"}, name="digits-are-text"),
        slow(("-i", "url=a=b=c"), {"url": "a=b=c"}, name="equals"),
        slow(("-i", "url=é {{_x}}"), {"url": "é {{_x}}"}, name="braces"),
        pytest.param(("-i", "url=@text"), {"url": "htt from a file\n"}, id="file"),
        pytest.param(
            (*URL, "-i", "url=later"),
            {"url": "later"},
            id="the-later-one-wins",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("--inputs", "values.json"),
            {"url": "https://j", "depth": 3},
            id="json-file",
        ),
        pytest.param(
            ("--inputs", "values.yaml"),
            {"url": "https://y", "tags": ["b"]},
            id="yaml-file",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("--inputs", "values.json", "-i", "depth=9"),
            {"url": "https://j", "depth": 9},
            id="option-over-file",
        ),
    ],
)
def test_what_is_given_is_recorded_with_the_defaults(
    uwf: Uwf, words: tuple[str, ...], values: dict[str, Any]
) -> None:
    started = uwf(*START, *words)

    assert values_of(uwf, started) == {**DEFAULTS, **values}


@pytest.mark.parametrize(
    "words", [("-i", "url=-"), ("--inputs", "-")], ids=["option", "file"]
)
def test_of_two_arguments_one_is_read_from_stdin(
    uwf: Uwf, words: tuple[str, str]
) -> None:
    refused = uwf(*START[:-2], "-", *words, stdin=b"url: htt://x")

    assert refused.code == 2
    assert "is '-', but stdin is that of " in refused.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        pytest.param((), 1, "url: a value is missing (Where it is)", id="missing"),
        slow(("-i", "url="), 1, "url: ", name="too-short"),
        slow((*URL, "-i", "depth=0"), 1, "depth: ", name="below-minimum"),
        pytest.param((*URL, "-i", "depth=many"), 1, "depth: ", id="no-integer"),
        slow((*URL, "-i", "depth="), 1, "depth: ", name="empty-integer"),
        slow((*URL, "-i", "rate=fast"), 1, "rate: ", name="no-number"),
        slow((*URL, "-i", "deep=yes"), 1, "deep: ", name="no-boolean"),
        slow((*URL, "-i", "tags=a"), 1, "tags: ", name="no-list"),
        pytest.param((*URL, "-i", "tags=[a, c]"), 1, "tags[1]: ", id="item"),
        slow((*URL, "-i", "tags=[a"), 1, "tags: ", name="cut-short"),
        slow((*URL, "-i", "mode=quick"), 1, "mode: ", name="no-enum"),
        pytest.param(
            (*URL, "-i", "more={who: {name: 5}}"), 1, "more.who.name: ", id="nested"
        ),
        pytest.param((*URL, "-i", "ur1=x"), 1, "ur1: no such input", id="unknown"),
        pytest.param(("-i", "url"), 2, "'url' is not NAME=VALUE", id="no-equals"),
        slow(("-i", "=x"), 2, "'=x' is not NAME=VALUE", name="no-name"),
        slow(("-i", "url=@gone"), 1, "gone", name="no-file"),
        slow(("--inputs", "gone.json"), 1, "gone.json", name="no-values-file"),
        pytest.param(
            ("--inputs", "list.json"), 1, "'list.json' is not a mapping", id="a-list"
        ),
        slow(("--inputs", "broken.json"), 1, "broken.json:1:", name="broken"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    uwf: Uwf, words: tuple[str, ...], code: int, told: str
) -> None:
    started = uwf(*START, *words)

    assert started.code == code
    assert told in started.error["message"]
    assert "Traceback" not in started.err
    # Not even a store was made for it.
    assert uwf("thread", "list", "--all", "--json").error["code"] == "not-found"


def typing(
    monkeypatch: pytest.MonkeyPatch, uwf: Uwf, text: str
) -> Callable[..., Result]:
    def call(*words: str) -> Result:
        with monkeypatch.context() as terminal:
            terminal.setattr(sys, "stdin", _Terminal(text))
            return uwf(*words)

    return call


def test_a_person_is_asked_for_what_is_missing_and_for_no_more(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = START[:-1]
    call = typing(monkeypatch, uwf, "https://typed\n")

    asked = call(*words)
    given = call(*words, "-i", "url=https://given")
    silent = typing(monkeypatch, uwf, "\n")(*words)
    machine = call(*START)

    assert asked.code == 0
    assert "Where it is\nurl: " in asked.err
    assert "depth" not in asked.err
    assert "url: " not in given.err
    assert (silent.code, machine.code) == (1, 1)
    assert "url: a value is missing" in silent.err
    shown = uwf("thread", "show", "@last", "--json").json["inputs"]
    assert shown["url"] == "https://given"


def test_what_is_typed_is_read_as_its_type(
    uwf: Uwf, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "given.yaml").write_text(
        WORKFLOW.replace("name: ping", "name: given")
        + "inputs:\n  url: {type: string}\n  depth: {type: integer}\n"
    )

    call = typing(monkeypatch, uwf, "12\n34\n")
    assert call(*START[:-1]).code == 0

    shown = uwf("thread", "show", "@last", "--json").json["inputs"]
    assert shown == {"url": "12", "depth": 34}


def test_prompts_say_what_the_run_was_given(uwf: Uwf) -> None:
    thread = uwf(*START, *URL, "-i", "deep=true").json["threadId"]
    uwf("thread", "exec", thread, "--agent", "scripted:replies.yaml")

    step = uwf("step", "show", f"{thread}:1", "--json").json
    told = uwf("step", "read", f"{thread}:1", "--prompt").out

    assert step["edgePrompt"] == "Write htt, 2 deep, all of it."
    assert "# What this run was given" in told
    assert 'mode: "fast"' in told


def test_a_thread_of_a_workflow_without_inputs_is_as_it_was(
    uwf: Uwf, ended: str
) -> None:
    shown = uwf("thread", "show", ended, "--json").json

    assert shown["inputs"] is None
    assert uwf("verify", ended).code == 0
    refused = uwf("thread", "start", "ping.yaml", "-p", "x", "-i", "a=1", "--json")
    assert refused.error["message"] == "a: no such input"


def test_show_lists_them_with_their_defaults(uwf: Uwf) -> None:
    text = uwf("workflow", "show", "given.yaml").out
    found = uwf("workflow", "show", "given.yaml", "--json").json["inputs"]

    rows = [line.split(maxsplit=2) for line in text.partition("INPUT")[2].splitlines()]
    assert ["url", "(asked", "for)  Where it is"] in rows
    assert found["mode"] == {"enum": ["fast", "slow"], "default": "fast"}


SIMULATE = ("workflow", "simulate", "given.yaml", "--all-paths", "--json")


def _first_prompt(result: Result) -> str:
    prompt: str = result.json["steps"][0]["prompt"]
    return prompt


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        ((), "Write <url>, 2 deep."),
        (("-i", "url=https://s"), "Write https://s, 2 deep."),
        (("-i", "url=@text"), "Write htt from a file\n, 2 deep."),
        (
            ("--inputs", "values.json", "-i", "deep=true"),
            "Write https://j, 3 deep, all of it.",
        ),
    ],
)
def test_simulate_takes_them_and_makes_up_the_rest(
    uwf: Uwf, words: tuple[str, ...], prompt: str
) -> None:
    walked = uwf(*SIMULATE, *words)
    script = ("--script", "replies.yaml", "--json")
    played = uwf("workflow", "simulate", "given.yaml", *script, *words)

    assert (_first_prompt(walked), _first_prompt(played)) == (prompt, prompt)
    assert (walked.code, played.code) == (0, 0)
    assert not any(step["missing"] for step in walked.json["steps"])


@pytest.mark.parametrize(
    "word", ["depth=0", "ur1=x", "tags=[c]", "more={who: {name: 1}}"]
)
def test_simulate_refuses_what_does_not_fit(uwf: Uwf, word: str) -> None:
    walked = uwf(*SIMULATE, "-i", word)

    assert (walked.code, walked.error["code"]) == (1, "invalid")


def test_a_condition_may_ask_for_them(uwf: Uwf, work: Path) -> None:
    pytest.importorskip("jsonata")
    head, _, tail = GIVEN.partition("  writer:\n    done:")
    listed = (
        "  writer:\n"
        '    - { role: $END, when: _inputs.mode = "fast", prompt: "Fast." }\n'
        '    - { role: checker, prompt: "Check it, {{_inputs.mode}}." }\n'
    )
    text = head + listed + tail.partition('"Stuck." }\n')[2] + INPUTS
    (work / "given.yaml").write_text(text)
    assert uwf("workflow", "validate", "given.yaml").code == 0

    ends = {}
    for mode in ("fast", "slow"):
        word = f"mode={mode}"
        script = ("--script", "replies.yaml", "--json", "-i", word)
        done = uwf("workflow", "simulate", "given.yaml", *script)
        thread = uwf(*START, *URL, "-i", word).json["threadId"]
        uwf("thread", "exec", thread, "--agent", "scripted:replies.yaml")
        shown = uwf("thread", "show", thread, "--json").json
        ends[mode] = (done.json["steps"][1]["prompt"], shown["status"])
        assert uwf("verify", thread).code == 0

    assert ends == {"fast": ("Fast.", "end"), "slow": ("Check it, slow.", "idle")}


def test_json_says_everything_that_is_wrong_at_once(uwf: Uwf) -> None:
    started = uwf(*START, "-i", "depth=0", "-i", "mode=x", "-i", "other=1")

    error = json.loads(started.err)["error"]
    assert "(and 3 more)" in error["message"]
    named = {each.partition(":")[0] for each in error["problems"]}
    assert named == {"other", "depth", "mode", "url"}


def test_all_that_is_wrong_is_told_at_once(uwf: Uwf) -> None:
    uwf("init", "--user")
    started = uwf(*START[:-1], "-i", "depth=0", "-i", "mode=x", "-i", "other=1")

    heads = [line.split(":")[:2] for line in started.err.splitlines()]
    assert heads[:2] == [["error", " other"], ["hint", " inputs"]]
    assert sorted(heads[2:]) == [
        ["also", " depth"],
        ["also", " mode"],
        ["also", " url"],
    ]


def test_a_file_of_inputs_that_is_not_there_is_told_by_its_name(uwf: Uwf) -> None:
    plain = uwf(
        "thread", "start", "given.yaml", "-p", "x", "--inputs", "no.json", "--json"
    )
    marked = uwf(
        "thread", "start", "given.yaml", "-p", "x", "--inputs", "@no.json", "--json"
    )

    assert plain.error["message"] == "file 'no.json' not found"
    assert plain.error["hint"] is None
    assert marked.error["hint"] == "write --inputs no.json, without the '@'"


def test_inputs_stand_everywhere_as_the_workflow_declares_them(
    uwf: Uwf, work: Path
) -> None:
    declared = list(DEFAULTS)
    # The other way round, and some of them: how they are given says nothing.
    given = ("-i", "mode=slow", "-i", "depth=3", "-i", "url=https://u")
    uwf("workflow", "add", "given.yaml")

    begun = uwf("thread", "start", "given", "-p", "the task", *given, "--json")
    thread = begun.json["threadId"]
    uwf("thread", "exec", thread, "--agent", "scripted:replies.yaml")

    shown = uwf("thread", "show", thread)
    step = uwf("step", "show", f"{thread}:1", "--json").json
    prompt = step["detail"]["assembledPrompt"]
    workflow = uwf("workflow", "show", "given")
    assert list(uwf("thread", "show", thread, "--json").json["inputs"]) == declared
    assert list(uwf("workflow", "show", "given", "--json").json["inputs"]) == declared
    assert in_order(shown.out, r"^input (\w+)") == declared
    assert in_order(workflow.out.partition("INPUT")[2], r"^(\w+)") == declared
    uwf("export", "html", "site", thread)
    pages = [path.read_text() for path in (work / "site").rglob("*.html")]
    listed = [page.partition(">Inputs<")[2] for page in pages if ">Inputs<" in page]
    names = [in_order(page, r"<dt>(\w+)</dt>")[: len(declared)] for page in listed]
    # The thread's page, and its workflow's.
    assert names == [declared, declared]
    told = prompt.partition("# What this run was given")[2]
    assert in_order(told, r"^(\w+): ")[: len(declared)] == declared


def in_order(text: str, pattern: str) -> list[str]:
    return re.findall(pattern, text, re.MULTILINE)
