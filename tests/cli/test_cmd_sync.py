"""Words, exit codes and text of push and pull."""

from __future__ import annotations

import os
import pty
import resource
import shlex
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.acting import go
from tests.builders import begin, git, reply
from tests.cli.calls import Uwf
from tests.planted import AWS, GITHUB
from tests.sync.people import make_bare, refs_of
from uwfgit.cli.check.limited import CheckLimits
from uwfgit.cli.frame.options import GlobalOptions
from uwfgit.cli.frame.output import Output
from uwfgit.cli.share.remote_session import pull_text, push_text
from uwfgit.ids import Oid
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import thread_ref
from uwfgit.store.locks.flock import lock
from uwfgit.store.safety.stores import list_stores, register_store
from uwfgit.sync.exchange.exchange import RefOutcome, Result
from uwfgit.sync.exchange.pull import PullReport
from uwfgit.sync.exchange.push import PushReport
from uwfgit.sync.exchange.remotes import Remote
from uwfgit.sync.secrets.text import scan_text

OUTPUT = Output(options=GlobalOptions(), environment={})
REMOTE = Remote(name="origin", url="/x", push_urls=("/x",), kind="dedicated")
(SECRET,) = scan_text(GITHUB)
NOBODY = "01M8FV0G61K8RNY396JMTGNRK5"

PIN = "uwfgit @ git+https://example.org/uwfgit@" + "a" * 40


def outcome(number: int, result: Result, message: str | None = None) -> RefOutcome:
    ref = f"refs/heads/thread/01M8FV0G61K8RNY396JMTG{number:04d}"
    return RefOutcome(ref=ref, result=result, new=Oid(GENESIS_OID), message=message)


def test_of_many_threads_the_first_are_named_and_the_rest_counted() -> None:
    outcomes = tuple(outcome(number, "new") for number in range(50))
    bad = outcome(99, "refused", "the tree \x1b[2J")

    text = pull_text(
        OUTPUT, PullReport(source="origin", outcomes=(*outcomes, bad), up_to_date=3)
    )

    lines = text.splitlines()
    assert len(lines) == 1 + 20 + 1 + 1 + 1
    assert "new         30 more" in lines
    assert "3 up to date" in lines
    assert "\x1b" not in text


