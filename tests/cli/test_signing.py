"""Signed threads, as people at a terminal have them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest

from tests.cli.calls import Result, Uwf
from tests.keys import Keys, make_keys, needs_ssh
from uwfgit.cli.frame.context import CommandContext
from uwfgit.cli.frame.options import GlobalOptions

AGENT = ("--agent", "scripted:replies.yaml")
ADA = "ada@example.org"
There = Callable[..., Result]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Ada's key, in use and known as hers; when to sign is still open."""
    return make_keys(tmp_path / "keys", ada=ADA)


def store_of(uwf: Uwf) -> str:
    return uwf("store", "path").out.strip()


def git(store: str, *args: str) -> str:
    """Run plain git, which has to succeed; gives all that it says."""
    words = ["git", f"--git-dir={store}", *args]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def grades(uwf: Uwf, ref: str) -> str:
    """Give git's grade of each event, the oldest first: G is good, N is none."""
    told = git(store_of(uwf), "log", "--first-parent", "--reverse", "--format=%G?", ref)
    return "".join(told.split()[1:])


def start(uwf: Uwf) -> str:
    done = uwf("thread", "start", "ping.yaml", "-p", "the task", "--json")
    assert done.code == 0, done.err
    thread: str = done.json["threadId"]
    return thread


@needs_ssh
@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        pytest.param(["uwf.sign=steps"], "GGGGG", id="steps"),
        pytest.param(["uwf.sign=tip"], "GNNNG", id="tip", marks=pytest.mark.slow),
        pytest.param(["commit.gpgsign=true"], "GNNNG", id="as git signs"),
        pytest.param(["uwf.sign=never", "commit.gpgsign=true"], "NNNNN", id="never"),
        pytest.param([], "NNNNN", id="not asked for"),
    ],
)
def test_events_are_signed_as_git_s_settings_say(
    uwf: Uwf, keys: Keys, settings: list[str], wanted: str
) -> None:
    keys.set(*settings)
    thread = start(uwf)

    done = uwf("thread", "exec", thread, "--all", *AGENT)

    assert (done.code, grades(uwf, f"thread/{thread}")) == (0, wanted)
    checked = uwf("verify", thread, "--json").json["items"][0]
    assert (checked["ok"], checked["signed"]) == (True, wanted.count("G"))
    told = f"signed {wanted.count('G')} of 5"
    assert told in uwf("verify", thread).out


def test_the_settings_of_a_signer_are_read_once(uwf: Uwf, work: Path) -> None:
    uwf("init", "--user")
    context = CommandContext(
        options=GlobalOptions(), environment=dict(os.environ), folder=work
    )
    with context.closing:
        signer = context.open_ledger(write=True).signer
        git(store_of(uwf), "config", "uwf.sign", "tip")
        first = signer.signing()
        git(store_of(uwf), "config", "uwf.sign", "never")

        assert signer.signing() is first
        assert first.mode == "tip"


@needs_ssh
@pytest.mark.parametrize("mode", ["steps", "tip"])
def test_plain_git_accepts_the_tip(uwf: Uwf, keys: Keys, mode: str) -> None:
    keys.set(f"uwf.sign={mode}")
    thread = start(uwf)
    uwf("thread", "exec", thread, "-c", "2", *AGENT)

    checked = git(store_of(uwf), "verify-commit", f"thread/{thread}")
    shown = git(store_of(uwf), "log", "--show-signature", "-1", f"thread/{thread}")

    for said in (checked, shown):
        assert f'Good "git" signature for {ADA}' in said
    assert uwf("verify", "--signatures").code == 0


@needs_ssh
def test_the_registry_is_signed(uwf: Uwf, keys: Keys) -> None:
    keys.set("uwf.sign=tip")

    uwf("workflow", "add", "ping.yaml")

    assert grades(uwf, "workflow/ping") == "G"


@needs_ssh
def test_a_signature_by_another_than_the_committer_does_not_pass(
    uwf: Uwf, keys: Keys
) -> None:
    keys.set("uwf.sign=tip")
    keys.use("eve")
    keys.allow(ada=ADA, eve="eve@example.com")
    thread = start(uwf)

    checked = uwf("verify", thread, "--signatures", "--json")

    (problem,) = checked.json["items"][0]["problems"]
    assert (checked.code, problem["code"]) == (1, "signature")
    assert "signed by 'eve@example.com'" in problem["message"]
    assert uwf("verify", thread).code == 0


