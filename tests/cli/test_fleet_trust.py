"""What a worker runs of a queue that anyone who can push may write to.

Ada is trusted by Bob's worker and signs; Mallory signs too, is known, and is not
trusted; Eve's key nobody knows. Each can push.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.builders import git
from tests.cli.seats import Seat, make_seat
from tests.keys import Keys, needs_ssh

pytestmark = needs_ssh

QUEUE = "refs/uwf/queue/"
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_TRAILERS = "Format Queue Thread Head Workflow Worker Lease Reason Nonce"
_AGENT = """\
#!/bin/sh
cat > /dev/null
echo "$UWF_ROLE" >> "{log}"
case "$UWF_ROLE" in
writer) printf -- '---\\n$status: done\\ntext: one\\n---\\nWritten.\\n' ;;
*) printf -- '---\\n$status: good\\n---\\nFine.\\n' ;;
esac
"""


@dataclass(slots=True)
class Town:
    """People around one bare repository, each with a key of their own."""

    folder: Path
    remote: Path
    keys: Keys
    seat: Callable[[str], Seat]
    seats: dict[str, Seat] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Seat:
        if name not in self.seats:
            self.seats[name] = self._settle(name)
        return self.seats[name]

    def _settle(self, name: str) -> Seat:
        seat = self.seat(name.title())
        (seat.home / ".gitconfig").write_text(
            "[gpg]\n\tformat = ssh\n"
            f'[gpg "ssh"]\n\tallowedSignersFile = {self.keys.folder / "allowed"}\n'
            f"[user]\n\tsigningkey = {self.keys.make(name)}\n[uwf]\n\tsign = tip\n"
        )
        seat.do("init")
        seat.do("remote", "add", "origin", str(self.remote))
        return seat

    def share(self, name: str) -> str:
        """Start a thread as someone, and push it; it is not queued."""
        started = self[name].do("thread", "start", "ping.yaml", "-p", "x", "--json")
        thread: str = started.json["threadId"]
        self[name].do("push", "origin", thread)
        return thread

    def queue(self, name: str) -> str:
        thread = self.share(name)
        self[name].do("thread", "queue", thread)
        return thread

    def work(self, *words: str) -> tuple[list[str], dict[str, str]]:
        """Let Bob's worker take what it takes: what it ran, and passed by for what."""
        agent = self.folder / "agent"
        agent.write_text(_AGENT.format(log=self.log))
        agent.chmod(0o755)
        given = ("--agent", f"stdio:{agent}", "--name", "bob", "--json", *words)
        done = self["bob"].do("worker", "--poll", "0.2", *given)
        told = [json.loads(line) for line in done.err.splitlines()]
        passed = {t["thread"]: t["why"] for t in told if t["event"] == "skipped"}
        return list(done.json["left"]), passed

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def listed(self) -> Mapping[str, Any]:
        items = self["bob"].do("fleet", "list", "--json").json["items"]
        return {item["threadId"]: item for item in items}

    def forge(
        self, thread: str, *, parent: str | None, when: str = "", **facts: str
    ) -> str:
        """Write a queue commit by plain git, as whoever can push may, and push it."""
        trailers = {"Uwf-Format": "1", "Uwf-Thread": thread, **facts}
        words = _TRAILERS.split()
        named = {name.replace("_", "-"): value for name, value in trailers.items()}
        lines = [
            f"Uwf-{each}: {named[f'Uwf-{each}']}"
            for each in words
            if f"Uwf-{each}" in named
        ]
        text = f"queue {thread}: {named['Uwf-Queue']}\n\n" + "\n".join(lines) + "\n"
        command = ["commit-tree", EMPTY, *(["-p", parent] if parent else [])]
        git(self.remote, "hash-object", "-t", "tree", "-w", "/dev/null")
        oid = subprocess.run(
            ["git", f"--git-dir={self.remote}", *command],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            env={
                "PATH": "/usr/bin:/bin",
                "GIT_AUTHOR_NAME": "Ada",
                "GIT_AUTHOR_EMAIL": "ada@example.org",
                "GIT_COMMITTER_NAME": "Ada",
                "GIT_COMMITTER_EMAIL": "ada@example.org",
                **({"GIT_COMMITTER_DATE": when} if when else {}),
            },
        ).stdout.strip()
        git(self.remote, "update-ref", QUEUE + thread, oid)
        return oid

    def facts(self, thread: str) -> dict[str, str]:
        """Return what a queue commit says of a thread that is as it is there."""
        head = git(self.remote, "rev-parse", f"refs/heads/thread/{thread}").strip()
        shown = self["ada"].do("thread", "show", thread, "--json").json
        ledger_file = git(
            self.remote, "show", f"{head}:{_state_path(self, head, thread)}"
        )
        assert shown["oid"] == head
        return {
            "Uwf_Head": head,
            "Uwf_Workflow": json.loads(ledger_file)["workflowOid"],
            "Uwf_Nonce": "0123456789abcdef",
        }


def _state_path(town: Town, head: str, thread: str) -> str:
    names = git(town.remote, "ls-tree", "-r", "--name-only", head).splitlines()
    (found,) = [n for n in names if thread in n and n.endswith("thread.json")]
    return found


