"""The hook pre-commit: real commits, and what it is installed beside."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.calls import WORKFLOW, Uwf
from uwfgit.cli.hooks.precommit import COMMAND

SOURCE = Path(__file__).parents[2]
BAD = WORKFLOW.replace("role: checker", "role: chekcer")
WITH_TEXT = WORKFLOW.replace("procedure: Write.", "procedure: !include parts/how.md")
WITH_PART = WORKFLOW.replace(
    "    capabilities: []\n    procedure: Write.",
    "    capabilities: !include parts/can.yaml\n    procedure: Write.",
)
WITH_SCHEMA = WORKFLOW.replace(
    "version: 1\n", "version: 1\nx-part: !include part.yaml\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A work tree with the hook in place, and the shell of its user."""

    root: Path
    environment: Mapping[str, str]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def git(self, *words: str) -> str:
        done = self.run("git", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commits(self, *words: str) -> bool:
        """Commit, and tell whether the hook let it through."""
        done = self.run("git", "commit", "-q", "-m", "change", *words)
        assert done.returncode in {0, 1}, done.stderr
        return done.returncode == 0

    def write(self, name: str, text: str, *, add: bool = True) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if add:
            self.git("add", name)


def make_project(folder: Path, *, git_format: str = "sha1") -> Project:
    programs = folder / "programs"
    programs.mkdir()
    uwf = programs / "uwf"
    uwf.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m uwfgit "$@"\n')
    uwf.chmod(0o755)
    root = folder / "project"
    root.mkdir()
    environment = {
        **{key: os.environ[key] for key in ("HOME", "UWF_HOME", "GIT_CONFIG_NOSYSTEM")},
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(SOURCE),
        **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
    }
    project = Project(root=root, environment=environment)
    project.git("init", "-q", f"--object-format={git_format}")
    done = project.run("uwf", "hooks", "install")
    assert done.returncode == 0, done.stderr
    return project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


@pytest.fixture
def committed(project: Project) -> Project:
    project.write(".workflows/ping.yaml", WITH_PART)
    project.write(".workflows/parts/can.yaml", "[]")
    assert project.commits()
    return project


def test_a_bad_staged_file_fails_whatever_the_work_tree_holds(project: Project) -> None:
    project.write(".workflows/ping.yaml", BAD)
    project.write(".workflows/ping.yaml", WORKFLOW, add=False)

    done = project.run("git", "commit", "-m", "change")

    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "\n.workflows/ping.yaml:34:" in f"\n{said}"
    assert "chekcer, prompt" in said


def test_a_good_staged_file_passes_whatever_the_work_tree_holds(
    project: Project,
) -> None:
    project.write(".workflows/ping.yaml", WORKFLOW)
    project.write(".workflows/ping.yaml", BAD, add=False)

    assert project.commits()


def test_a_staged_include_counts_and_the_work_trees_does_not(
    committed: Project,
) -> None:
    committed.write(".workflows/parts/can.yaml", "[1]")
    committed.write(".workflows/parts/can.yaml", "[]", add=False)
    assert not committed.commits()

    committed.write(".workflows/parts/can.yaml", "[writing]")
    committed.write(".workflows/parts/can.yaml", "[1]", add=False)
    assert committed.commits()


def test_an_include_that_is_removed_or_never_added_fails(committed: Project) -> None:
    committed.git("rm", "-q", "--cached", ".workflows/parts/can.yaml")

    assert not committed.commits()


def test_an_include_that_is_only_announced_is_not_there(project: Project) -> None:
    project.write(".workflows/ping.yaml", WITH_TEXT)
    project.write(".workflows/parts/how.md", "Write.", add=False)
    project.git("add", "-N", ".workflows/parts/how.md")

    assert not project.commits()


def test_commit_of_all_and_of_one_file_check_what_they_commit(
    committed: Project,
) -> None:
    committed.write(".workflows/ping.yaml", BAD, add=False)
    assert not committed.commits("-a")
    assert not committed.commits("--", ".workflows/ping.yaml")

    committed.write(".workflows/ping.yaml", BAD)
    committed.write(".workflows/ping.yaml", WITH_PART + "x-a: 1\n", add=False)
    assert committed.commits("-a")


def test_commit_of_another_file_leaves_what_is_staged_alone(committed: Project) -> None:
    committed.write("notes.txt", "a note")
    assert committed.commits()
    committed.write(".workflows/ping.yaml", BAD)
    committed.write("notes.txt", "another note", add=False)

    assert committed.commits("--", "notes.txt")


@pytest.mark.slow
def test_a_linked_worktree_is_checked_as_its_own(committed: Project) -> None:
    committed.git("worktree", "add", "-q", "../linked")
    linked = Project(
        root=committed.root.parent / "linked", environment=committed.environment
    )
    committed.write(".workflows/ping.yaml", BAD)
    linked.write(".workflows/ping.yaml", WITH_PART + "x-a: 1\n")
    assert linked.commits()

    linked.write(".workflows/ping.yaml", BAD, add=False)
    assert not linked.commits("-a")


def test_a_clean_merge_is_checked_too(committed: Project) -> None:
    committed.write(".workflows/parts/how.md", "How.")
    committed.write(".workflows/ping.yaml", WITH_TEXT)
    assert committed.commits()
    committed.git("checkout", "-q", "-b", "side")
    committed.git("mv", ".workflows/parts/how.md", ".workflows/parts/what.md")
    committed.write(
        ".workflows/ping.yaml", WITH_TEXT.replace("parts/how", "parts/what")
    )
    assert committed.commits()
    committed.git("checkout", "-q", "-")
    committed.write(
        ".workflows/pong.yaml", WITH_TEXT.replace("name: ping", "name: pong")
    )
    assert committed.commits()

    merged = committed.run("git", "merge", "-q", "--no-edit", "side")

    assert merged.returncode != 0
    assert "pong.yaml" in merged.stdout + merged.stderr


@pytest.mark.slow
def test_through_pre_commit_a_moved_include_is_found(committed: Project) -> None:
    committed.write(".workflows/parts/how.md", "How.")
    committed.write(".workflows/ping.yaml", WITH_TEXT)
    assert committed.commits()
    committed.git("mv", ".workflows/parts/how.md", ".workflows/parts/what.md")

    for name in (".workflows/parts/what.md", None):
        names = [] if name is None else [name]
        done = committed.run("uwf", "workflow", "validate", "--edited", *names)
        assert done.returncode == 1
        assert "'parts/how.md' not found" in done.stdout


def test_what_a_commit_does_not_change_is_no_bar(project: Project) -> None:
    project.write(".workflows/ping.yaml", BAD)
    project.git("commit", "-q", "--no-verify", "-m", "bad")
    project.write(".workflows/pong.yaml", WORKFLOW.replace("ping", "pong"))
    project.write(".workflows/notes.md", "Nobody includes this.")

    assert project.commits()


def test_a_part_is_checked_with_the_workflow_that_includes_it(project: Project) -> None:
    project.write(".workflows/ping.yaml", WITH_SCHEMA)
    project.write(".workflows/part.yaml", "a: 1\n")
    assert project.commits()

    project.write(".workflows/part.yaml", "a: [\n")
    assert not project.commits()


def test_files_that_include_each_other_fail(project: Project) -> None:
    project.write(".workflows/ping.yaml", WITH_SCHEMA)
    project.write(".workflows/part.yaml", "a: !include ping.yaml\n")

    assert not project.commits()


def test_a_link_to_a_workflow_elsewhere_is_followed(project: Project) -> None:
    project.write("flows/ping.yaml", WITH_PART)
    project.write("flows/parts/can.yaml", "[]")
    (project.root / ".workflows").mkdir()
    (project.root / ".workflows" / "ping.yaml").symlink_to("../flows/ping.yaml")
    project.git("add", ".workflows")

    assert project.commits()
    assert ".workflows/ping.yaml" in project.git("ls-files")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        pytest.param(
            "gone.yaml", "it is a link to a file that is not there", id="gone"
        ),
        pytest.param("ping.yaml", "it is a link that leads to itself", id="circle"),
    ],
)
def test_a_link_that_leads_nowhere_fails(
    project: Project, target: str, said: str
) -> None:
    (project.root / ".workflows").mkdir()
    (project.root / ".workflows" / "ping.yaml").symlink_to(target)
    project.git("add", ".workflows")

    done = project.run("git", "commit", "-m", "change")

    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert f".workflows/ping.yaml:1:1: error Y15: {said}" in done.stdout + done.stderr


