from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.builders import git
from tests.cli.calls import WORKFLOW, Uwf


def test_validate_needs_no_store_and_says_valid(uwf: Uwf, home: Path) -> None:
    checked = uwf("workflow", "validate", "ping.yaml")

    assert (checked.code, checked.out) == (0, "valid: 1 file\n")
    assert uwf("workflow", "validate", "ping.yaml", "--json").json == {
        "valid": True,
        "problems": [],
        "errors": [],
        "files": [{"file": "ping.yaml", "valid": True}],
    }
    assert not (home / "store").exists()


def test_validate_names_file_line_column_and_rule(uwf: Uwf, work: Path) -> None:
    (work / "ping.yaml").write_text(WORKFLOW.replace("role: checker", "role: chekcer"))

    checked = uwf("workflow", "validate", "ping.yaml", "--json")
    text = uwf("workflow", "validate", "ping.yaml")

    assert checked.code == 1
    problem = next(p for p in checked.json["problems"] if p["code"] == "G6")
    assert list(problem) == [
        "file",
        "line",
        "column",
        "code",
        "severity",
        "path",
        "message",
        "hint",
    ]
    assert problem["file"] == "ping.yaml"
    assert problem["message"] in checked.json["errors"]
    place = f"ping.yaml:{problem['line']}:{problem['column']}: error G6: "
    assert place in text.out
    assert "\ninvalid: 1 file, " in text.out
    assert checked.json["valid"] is False


def test_warnings_are_errors_when_strict(uwf: Uwf, work: Path) -> None:
    (work / "ping.yaml").write_text(WORKFLOW.replace("version: 1\n", ""))

    lenient = uwf("workflow", "validate", "ping.yaml", "--json")
    strict = uwf("workflow", "validate", "ping.yaml", "--strict", "--json")

    assert (lenient.code, lenient.json["valid"], lenient.json["errors"]) == (
        0,
        True,
        [],
    )
    assert (strict.code, strict.json["valid"]) == (1, False)
    assert strict.json["errors"]


def test_validate_takes_several_files_and_folders(uwf: Uwf, work: Path) -> None:
    flows = work / "flows"
    (flows / "pong").mkdir(parents=True)
    (flows / "ping.yml").write_text(WORKFLOW)
    (flows / "pong" / "index.yaml").write_text(WORKFLOW.replace("ping", "pong"))
    (flows / "broken.yaml").write_text("name: [\n")

    checked = uwf("workflow", "validate", "ping.yaml", "flows")

    assert checked.code == 1
    assert "flows/broken.yaml:" in checked.out
    assert "invalid: 4 files, " in checked.out


def test_a_missing_file_hides_nothing_of_the_others(uwf: Uwf, work: Path) -> None:
    (work / "empty").mkdir()
    (work / "bad.yaml").write_text("name: [\n")

    checked = uwf(
        *("workflow", "validate", "pnig", "ping.yaml", "empty", "bad.yaml", "--json")
    )

    problems = {each["file"]: each for each in checked.json["problems"]}
    assert (checked.code, checked.json["valid"]) == (1, False)
    assert checked.json["files"] == [
        {"file": "pnig", "valid": False},
        {"file": "ping.yaml", "valid": True},
        {"file": "empty", "valid": False},
        {"file": "bad.yaml", "valid": False},
    ]
    assert "'pnig'" in problems["pnig"]["message"]
    assert [*problems] == ["pnig", "empty", "bad.yaml"]


@pytest.mark.parametrize("name", ["gone.yaml", "empty"])
def test_validate_of_nothing_is_an_error(uwf: Uwf, work: Path, name: str) -> None:
    (work / "empty").mkdir()

    assert uwf("workflow", "validate", name).code == 1


@pytest.mark.parametrize("words", [("validate",), ("add",), ("migrate",)])
def test_a_file_may_be_given_by_its_name(
    uwf: Uwf, work: Path, words: tuple[str, ...]
) -> None:
    (work / ".workflows").mkdir()
    (work / "ping.yaml").rename(work / ".workflows" / "ping.yaml")

    given = uwf("workflow", *words, "ping")
    missing = uwf("workflow", *words, "pong", "--json")
    elsewhere = uwf("workflow", *words, "ping.yaml", "--json")

    assert given.code == 0, given.err
    assert missing.code == 1
    assert missing.error["hint"] == "did you mean 'ping'?"
    assert elsewhere.error["hint"] == "did you mean '.workflows/ping.yaml'?"


