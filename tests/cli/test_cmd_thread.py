from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import git, object_file
from tests.cli.calls import WORKFLOW, Uwf
from uwfgit.cli.thread.reading import SEPARATOR
from uwfgit.model.yaml.core import parse_value

SHOW_KEYS = [
    "threadId",
    "task",
    "workflowName",
    "workflowHash",
    "start",
    "head",
    "oid",
    "status",
    "currentRole",
    "suspendedRole",
    "suspendMessage",
    "retryAtMs",
    "attempt",
    "done",
    "steps",
    "usage",
    "startedAtMs",
    "updatedAtMs",
    "completedAtMs",
    "forkedFrom",
    "by",
    "shared",
    "parent",
    "children",
    "inputs",
    "summary",
    "result",
    "cost",
    "note",
    "warnings",
]
STEP_KEYS = [
    "number",
    "hash",
    "role",
    "status",
    "threadStatus",
    "head",
    "currentRole",
    "done",
    "suspendedRole",
    "suspendMessage",
    "error",
]
SCRIPT = ("--agent", "scripted:replies.yaml")


def test_start_pins_and_runs_nothing(uwf: Uwf, work: Path) -> None:
    started = uwf("thread", "start", "ping.yaml", "-p", "the task", "--json")

    assert started.code == 0
    assert list(started.json) == [
        "threadId",
        "workflowName",
        "workflowHash",
        "head",
        "oid",
        "status",
    ]
    assert started.json["status"] == "idle"
    shown = uwf("thread", "show", started.json["threadId"], "--json").json
    assert (shown["steps"], shown["currentRole"]) == (0, "writer")
    assert str(work) in uwf("cas", "get", shown["start"]).out


def test_start_says_what_to_type_next(uwf: Uwf) -> None:
    started = uwf("thread", "start", "ping.yaml", "-p", "x")

    name = started.out.split()[1]
    assert f"next: uwf thread exec {name}" in started.err.splitlines()


def test_start_creates_the_store_and_says_so(uwf: Uwf, home: Path) -> None:
    first = uwf("thread", "start", "ping.yaml", "-p", "x")
    second = uwf("thread", "start", "ping.yaml", "-p", "x")

    assert f"created store {home / 'store'}" in first.err.splitlines()
    assert "created store" not in second.err


@pytest.mark.parametrize(
    ("prompt", "stdin", "expected"),
    [
        pytest.param("plain", None, "plain", id="text"),
        pytest.param("-", b"from stdin\n", "from stdin", id="stdin"),
        pytest.param("@task.md", None, "from a file", id="file"),
        pytest.param("-", "\ufeffÆ".encode(), "Æ", id="byte-order-mark"),
        pytest.param("@@case please", None, "@case please", id="with an at"),
        pytest.param("-", b"@case please", "@case please", id="with an at on stdin"),
        pytest.param("--json", None, "--json", id="like an option"),
    ],
)
def test_the_task_is_a_text_stdin_or_a_file(
    uwf: Uwf, work: Path, prompt: str, stdin: bytes | None, expected: str
) -> None:
    (work / "task.md").write_text("from a file")

    started = uwf("thread", "start", "ping.yaml", "-p", prompt, stdin=stdin)

    assert started.code == 0, started.err
    assert (
        f"## Task\n\n```data\n{expected}\n```\n" in uwf("thread", "read", "@last").out
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(("-p", "@gone.md"), "file 'gone.md' not found", id="no-file"),
        pytest.param(("-p", "  "), "the task is empty", id="blank"),
        pytest.param(
            ("-p", "x", "--cwd", "gone"), "--cwd: 'gone' is not a folder", id="cwd"
        ),
        pytest.param(
            ("-p", "x", "--cwd", f"/{'a' * 300}"),
            f"the system refused '/{'a' * 300}': File name too long",
            id="long-name",
        ),
    ],
)
def test_start_refuses_in_one_line(
    uwf: Uwf, words: tuple[str, ...], message: str
) -> None:
    started = uwf("thread", "start", "ping.yaml", *words, "--json")

    assert (started.code, started.out) == (1, "")
    assert started.error["message"] == message


def test_a_file_that_is_none_may_have_been_meant_as_text(uwf: Uwf) -> None:
    started = uwf("thread", "start", "ping.yaml", "-p", "@case please", "--json")

    assert started.code == 1
    assert "write '@@', or give it on stdin" in started.error["hint"]


def test_a_task_that_is_not_utf8_is_one_line(uwf: Uwf) -> None:
    started = uwf("thread", "start", "ping.yaml", "-p", "-", "--json", stdin=b"\xff")

    assert started.error["message"] == "--prompt on stdin is not UTF-8 (byte 0)"


def test_a_relative_cwd_is_taken_from_here(uwf: Uwf, work: Path) -> None:
    (work / "sub").mkdir()

    uwf("thread", "start", "ping.yaml", "-p", "x", "--cwd", "sub")

    start = uwf("thread", "show", "@last", "--json").json["start"]
    payload = uwf("cas", "get", start, "--json").json["payload"]
    assert payload["cwd"] == str(work / "sub")
    assert payload["cwdInRepo"] is None