def test_a_link_out_of_the_repository_is_no_matter_of_the_commits(
    project: Project,
) -> None:
    (project.root.parent / "ping.yaml").write_text(WORKFLOW)
    (project.root / ".workflows").mkdir()
    (project.root / ".workflows" / "ping.yaml").symlink_to("../../ping.yaml")
    project.git("add", ".workflows")

    assert project.commits()


def test_a_workflow_folder_that_is_a_link_is_followed(project: Project) -> None:
    project.write("flows/ping.yaml", BAD, add=False)
    project.write("flows/parts/can.yaml", "[]", add=False)
    (project.root / ".workflows").symlink_to("flows")
    project.git("add", "flows")
    assert project.commits()

    project.git("add", ".workflows")
    assert not project.commits()

    project.write("flows/ping.yaml", WITH_PART)
    assert project.commits()

    project.write("flows/parts/can.yaml", "{}")
    assert not project.commits()

    project.git("rm", "-q", "-f", "flows/parts/can.yaml")
    assert not project.commits()


def test_an_edit_behind_a_link_to_a_link_is_checked(project: Project) -> None:
    project.write("b/ping.yaml", WORKFLOW)
    for name, target in ((".workflows", "a"), ("a", "b")):
        (project.root / name).symlink_to(target)
        project.git("add", name)
    assert project.commits()

    project.write("b/ping.yaml", BAD)

    assert not project.commits()