def test_a_folder_without_workflows_names_the_one_that_has_them(
    uwf: Uwf, work: Path
) -> None:
    (work / "sub" / ".workflows").mkdir(parents=True)

    refused = uwf("workflow", "validate", "sub", "--json")

    assert refused.error["hint"] == "its workflows are in: sub/.workflows"


def test_add_registers_once(uwf: Uwf) -> None:
    first = uwf("workflow", "add", "ping.yaml", "--json")
    second = uwf("workflow", "put", "ping.yaml", "--json")

    assert list(first.json) == ["name", "hash", "oid", "changed", "origin"]
    assert (first.json["name"], first.json["changed"]) == ("ping", True)
    assert second.json == {**first.json, "changed": False}
    assert uwf("workflow", "add", "ping.yaml").out.startswith("unchanged  ping\n")


def test_add_refuses_what_does_not_hold_together(uwf: Uwf, work: Path) -> None:
    (work / "ping.yaml").write_text(WORKFLOW.replace("role: checker", "role: nobody"))

    added = uwf("workflow", "add", "ping.yaml", "--json")

    assert (added.code, added.error["code"]) == (1, "invalid-workflow")
    assert uwf("workflow", "add", "gone.yaml").code == 1


def test_show_is_the_same_from_file_registry_and_hash(uwf: Uwf) -> None:
    added = uwf("workflow", "add", "ping.yaml", "--json").json

    of_file = uwf("workflow", "show", "./ping.yaml", "--json").json
    of_name = uwf("workflow", "show", "ping", "--json").json
    of_hash = uwf("workflow", "show", added["hash"], "--json").json
    of_version = uwf("workflow", "show", f"ping@{added['hash']}", "--json").json

    assert list(of_file) == [
        "name",
        "hash",
        "source",
        "origin",
        "description",
        "version",
        "roles",
        "graph",
        "inputs",
    ]
    assert of_file["hash"] == added["hash"]
    assert of_name == of_version == {**of_file, "source": "registry"}
    assert of_hash == {**of_file, "source": "store"}


def test_show_for_people_follows_the_graph(uwf: Uwf) -> None:
    text = uwf("workflow", "show", "./ping.yaml").out

    edges = text.split("FROM")[1].splitlines()[1:]
    assert [line.split()[:3] for line in edges] == [
        ["$START", "new", "writer"],
        ["$START", "resume", "writer"],
        ["writer", "done", "checker"],
        ["writer", "stuck", "$END"],
        ["checker", "good", "$END"],
        ["checker", "bad", "writer"],
    ]


@pytest.mark.parametrize(
    "name", ["nope", "./nope.yaml", "nope@0000000000000", "a@b", " "]
)
def test_unknown_workflows_are_one_line(uwf: Uwf, name: str) -> None:
    uwf("init")

    shown = uwf("workflow", "show", name)

    assert (shown.code, shown.out) == (1, "")


def test_local_files_come_before_the_registry(uwf: Uwf, work: Path) -> None:
    uwf("workflow", "add", "ping.yaml")
    (work / ".workflows").mkdir()
    local = WORKFLOW.replace("Write and check", "The local one")
    (work / ".workflows" / "ping.yaml").write_text(local)

    items = uwf("workflow", "list", "--json").json["items"]
    started = uwf("thread", "start", "ping", "-p", "x", "--json").json

    (item,) = items
    assert list(item) == ["name", "hash", "source", "description"]
    assert item["description"] == "The local one"
    assert started["workflowHash"] == item["hash"]


def test_list_works_without_a_store_and_with_broken_files(uwf: Uwf, work: Path) -> None:
    (work / ".workflows").mkdir()
    (work / ".workflows" / "ping.yaml").write_text("name: [\n")

    listed = uwf("workflow", "list")

    assert listed.code == 0
    assert listed.out.splitlines()[1].split()[:2] == ["ping", "-"]
    assert listed.err.startswith("warning: ")


