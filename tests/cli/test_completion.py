"""Completion: what it offers, what it costs, and that it knows the commands."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from uwfgit.cli.thread.listing import STATUSES as LISTED
from uwfgit.cli.words.complete import STATUSES, find_candidates
from uwfgit.cli.words.words import FILE, words_table
from uwfgit.ids import ThreadId, thread_time_ms

THREADS = [
    "01M8FSV4RDWRKVM3V8262Z0QSA",
    "01M8FSV4RDWRKVM3V8262Z0QSB",
    "01M9FSV4RDWRKVM3V8262Z0QSC",
]
OID = "0123456789012345678901234567890123456789"


def offered(*words: str) -> list[str]:
    return [value for value, _ in find_candidates(list(words))]


@pytest.fixture
def repo(work: Path) -> Path:
    """A repository with threads and workflows; only names of refs matter."""
    store = work / ".git" / "uwf"
    (store / "refs" / "heads" / "thread").mkdir(parents=True)
    (store / "refs" / "heads" / "workflow").mkdir()
    for thread in THREADS[:2]:
        (store / "refs" / "heads" / "thread" / thread).write_text(f"{OID}\n")
    (store / "refs" / "heads" / "thread" / f"{THREADS[0]}.lock").write_text("")
    (store / "refs" / "heads" / "workflow" / "release").write_text(f"{OID}\n")
    (store / "packed-refs").write_text(
        "# pack-refs with: peeled fully-peeled sorted\n"
        f"{OID} refs/heads/thread/{THREADS[1]}\n"
        f"{OID} refs/heads/thread/{THREADS[2]}\n"
        f"{OID} refs/heads/workflow/packed\n"
        f"{OID} refs/uwf/keep\n"
    )
    (work / ".workflows" / "folded").mkdir(parents=True)
    (work / ".workflows" / "folded" / "index.yaml").write_text("")
    (work / ".workflows" / "solve-issue.yaml").write_text("")
    (work / ".workflows" / "Not A Name.yaml").write_text("")
    return work


def test_the_table_knows_every_command() -> None:
    assert json.loads(FILE.read_bytes()) == words_table(), (
        "run: python scripts/write_docs.py"
    )


def test_statuses_are_those_of_the_listing() -> None:
    assert set(STATUSES) == {"active", *LISTED}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["thr"], ["thread"], id="group"),
        pytest.param(["thread", "sho"], ["show"], id="command"),
        pytest.param(["--json", "thread", "sho"], ["show"], id="behind-an-option"),
        pytest.param(["--store", "x", "thread", "sho"], ["show"], id="behind-a-value"),
        pytest.param(["thread", "list", "--wor"], ["--workflow"], id="option"),
        pytest.param(["thread", "list", "--forma"], ["--format"], id="global-option"),
        pytest.param(["thread", "list", "--status", "su"], ["suspended"], id="status"),
        pytest.param(
            ["thread", "list", "--status", "idle,su"], ["idle,suspended"], id="list"
        ),
        pytest.param(
            ["thread", "list", "--status=su"], ["--status=suspended"], id="equals"
        ),
        pytest.param(
            ["thread", "list", "--status", "=", "su"], ["suspended"], id="split-by-bash"
        ),
        pytest.param(["thread", "list", "--status", "="], list(STATUSES), id="split"),
        pytest.param(["workflow", "graph", "--as", "m"], ["mermaid"], id="choice"),
        pytest.param(["completion", ""], ["bash", "zsh", "fish"], id="shells"),
        pytest.param(["workflow", "new", "--from", "deb"], ["debate"], id="example"),
        pytest.param(["workflow", "new", ""], [], id="a-new-name"),
        pytest.param(["review", "open", "--forge", "gith"], ["github"], id="forge"),
        pytest.param(["review", "setup", "--ci", "gite"], ["gitea"], id="ci"),
        pytest.param(["config", "set", "agents"], ["agents."], id="key-once"),
        pytest.param(["workflow", "validate", ""], [":file"], id="files"),
        pytest.param(["--store", ""], [":dir"], id="folders"),
        pytest.param(["git", "lo"], [], id="gits-own-words"),
        pytest.param(["no-such", ""], [], id="unknown-command"),
        pytest.param(["thread", "show", "--", "--wo"], [], id="behind-two-dashes"),
    ],
)
def test_words_complete(repo: Path, words: list[str], expected: list[str]) -> None:
    assert repo.is_dir()
    assert offered(*words) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        pytest.param("", ["@last", *THREADS[::-1]], id="all-newest-first"),
        pytest.param("01M8", THREADS[1::-1], id="by-its-start"),
        pytest.param("01m9", THREADS[2:], id="in-lower-case"),
        pytest.param("0qsb", THREADS[1:2], id="by-its-end"),
        pytest.param("qsb", [], id="an-end-too-short"),
        pytest.param("@", ["@last"], id="last"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("thread", "show"), id="thread"),
        pytest.param(("thread", "step"), id="alias"),
        pytest.param(("thread", "diff", "x"), id="second-argument"),
        pytest.param(("workflow", "graph", "--thread"), id="option"),
    ],
)
def test_threads_complete(
    repo: Path, command: tuple[str, ...], word: str, expected: list[str]
) -> None:
    assert repo.is_dir()
    assert offered(*command, word) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param(
            ("thread", "start"),
            ["folded", "packed", "release", "solve-issue"],
            id="files-too",
        ),
        pytest.param(("workflow", "history"), ["packed", "release"], id="registered"),
        pytest.param(
            ("thread", "list", "--workflow"), ["packed", "release"], id="option"
        ),
    ],
)
def test_workflows_complete(
    repo: Path, command: tuple[str, ...], expected: list[str]
) -> None:
    assert repo.is_dir()
    assert offered(*command, "") == expected


CONFIG = "agents:\n  ada: {kind: stdio}\n  9: {}\nlimits: {maxSteps: 5}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            ["thread", "exec", "x", "--agent", "a"],
            ["ada", "adapter", "acp"],
            id="agent",
        ),
        pytest.param(
            ["thread", "exec", "x", "--agent=st"], ["--agent=stdio"], id="kind"
        ),
        pytest.param(
            ["thread", "fork", "x", "--from-role", ""], ["coder", "tester"], id="role"
        ),
        pytest.param(["step", "turns", "x", "--role", "t"], ["tester"], id="role-too"),
        pytest.param(["push", "o"], ["origin"], id="remote"),
        pytest.param(["remote", "rm", ""], ["backup", "origin"], id="remote-name"),
        pytest.param(
            ["thread", "resolve", "x", "--remote", "b"], ["backup"], id="remote-option"
        ),
        pytest.param(["thread", "restore", ""], THREADS[1::-1], id="removed"),
        pytest.param(["config", "get", "defaultA"], ["defaultAgent"], id="key"),
        pytest.param(["config", "set", "agents."], ["agents.ada."], id="key-of-names"),
        pytest.param(
            ["config", "set", "agents.ada.k"],
            ["agents.ada.kind"],
            id="key-below-a-name",
        ),
        pytest.param(["prompt", "us"], ["usage"], id="guide"),
        pytest.param(["cas", "put", "st"], ["start", "step", "string"], id="type"),
        pytest.param(["cas", "list", "--type", "te"], ["text"], id="type-option"),
    ],
)
def test_other_names_complete(
    repo: Path, home: Path, words: list[str], expected: list[str]
) -> None:
    home.mkdir()
    (home / "config.yaml").write_text(CONFIG)
    store = repo / ".git" / "uwf"
    (store / "config").write_text(
        '[remote "origin"]\n\turl = x\n[remote "backup"]\n\turl = y\n[core]\n'
    )
    (store / "refs" / "uwf" / "trash").mkdir(parents=True)
    (store / "refs" / "uwf" / "trash" / THREADS[0]).write_text(f"{OID}\n")
    with (store / "packed-refs").open("a") as packed:
        packed.write(f"{OID} refs/uwf/trash/{THREADS[1]}\n")
        packed.write(f"{OID} refs/uwf/trash/workflow-x\n")
    (repo / ".workflows" / "solve-issue.yaml").write_text(
        "name: solve-issue\nroles:\n  coder:  # first\n    goal: x\n\n"
        "  tester:\n    goal: y\ngraph:\n  coder: {}\n"
    )

    assert offered(*words) == expected


def test_a_path_for_a_workflow_is_left_to_the_shell(repo: Path) -> None:
    assert repo.is_dir()
    assert offered("thread", "start", "./so") == [":file"]


def test_configured_folders_complete_too(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    assert repo.is_dir()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "elsewhere.yml").write_text("")
    home.mkdir()
    (home / "config.yaml").write_text(f"workflowPaths: ['{tmp_path}/more']\n")

    assert offered("thread", "start", "el") == ["elsewhere"]


@pytest.mark.parametrize(
    "how", ["option", "option-equals", "environment", "git-config", "worktree", "user"]
)
def test_the_store_is_the_commands_own(
    repo: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(repo / ".git" / "uwf", other)
    shutil.rmtree(repo / ".git" / "uwf" / "refs")
    (repo / ".git" / "uwf" / "packed-refs").unlink()
    words = ["thread", "show", "01M9"]
    if how == "option":
        words = ["--store", str(other), *words]
    elif how == "option-equals":
        words = [f"--store={other}", *words]
    elif how == "environment":
        monkeypatch.setenv("UWF_STORE", str(other))
    elif how == "git-config":
        (repo / ".git" / "config").write_text(
            f'[core]\n\tbare = false\n[uwf]\n\tautoInit = no\n\tstore = "{other}"\n'
        )
    elif how == "worktree":
        other.rename(repo / ".git" / "uwf2")
        shutil.rmtree(repo / ".git" / "uwf")
        (repo / ".git" / "uwf2").rename(repo / ".git" / "uwf")
        gitdir = repo / ".git" / "worktrees" / "linked"
        gitdir.mkdir(parents=True)
        (gitdir / "commondir").write_text("../..\n")
        linked = tmp_path / "linked"
        linked.mkdir()
        (linked / ".git").write_text(f"gitdir: {gitdir}\n")
        monkeypatch.chdir(linked)
    else:
        home.mkdir()
        other.rename(home / "store")
        monkeypatch.chdir(tmp_path)

    assert offered(*words) == THREADS[2:]


def test_it_agrees_with_the_commands_about_a_real_store(
    uwf: Uwf, thread: str, work: Path
) -> None:
    uwf("workflow", "add", "ping.yaml")
    uwf("git", "pack-refs", "--all")
    assert work.is_dir()

    assert offered("thread", "show", thread[:8]) == [thread]
    assert offered("workflow", "history", "") == ["ping"]


def test_a_thread_is_told_by_when_it_began(repo: Path) -> None:
    assert repo.is_dir()
    (_, about), *_ = find_candidates(["thread", "show", "01M9"])

    year = 1970 + thread_time_ms(ThreadId(THREADS[2])) // 31_556_952_000
    assert about.startswith(str(year))


def test_thousand_threads_complete_without_the_rest_of_the_program(
    repo: Path,
) -> None:
    packed = repo / ".git" / "uwf" / "packed-refs"
    names = [f"01M7FSV4RDWRKVM3V8262Z{number:04d}" for number in range(1000)]
    packed.write_text("".join(f"{OID} refs/heads/thread/{name}\n" for name in names))
    code = (
        "import sys; sys.argv[1:] = ['__complete', 'thread', 'show', '01M7'];"
        "from uwfgit.cli.start import run; run();"
        "print(*sorted(sys.modules), file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=repo,
        capture_output=True,
        check=True,
        text=True,
    )

    lines = done.stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == names[::-1]
    loaded = set(done.stderr.split())
    heavy = {"typer", "pygit2", "yaml", "jsonschema", "pydantic", "ulid", "pathlib"}
    assert loaded & heavy == set()
    assert {name for name in loaded if name.startswith("uwfgit")} == {
        "uwfgit",
        "uwfgit.cli",
        "uwfgit.cli.words",
        "uwfgit.cli.words.complete",
        "uwfgit.cli.start",
    }


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_of_their_shells(uwf: Uwf, shell: str) -> None:
    script = uwf("completion", shell)

    assert script.code == 0
    assert "uwf" in script.out
    assert uwf("completion", shell, "--json").json == {
        "shell": shell,
        "text": script.out,
    }
    if shutil.which(shell):
        check = subprocess.run(
            [shell, "-n"], input=script.out, text=True, capture_output=True, check=False
        )
        assert (check.returncode, check.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes(uwf: Uwf, repo: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "uwf"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m uwfgit "$@"\n')
    program.chmod(0o755)
    script = uwf("completion", "bash").out
    ask = (
        f"COMP_WORDS=({program} thread show 01M8 --agent); COMP_CWORD=3; _uwf;"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )

    done = subprocess.run(
        ["bash", "--norc", "-c", f"{script}\n{ask}"],
        cwd=repo,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.splitlines() == THREADS[1::-1]


def test_an_unknown_shell_is_refused(uwf: Uwf) -> None:
    refused = uwf("completion", "tcsh", "--json")

    assert (refused.code, refused.error["hint"]) == (2, "shells: bash, zsh, fish")