def test_a_long_question_is_told_in_a_line_of_its_length(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    question = f"Which one?\n{'It matters. ' * 1_000}"
    go(ledger, thread, reply("$SUSPEND", reason=question))
    brought = replace(outcome(0, "new"), ref=thread_ref(thread))

    report = PullReport(source="origin", outcomes=(brought,), up_to_date=0)
    text = pull_text(OUTPUT, report, ledger.store)

    assert text.endswith("  worker waits: Which one?")


def test_threads_that_are_not_shared_yet_are_named_with_the_way() -> None:
    outcomes = tuple(outcome(number, "not-shared") for number in range(12))

    text = push_text(
        OUTPUT, PushReport(remote=REMOTE, outcomes=outcomes, up_to_date=0, dry_run=True)
    )

    assert "would push" not in text
    assert "and 2 more (name them, or --all)" in text


@pytest.mark.parametrize(
    ("results", "is_told"),
    [
        pytest.param((), False, id="nothing"),
        pytest.param(("refused", "diverged", "behind"), False, id="refusals"),
        pytest.param(("refused", "updated"), True, id="one of two"),
        pytest.param(("new",), True, id="a new one"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_push_is_told_when_something_was_pushed(
    results: tuple[Result, ...], *, is_told: bool, dry_run: bool
) -> None:
    outcomes = tuple(outcome(n, result, "x") for n, result in enumerate(results))

    text = push_text(
        OUTPUT,
        PushReport(remote=REMOTE, outcomes=outcomes, up_to_date=0, dry_run=dry_run),
    )

    head = "would push to origin:\n" if dry_run else "pushed to origin:\n"
    assert text.startswith(head) == is_told
    assert ("pushed" in text or "would" in text) == is_told
    assert ("nothing to push" in text) == (not results)


def test_a_push_to_a_remote_that_only_has_more_has_nothing_to_push() -> None:
    outcomes = (outcome(1, "behind", "x"), outcome(2, "not-shared"))

    report = PushReport(remote=REMOTE, outcomes=outcomes, up_to_date=1, dry_run=False)

    assert push_text(OUTPUT, report).startswith("nothing to push\nbehind")
    assert report.ok


def test_a_registered_workflow_is_named_by_its_branch(uwf: Uwf, bare: Path) -> None:
    uwf("workflow", "add", "ping.yaml")

    done = uwf("push", "origin", "workflow/ping", "--json")

    assert (done.code, done.json["items"][0]["workflow"]) == (0, "ping")
    assert "refs/heads/workflow/ping" in refs_of(bare)
    assert uwf("push", "workflow/none").code == 1


def test_words_that_do_not_go_together_are_usage_errors(uwf: Uwf, bare: Path) -> None:
    assert bare.exists()
    assert uwf("push", NOBODY, "--all").code == 2
    assert uwf("pull", "01M8", "01M9").code == 2
    assert uwf("push", NOBODY).code == 1
    assert uwf("pull", NOBODY).code == 1


@pytest.fixture
def several(uwf: Uwf, work: Path) -> None:
    """Three remotes, none of which is the one to take."""
    uwf("init", "--user")
    for name in ("o2", "o3", "o4"):
        assert uwf("remote", "add", name, str(make_bare(work / name))).code == 0


@pytest.mark.usefixtures("several")
@pytest.mark.parametrize(
    "words", [("push", "nope"), ("push", "nope", NOBODY), ("pull", "nope")]
)
def test_a_word_that_names_nothing_is_not_asked_about(
    uwf: Uwf, thread: str, words: tuple[str, ...]
) -> None:
    done = uwf(*words, "--json")

    assert (done.code, done.error["code"]) == (1, "not-found")
    assert done.error["message"] == "remote or thread 'nope' not found"
    # One that is here could go to each of them.
    assert uwf(words[0], thread).code == 2
    assert "which remote? there are o2, o3, o4" in uwf(words[0], thread).err


@pytest.mark.usefixtures("bare")
def test_a_push_of_a_workflow_by_its_name_alone_says_how(uwf: Uwf) -> None:
    uwf("workflow", "add", "ping.yaml")

    done = uwf("push", "ping", "--json")

    assert (done.code, done.error["code"]) == (1, "not-found")
    assert done.error["hint"] == "a registered workflow is named so: workflow/ping"
    assert uwf("push", "workflow/ping").code == 0


def test_a_mistyped_remote_is_no_thread_alone(
    uwf: Uwf, bare: Path, thread: str
) -> None:
    pushed = uwf("push", "orign", thread, "--json")
    pulled = uwf("pull", "orign", thread, "--json")

    assert pushed.error["message"] == "remote or thread 'orign' not found"
    assert "'orign' is not a remote" in pulled.error["message"]
    assert (pushed.code, pulled.code, refs_of(bare)) == (1, 2, {})


@pytest.mark.usefixtures("several")
def test_a_resolve_with_an_unknown_remote_says_so(uwf: Uwf, thread: str) -> None:
    unknown = uwf("thread", "resolve", thread, "--remote", "nope", "--json")
    known = uwf("thread", "resolve", thread, "--remote", "o2", "--json")

    assert unknown.error["message"] == "remote 'nope' not found"
    assert "has not diverged" in known.error["message"]


@pytest.mark.parametrize("command", ["push", "pull"])
def test_the_usage_names_remote_and_threads_apart(uwf: Uwf, command: str) -> None:
    lines = uwf(command, "--help").out.splitlines()

    more = "..." if command == "push" else ""
    assert lines[0] == f"Usage: uwf {command} [OPTIONS] [REMOTE] [THREAD{more}]"
    names = [line.split()[0] for line in lines if line.startswith(("  REM", "  THR"))]
    assert names == ["REMOTE", f"THREAD{more}"]


def test_what_was_let_through_can_be_taken_back(uwf: Uwf, bare: Path) -> None:
    started = uwf("thread", "start", "ping.yaml", "-p", f"use {GITHUB}", "--json")
    assert uwf("hooks", "allow", SECRET.id).code == 0
    listed = uwf("hooks", "allow").out

    done = uwf("hooks", "allow", "--revoke", SECRET.id)
    again = uwf("hooks", "allow", "--revoke", SECRET.id, "--json")

    assert listed == f"{SECRET.id}\n"
    assert (done.code, done.out) == (0, f"revoked {SECRET.id}\n")
    assert uwf("hooks", "allow").err == "nothing is let through\n"
    assert uwf("hooks", "allow", "--json").json == {"items": []}
    assert uwf("hooks", "allow", "--revoke").code == 2
    assert (again.code, again.error["hint"]) == (1, "it is not let through here")
    assert uwf("push", started.json["threadId"]).code == 1
    assert refs_of(bare) == {}
    for words in (("hooks", "allow"), ("push",), ("bundle", "create")):
        assert "--revoke" in uwf(*words, "--help").out


def test_a_thread_whose_finding_was_let_through_is_redacted(
    uwf: Uwf, bare: Path, work: Path
) -> None:
    assert (bare.exists(), work.exists()) == (True, True)
    prompt = f"use {GITHUB} and {AWS}"
    started = uwf("thread", "start", "ping.yaml", "-p", prompt, "--json")
    uwf("hooks", "allow", SECRET.id)

    first = uwf("thread", "redact", started.json["threadId"], "--json")
    thread = first.json["threadId"]
    second = uwf("thread", "redact", thread)

    assert (first.code, second.code) == (0, 0), first.err + second.err
    way = f"uwf thread redact {thread} --finding ID"
    assert f"stays, for it was let through: {SECRET.id}; " in first.err
    assert way in first.err
    assert SECRET.id in second.out
    assert "stays" not in second.err


@pytest.fixture
def leaky(uwf: Uwf) -> str:
    """A thread with a secret in it."""
    prompt = f"use {GITHUB}"
    done = uwf("thread", "start", "ping.yaml", "-p", prompt, "--json")
    thread: str = done.json["threadId"]
    return thread


def allowed(home: Path) -> str:
    file = home / "store" / "uwf" / "allowed-secrets.jsonl"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(("push", "{thread}", "--all"), 2, id="no usage"),
        pytest.param(("push", NOBODY), 1, id="no thread"),
        pytest.param(("push", "workflow/none"), 1, id="no workflow"),
        pytest.param(("push", "away", "{thread}"), 1, id="no remote"),
        pytest.param(("bundle", "create", "x.bundle", NOBODY), 1, id="no bundle"),
        pytest.param(("push", "--dry-run", "{thread}"), 0, id="no push"),
        pytest.param(("push", "-n", "--all"), 0, id="no push of all"),
    ],
)
def test_what_sends_nothing_lets_no_finding_through_for_good(
    uwf: Uwf, bare: Path, leaky: str, home: Path, words: tuple[str, ...], code: int
) -> None:
    assert uwf("remote", "add", "away", "/nowhere", "--dedicated").code == 0
    asked = [word.format(thread=leaky) for word in words]

    done = uwf(*asked, "--allow", SECRET.id)

    assert (done.code, refs_of(bare)) == (code, {}), done.err
    assert allowed(home) == ""
    assert uwf("push", leaky).code == 1


def test_a_dry_run_takes_into_account_what_it_is_told_to_let_through(
    uwf: Uwf, bare: Path, leaky: str, thread: str
) -> None:
    (other,) = scan_text("AK" + "IA" + "Z7QW3ERT5YUI9OPA")

    dry = uwf("push", "-n", "--all", "--allow", SECRET.id, "--json")
    wrong = uwf("push", "-n", "--all", "--allow", other.id, "--json")
    without = uwf("push", "-n", "--all", "--json")

    results = {item["threadId"]: item["result"] for item in dry.json["items"]}
    assert (dry.code, results) == (0, {leaky: "new", thread: "new"})
    assert (wrong.code, wrong.json) == (1, without.json)
    assert SECRET.id in str(without.json)
    assert refs_of(bare) == {}


@pytest.mark.parametrize("words", [("push",), ("bundle", "create", "x.bundle")])
def test_what_is_let_through_and_leaves_is_recorded(
    uwf: Uwf, bare: Path, leaky: str, home: Path, words: tuple[str, ...]
) -> None:
    done = uwf(*words, leaky, "--allow", SECRET.id)

    assert done.code == 0, done.err
    assert SECRET.id in allowed(home)
    assert uwf("push", leaky).code == 0
    assert f"refs/heads/thread/{leaky}" in refs_of(bare)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_clone_that_fails_leaves_all_as_it_was(
    uwf: Uwf, bare: Path, thread: str, work: Path, home: Path, *, is_there: bool
) -> None:
    uwf("push", thread)
    target = work / "copy"
    if is_there:
        target.mkdir(mode=0o755)
        target.chmod(0o755)
    inode = target.stat().st_ino if is_there else None
    before = list_stores(home)

    done = uwf("clone", str(bare), "copy", "--thread", NOBODY)

    assert done.code == 1
    assert list_stores(home) == before
    assert target.exists() == is_there
    if is_there:
        assert list(target.iterdir()) == []
        assert target.stat().st_ino == inode
        assert stat.S_IMODE(target.stat().st_mode) == 0o755
    assert uwf("clone", str(bare), "copy").code == 0
    assert uwf("thread", "show", thread, "--store", "copy").code == 0


@pytest.mark.parametrize("has_remote", [True, False])
def test_a_clone_that_was_killed_before_any_thread_came_is_gone_on_with(
    uwf: Uwf, work: Path, bare: Path, thread: str, *, has_remote: bool
) -> None:
    uwf("push", thread)
    uwf("clone", str(bare), "copy")
    for ref in (f"heads/thread/{thread}", f"remotes/origin/thread/{thread}"):
        git(work / "copy", "update-ref", "-d", f"refs/{ref}")
    if not has_remote:
        git(work / "copy", "remote", "remove", "origin")

    assert uwf("clone", str(work), "copy").code == 1
    assert uwf("clone", str(bare), "copy").code == 0
    assert uwf("thread", "show", thread, "--store", "copy").code == 0


def test_where_a_clone_was_killed_the_next_says_how_to_bring_the_rest(
    uwf: Uwf, work: Path, bare: Path, thread: str
) -> None:
    other = uwf("thread", "fork", thread, "--at", "0", "--json").json["threadId"]
    uwf("push", thread, other)
    uwf("clone", str(bare), "copy")
    for ref in (f"heads/thread/{thread}", f"remotes/origin/thread/{thread}"):
        git(work / "copy", "update-ref", "-d", f"refs/{ref}")

    done = uwf("clone", str(bare), "copy", "--json")

    assert done.code == 1
    _, _, command = str(done.error["hint"]).partition("uwf ")
    assert uwf(*shlex.split(command)).code == 0
    assert uwf("thread", "show", thread, "--store", "copy").code == 0


def test_workflows_of_others_are_checked_within_the_limits_of_verify(
    uwf: Uwf, bare: Path, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uwf("workflow", "add", "ping.yaml")
    assert uwf("push", "origin", thread, "workflow/ping").code == 0
    little = CheckLimits(memory=resource.getpagesize())
    monkeypatch.setattr("uwfgit.cli.check.limited.DEFAULT_LIMITS", little)

    done = uwf("clone", str(bare), "copy", "--workflows", "--json")

    (item,) = [each for each in done.json["items"] if each["workflow"]]
    assert (done.code, item["result"]) == (1, "refused")
    # That it needs too much, or, where Python could not say so any more, how it died.
    assert "check" in item["message"]


def make_code(path: Path, *, branch: str = "main") -> Path:
    """Make a repository of code."""
    make_bare(path)
    who = ("-c", "user.name=A", "-c", "user.email=a@b")
    tree = git(path, "hash-object", "-t", "tree", "-w", "/dev/null").strip()
    commit = git(path, *who, "commit-tree", tree, "-m", "code").strip()
    git(path, "update-ref", f"refs/heads/{branch}", commit)
    return path


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize(
    ("kind", "flags", "said"),
    [
        pytest.param("shared", ["--dedicated"], "--shared", id="beside code"),
        pytest.param("dedicated", ["--shared"], "--dedicated", id="as branches"),
        pytest.param(None, ["--dedicated"], "--shared", id="code alone"),
        pytest.param(None, [], "--shared", id="code alone, looked at"),
    ],
)
def test_a_clone_of_another_kind_names_the_option_and_leaves_nothing(
    uwf: Uwf,
    work: Path,
    thread: str,
    kind: str | None,
    flags: list[str],
    said: str,
    *,
    only: bool,
) -> None:
    there = make_code(work / "code.git") if kind != "dedicated" else None
    there = there or make_bare(work / "threads.git")
    if kind is not None:
        assert uwf("remote", "add", "origin", str(there), f"--{kind}").code == 0
        assert uwf("push", thread).code == 0
    asked = ("--thread", thread) if only else ()

    done = uwf("clone", str(there), "copy", *flags, *asked, "--json")

    assert (done.code, done.error["code"]) == (2, "usage"), done.err
    assert said in done.error["hint"]
    assert not (work / "copy").exists()


@pytest.mark.parametrize("flags", [[], ["--dedicated"], ["--shared"]])
@pytest.mark.parametrize("is_set_up", [False, True])
def test_an_empty_repository_is_cloned_empty(
    uwf: Uwf, bare: Path, flags: list[str], *, is_set_up: bool
) -> None:
    if is_set_up:
        # A main of ours, with a commit of its own.
        assert uwf("review", "setup", "--ci", "github", "--install", PIN).code == 0

    done = uwf("clone", str(bare), "copy", *flags)

    assert (done.code, "nothing there" in done.out) == (0, True), done.err


def test_beside_code_without_threads_a_store_can_begin(uwf: Uwf, work: Path) -> None:
    code = make_code(work / "code.git", branch="master")

    refused = uwf("clone", str(code), "copy")

    assert (refused.code, "holds code" in refused.err) == (2, True)
    assert uwf("clone", str(code), "copy", "--shared").code == 0


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("remote", "add"), id="no URL"),
        pytest.param(("remote", "add", "a b", "/x"), id="no name"),
        pytest.param(("remote", "add", "x", "ext::sh"), id="no address"),
        pytest.param(("bundle", "open", "none"), id="no file"),
        pytest.param(("thread", "start", "none", "-p", "x"), id="no workflow"),
        pytest.param(("thread", "run", "none", "-p", "x"), id="none to run"),
        pytest.param(("workflow", "rm", "none"), id="nothing registered"),
        pytest.param(("workflow", "rollback", "none"), id="no version"),
        pytest.param(("workflow", "restore", "none"), id="nothing removed"),
        pytest.param(("workflow", "update", "none"), id="nothing to update"),
        pytest.param(("cas", "drop", NOBODY[:13]), id="no node"),
    ],
)
def test_what_cannot_be_done_makes_no_store(
    uwf: Uwf, home: Path, words: tuple[str, ...]
) -> None:
    done = uwf(*words)

    assert (done.code in {1, 2}, "created store" in done.err) == (True, False)
    assert not (home / "store").exists()