def test_an_empty_list_says_how_to_fill_it(uwf: Uwf) -> None:
    assert uwf("workflow", "list").err == (
        "no workflows; write one: uwf workflow new NAME, or register one: "
        "uwf workflow add FILE\n"
    )
    assert uwf("workflow", "list", "--json").json == {"items": []}


def test_history_rollback_and_removal(uwf: Uwf, work: Path) -> None:
    first = uwf("workflow", "add", "ping.yaml", "--json").json
    (work / "ping.yaml").write_text(WORKFLOW.replace("You check.", "You check twice."))
    second = uwf("workflow", "add", "ping.yaml", "--json").json

    history = uwf("workflow", "history", "ping", "--json").json["items"]
    back = uwf("workflow", "rollback", "ping", "--json").json

    assert [(item["hash"], item["current"]) for item in history] == [
        (second["hash"], True),
        (first["hash"], False),
    ]
    assert list(history[0]) == ["hash", "oid", "timestampMs", "current", "origin"]
    assert back["hash"] == first["hash"]
    assert uwf("workflow", "show", "ping", "--json").json["hash"] == first["hash"]
    assert "current" in uwf("workflow", "history", "ping").out
    assert uwf("workflow", "rollback", "ping", "not-a-hash").code == 2
    assert uwf("workflow", "rm", "ping", "--json").json == {
        "name": "ping",
        "removed": True,
    }
    assert uwf("workflow", "show", "ping").code == 1


def test_a_thread_starts_from_a_hash_too(uwf: Uwf) -> None:
    added = uwf("workflow", "add", "ping.yaml", "--json").json
    uwf("workflow", "rm", "ping")

    started = uwf("thread", "start", added["hash"], "-p", "x", "--json")

    # The registry let go of it; what the store no longer holds has no name.
    assert started.code in {0, 1}


def test_a_damaged_branch_of_the_registry_never_breaks_the_listing(
    uwf: Uwf, work: Path
) -> None:
    assert uwf("workflow", "add", "ping.yaml").code == 0
    (work / "ping.yaml").unlink()
    store = Path(uwf("store", "path").out.strip())
    branch = store / "refs" / "heads" / "workflow" / "odd"
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    commit = git(store, *who, "commit-tree", "-m", "odd", "main^{tree}").strip()
    branch.write_text(f"{commit}\n")

    listed = uwf("workflow", "list", "--json")

    assert listed.code == 0
    hashes = {item["name"]: item["hash"] for item in listed.json["items"]}
    assert hashes["odd"] is None
    assert hashes["ping"] is not None
    assert "workflow 'odd'" in listed.err


# --- validate: what editors, git and pipes leave ---


def test_editors_own_files_are_no_workflows(uwf: Uwf, work: Path) -> None:
    (work / ".workflows").mkdir()
    (work / ".workflows" / "ping.yaml").write_text(WORKFLOW)
    (work / ".workflows" / ".#ping.yaml").symlink_to("ada@host.1234:99")
    (work / ".workflows" / "._ping.yaml").write_bytes(b"\0\5\26\7")
    (work / ".workflows" / ".hidden").mkdir()
    (work / ".workflows" / ".hidden" / "index.yaml").write_text("{}")

    assert uwf("workflow", "validate", ".workflows").code == 0


def test_a_link_that_leads_nowhere_is_one_problem_of_a_folder(
    uwf: Uwf, work: Path
) -> None:
    (work / ".workflows").mkdir()
    (work / ".workflows" / "gone.yaml").symlink_to("/nowhere/x.yaml")
    (work / ".workflows" / "ping.yaml").write_text(WORKFLOW.replace("goal", "gaol", 1))

    done = uwf("workflow", "validate", ".workflows", "--json")

    assert done.code == 1
    assert {problem["code"] for problem in done.json["problems"]} >= {"Y15", "S1"}