def test_a_repository_of_sha256_is_read_too(tmp_path: Path) -> None:
    project = make_project(tmp_path, git_format="sha256")
    project.write("deep/.workflow/ping.yaml", BAD)
    assert not project.commits()

    project.write("deep/.workflow/ping.yaml", WORKFLOW)
    assert project.commits()


def test_without_the_program_one_line_says_so(project: Project) -> None:
    (project.root.parent / "programs" / "uwf").unlink()
    project.write("notes.txt", "a note")
    environment = {**project.environment, "PATH": "/usr/bin:/bin"}

    done = Project(root=project.root, environment=environment).run(
        "git", "commit", "-m", "change"
    )

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "uwf is not on your PATH" in done.stderr


def test_a_commit_that_concerns_no_workflow_is_silent(project: Project) -> None:
    project.write("notes.txt", "a note")

    done = project.run("git", "commit", "-q", "-m", "change")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_staged_outside_a_repository_is_one_line(uwf: Uwf) -> None:
    done = uwf("workflow", "validate", "--staged", "--json")

    assert done.code == 1
    assert done.error["code"] == "not-found"


def test_edited_parts_are_mapped_to_their_workflows(uwf: Uwf, work: Path) -> None:
    parts = work / ".workflows" / "parts"
    parts.mkdir(parents=True)
    (parts / "can.yaml").write_text("[1]")
    (parts / "unused.md").write_text("")
    (work / ".workflows" / "ping.yaml").write_text(WITH_PART)
    (work / ".workflows" / "broken.yaml").write_text("name: [\n")
    words = ("workflow", "validate", "--edited")

    used = uwf(*words, ".workflows/parts/can.yaml")
    unused = uwf(*words, ".workflows/parts/unused.md")
    itself = uwf(*words, ".workflows/broken.yaml", "--json")

    assert used.code == 1
    assert used.out.startswith(".workflows/parts/can.yaml:1:2: error S3: ")
    assert (unused.code, unused.out) == (0, "")
    assert [p["file"] for p in itself.json["problems"]] == [".workflows/broken.yaml"]