def test_inside_a_work_tree_the_place_in_it_is_recorded(uwf: Uwf, work: Path) -> None:
    for words in (
        ["init", "--quiet"],
        ["add", "ping.yaml"],
        ["-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *words], cwd=work, check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=work,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    (work / "sub").mkdir()

    started = uwf("thread", "start", "ping.yaml", "-p", "x", "--cwd", "sub")

    assert f"created store {work / '.git' / 'uwf'}" in started.err
    start = uwf("thread", "show", "@last", "--json").json["start"]
    payload = uwf("cas", "get", start, "--json").json["payload"]
    assert (payload["cwdInRepo"], payload["rootCommit"]) == ("sub", head)


def test_a_thread_started_by_an_agent_knows_its_parent(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = uwf("thread", "show", thread, "--json").json["head"]
    monkeypatch.setenv("UWF_THREAD", thread)

    uwf("thread", "start", "ping.yaml", "-p", "x")

    start = uwf("thread", "show", "@last", "--json").json["start"]
    payload = uwf("cas", "get", start, "--json").json["payload"]
    assert payload["parent"] == {"thread": thread, "step": head}
    assert payload["depth"] == 1


def test_exec_runs_one_step(uwf: Uwf, thread: str) -> None:
    done = uwf("thread", "exec", thread, *SCRIPT, "--json")

    assert done.code == 0
    assert list(done.json) == [
        "threadId",
        "workflowHash",
        "status",
        "done",
        "steps",
        "ran",
        "background",
        "error",
    ]
    assert (done.json["background"], done.json["error"]) == (None, None)
    assert done.json["ran"] == 1
    (step,) = done.json["steps"]
    assert list(step) == STEP_KEYS
    assert (step["role"], step["status"], step["currentRole"]) == (
        "writer",
        "done",
        "checker",
    )


@pytest.mark.parametrize(
    ("words", "count", "status"),
    [
        pytest.param(("-c", "3"), 3, "idle", id="count"),
        pytest.param(("--count=2",), 2, "idle", id="long-count"),
        pytest.param(("--all",), 4, "end", id="all"),
        pytest.param(("-c", "99"), 4, "end", id="stops-at-the-end"),
    ],
)
def test_exec_runs_as_far_as_it_is_told(
    uwf: Uwf, thread: str, words: tuple[str, ...], count: int, status: str
) -> None:
    done = uwf("thread", "exec", thread, *words, *SCRIPT, "--json")

    assert done.code == 0
    assert len(done.json["steps"]) == count
    assert (done.json["status"], done.json["done"]) == (status, status == "end")


def test_exec_prints_a_line_a_step_and_the_way_on(uwf: Uwf, thread: str) -> None:
    first = uwf("thread", "exec", thread, *SCRIPT)
    rest = uwf("thread", "exec", thread, "--all", *SCRIPT)

    assert first.out == "step 1   writer        done          next checker\n"
    assert first.err == f"next: uwf thread exec {thread}\n"
    assert len(rest.out.splitlines()) == 3
    assert rest.out.splitlines()[-1].split() == ["step", "4", "checker", "good", "end"]
    assert rest.err == f"done; read it with: uwf thread read {thread}\n"


def test_exec_of_an_ended_thread_does_nothing_and_exits_0(uwf: Uwf, ended: str) -> None:
    done = uwf("thread", "exec", ended, "--json")

    assert (done.code, done.json["steps"], done.json["done"]) == (0, [], True)
    assert uwf("thread", "exec", ended).out == ""


def test_a_suspended_thread_exits_3_and_says_how_to_answer(
    uwf: Uwf, thread: str
) -> None:
    asked = uwf("thread", "exec", thread, "--agent", "scripted:asking.yaml")
    again = uwf("thread", "exec", thread, "--json")

    assert asked.code == 3
    assert asked.err.splitlines() == [
        "waiting: Which one?",
        f"go on: uwf thread resume {thread} -p TEXT",
    ]
    assert (again.code, again.err) == (3, "")
    assert (again.json["steps"], again.json["status"]) == ([], "suspended")


def test_a_thread_whose_role_failed_is_told_from_one_that_asks(
    uwf: Uwf, thread: str
) -> None:
    uwf("thread", "exec", thread, "--agent", "stdio:false")

    shown = uwf("thread", "show", thread)

    fields = dict(line.split(maxsplit=1) for line in shown.out.splitlines())
    assert fields["failed"] == "'false' exited with code 1"
    assert "waiting" not in fields
    assert shown.err == f"try again: uwf thread resume {thread}\n"
    assert "\nFailed: writer: 'false' exited" in uwf("thread", "read", thread).out


def test_resume_goes_on_with_the_answer(uwf: Uwf, thread: str) -> None:
    uwf("thread", "exec", thread, "--agent", "scripted:asking.yaml")

    done = uwf(
        "thread", "resume", thread, "-p", "that", "--agent", "scripted:asking.yaml"
    )

    assert done.code == 0
    step = uwf("step", "show", f"{thread}:2", "--json").json
    assert (step["note"], step["status"]) == ("that", "stuck")


def test_poke_has_the_step_done_again(uwf: Uwf, thread: str) -> None:
    uwf("thread", "exec", thread, *SCRIPT)

    done = uwf("thread", "poke", thread, "-p", "longer", *SCRIPT, "--json")

    assert done.code == 0
    assert done.json["steps"][0]["number"] == 1
    step = uwf("step", "show", f"{thread}:1", "--json").json
    assert (step["output"]["text"], step["note"]) == ("two", "longer")


def test_poke_without_words_is_refused(uwf: Uwf, thread: str) -> None:
    assert uwf("thread", "poke", thread, "-p", " ").code == 1


def test_a_failed_agent_exits_5_with_the_attempt_as_a_step(
    uwf: Uwf, thread: str
) -> None:
    done = uwf("thread", "exec", thread, "--agent", "stdio:false", "--json")

    assert (done.code, done.err) == (5, "")
    (step,) = done.json["steps"]
    assert step["status"] == "error"
    assert step["error"]
    assert step["head"] == uwf("thread", "show", thread, "--json").json["start"]
    shown = uwf("step", "show", step["hash"], "--json").json
    assert shown["output"]["$status"] == "error"


def test_a_failed_agent_in_text_says_how_to_try_again(uwf: Uwf, thread: str) -> None:
    done = uwf("thread", "exec", thread, "--agent", "stdio:false")

    assert done.code == 5
    assert "failed: " in done.out
    assert done.err == f"try again: uwf thread resume {thread}\n"


def test_without_an_agent_nothing_is_recorded(uwf: Uwf, thread: str) -> None:
    done = uwf("thread", "exec", thread, "--json")

    assert (done.code, done.err) == (1, "")
    assert done.error["code"] == "config"
    assert uwf("thread", "show", thread, "--json").json["status"] == "idle"


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        pytest.param(("exec",), "idle", "config", id="exec-without-an-agent"),
        pytest.param(("exec", "--cwd", "gone"), "idle", "invalid", id="exec-nowhere"),
        pytest.param(("resume",), "idle", "state", id="resume-of-an-idle-one"),
        pytest.param(("poke", "-p", "x"), "idle", "state", id="poke-of-no-step"),
    ],
)
def test_a_run_that_is_refused_prints_its_object_with_the_error_inside(
    uwf: Uwf, thread: str, words: tuple[str, ...], status: str, code: str
) -> None:
    verb, *flags = words

    done = uwf("thread", verb, thread, *flags, "--json")
    told = uwf("thread", verb, thread, *flags)

    assert (done.code, done.err) == (1, "")
    error = done.json.pop("error")
    assert done.json | {"workflowHash": "", "error": None} == {
        "threadId": thread,
        "workflowHash": "",
        "status": status,
        "done": False,
        "steps": [],
        "ran": 0,
        "background": None,
        "error": None,
    }
    assert error["code"] == code
    assert (told.code, told.out) == (1, "")
    assert told.err.splitlines()[0] == f"error: {error['message']}"


def test_a_refused_run_is_an_object_of_yaml_too(uwf: Uwf, thread: str) -> None:
    done = uwf("thread", "resume", thread, "--format", "yaml")

    assert (done.code, done.err) == (1, "")
    assert thread in done.out.splitlines()[0]
    assert "code: state" in done.out


def test_a_run_of_no_known_thread_is_an_error_alone(uwf: Uwf) -> None:
    done = uwf("thread", "exec", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--json")

    assert (done.code, done.out) == (1, "")
    assert done.error["code"] == "not-found"


def test_a_started_thread_is_named_though_nothing_of_it_can_run(
    uwf: Uwf, work: Path
) -> None:
    text = WORKFLOW.replace('prompt: "Write it."', 'prompt: "x", location: none')
    (work / "ping.yaml").write_text(text)

    done = uwf("thread", "run", "ping.yaml", "-p", "x", *SCRIPT, "--json")

    (item,) = uwf("thread", "list", "--json").json["items"]
    assert (done.code, done.json["threadId"]) == (1, item["threadId"])
    assert done.json["error"]["code"] == "state"


def test_a_run_that_reaches_the_limit_of_steps_says_so(uwf: Uwf, thread: str) -> None:
    uwf("config", "set", "limits.maxSteps", "1")

    done = uwf("thread", "exec", thread, "--all", *SCRIPT, "--json")
    told = uwf("thread", "exec", thread, "--all", *SCRIPT)

    assert (done.code, done.json["error"]["code"]) == (1, "limit")
    assert "stopped: limits.maxSteps is reached after 1 step" in told.err


def test_the_configured_agent_is_used(uwf: Uwf, work: Path, thread: str) -> None:
    uwf("config", "set", "agents.mine.kind", "scripted")
    uwf("config", "set", "agents.mine.script", str(work / "replies.yaml"))
    uwf("config", "set", "defaultAgent", "mine")

    done = uwf("thread", "exec", thread, "--all", "--json")

    assert done.json["status"] == "end"
    items = uwf("step", "list", thread, "--json").json["items"]
    assert {item["agent"] for item in items} == {"mine"}


def test_agents_find_this_uwf_and_the_same_store(
    uwf: Uwf, work: Path, thread: str
) -> None:
    script = work / "agent.sh"
    script.write_text(
        """printf -- '---\\n$status: done\\ntext: "%s"\\n---\\n%s' \\
        "$UWF_STORE" "$UWF_THREAD"
"""
    )

    uwf("thread", "exec", thread, "--agent", f"stdio:sh {script}")

    step = uwf("step", "show", f"{thread}:1", "--json").json
    assert step["output"]["text"] == uwf("store", "path").out.strip()
    assert step["body"] == thread


def test_run_is_start_and_exec(uwf: Uwf) -> None:
    done = uwf("thread", "run", "ping.yaml", "-p", "x", *SCRIPT, "--json")

    assert done.code == 0
    assert (len(done.json["steps"]), done.json["status"]) == (4, "end")


def test_show_has_exactly_these_keys(uwf: Uwf, ended: str) -> None:
    shown = uwf("thread", "show", ended, "--json").json

    assert list(shown) == SHOW_KEYS
    assert (shown["status"], shown["done"], shown["steps"]) == ("end", True, 4)
    assert shown["by"] == "Ada <ada@example.org>"
    assert shown["shared"] == "never"
    assert (shown["parent"], shown["children"], shown["inputs"]) == (None, [], None)
    assert shown["result"] == {"status": "end", "returnCode": 0, "summary": None}
    assert shown["forkedFrom"] is None


def test_show_is_the_same_in_yaml(uwf: Uwf, ended: str) -> None:
    as_yaml = uwf("thread", "show", ended, "--format", "yaml").out

    assert parse_value(as_yaml) == uwf("thread", "show", ended, "--json").json


def test_show_for_people(uwf: Uwf, ended: str) -> None:
    shown = uwf("thread", "show", ended)

    lines = dict(line.split(maxsplit=1) for line in shown.out.splitlines())
    assert lines["thread"] == ended
    assert lines["status"] == "end"
    assert lines["role"] == "-"
    assert "uwf thread read" in shown.err


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(lambda thread: thread, id="whole"),
        pytest.param(lambda thread: thread.lower(), id="lower-case"),
        pytest.param(lambda thread: thread[:20], id="prefix"),
        pytest.param(lambda thread: thread[-6:], id="suffix"),
        pytest.param(lambda _: "@last", id="last"),
    ],
)
def test_threads_are_named_in_short(
    uwf: Uwf, thread: str, name: Callable[[str], str]
) -> None:
    assert uwf("thread", "show", name(thread), "--json").json["threadId"] == thread


