"""Threads that others made: nothing of them runs before ``--trust``."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import git_in
from tests.cli.calls import WORKFLOW, Result, Uwf

AGENT = ("--agent", "scripted:replies.yaml")
There = Callable[..., Result]


def give(uwf: Uwf, tmp_path: Path) -> There:
    """Give somebody else what is in this folder's store: the program in theirs."""
    store = uwf("store", "path").out.strip()
    theirs = str(tmp_path / "theirs.git")
    assert uwf("clone", store, theirs).code == 0

    def call(*words: str) -> Result:
        return uwf("--store", theirs, *words)

    return call


def test_nothing_runs_before_the_user_agrees(
    uwf: Uwf, thread: str, tmp_path: Path
) -> None:
    there = give(uwf, tmp_path)

    refused = there("thread", "exec", thread, *AGENT, "--cwd", ".", "--json")
    shown = there("thread", "exec", thread, *AGENT, "--cwd", ".")

    assert (refused.code, refused.error["code"]) == (1, "untrusted")
    for word in ("Ada <ada@example.org>", "ping", "scripted", "writer", str(tmp_path)):
        assert word in shown.err
    assert there("thread", "show", thread, "--json").json["steps"] == 0


def test_to_agree_once_is_enough_also_for_forks(
    uwf: Uwf, thread: str, tmp_path: Path
) -> None:
    there = give(uwf, tmp_path)
    first = there("thread", "exec", thread, *AGENT, "--cwd", ".", "--trust", "--json")

    second = there("thread", "exec", thread, *AGENT, "--json")
    fork = there("thread", "fork", thread, "--json").json["threadId"]
    third = there("thread", "exec", fork, *AGENT, "--json")
    poked = there("thread", "poke", fork, "-p", "again", *AGENT, "--json")

    assert [each.code for each in (first, second, third, poked)] == [0, 0, 0, 0]
    assert there("verify").code == 0


def test_a_thread_made_here_is_never_asked_about(uwf: Uwf, thread: str) -> None:
    fork = uwf("thread", "fork", thread, "--json").json["threadId"]

    codes = [uwf("thread", "exec", each, *AGENT).code for each in (thread, fork)]

    assert codes == [0, 0]


def test_what_others_continued_is_theirs_too(
    uwf: Uwf, thread: str, tmp_path: Path
) -> None:
    there = give(uwf, tmp_path)
    there("thread", "exec", thread, *AGENT, "--cwd", ".", "--trust")
    ours = uwf("store", "path").out.strip()
    git_in(
        tmp_path / "theirs.git",
        "push",
        "--no-verify",
        ours,
        f"refs/heads/thread/{thread}",
    )

    done = uwf("thread", "exec", thread, *AGENT, "--cwd", ".", "--json")

    assert (done.code, done.error["code"]) == (1, "untrusted")


def _give_back(uwf: Uwf, tmp_path: Path, thread: str) -> None:
    ours = uwf("store", "path").out.strip()
    branch = f"refs/heads/thread/{thread}"
    git_in(tmp_path / "theirs.git", "push", "--no-verify", ours, branch)


def _bring(there: There, thread: str) -> None:
    assert there("pull", thread).code == 0


def test_an_agreement_holds_for_the_tip_that_was_shown(
    uwf: Uwf, thread: str, tmp_path: Path
) -> None:
    there = give(uwf, tmp_path)
    first = there("thread", "exec", thread, *AGENT, "--cwd", ".", "--trust")
    assert first.code == 0, first.err
    _give_back(uwf, tmp_path, thread)
    assert uwf("thread", "exec", thread, *AGENT, "--cwd", ".", "--trust").code == 0
    _bring(there, thread)

    refused = there("thread", "exec", thread, *AGENT, "--json")
    shown = there("thread", "exec", thread, *AGENT)

    assert (refused.code, refused.error["code"]) == (1, "untrusted")
    assert "has events that you have not agreed to" in shown.err
    assert shown.err.count("  new:  ") == 1
    assert "checker: bad" in shown.err
    again = there("thread", "exec", thread, *AGENT, "--trust")
    assert again.code == 0, again.err
    assert there("thread", "exec", thread, *AGENT).code == 0