@needs_ssh
def test_a_signer_is_trusted_by_the_fingerprint_that_ssh_keygen_prints(
    uwf: Uwf, keys: Keys
) -> None:
    keys.set("uwf.sign=tip")
    thread = start(uwf)

    trusted = uwf("trust", "add", "--from", thread, "--json")

    words = ["ssh-keygen", "-lf", str(keys.make("ada"))]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert trusted.json == {"added": [told.split()[1]]}


@needs_ssh
def test_a_missing_key_stops_a_run_before_its_agent(uwf: Uwf, keys: Keys) -> None:
    thread = start(uwf)
    keys.set("uwf.sign=tip", "user.signingkey=/nowhere/key")

    refused = uwf("thread", "exec", thread, *AGENT, "--json")
    shown = uwf("thread", "exec", thread, *AGENT)

    assert (refused.code, refused.error["code"]) == (1, "store")
    assert "/nowhere/key" in refused.error["message"]
    assert "uwf.sign" in refused.error["hint"]
    assert len(shown.err.splitlines()) == 2
    assert grades(uwf, f"thread/{thread}") == "N"
    keys.set("uwf.sign=never")
    assert uwf("thread", "exec", thread, *AGENT).code == 0


@needs_ssh
def test_a_reply_that_could_not_be_signed_is_kept_with_a_warning(
    uwf: Uwf, keys: Keys, work: Path
) -> None:
    keys.set("uwf.sign=tip")
    thread = start(uwf)
    agent = work / "agent"
    agent.write_text(
        f"#!/bin/sh\nrm {keys.make('ada')}\n"
        "printf -- '---\\n$status: done\\ntext: x\\n---\\nDone.\\n'\n"
    )
    agent.chmod(0o755)

    done = uwf("thread", "exec", thread, "--agent", f"stdio:{agent}")

    assert done.code == 0, done.err
    assert "warning: kept, but not signed" in done.err
    assert grades(uwf, f"thread/{thread}") == "GN"


def test_the_demo_needs_no_key(uwf: Uwf, tmp_path: Path) -> None:
    Keys(tmp_path).set("commit.gpgsign=true", "user.signingkey=/nowhere/key")

    assert uwf("demo", "-q").code == 0


@needs_ssh
@pytest.mark.parametrize(
    ("settings", "level", "told"),
    [
        pytest.param(["uwf.sign=tip"], "ok", "tip", id="it works"),
        pytest.param(
            ["uwf.sign=tip", "user.signingkey=/nowhere"],
            "problem",
            "/nowhere",
            id="no key",
        ),
        pytest.param(["uwf.sign=often"], "problem", "often", id="no such word"),
    ],
)
@pytest.mark.usefixtures("thread")
def test_doctor_says_whether_signing_works(
    uwf: Uwf, keys: Keys, settings: list[str], level: str, told: str
) -> None:
    keys.set(*settings)

    checks = uwf("doctor", "--json").json["checks"]

    (found,) = [check for check in checks if check["check"] == "signing"]
    assert (found["level"], told in found["message"]) == (level, True)


def give(uwf: Uwf, tmp_path: Path) -> There:
    """Give somebody else what is in this folder's store: the program in theirs."""
    theirs = str(tmp_path / "theirs.git")
    assert uwf("clone", store_of(uwf), theirs).code == 0

    def call(*words: str) -> Result:
        return uwf("--store", theirs, *words)

    return call


def trust(tmp_path: Path, *names: str) -> None:
    file = tmp_path / "home" / ".uwf" / "config.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"trust: {list(names)}\n")


def is_let_run(there: There, thread: str) -> bool:
    done = there("thread", "exec", thread, *AGENT, "--cwd", ".", "--json")
    assert (done.code, done.code and done.error["code"]) in {(0, 0), (1, "untrusted")}
    return done.code == 0