def test_an_ambiguous_name_lists_the_threads(uwf: Uwf, thread: str) -> None:
    other = uwf("thread", "start", "ping.yaml", "-p", "x", "--json").json["threadId"]

    shown = uwf("thread", "show", thread[:3], "--json")

    assert shown.code == 1
    assert shown.error["code"] == "ambiguous"
    assert thread in shown.error["message"]
    assert other in shown.error["message"]


def test_an_unknown_thread_is_one_line(uwf: Uwf, thread: str) -> None:
    assert thread

    shown = uwf("thread", "show", "zzzz")

    assert shown.code == 1
    assert shown.err.splitlines()[0] == "error: thread 'zzzz' not found"


def test_a_thread_of_another_store_is_found_there(
    uwf: Uwf, thread: str, tmp_path: Path
) -> None:
    first = uwf("store", "path").out.strip()
    uwf("init", "--store", str(tmp_path / "other"))

    shown = uwf("thread", "show", thread, "--store", str(tmp_path / "other"), "--json")

    assert shown.code == 1
    assert shown.error["hint"] == f"it is in another store; add: --store {first}"


def test_a_step_of_another_store_is_found_there_by_its_hash(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    first = uwf("store", "path").out.strip()
    step = uwf("step", "list", ended, "--json").json["items"][0]["hash"]
    uwf("init", "--store", str(tmp_path / "other"))

    shown = uwf("step", "show", step, "--store", str(tmp_path / "other"), "--json")
    node = uwf("cas", "get", step, "--store", str(tmp_path / "other"), "--json")

    assert shown.error["hint"] == f"it is in another store; add: --store {first}"
    assert node.error["hint"] == shown.error["hint"]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("step show T:77", id="step-show"),
        pytest.param("step fork T:77", id="step-fork"),
        pytest.param("thread fork T --at 33", id="fork-at"),
        pytest.param("review approve T --step 77", id="approve"),
        pytest.param("review open T --to 99", id="review-to"),
        pytest.param("review open T --from 0", id="review-from"),
    ],
)
def test_a_number_that_no_step_has_is_not_looked_for_in_other_stores(
    uwf: Uwf, ended: str, tmp_path: Path, words: str
) -> None:
    first = uwf("store", "path").out.strip()
    other, remote = str(tmp_path / "other"), str(tmp_path / "remote.git")
    shutil.copytree(first, other)
    uwf("init", "--store", other)
    subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
    assert uwf("remote", "add", "origin", remote, "--dedicated").code == 0

    done = uwf(*words.replace("T", ended).split(), "--json")

    assert (done.code, done.error["code"]) == (1, "not-found")
    assert done.error["hint"] == "the thread has 4 steps"