def test_a_folder_in_place_of_a_bundle_is_told_from_a_file_that_is_not_there(
    uwf: Uwf, work: Path, home: Path
) -> None:
    refused = uwf("bundle", "open", ".")

    assert (refused.code, f"'{work}' is not a regular file" in refused.err) == (1, True)
    assert not (home / "store").exists()


def test_a_clone_that_fails_takes_no_older_entry_off_the_list(
    uwf: Uwf, bare: Path, thread: str, work: Path, home: Path
) -> None:
    uwf("push", thread)
    register_store(work / "copy", home=home)
    before = list_stores(home)

    assert uwf("clone", str(bare), "copy", "--thread", NOBODY).code == 1

    assert list_stores(home) == before


@pytest.mark.parametrize("is_there", [False, True])
def test_a_clone_that_is_interrupted_leaves_all_as_it_was(
    uwf: Uwf, work: Path, home: Path, *, is_there: bool
) -> None:
    assert uwf("init", "--user").code == 0
    before = list_stores(home)
    target = work / "copy"
    if is_there:
        target.mkdir()
    ssh = work / "ssh"
    # It also ends when its folder is removed sooner than it looks again.
    waiting = "while [ -e asked ] && [ ! -e over ]; do sleep 0.05; done"
    ssh.write_text(f"#!/bin/sh\ntouch asked\n{waiting}\n")
    ssh.chmod(0o700)
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "uwfgit"),
            *("clone", "--dedicated", "ssh://example.org/x", "copy"),
        ],
        cwd=work,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[2]),
            "GIT_SSH_COMMAND": str(ssh),
            "GIT_SSH_VARIANT": "simple",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (work / "asked").exists() and child.poll() is None:
        time.sleep(0.02)

    child.send_signal(signal.SIGINT)
    try:
        said = child.communicate(timeout=60)[1]
    finally:
        (work / "over").touch()

    assert child.returncode == 130, said
    assert list_stores(home) == before
    assert target.exists() == is_there
    assert not is_there or list(target.iterdir()) == []


