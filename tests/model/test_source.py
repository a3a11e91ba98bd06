"""Workflow files on disk: includes, what a thread keeps, and finding them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.model.workflow_text import GOOD, Found, places_of, take_carets
from uwfgit.constants import YAML_MAX_BYTES
from uwfgit.errors import NotFoundError, WorkflowError
from uwfgit.model.workflow.include import find_git_marks
from uwfgit.model.workflow.pinned import workflow_from_data
from uwfgit.model.workflow.source import (
    check_workflow_file,
    list_workflow_files,
    read_workflow,
    resolve_workflow,
)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def write_workflow(folder: Path, old: str, new: str) -> tuple[Path, Found]:
    """Write the good file with an edit; give where its carets were."""
    assert GOOD.count(old) == 1
    text, places = take_carets(GOOD.replace(old, new))
    return write(folder / "solve.yaml", text), [("", *place) for place in places]


def check_codes(path: Path) -> Found:
    return places_of(check_workflow_file(path))


def test_a_file_without_includes_is_kept_byte_for_byte(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf# mine\n" + GOOD.encode()

    source = read_workflow(write(tmp_path / "solve.yaml", data))

    assert source.data == data
    assert workflow_from_data(source.data) == source.workflow


def test_line_ends_that_a_checkout_made_are_not_kept(tmp_path: Path) -> None:
    data = GOOD.encode()

    source = read_workflow(write(tmp_path / "solve.yaml", data.replace(b"\n", b"\r\n")))

    assert source.data == data


def test_a_workflow_is_what_its_file_says(tmp_path: Path) -> None:
    text = GOOD.replace("version: 1\n", "x-team: a\ninputs: { n: { type: string } }\n")
    text = text.replace("graph:\n", "  x-note: 1\ngraph:\n  x-note: {}\n")
    text = text.replace(
        "prompt: Blocked. }", "prompt: Blocked., location: /x, x-y: 1 }"
    )

    workflow = read_workflow(write(tmp_path / "solve.yaml", text)).workflow

    blocked = workflow.graph["planner"]["blocked"]  # type: ignore[call-overload] # a map
    assert (workflow.version, workflow.name) == (1, "solve")
    assert workflow.extra == {"x-team": "a"}
    assert workflow.inputs == {"n": {"type": "string"}}
    assert list(workflow.roles) == ["planner", "worker"]
    assert list(workflow.graph) == ["$START", "planner", "worker"]
    assert workflow.roles["planner"].capabilities == ("planning",)
    assert (blocked.role, blocked.location) == ("$END", "/x")


def test_a_list_node_becomes_targets_in_order(tmp_path: Path) -> None:
    node = "- { role: planner, when: a, prompt: x }\n    - { role: $END, prompt: y }"
    done = 'done: { role: $END, prompt: "Done: {{files}}" }'
    path, _ = write_workflow(tmp_path, done, node)

    targets = read_workflow(path).workflow.graph["worker"]

    assert isinstance(targets, tuple)
    assert [(each.role, each.when) for each in targets] == [
        ("planner", "a"),
        ("$END", None),
    ]


def test_warnings_do_not_keep_a_file_from_being_read(tmp_path: Path) -> None:
    path = write(tmp_path / "solve.yaml", GOOD.replace("version: 1\n", ""))

    assert read_workflow(path).workflow.version == 1
    assert [each.severity for each in check_workflow_file(path)] == ["warning"]


def test_every_error_of_a_file_is_in_the_exception(tmp_path: Path) -> None:
    text = GOOD.replace("goal: Plan.", "goal: 1").replace("goal: Work.", "goal: 2")
    path = write(tmp_path / "solve.yaml", text.replace("version: 1\n", ""))

    with pytest.raises(WorkflowError) as caught:
        read_workflow(path)

    assert places_of(caught.value.problems) == [("S3", 6, 11), ("S3", 24, 11)]
    assert {each.file for each in caught.value.problems} == {str(path)}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        pytest.param("solve.yaml", "solve", id="yaml"),
        pytest.param("solve.yml", "solve", id="yml"),
        pytest.param("solve.workflow.yaml", "solve", id="workflow-dropped"),
        pytest.param("solve/index.yaml", "solve", id="folder"),
        pytest.param("other.yaml", None, id="other-name"),
        pytest.param("other/index.yaml", None, id="other-folder"),
    ],
)
def test_the_name_must_be_the_files(
    tmp_path: Path, file: str, name: str | None
) -> None:
    path = write(tmp_path / file, GOOD)

    assert check_codes(path) == ([] if name else [("S6", 2, 7)])


# Includes


@pytest.fixture
def included(tmp_path: Path) -> Path:
    """Make a folder whose workflow takes text and a schema from other files."""
    text = GOOD.replace("procedure: Think.", "procedure: !include texts/plan.md")
    start = text.index("      type: object\n")
    schema = text[start : text.index("graph:")]
    text = text.replace(f"frontmatter:\n{schema}", "frontmatter: !include w.yaml\n")
    text = text.replace("prompt: Plan it.", "prompt: !include texts/plan.md")
    write(tmp_path / "w.yaml", schema.replace("{ type: string }", "!include t.json"))
    write(tmp_path / "t.json", '{\n\t"type": "string"\n}\n')
    write(tmp_path / "texts/plan.md", "Think.\n\n- then: plan\n")
    write(tmp_path / "solve.yaml", text)
    return tmp_path


def test_includes_give_text_and_parsed_values(included: Path) -> None:
    workflow = read_workflow(included / "solve.yaml").workflow

    assert workflow.roles["planner"].procedure == "Think.\n\n- then: plan\n"
    items = workflow.roles["worker"].schema["properties"]["files"]["items"]
    assert items == {"type": "string"}


def test_what_is_kept_of_a_file_with_includes_reads_back_to_the_same(
    included: Path,
) -> None:
    source = read_workflow(included / "solve.yaml")

    first, rest = source.data.split(b"\n", 1)

    assert first == b"# Written by uwf: !include resolved from solve.yaml"
    assert b"!include" not in rest
    assert workflow_from_data(source.data) == source.workflow


def test_a_problem_in_an_included_file_has_its_name_and_line(included: Path) -> None:
    write(included / "t.json", '{\n  "type": "lost"\n}\n')

    (problem,) = check_workflow_file(included / "solve.yaml")

    assert (problem.code, problem.file) == ("J1", str(included / "t.json"))
    assert (problem.line, problem.column) == (2, 11)


def test_a_template_in_an_included_file_has_its_place(included: Path) -> None:
    write(included / "texts/plan.md", "Plan.\n\nNow {{lost}}.\n")

    (problem,) = check_workflow_file(included / "solve.yaml")

    assert (problem.code, problem.file) == ("T4", str(included / "texts/plan.md"))
    assert (problem.line, problem.column) == (3, 5)


def test_a_broken_included_file_is_one_problem_however_often_included(
    included: Path,
) -> None:
    write(included / "texts/plan.md", b"\xff")
    write(included / "t.json", '{"type": ')

    problems = check_workflow_file(included / "solve.yaml")

    assert [(each.code, each.file) for each in problems] == [
        ("Y1", str(included / "t.json")),
        ("Y2", str(included / "texts/plan.md")),
    ]


@pytest.mark.parametrize(
    ("code", "target"),
    [
        pytest.param("Y12", "lost.md", id="missing"),
        pytest.param("Y12", "lost/lost.md", id="missing-folder"),
        pytest.param("Y12", "solve.yaml/x", id="below-a-file"),
        pytest.param("Y12", "", id="nothing"),
        pytest.param("Y12", "loop.md", id="symlink-to-itself"),
        pytest.param("Y13", "../secret.md", id="parent"),
        pytest.param("Y13", "sub/../../secret.md", id="parent-later"),
        pytest.param("Y13", "/etc/passwd", id="absolute"),
        pytest.param("Y13", "link.md", id="symlink-out"),
        pytest.param("Y13", "linked/secret.md", id="symlinked-folder-out"),
        pytest.param("Y13", "hop.md", id="symlink-to-a-symlink-out"),
        pytest.param("Y14", "solve.yaml", id="itself"),
        pytest.param("Y14", "me.yaml", id="itself-through-a-symlink"),
        pytest.param("Y15", "sub", id="folder"),
        pytest.param("Y15", "pipe", id="pipe"),
        pytest.param("Y3", "big.md", id="too-large"),
    ],
)
def test_an_include_that_is_refused_is_a_problem_at_its_tag(
    tmp_path: Path, code: str, target: str
) -> None:
    folder = tmp_path / "in"
    write(tmp_path / "secret.md", "secret")
    write(folder / "big.md", b"x" * (YAML_MAX_BYTES + 1))
    (folder / "sub").mkdir()
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "hop.md").symlink_to("link.md")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "loop.md").symlink_to("loop.md")
    (folder / "me.yaml").symlink_to("solve.yaml")
    os.mkfifo(folder / "pipe")
    path, places = write_workflow(
        folder, "procedure: Think.", f"procedure: ‸!include '{target}'"
    )

    problems = check_workflow_file(path)

    assert places_of(problems) == [(code, *places[0][1:])]
    assert "secret" not in problems[0].message.replace(target, "")


def test_a_cycle_of_includes_is_a_problem_where_it_closes(tmp_path: Path) -> None:
    path, _ = write_workflow(
        tmp_path, "version: 1", "version: 1\nx-all: !include sub/a.yaml"
    )
    write(tmp_path / "sub/a.yaml", "- x\n- !include b.yaml\n")
    write(tmp_path / "sub/b.yaml", "y: !include a.yaml\n")

    (problem,) = check_workflow_file(path)

    assert (problem.code, problem.file) == ("Y14", str(tmp_path / "sub/b.yaml"))
    assert (problem.line, problem.column) == (1, 4)
    assert "a.yaml → b.yaml → a.yaml" in problem.message


def test_an_included_file_is_confined_to_its_own_folder(tmp_path: Path) -> None:
    path, _ = write_workflow(
        tmp_path, "capabilities: [planning]", "capabilities: !include sub/a.yaml"
    )
    write(tmp_path / "sub/a.yaml", "- !include ../x.md\n")
    write(tmp_path / "x.md", "x")

    (problem,) = check_workflow_file(path)

    assert (problem.code, problem.file) == ("Y13", str(tmp_path / "sub/a.yaml"))


@pytest.mark.parametrize(
    "field",
    [
        pytest.param("x-a: {‸!include a.md : b}", id="key"),
        pytest.param("x-a: ‸!include [a.md]", id="list-of-paths"),
        pytest.param("x-a: ‸!include {path: a.md}", id="mapping"),
    ],
)
def test_an_include_stands_for_a_value(tmp_path: Path, field: str) -> None:
    path, places = write_workflow(tmp_path, "version: 1", f"version: 1\n{field}")
    write(tmp_path / "a.md", "text")

    assert check_codes(path) == [("Y5", *places[0][1:])]


def test_a_long_chain_of_includes_is_refused(tmp_path: Path) -> None:
    path, _ = write_workflow(
        tmp_path, "capabilities: [planning]", "capabilities: !include f0.yaml"
    )
    for number in range(30):
        write(tmp_path / f"f{number}.yaml", f"!include f{number + 1}.yaml\n")

    assert [code for code, _, _ in check_codes(path)] == ["Y14"]


def test_includes_that_double_are_read_once_each(tmp_path: Path) -> None:
    path, _ = write_workflow(
        tmp_path, "capabilities: [planning]", "capabilities: !include f0.yaml"
    )
    for number in range(18):
        tag = f"!include f{number + 1}.yaml"
        write(tmp_path / f"f{number}.yaml", f"[{tag}, {tag}]\n")
    write(tmp_path / "f18.yaml", "x")

    assert "Y9" in [code for code, _, _ in check_codes(path)]


def test_a_symlink_inside_the_folder_is_followed(tmp_path: Path) -> None:
    path, _ = write_workflow(
        tmp_path, "procedure: Think.", "procedure: !include link.md"
    )
    write(tmp_path / "sub/real.md", "Really.")
    (tmp_path / "link.md").symlink_to("sub/real.md")

    assert read_workflow(path).workflow.roles["planner"].procedure == "Really."


def test_a_workflow_that_includes_too_much_is_refused(tmp_path: Path) -> None:
    tags = ", ".join(["!include big.md"] * 3)
    path, _ = write_workflow(
        tmp_path, "capabilities: [planning]", f"capabilities: [{tags}]"
    )
    write(tmp_path / "big.md", "x" * 400_000)

    assert check_codes(path) == [("Y3", 1, 1)]


def test_an_alias_bomb_in_a_file_is_refused_with_its_line(tmp_path: Path) -> None:
    lines = ["x-a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"x-a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = write(tmp_path / "solve.yaml", "\n".join(lines) + "\n" + GOOD)

    ((code, line, _),) = check_codes(path)

    assert (code, line) == ("Y9", 5)


# Files that cannot be read


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        read_workflow(tmp_path / "lost.yaml")

    assert caught.value.kind == "workflow file"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param("gone", "it is a link to a file that is not there", id="gone"),
        pytest.param(
            "a.yaml/b", "it is a link to a file that is not there", id="below"
        ),
        pytest.param("solve.yaml", "it is a link that leads to itself", id="circle"),
    ],
)
def test_a_link_that_leads_nowhere_is_named_as_one(
    tmp_path: Path, target: str, message: str
) -> None:
    folder = tmp_path / ".workflows"
    write(folder / "a.yaml", GOOD)
    (folder / "solve.yaml").symlink_to(target)

    found = resolve_workflow("solve", cwd=tmp_path, workflow_paths=())
    by_path = resolve_workflow(".workflows/solve.yaml", cwd=tmp_path, workflow_paths=())
    listed = list_workflow_files(cwd=tmp_path, workflow_paths=())
    with pytest.raises(WorkflowError) as caught:
        read_workflow(folder / "solve.yaml")

    assert found == by_path == folder / "solve.yaml"
    assert [name for name, _, _ in listed] == ["a", "solve"]
    (problem,) = caught.value.problems
    assert (problem.code, problem.message) == ("Y15", message)
    assert problem.hint == "fix or remove the link"


def test_a_folder_is_no_workflow_file(tmp_path: Path) -> None:
    assert check_codes(tmp_path) == [("Y15", 1, 1)]


def test_a_file_of_more_than_a_mebibyte_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "solve.yaml", GOOD + "#" * YAML_MAX_BYTES)

    assert check_codes(path) == [("Y3", 1, 1)]


def test_kept_bytes_that_are_no_workflow_are_refused() -> None:
    with pytest.raises(WorkflowError):
        workflow_from_data(GOOD.replace("goal: Plan.", "aim: Plan.").encode())


def test_kept_bytes_that_a_later_rule_would_refuse_stay_readable() -> None:
    data = GOOD.replace("goal: Plan.", "goal: ''").encode()

    assert workflow_from_data(data).roles["planner"].goal == ""


@pytest.mark.parametrize("data", [pytest.param(b"a: [", id="yaml"), b"", b"\xff"])
def test_kept_bytes_that_are_no_document_are_refused(data: bytes) -> None:
    with pytest.raises(WorkflowError):
        workflow_from_data(data)


# Finding


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a repository with a folder two levels down."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "a/b").mkdir(parents=True)
    return root


def find(name: str, cwd: Path, *paths: Path) -> Path | None:
    return resolve_workflow(name, cwd=cwd, workflow_paths=paths)


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(".workflows/solve.yaml", id="yaml"),
        pytest.param(".workflows/solve.yml", id="yml"),
        pytest.param(".workflows/solve/index.yaml", id="folder"),
        pytest.param(".workflows/solve.workflow.yaml", id="workflow-dropped"),
        pytest.param(".workflow/solve.yaml", id="older-folder"),
    ],
)
def test_a_name_is_found_in_the_layouts_there_are(project: Path, file: str) -> None:
    path = write(project / file, GOOD)

    assert find("solve", project / "a/b") == path


def test_the_nearest_folder_wins(project: Path) -> None:
    write(project / ".workflows/solve.yaml", GOOD)
    near = write(project / "a/.workflow/solve.yaml", GOOD)

    assert find("solve", project / "a/b") == near


def test_workflows_comes_before_workflow(project: Path) -> None:
    write(project / ".workflow/solve.yaml", GOOD)
    first = write(project / ".workflows/solve/index.yaml", GOOD)

    assert find("solve", project) == first


def test_a_nearer_folder_without_the_name_does_not_hide_a_farther_one(
    project: Path,
) -> None:
    write(project / "a/.workflows/other.yaml", GOOD)
    far = write(project / ".workflows/solve.yaml", GOOD)

    assert find("solve", project / "a") == far


def test_nothing_above_the_repository_is_looked_at(project: Path) -> None:
    write(project.parent / ".workflows/solve.yaml", GOOD)

    assert find("solve", project / "a") is None


def test_a_worktree_s_root_is_a_root(project: Path) -> None:
    write(project / "a/.git", "gitdir: elsewhere\n")
    write(project / ".workflows/solve.yaml", GOOD)

    assert find("solve", project / "a/b") is None


def test_configured_folders_come_last(project: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "shared/solve.yaml", GOOD)

    assert find("solve", project, tmp_path / "none", tmp_path / "shared") == other

    near = write(project / ".workflows/solve.yaml", GOOD)

    assert find("solve", project, tmp_path / "shared") == near


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param("..", id="parent"),
        pytest.param("a\0b", id="nul"),
        pytest.param("lost", id="unknown"),
        pytest.param("fix it " * 40, id="longer than any file name"),
    ],
)
def test_other_names_mean_no_file(project: Path, name: str) -> None:
    write(project / ".workflows/solve.yaml", GOOD)

    assert find(name, project) is None


def test_a_path_is_taken_from_the_working_directory(project: Path) -> None:
    path = write(project / "a/solve.yaml", GOOD)
    index = write(project / "a/solve/index.yml", GOOD)

    assert find("a/solve.yaml", project) == path
    assert find("solve.yaml", project / "a") == path
    assert find(str(path), project / "a/b") == path
    assert find("./solve", project / "a") == index


@pytest.mark.parametrize("name", ["lost.yaml", "a/lost", "./lost\0.yaml"])
def test_a_path_to_nothing_is_not_found(project: Path, name: str) -> None:
    with pytest.raises(NotFoundError):
        find(name, project)


def test_the_list_names_what_a_name_would_find(project: Path, tmp_path: Path) -> None:
    near = write(project / "a/.workflows/solve.yaml", GOOD)
    write(project / ".workflows/solve.yaml", GOOD)
    folder = write(project / ".workflows/debate/index.yaml", GOOD)
    write(project / ".workflows/notes.md", "no workflow")
    write(project / ".workflows/solve.replies.yaml", "writer: [good]")
    shared = write(tmp_path / "shared/release.workflow.yml", GOOD)

    listed = list_workflow_files(
        cwd=project / "a", workflow_paths=[tmp_path / "shared", tmp_path / "none"]
    )

    assert listed == [
        ("debate", folder, "local"),
        ("release", shared, "path"),
        ("solve", near, "local"),
    ]


def test_many_marks_of_conflicts_are_looked_for_in_time() -> None:
    ours, middle = b"<<<<<<< x\n", b"=======\n"
    before = time.process_time()

    assert find_git_marks(ours * 50_000) is None
    assert find_git_marks((ours + middle) * 20_000) is None
    found = find_git_marks(b"a\n" + ours * 20_000 + middle + b">>>>>>> y\n")

    assert found == ("it has marks of a merge conflict", "resolve the conflict", 2)
    # By the square of their number it took an hour.
    assert time.process_time() - before < 5