@pytest.mark.parametrize(
    ("name", "text", "added"),
    [
        pytest.param(".git/hooks/pre-commit", "#!/bin/sh\n", COMMAND, id="own"),
        pytest.param(
            *(".husky/pre-commit", "npm test\n", COMMAND),
            id="husky",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *(".pre-commit-config.yaml", "repos: []\n", "id: uwf-validate"),
            id="framework",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_install_overwrites_nothing_and_prints_what_to_add(
    project: Project, name: str, text: str, added: str
) -> None:
    path = project.root / name
    project.write(name, text, add=False)

    done = project.run("uwf", "hooks", "install")

    assert done.returncode == 1
    assert added in done.stdout
    assert done.stderr.count("\n") == 1
    assert path.read_text() == text

    path.write_text(text + done.stdout)
    assert project.run("uwf", "hooks", "install").returncode == 0


def test_install_beside_a_hooks_path_writes_nothing(project: Project) -> None:
    project.git("config", "core.hooksPath", "~/hooks")

    done = project.run("uwf", "hooks", "install")

    assert (done.returncode, done.stdout) == (1, f"{COMMAND}\n")
    home = Path(project.environment["HOME"])
    assert str(home / "hooks" / "pre-commit") in done.stderr
    assert not (home / "hooks").exists()


def test_a_hook_that_cannot_be_written_does_not_stand_in_its_own_way(
    project: Project,
) -> None:
    hooks = project.root / ".git" / "hooks"
    for path in hooks.glob("pre-*"):
        path.unlink()

    failed = project.run("sh", "-c", "ulimit -f 0; uwf hooks install")
    done = project.run("uwf", "hooks", "install")

    assert (failed.returncode, done.returncode) == (1, 0), failed.stderr
    assert "pre-commit': File too large" in failed.stderr


def test_install_twice_changes_nothing(project: Project) -> None:
    again = project.run("uwf", "hooks", "install")

    assert again.returncode == 0
    assert again.stdout.startswith("unchanged: ")


def test_install_does_not_call_a_hook_installed_that_git_does_not_run(
    project: Project,
) -> None:
    hook = project.root / ".git" / "hooks" / "pre-commit"
    hook.chmod(0o644)

    refused = project.run("uwf", "hooks", "install")
    project.run("sh", "-c", refused.stdout)
    done = project.run("uwf", "hooks", "install")

    assert (refused.returncode, done.returncode) == (1, 0)
    assert "not executable" in refused.stderr


@pytest.fixture
def server(project: Project) -> Path:
    path = project.root.parent / "server.git"
    project.git("init", "-q", "--bare", "--template=", str(path))
    return path


def set_hooks_path(project: Project, server: Path, value: str) -> None:
    project.git(f"--git-dir={server}", "config", "core.hooksPath", value)


def push_bogus(project: Project, server: Path) -> subprocess.CompletedProcess[str]:
    """Push what no thread is to the name of one."""
    project.git("commit", "-q", "--allow-empty", "-m", "x")
    ref = "refs/heads/thread/01M8GR0HAPVRTSKJXA2KQE2GJ1"
    return project.run("git", "push", "-q", str(server), f"HEAD:{ref}")


def test_a_servers_hook_is_run_by_git(project: Project, server: Path) -> None:
    first = project.run("uwf", "hooks", "install", "--server", str(server))
    again = project.run("uwf", "hooks", "install", "--server", str(server))
    pushed = push_bogus(project, server)

    file = server / "hooks" / "pre-receive"
    assert first.stdout == f"installed {file}\n"
    assert again.stdout == f"unchanged: {file}\n"
    assert pushed.returncode == 1
    assert "pre-receive hook declined" in pushed.stderr


@pytest.mark.parametrize("where", ["--local", "--global"])
def test_a_servers_hook_that_git_would_not_run_is_not_installed(
    project: Project, server: Path, where: str
) -> None:
    folder = project.root.parent / "others"
    project.git(f"--git-dir={server}", "config", where, "core.hooksPath", str(folder))
    config = (server / "config").read_text()

    done = project.run("uwf", "hooks", "install", "--server", str(server), "--json")

    error = json.loads(done.stderr)["error"]
    assert (done.returncode, error["code"]) == (2, "usage")
    assert str(folder / "pre-receive") in error["message"]
    assert "unset core.hooksPath" in error["hint"]
    assert not (server / "hooks").exists()
    assert (server / "config").read_text() == config


@pytest.mark.parametrize(
    "value", [pytest.param("hooks", marks=pytest.mark.slow), "others"]
)
def test_a_servers_hook_elsewhere_may_call_ours(
    project: Project, server: Path, value: str
) -> None:
    set_hooks_path(project, server, value)
    if value == "others":
        file = server / value / "pre-receive"
        file.parent.mkdir()
        file.write_text("#!/bin/sh\nexec uwf hooks pre-receive\n")
        words = ("uwf", "hooks", "install", "--server", str(server))
        assert project.run(*words).returncode == 2, "it is not executable"
        file.chmod(0o755)

    done = project.run("uwf", "hooks", "install", "--server", str(server))
    pushed = push_bogus(project, server)

    assert done.returncode == 0, done.stderr
    assert str(server / value / "pre-receive") in done.stdout
    assert "pre-receive hook declined" in pushed.stderr


@pytest.mark.parametrize("place", [".", ".git"])
def test_a_server_has_no_work_tree(project: Project, place: str) -> None:
    done = project.run("uwf", "hooks", "install", "--server", place, "--json")

    assert done.returncode == 2
    assert "is not bare" in json.loads(done.stderr)["error"]["message"]
    assert not (project.root / ".git" / "hooks" / "pre-receive").exists()


def test_install_needs_a_repository(uwf: Uwf) -> None:
    assert uwf("hooks", "install", "--json").error["code"] == "not-found"