def test_all_that_is_needed_is_said_at_once(
    uwf: Uwf, thread: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = give(uwf, tmp_path)
    script = str(Path("replies.yaml").resolve())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    agent = ("--agent", f"scripted:{script}")

    refused = there("thread", "exec", thread, *agent)

    assert refused.code == 1
    assert "choose one with --cwd DIR" in refused.err
    assert "--trust --cwd DIR" in refused.err
    done = there("thread", "exec", thread, *agent, "--trust", "--cwd", ".")
    assert done.code == 0, done.err
    assert there("thread", "exec", thread, *agent).code == 0


def test_signers_are_trusted_by_command(uwf: Uwf) -> None:
    assert uwf("trust", "list", "--json").json == {"items": []}
    assert uwf("trust", "add", "ada@example.org", "SHA256:abc").code == 0
    assert uwf("trust", "add", "ada@example.org").code == 0
    listed = uwf("trust", "list", "--json").json
    assert listed == {"items": ["ada@example.org", "SHA256:abc"]}
    assert uwf("trust", "rm", "nobody").code == 1
    assert uwf("trust", "rm", "ada@example.org").code == 0
    assert uwf("trust", "list", "--json").json == {"items": ["SHA256:abc"]}
    assert uwf("trust", "add").code == 2


def test_an_unsigned_thread_has_no_signer_to_trust(uwf: Uwf, thread: str) -> None:
    refused = uwf("trust", "add", "--from", thread, "--json")

    assert (refused.code, refused.error["code"]) == (1, "state")


def test_a_recorded_folder_is_not_used(uwf: Uwf, thread: str, tmp_path: Path) -> None:
    there = give(uwf, tmp_path)

    done = there("thread", "exec", thread, *AGENT, "--trust", "--json")

    assert (done.code, done.error["code"]) == (1, "state")
    assert "--cwd" in done.error["hint"]


def test_the_same_folder_of_the_same_repository_is_found(
    uwf: Uwf, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git_in(work, "init", "-q", "-b", "main")
    (work / "part").mkdir()
    (work / "part" / "file").touch()
    git_in(work, "add", "-A")
    git_in(work, "commit", "-qm", "code")
    started = uwf("thread", "start", "ping.yaml", "-p", "x", "--cwd", "part", "--json")
    thread = started.json["threadId"]
    there = give(uwf, tmp_path)
    git_in(tmp_path, "clone", "-q", str(work), "other")
    monkeypatch.chdir(tmp_path / "other")

    done = there("thread", "exec", thread, *AGENT, "--trust", "--json")

    step = there("step", "show", f"{thread}:1", "--json")
    assert (done.code, step.json["cwd"]) == (0, str(tmp_path / "other" / "part"))


def test_a_location_outside_is_refused(uwf: Uwf, work: Path, tmp_path: Path) -> None:
    place = f'prompt: "Write it.", location: "{tmp_path}"'
    text = WORKFLOW.replace('prompt: "Write it."', place)
    (work / "ping.yaml").write_text(text)
    git_in(work, "init", "-q", "-b", "main")
    git_in(work, "commit", "-q", "--allow-empty", "-m", "code")
    started = uwf("thread", "start", "ping.yaml", "-p", "x", "--json")
    thread = started.json["threadId"]
    there = give(uwf, tmp_path)

    refused = there("thread", "exec", thread, *AGENT, "--trust", "--json")
    config = tmp_path / "home" / ".uwf" / "config.yaml"
    config.write_text(f"trustedRoots: ['{tmp_path}']\n")
    allowed = there("thread", "exec", thread, *AGENT, "--json")

    assert (refused.code, refused.error["code"]) == (1, "state")
    assert "outside of" in refused.error["message"]
    assert allowed.code == 0


def test_a_head_that_came_by_plain_git_is_verified_first(uwf: Uwf, thread: str) -> None:
    store = Path(uwf("store", "path").out.strip())
    ref = f"refs/heads/thread/{thread}"
    forged = git_in(store, "commit-tree", f"{ref}^{{tree}}", "-p", ref, "-m", "forged")
    git_in(store, "update-ref", ref, forged)

    done = uwf("thread", "exec", thread, *AGENT, "--trust", "--cwd", ".", "--json")

    assert (done.code, done.error["code"]) == (1, "corrupt")
    assert "does not verify" in done.error["message"]


def _nodes_of(uwf: Uwf, thread: str) -> str:
    store = uwf("store", "path").out.strip()
    words = ["git", "--git-dir", store, "ls-tree", "-r", "--name-only"]
    done = subprocess.run(
        [*words, f"thread/{thread}"], check=True, capture_output=True, text=True
    )
    return done.stdout


def test_the_task_of_a_stranger_names_no_node_of_mine(
    uwf: Uwf, tmp_path: Path, work: Path
) -> None:
    node = uwf("cas", "put-text", "a private plan").out.strip()
    (work / "quoting.yaml").write_text(
        f'replies:\n  writer:\n    - "---\\n$status: done\\ntext: {node}\\n---\\n"\n'
    )
    agent = ("--agent", "scripted:quoting.yaml")
    there = give(uwf, tmp_path)
    started = there("thread", "start", "ping.yaml", "-p", f"read {node}", "--json")
    theirs = started.json["threadId"]
    url = str(tmp_path / "theirs.git")
    assert uwf("remote", "add", "them", url, "--dedicated").code == 0
    assert uwf("pull", "them").code == 0
    own = uwf("thread", "start", "ping.yaml", "-p", f"read {node}", "--json")
    mine = own.json["threadId"]

    for thread in (theirs, mine):
        done = uwf("thread", "exec", thread, *agent, "--trust", "--cwd", ".")
        assert done.code == 0, done.err

    assert node in _nodes_of(uwf, mine)
    assert node not in _nodes_of(uwf, theirs)