@needs_ssh
@pytest.mark.parametrize(
    ("signer", "principal", "listed", "runs"),
    [
        pytest.param("ada", ADA, ADA, True, id="a listed one"),
        pytest.param("ada", ADA, "bob@example.org", False, id="not listed"),
        pytest.param("ada", "ada-laptop", "ada-laptop", True, id="by the principal"),
        pytest.param("ada", "ada-laptop", ADA, False, id="not by the mail address"),
        pytest.param("eve", ADA, ADA, False, id="a key nobody knows"),
    ],
)
def test_who_lets_a_thread_run_by_a_signature(
    uwf: Uwf,
    keys: Keys,
    tmp_path: Path,
    signer: str,
    principal: str,
    listed: str,
    *,
    runs: bool,
) -> None:
    keys.set("uwf.sign=tip")
    keys.use(signer)
    keys.allow(ada=principal)
    thread = start(uwf)
    # Who runs it signs with another key: their own needs no trust.
    keys.use("bob")
    there = give(uwf, tmp_path)
    trust(tmp_path, listed)

    assert is_let_run(there, thread) == runs


@needs_ssh
def test_a_signature_covers_what_was_before_and_nothing_after(
    uwf: Uwf, keys: Keys, tmp_path: Path
) -> None:
    trust(tmp_path, ADA)
    before = start(uwf)
    keys.set("uwf.sign=tip")
    uwf("thread", "exec", before, *AGENT)
    after = start(uwf)
    keys.set("uwf.sign=never")
    uwf("thread", "exec", after, *AGENT)
    there = give(uwf, tmp_path)

    assert grades(uwf, f"thread/{before}") == "NG"
    assert grades(uwf, f"thread/{after}") == "GN"
    assert (is_let_run(there, before), is_let_run(there, after)) == (True, False)


@needs_ssh
def test_what_was_made_here_on_top_needs_no_signature(
    uwf: Uwf, keys: Keys, tmp_path: Path
) -> None:
    trust(tmp_path, ADA)
    keys.set("uwf.sign=tip")
    thread = start(uwf)
    there = give(uwf, tmp_path)
    keys.set("uwf.sign=never")

    fork = there("thread", "fork", thread, "--json").json["threadId"]

    assert is_let_run(there, fork)
    assert is_let_run(there, fork)


@needs_ssh
def test_my_own_signature_does_not_vouch_for_what_others_made(
    uwf: Uwf, keys: Keys, tmp_path: Path
) -> None:
    thread = start(uwf)
    there = give(uwf, tmp_path)
    trust(tmp_path, ADA)
    keys.set("uwf.sign=tip")

    fork = there("thread", "fork", thread, "--json").json["threadId"]

    assert not is_let_run(there, fork)


@needs_ssh
def test_a_signed_thread_still_needs_a_folder_and_keeps_the_chosen_one(
    uwf: Uwf, keys: Keys, tmp_path: Path
) -> None:
    trust(tmp_path, ADA)
    keys.set("uwf.sign=tip")
    thread = start(uwf)
    there = give(uwf, tmp_path)

    refused = there("thread", "exec", thread, *AGENT, "--json")
    first = there("thread", "exec", thread, *AGENT, "--cwd", ".")
    second = there("thread", "exec", thread, *AGENT, "--json")

    assert (refused.code, refused.error["code"]) == (1, "state")
    assert (first.code, second.code) == (0, 0)
    assert f"is signed by {ADA}" in first.err


@needs_ssh
def test_an_approval_counts_under_its_own_name_only(uwf: Uwf, keys: Keys) -> None:
    keys.set("commit.gpgsign=true")
    thread, other = start(uwf), start(uwf)
    for each in (thread, other):
        uwf("thread", "exec", each, "-c", "2", *AGENT)
    done = uwf("review", "approve", thread, "--step", "1", "--json").json
    store, tag = store_of(uwf), done["tag"]
    said = git(store, "tag", "-v", tag)
    assert f'Good "git" signature for {ADA}' in said
    approved = uwf("verify", thread, "--signatures", "--json")
    (found,) = approved.json["items"][0]["approvals"]
    assert (approved.code, found["signer"], found["problem"]) == (0, ADA, None)

    second = uwf("step", "list", thread, "--json").json["items"][1]["hash"]
    copies = [f"approved/{thread}/{second}", tag.replace(thread, other)]
    for copy in copies:
        git(store, "update-ref", f"refs/tags/{copy}", done["oid"])
    checked = uwf("verify", "--signatures", "--json")

    found = {
        each["tag"]: each["problem"] is None
        for item in checked.json["items"]
        for each in item["approvals"]
    }
    assert found == {tag: True, copies[0]: False, copies[1]: False}
    assert checked.code == 1


