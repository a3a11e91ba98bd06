"""Words, exit codes and text of push and pull."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.sync.people import make_bare, refs_of
from uwfgit.cli.exchanges import pull_text, push_text
from uwfgit.cli.options import GlobalOptions
from uwfgit.cli.output import Output
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.locks import lock
from uwfgit.sync.exchange import Outcome, Result
from uwfgit.sync.pull import PullReport
from uwfgit.sync.push import PushReport
from uwfgit.sync.remotes import Remote

OUTPUT = Output(options=GlobalOptions(), environment={})
REMOTE = Remote(name="origin", url="/x", push_url="/x", kind="dedicated")


@pytest.fixture
def bare(uwf: Uwf, tmp_path: Path) -> Path:
    """A repository that is the store's remote."""
    path = make_bare(tmp_path / "bare.git")
    uwf("init", "--user")
    assert uwf("remote", "add", "origin", str(path)).code == 0
    return path


def outcome(number: int, result: Result, message: str | None = None) -> Outcome:
    ref = f"refs/heads/thread/01M8FV0G61K8RNY396JMTG{number:04d}"
    return Outcome(ref=ref, result=result, new=Oid(GENESIS_OID), message=message)


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


def test_threads_that_are_not_shared_yet_are_named_with_the_way() -> None:
    outcomes = tuple(outcome(number, "not-shared") for number in range(12))

    text = push_text(
        OUTPUT, PushReport(remote=REMOTE, outcomes=outcomes, up_to_date=0, dry_run=True)
    )

    assert "would push to origin:" in text
    assert "and 2 more (name them, or --all)" in text


def test_a_registered_workflow_is_named_by_its_branch(uwf: Uwf, bare: Path) -> None:
    uwf("workflow", "add", "ping.yaml")

    done = uwf("push", "origin", "workflow/ping", "--json")

    assert (done.code, done.json["items"][0]["workflow"]) == (0, "ping")
    assert "refs/heads/workflow/ping" in refs_of(bare)
    assert uwf("push", "workflow/none").code == 1


def test_words_that_do_not_go_together_are_usage_errors(uwf: Uwf, bare: Path) -> None:
    assert bare.exists()
    assert uwf("push", "01M8FV0G61K8RNY396JMTGNRK5", "--all").code == 2
    assert uwf("pull", "01M8", "01M9").code == 2
    assert uwf("push", "01M8FV0G61K8RNY396JMTGNRK5").code == 1
    assert uwf("pull", "01M8FV0G61K8RNY396JMTGNRK5").code == 1


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