def test_a_hash_that_is_no_step_here_is_not_looked_for_in_other_stores(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    start = uwf("thread", "show", ended, "--json").json["start"]
    other = str(tmp_path / "other")
    shutil.copytree(uwf("store", "path").out.strip(), other)
    uwf("init", "--store", other)

    shown = uwf("step", "show", start, "--json")

    assert shown.error["hint"] == "name it by hash, or as THREAD:NUMBER"


def test_a_step_of_a_thread_of_another_store_is_found_there(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    first = uwf("store", "path").out.strip()
    uwf("init", "--store", str(tmp_path / "other"))

    shown = uwf("step", "show", f"{ended}:2", "--store", str(tmp_path / "other"))

    assert f"hint: it is in another store; add: --store {first}" in shown.err


def test_reading_creates_no_store(uwf: Uwf, home: Path) -> None:
    shown = uwf("thread", "list", "--json")

    assert shown.code == 1
    assert shown.error["hint"] == "create it with: uwf init --user"
    assert not (home / "store").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("cas", "put", "text", "3"),
        ("cas", "put", "object", "{"),
        ("cas", "put", "step", "@none"),
        ("cas", "put", "0123456789ABC", "{}"),
        ("cas", "put-text", "@none"),
        ("cas", "schema", "put", '{"type": 3}'),
        ("thread", "start", "none.yaml", "-p", "x"),
        ("thread", "start", "ping.yaml", "-p", "@none"),
        ("thread", "start", "ping.yaml", "-p", " "),
        ("thread", "start", "ping.yaml", "-p", "x", "--cwd", "none"),
        ("thread", "start", "ping.yaml", "-p", "x", "-i", "a=b"),
        ("thread", "run", "ping.yaml", "-p", "x", "--inputs", "none"),
        ("workflow", "add", "none.yaml"),
    ],
)
def test_what_is_refused_creates_no_store(
    uwf: Uwf, home: Path, words: tuple[str, ...]
) -> None:
    assert uwf(*words).code == 1

    assert not (home / "store").exists()