@needs_ssh
def test_an_approval_on_another_commit_does_not_count(uwf: Uwf, keys: Keys) -> None:
    keys.set("commit.gpgsign=true")
    thread, other = start(uwf), start(uwf)
    for each in (thread, other):
        uwf("thread", "exec", each, *AGENT)
    done = uwf("review", "approve", thread, "--json").json
    store, tag = store_of(uwf), done["tag"]
    git(store, "update-ref", "-d", f"refs/tags/{tag}")
    git(store, "tag", "-s", "-m", "moved", tag, f"thread/{other}")

    checked = uwf("verify", thread, "--signatures", "--json")

    (found,) = checked.json["items"][0]["approvals"]
    assert (checked.code, found["signer"]) == (1, None)
    assert "no commit of its thread" in found["problem"]


def test_a_signature_that_git_does_not_look_at_is_told_apart_from_none(
    uwf: Uwf, tmp_path: Path
) -> None:
    keys = Keys(tmp_path)
    keys.set("uwf.sign=steps", "gpg.format=ssh", f"user.signingkey={keys.make('ada')}")
    thread = start(uwf)

    checked = uwf("verify", thread, "--signatures", "--json")

    (problem,) = checked.json["items"][0]["problems"]
    assert "gpg.ssh.allowedSignersFile" in problem["message"]
    assert checked.code == 1


def signers(uwf: Uwf, thread: str) -> list[str | None]:
    """Give whose signatures of approvals git accepts."""
    (item,) = uwf("verify", thread, "--signatures", "--json").json["items"]
    return [each["signer"] for each in item["approvals"]]


@pytest.mark.skipif(which("gpg") is None, reason="no gpg")
@pytest.mark.slow
def test_gpg_signs_and_is_trusted_by_its_key(
    uwf: Uwf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    uid = f"Ada <{ADA}>"
    words = ["--batch", "--passphrase", "", "--quick-gen-key", uid, "ed25519", "sign"]

    def gpg(*words: str, stdin: str = "") -> str:
        return subprocess.run(
            ["gpg", *words], check=True, capture_output=True, text=True, input=stdin
        ).stdout

    try:
        gpg(*words)
        listed = gpg("--list-keys", "--with-colons")
        (key,) = [x.split(":")[9] for x in listed.splitlines() if x[:4] == "fpr:"]
        keys = Keys(tmp_path)
        keys.set("uwf.sign=steps", f"user.signingkey={key}")
        thread = start(uwf)
        uwf("thread", "exec", thread, *AGENT)
        there = give(uwf, tmp_path)
        keys.set("uwf.sign=never", "user.signingkey=0123456789ABCDEF")
        ran = {}
        for name in (ADA, uid, key[-16:].lower(), key):
            trust(tmp_path, name)
            fork = there("thread", "fork", thread, "--json").json["threadId"]
            ran[name] = is_let_run(there, fork)
        keys.set(f"user.signingkey={key}")

        assert uwf("review", "approve", thread, "--sign").code == 0
        assert signers(uwf, thread) == [uid]
        assert uwf("verify", "--signatures").code == 0
        gpg("--import-ownertrust", stdin=f"{key}:2:\n")
        assert grades(uwf, f"thread/{thread}") == "UU"
        assert signers(uwf, thread) == [None]
        keys.set("user.signingkey=0123456789ABCDEF")
        fork = there("thread", "fork", thread, "--json").json["threadId"]
        assert not is_let_run(there, fork)
        assert ran == {ADA: False, uid: True, key[-16:].lower(): True, key: True}
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], check=False, capture_output=True)


@needs_ssh
def test_what_my_own_key_signed_elsewhere_counts_as_mine(
    uwf: Uwf, keys: Keys, tmp_path: Path
) -> None:
    keys.set("uwf.sign=tip")
    keys.use("ada")
    keys.allow(ada=ADA)
    thread = start(uwf)

    assert is_let_run(give(uwf, tmp_path), thread)