def test_a_pull_of_a_running_thread_exits_4(
    uwf: Uwf, bare: Path, thread: str, home: Path
) -> None:
    store = home / "store"
    uwf("push", thread)
    uwf("git", "update-ref", "-d", f"refs/heads/thread/{thread}")

    with lock(store / "uwf" / "locks" / thread, command="another"):
        done = uwf("pull", "--json")

    assert done.code == 4
    assert done.json["items"][0]["result"] == "busy"
    assert "another" in done.json["items"][0]["message"]
    assert bare.exists()


def on_terminal(folder: Path, *words: str) -> tuple[int, str]:
    """Run the program with stderr on a terminal; give its code and what stood there."""
    master, slave = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "uwfgit", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.DEVNULL,
        stderr=slave,
        stdin=subprocess.DEVNULL,
    )
    os.close(slave)
    shown = b""
    # Linux says EIO when the last writer is gone.
    with suppress(OSError):
        while part := os.read(master, 65_536):
            shown += part
    os.close(master)
    return done.wait(), shown.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("push", "--all"), "Writing objects", id="push"),
        pytest.param(("pull",), "verifying 30 threads", id="pull"),
        pytest.param(("clone", "bare", "copy"), "Receiving objects", id="clone"),
    ],
)
def test_progress_is_shown_on_a_terminal_and_taken_away(
    uwf: Uwf, bare: Path, thread: str, work: Path, words: tuple[str, ...], said: str
) -> None:
    for _ in range(29):
        uwf("thread", "fork", thread)
    if words[0] != "push":
        uwf("push", "--all")
    if words[0] == "pull":
        for ref in refs_of(Path(uwf("store", "path").out.strip())):
            if "/thread/" in ref:
                uwf("git", "update-ref", "-d", ref)
    address = f"file://{bare}"

    code, shown = on_terminal(
        work, *(address if word == "bare" else word for word in words)
    )

    assert code == 0, shown
    assert said in shown
    assert "\x1b[K" in shown
    assert said not in shown.rpartition("\x1b[K")[2]
    assert len(refs_of(bare)) == 31