@pytest.mark.parametrize(
    "agent", [None, "nobody", "stdio:no-such-program", "stdio:./gone"]
)
def test_run_starts_no_thread_that_its_agent_cannot_begin(
    uwf: Uwf, thread: str, agent: str | None
) -> None:
    flag = () if agent is None else ("--agent", agent)

    refused = uwf("thread", "run", "ping.yaml", "-p", "x", *flag, "--json")

    assert (refused.code, refused.error["code"]) == (1, "config")
    items = uwf("thread", "list", "--all", "--json").json["items"]
    assert [item["threadId"] for item in items] == [thread]


def test_exec_creates_no_store(uwf: Uwf, home: Path) -> None:
    assert uwf("thread", "exec", "01").code == 1
    assert not (home / "store").exists()


@pytest.fixture
def several(uwf: Uwf) -> dict[str, str]:
    """Threads in every state, oldest first."""
    found = {}
    for name in ("ended", "idle", "asked", "cancelled"):
        started = uwf("thread", "start", "ping.yaml", "-p", name, "--json")
        found[name] = started.json["threadId"]
    uwf("thread", "exec", found["ended"], "--all", *SCRIPT)
    uwf("thread", "exec", found["asked"], "--agent", "scripted:asking.yaml")
    uwf("thread", "cancel", found["cancelled"], "--reason", "no use")
    return found


def listed(uwf: Uwf, *words: str) -> list[str]:
    items = uwf("thread", "list", *words, "--json").json["items"]
    return [item["threadId"] for item in items]


CHOICES = {
    "": ["asked", "idle"],
    "--all": ["cancelled", "asked", "idle", "ended"],
    "--status end": ["ended"],
    "--status completed": ["ended"],
    "--status idle,cancelled": ["cancelled", "idle"],
    "--status active": ["asked", "idle"],
    "--status active,end": ["asked", "idle", "ended"],
    "--status running": [],
    "--all --limit 2": ["cancelled", "asked"],
    "--all --offset 3": ["ended"],
    "--all --skip 1 --take 1": ["asked"],
    "--all --limit 0": [],
    "--all --offset 99": [],
    "--workflow ping": ["asked", "idle"],
    "--workflow pong": [],
    "--mine": ["asked", "idle"],
    "--by ADA": ["asked", "idle"],
    "--by bob": [],
    "--after 1h": ["asked", "idle"],
    "--before 1h": [],
}