@pytest.fixture
def town(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Town:
    remote = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    (tmp_path / "keys").mkdir()
    keys = Keys(tmp_path / "keys")
    keys.allow(
        ada="ada@example.org", mallory="mallory@example.org", bob="bob@example.org"
    )
    town = Town(
        folder=tmp_path,
        remote=remote,
        keys=keys,
        seat=lambda name: make_seat(tmp_path, name, monkeypatch, capsys),
    )
    town["bob"].do("trust", "add", "ada@example.org")
    return town


def test_what_a_trusted_person_signed_is_run(town: Town) -> None:
    thread = town.queue("ada")

    ran, passed = town.work("--once")

    assert (ran, passed) == ([thread], {})
    assert town.listed()[thread]["state"] == "done"
    assert town.log.read_text().split() == ["writer", "checker"]


@pytest.mark.parametrize("name", ["mallory", "eve"])
def test_nothing_of_another_signer_is_run(town: Town, name: str) -> None:
    thread = town.queue(name)

    ran, passed = town.work("--once")

    assert ran == []
    assert passed == {thread: "its queue commit is not signed by anyone in trust"}
    assert not town.log.exists()


def test_what_a_trusted_person_queued_of_another_s_is_not_run(town: Town) -> None:
    thread = town.share("mallory")
    town["ada"].do("pull")
    town["ada"].do("thread", "queue", thread)

    ran, passed = town.work("--once")

    assert ran == []
    assert passed == {thread: "its newest event is not signed by anyone in trust"}
    assert not town.log.exists()


@pytest.mark.slow
def test_an_old_thread_of_a_trusted_person_is_not_queued_by_another(town: Town) -> None:
    thread = town.share("ada")
    town["mallory"].do("pull")
    town["mallory"].do("thread", "queue", thread)

    ran, passed = town.work("--once")

    assert ran == []
    assert passed == {thread: "its queue commit is not signed by anyone in trust"}


def test_a_queue_commit_in_a_trusted_person_s_name_is_not_followed(town: Town) -> None:
    thread = town.share("ada")
    town.forge(thread, parent=None, Uwf_Queue="queued", **town.facts(thread))

    ran, passed = town.work("--once")

    assert ran == []
    assert passed == {thread: "its queue commit is not signed by anyone in trust"}


def test_a_signed_place_in_the_queue_is_of_one_thread(town: Town) -> None:
    queued, other = town.queue("ada"), town.share("ada")
    signed = git(town.remote, "rev-parse", QUEUE + queued).strip()
    git(town.remote, "update-ref", QUEUE + other, signed)
    git(town.remote, "update-ref", "-d", QUEUE + queued)

    ran, passed = town.work("--once")
    listed = town["bob"].do("fleet", "list")

    assert (ran, passed) == ([], {})
    assert f"queue ref {other}: its newest commit is not a state" in listed.err


def test_a_thread_that_does_not_verify_is_not_run_whoever_is_trusted(
    town: Town,
) -> None:
    thread = town.share("ada")
    facts = town.facts(thread)
    head = facts["Uwf_Head"]
    tree = git(town.remote, "rev-parse", f"{head}^{{tree}}").strip()
    message = git(town.remote, "log", "-1", "--format=%B", head)
    forged = git(
        town.remote,
        *("-c", "user.name=Ada", "-c", "user.email=ada@example.org"),
        *("commit-tree", tree, "-p", head, "-m", message),
    ).strip()
    git(town.remote, "update-ref", f"refs/heads/thread/{thread}", forged)
    facts["Uwf_Head"] = forged
    town.forge(thread, parent=None, Uwf_Queue="queued", **facts)

    ran, passed = town.work("--once", "--trust-pushers")

    assert ran == []
    assert "[trailers]" in passed[thread]
    assert not town.log.exists()


@pytest.mark.slow
def test_a_claim_of_the_year_3000_is_over_after_its_lease(town: Town) -> None:
    thread = town.queue("ada")
    queued = git(town.remote, "rev-parse", QUEUE + thread).strip()
    town.forge(
        thread,
        parent=queued,
        when="@32503680000 +0000",
        Uwf_Queue="claimed",
        Uwf_Worker="eve",
        Uwf_Lease="1",
        **town.facts(thread),
    )

    ran, _ = town.work("--trust-pushers", "--idle-exit", "6")

    assert ran == [thread]
    assert town.listed()[thread]["state"] == "done"


@pytest.mark.parametrize(
    ("name", "lease"),
    [
        pytest.param("\x1b[2Jgone", "60", id="escape"),
        pytest.param("a" * 65, "60", id="long"),
        pytest.param("a b", "60", id="blank"),
        pytest.param("eve", "32503680000", id="lease"),
    ],
)
def test_a_claim_that_nobody_may_write_is_shown_safely_and_passed_by(
    town: Town, name: str, lease: str
) -> None:
    thread = town.queue("ada")
    queued = git(town.remote, "rev-parse", QUEUE + thread).strip()
    facts = town.facts(thread)
    town.forge(
        thread,
        parent=queued,
        Uwf_Queue="claimed",
        Uwf_Worker=name,
        Uwf_Lease=lease,
        **facts,
    )

    listed = town["bob"].do("fleet", "list", "--color", "never")
    ran, _ = town.work("--once", "--trust-pushers")

    assert "\x1b" not in listed.out + listed.err
    assert f"queue ref {thread}" in listed.err
    assert ran == []


def test_a_reason_with_escapes_is_shown_safely(town: Town) -> None:
    thread = town.share("ada")
    facts = town.facts(thread)
    first = town.forge(thread, parent=None, Uwf_Queue="queued", **facts)
    town.forge(
        thread,
        parent=first,
        Uwf_Queue="waiting",
        Uwf_Reason=json.dumps("\x1b]0;mine\x07 wait"),
        **facts,
    )

    listed = town["bob"].do("fleet", "list", "--color", "never")

    assert "\x1b" not in listed.out + listed.err
    assert thread in listed.out