def test_a_workflow_is_checked_from_stdin(
    uwf: Uwf, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "how.md").write_text("How.")
    text = WORKFLOW.replace("procedure: Write.", "procedure: !include how.md")
    for given, code in ((text, 0), (text.replace("goal:", "gaol:", 1), 1)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        done = uwf("workflow", "validate", "-", "--json")
        assert done.code == code
        assert {p["file"] for p in done.json["problems"] if p["code"] == "S1"} <= {"-"}


CONFLICT = "Write.\n<<<<<<< HEAD\nonce\n=======\ntwice\n>>>>>>> side\n"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        pytest.param(CONFLICT, ["Y17"], id="conflict"),
        pytest.param(CONFLICT.replace("\n", "\r\n"), ["Y17"], id="windows"),
        pytest.param(POINTER, ["Y17"], id="pointer"),
        pytest.param(f"It looks so:\n\n```\n{CONFLICT}```\n", [], id="told-of"),
        pytest.param("A title\n=======\n", [], id="a-heading"),
    ],
)
def test_what_git_leaves_in_a_files_place_is_found(
    uwf: Uwf, work: Path, text: str, codes: list[str]
) -> None:
    (work / "how.md").write_text(text)
    (work / "ping.yaml").write_text(
        WORKFLOW.replace("procedure: Write.", "procedure: !include how.md")
    )

    problems = uwf("workflow", "validate", "ping.yaml", "--json").json["problems"]

    assert [p["code"] for p in problems if p["severity"] == "error"] == codes


def test_a_workflow_is_the_same_whatever_ends_its_lines(uwf: Uwf, work: Path) -> None:
    found = set()
    for end in ("\n", "\r\n"):
        text = WORKFLOW.replace("procedure: Write.", "procedure: !include how.md")
        (work / "how.md").write_bytes(f"Write.{end}{end}Twice.{end}".encode())
        (work / "ping.yaml").write_bytes(text.replace("\n", end).encode())
        found.add(uwf("workflow", "add", "ping.yaml", "--json").json["hash"])
    (work / "ping.yaml").write_bytes(WORKFLOW.replace("\n", "\r\n").encode())
    uwf("workflow", "add", "ping.yaml")
    (work / "ping.yaml").write_bytes(WORKFLOW.encode())
    again = uwf("workflow", "add", "ping.yaml", "--json").json

    assert len(found) == 1
    assert again["changed"] is False


def test_a_near_name_is_suggested(uwf: Uwf, work: Path) -> None:
    uwf("workflow", "add", "ping.yaml")
    (work / ".workflows").mkdir()
    (work / ".workflows" / "fix-bug.yaml").write_text(
        WORKFLOW.replace("name: ping", "name: fix-bug")
    )

    for word, near in (("pinng", "ping"), ("fix-bugg", "fix-bug")):
        done = uwf("workflow", "show", word)
        assert done.err.splitlines()[-1] == f"hint: did you mean '{near}'?"


@pytest.mark.parametrize("command", ["history", "rm", "rollback", "update"])
def test_a_file_that_is_not_registered_is_told_from_no_workflow(
    uwf: Uwf, work: Path, command: str
) -> None:
    uwf("init")
    (work / ".workflows").mkdir()
    (work / ".workflows" / "ping.yaml").write_text(WORKFLOW)

    done = uwf("workflow", command, "ping")

    assert done.err.splitlines() == [
        "error: workflow 'ping' not found",
        (
            "hint: none of that name is registered: uwf workflow list shows all there "
            "are, uwf workflow add FILE registers one"
        ),
    ]


def test_validate_without_a_word_says_what_it_wants(uwf: Uwf) -> None:
    done = uwf("workflow", "validate")

    assert (done.code, done.err.splitlines()) == (
        2,
        [
            "error: missing argument 'FILE...'",
            "hint: for a whole folder: uwf workflow validate .workflows",
        ],
    )


@pytest.mark.parametrize("before", [("init",), ("store", "path")])
def test_who_asks_for_an_example_is_told_how_to_begin_with_it(
    uwf: Uwf, before: tuple[str, ...]
) -> None:
    uwf(*before)

    done = uwf("workflow", "show", "debate")

    assert done.code == 1
    assert done.err.splitlines() == [
        "error: workflow 'debate' not found",
        "hint: begin with the example: uwf workflow new --from debate",
    ]