def test_list_shows_what_its_options_say(uwf: Uwf, several: dict[str, str]) -> None:
    names = {thread: name for name, thread in several.items()}

    found = {
        words: [names[thread] for thread in listed(uwf, *words.split())]
        for words in CHOICES
    }

    assert found == CHOICES


def test_list_says_how_many_it_hides(uwf: Uwf, several: dict[str, str]) -> None:
    shown = uwf("thread", "list")

    assert several["idle"] in shown.out
    assert shown.err == "2 ended or cancelled threads not shown (--all)\n"
    assert uwf("thread", "list", "--all").err == ""


def test_list_in_text_is_columns(uwf: Uwf, several: dict[str, str]) -> None:
    lines = uwf("thread", "list", "--all").out.splitlines()

    titles = ["THREAD", "WORKFLOW", "STATUS", "ROLE", "STARTED", "TASK"]
    assert lines[0].split() == titles
    assert lines[2].split()[:4] == [several["asked"], "ping", "suspended", "writer"]
    assert lines[4].split()[:4] == [several["ended"], "ping", "end", "-"]


@pytest.fixture
def shared(uwf: Uwf, several: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """The same threads, one of them pushed and one continued after that."""
    remote = str(tmp_path / "remote.git")
    subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
    assert uwf("remote", "add", "origin", remote, "--dedicated").code == 0
    assert uwf("push", several["asked"], several["idle"]).code == 0
    assert uwf("thread", "exec", several["idle"], *SCRIPT).code == 0
    return several


def test_list_in_text_tells_what_is_shared_where_there_is_a_remote(
    uwf: Uwf, shared: dict[str, str]
) -> None:
    lines = uwf("thread", "list", "--all").out.splitlines()

    titles = ["THREAD", "WORKFLOW", "STATUS", "ROLE", "SHARED", "STARTED", "TASK"]
    assert lines[0].split() == titles
    assert {line.split()[0]: line.split()[4] for line in lines[1:]} == {
        shared["asked"]: "yes",
        shared["idle"]: "behind",
        shared["ended"]: "never",
        shared["cancelled"]: "never",
    }
    uwf("thread", "rm", shared["ended"])
    assert "SHARED" not in uwf("thread", "list", "--trash").out


def test_a_list_of_shared_threads_fits_a_terminal_of_80_columns(
    uwf: Uwf, shared: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shared
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")

    lines = uwf("thread", "list", "--all", "--color", "never").out.splitlines()

    listed = uwf("thread", "list", "--all", "--json").json["items"]
    task = next(i["task"] for i in listed if i["threadId"] == shared["asked"])
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[4:] == ["SHARED", "TASK"]
    assert "suspended" in lines[2]
    assert lines[2].split()[4:] == ["yes", task]


def test_an_empty_list_says_so_on_stderr_only(uwf: Uwf) -> None:
    uwf("init", "--user")

    shown = uwf("thread", "list")

    assert (shown.code, shown.out, shown.err) == (0, "", "no threads\n")
    assert uwf("thread", "list", "--json").json == {"items": []}


def test_a_corrupt_thread_is_a_row(uwf: Uwf, several: dict[str, str]) -> None:
    store = uwf("store", "path").out.strip()
    ref = f"refs/heads/thread/{several['idle']}"
    subprocess.run(["git", f"--git-dir={store}", "update-ref", ref, "main"], check=True)

    shown = uwf("thread", "list", "--json")
    text = uwf("thread", "list")

    rows = {item["threadId"]: item["status"] for item in shown.json["items"]}
    assert rows == {several["asked"]: "suspended", several["idle"]: "corrupt"}
    assert f"warning: thread {several['idle']} is corrupt" in text.err
    assert uwf("thread", "show", several["idle"], "--json").error["code"] == "corrupt"


@pytest.fixture
def damaged(uwf: Uwf, thread: str) -> str:
    """A thread whose state git has lost, after a listing has seen it."""
    store = Path(uwf("store", "path").out.strip())
    place = f"thread/{thread}:threads/{thread}/thread.json"
    blob = git(store, "rev-parse", place).strip()
    assert listed(uwf) == [thread]
    object_file(store, blob).unlink()
    return thread


@pytest.mark.parametrize("words", ["show", "read", "log", "fork", "cancel"])
def test_a_corrupt_thread_is_one_line_and_the_way_to_its_mend(
    uwf: Uwf, damaged: str, words: str
) -> None:
    done = uwf("thread", words, damaged, "--json")

    assert (done.code, done.out, done.error["code"]) == (1, "", "corrupt")
    assert f"uwf verify {damaged}" in done.error["hint"]
    assert "uwf doctor" in done.error["hint"]


@pytest.mark.parametrize(
    "verb", ["exec", "exec --background", "resume", "poke", "join"]
)
def test_a_run_of_a_corrupt_thread_prints_its_object_too(
    uwf: Uwf, damaged: str, verb: str
) -> None:
    note = ["-p", "x"] if verb == "poke" else []

    done = uwf("thread", *verb.split(), damaged, *note, "--json")

    assert (done.code, done.err) == (1, "")
    error = done.json.pop("error")
    assert {**done.json, "error": None} == {
        "threadId": damaged,
        "workflowHash": None,
        "status": "corrupt",
        "done": False,
        "steps": [],
        "ran": 0,
        "background": None,
        "error": None,
    }
    assert error["code"] == "corrupt"
    assert f"uwf verify {damaged}" in error["hint"]


def test_a_listing_knows_of_damage_once_the_lookup_is_made_anew(
    uwf: Uwf, damaged: str
) -> None:
    before = uwf("thread", "list", "--json").json["items"]
    uwf("reindex")
    after = uwf("thread", "list", "--json").json["items"]

    assert [item["status"] for item in before] == ["idle"]
    assert [(item["threadId"], item["status"]) for item in after] == [
        (damaged, "corrupt")
    ]


def test_the_trash_names_the_tasks(uwf: Uwf, several: dict[str, str]) -> None:
    task = uwf("thread", "show", several["idle"], "--json").json["task"]
    uwf("thread", "rm", several["idle"])

    (item,) = uwf("thread", "list", "--trash", "--json").json["items"]

    assert task
    assert item["task"] == task


def test_removed_threads_are_in_the_trash(uwf: Uwf, several: dict[str, str]) -> None:
    removed = uwf("thread", "rm", several["idle"], "--json")

    assert removed.json == {
        "threadId": several["idle"],
        "status": "idle",
        "removed": True,
        "children": [],
    }
    assert listed(uwf) == [several["asked"]]
    assert listed(uwf, "--trash") == [several["idle"]]
    shown = uwf("thread", "show", several["idle"])
    assert shown.err.endswith(f"uwf thread restore {several['idle']}\n")
    restored = uwf("thread", "restore", several["idle"][:14], "--json")
    assert restored.json == {
        "threadId": several["idle"],
        "status": "idle",
        "restored": True,
        "children": [],
    }
    assert several["idle"] in listed(uwf)


def test_cancel_keeps_the_thread_and_refuses_to_run_it(uwf: Uwf, thread: str) -> None:
    cancelled = uwf("thread", "cancel", thread, "--json")

    assert cancelled.json == {
        "threadId": thread,
        "status": "cancelled",
        "cancelled": True,
    }
    refused = uwf("thread", "exec", thread, *SCRIPT, "--json")
    assert (refused.code, refused.json["status"]) == (1, "cancelled")
    assert refused.json["error"]["code"] == "state"
    assert uwf("thread", "cancel", thread).code == 1


@pytest.mark.parametrize(
    ("words", "number"),
    [
        pytest.param((), 4, id="head"),
        pytest.param(("--at", "2"), 2, id="at"),
        pytest.param(("--at", "0"), 0, id="start"),
        pytest.param(("--from-role", "checker"), 3, id="from-role"),
    ],
)
def test_fork_goes_on_from_a_step(
    uwf: Uwf, ended: str, words: tuple[str, ...], number: int
) -> None:
    forked = uwf("thread", "fork", ended, *words, "--json")

    shown = uwf("thread", "show", forked.json["threadId"], "--json").json
    assert list(forked.json) == ["threadId", "forkedFrom"]
    assert forked.json["forkedFrom"] == {"thread": ended, "step": shown["head"]}
    assert (shown["steps"], shown["forkedFrom"]["number"]) == (number, number)


@pytest.mark.parametrize("command", [("thread", "fork"), ("step", "fork")])
@pytest.mark.parametrize("named", ["hash", "number"])
def test_a_step_is_forked_by_hash_or_number(
    uwf: Uwf, ended: str, command: tuple[str, str], named: str
) -> None:
    step = uwf("step", "list", ended, "--json").json["items"][1]["hash"]

    forked = uwf(*command, step if named == "hash" else f"{ended}:2", "--json")

    assert forked.json["forkedFrom"] == {"thread": ended, "step": step}


def test_fork_refuses_two_choices_and_unknown_steps(uwf: Uwf, ended: str) -> None:
    assert uwf("thread", "fork", ended, "--at", "1", "--from-role", "writer").code == 2
    assert uwf("thread", "fork", ended, "--at", "-1").code == 2
    assert uwf("thread", "fork", ended, "--at", "9").code == 1
    assert uwf("thread", "fork", ended, "--from-role", "nobody").code == 1


def test_read_is_markdown_with_the_newest_steps(uwf: Uwf, ended: str) -> None:
    text = uwf("thread", "read", ended).out

    assert text.startswith(f"# Thread {ended}\n")
    assert "## Task\n\n```data\nthe task\n```\n" in text
    assert [line for line in text.splitlines() if line.startswith("## Step")] == [
        f"## Step {item['number']}: {item['role']} `{item['hash']}`"
        for item in uwf("step", "list", ended, "--json").json["items"]
    ]
    assert text.count("**Goal**\n\n```data\nYou write.\n```") == 1
    assert text.count("**Output**\n\n```data\n") == 4
    assert "> Fix: too short" in text


def test_read_leaves_out_old_steps_and_names_the_command_for_them(
    uwf: Uwf, ended: str
) -> None:
    text = uwf("thread", "read", ended, "--quota", "1").out

    (shown,) = [line for line in text.splitlines() if line.startswith("## Step")]
    assert shown.startswith("## Step 4: checker")
    command = next(part for part in text.split("`") if part.startswith("uwf thread"))
    earlier = uwf(*command.split()[1:])
    assert "## Step 3: writer" in earlier.out
    assert "## Step 4" not in earlier.out
    assert "## Task" not in earlier.out
    assert "## Task" in uwf(*command.split()[1:], "--start").out


def test_read_in_json_holds_the_text(uwf: Uwf, ended: str) -> None:
    shown = uwf("thread", "read", ended, "--json").json

    assert shown == {"threadId": ended, "text": uwf("thread", "read", ended).out}
    assert SEPARATOR in shown["text"]


def test_read_refuses_an_unknown_step_and_a_bad_quota(uwf: Uwf, ended: str) -> None:
    for step in ("0000000000000", "²", "1:²", "9" * 5000):
        assert uwf("thread", "read", ended, "--before", step).code == 1
    assert uwf("thread", "read", ended, "--quota", "0").code == 2


def test_escapes_in_stored_text_reach_no_terminal(uwf: Uwf) -> None:
    task = "\x1b]0;owned\x07\x1b[2J\u202eabc"
    reply = '---\n$status: $SUSPEND\nreason: "\\e[31mred"\n---\n\x1b[2J'
    Path("evil.yaml").write_text(json.dumps({"replies": {"writer": [reply]}}))
    uwf("thread", "start", "ping.yaml", "-p", task)

    asked = uwf("thread", "exec", "@last", "--agent", "scripted:evil.yaml")
    calls = [
        asked,
        uwf("thread", "show", "@last"),
        uwf("thread", "show", "@last", "--json"),
        uwf("thread", "read", "@last"),
        uwf("thread", "list"),
        uwf("step", "list", "@last"),
        uwf("step", "read", "@last:1"),
        uwf("step", "show", "@last:1"),
        uwf("step", "turns", "@last"),
    ]

    assert asked.code == 3
    for call in calls:
        assert not {"\x1b", "\x07", "\u202e"} & set(call.out + call.err)


@pytest.mark.parametrize(
    ("other", "usual"),
    [
        pytest.param(("thread", "steps", "T"), ("step", "list", "T"), id="steps"),
        pytest.param(
            ("thread", "step-details", "T:1"),
            ("step", "show", "T:1"),
            id="step-details",
        ),
        pytest.param(("thread", "step", "T"), ("thread", "exec", "T"), id="step"),
        pytest.param(
            ("thread", "running"),
            ("thread", "list", "--status", "running"),
            id="running",
        ),
        pytest.param(("skill", "usage"), ("prompt", "usage"), id="skill"),
    ],
)
def test_other_spellings_print_the_same(
    uwf: Uwf, ended: str, other: tuple[str, ...], usual: tuple[str, ...]
) -> None:
    def named(words: tuple[str, ...]) -> list[str]:
        return [
            word.replace("T", ended, 1) if word[0] == "T" else word for word in words
        ]

    assert uwf(*named(other)) == uwf(*named(usual))
    assert uwf(*named(other), "--json") == uwf(*named(usual), "--json")


def test_kill_is_cancel(uwf: Uwf, thread: str) -> None:
    assert uwf("thread", "kill", thread, "--json").json["cancelled"] is True


def test_a_thread_goes_on_in_its_renamed_repository(
    uwf: Uwf, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Ada")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "ada@example.org")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "first")):
        subprocess.run(["git", *words], check=True, cwd=work)
    thread = uwf("thread", "start", "ping.yaml", "-p", "x", "--json").json["threadId"]
    renamed = work.rename(work.with_name("renamed"))
    monkeypatch.chdir(renamed)

    done = uwf("thread", "exec", thread, "--agent", "scripted:replies.yaml")

    assert done.code == 0, done.err
    assert f"goes on in '{renamed}', of the same repository" in done.err
    assert uwf("step", "show", f"{thread}:1", "--json").json["cwd"] == str(renamed)


@pytest.mark.usefixtures("work")
def test_a_task_is_called_by_its_heading_as_on_a_page(uwf: Uwf) -> None:
    begun = uwf("thread", "start", "ping.yaml", "-p", "# Paint #4\n\nblue", "--json")
    thread = begun.json["threadId"]

    shown, listed = uwf("thread", "show", thread), uwf("thread", "list")

    for text in (shown.out, listed.out):
        assert "Paint #4" in text
        assert "# Paint" not in text
    assert uwf("thread", "show", thread, "--json").json["task"] == "# Paint #4"
