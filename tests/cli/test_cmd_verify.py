from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.sync.forge import amend_step, forge
from tests.sync.tour import set_tip
from uwfgit.ids import Oid
from uwfgit.store.git.reading import open_reading


def test_a_thread_that_was_run_is_consistent(uwf: Uwf, ended: str) -> None:
    uwf("workflow", "add", "ping.yaml")

    checked = uwf("verify", "--json")

    assert (checked.code, checked.json["ok"]) == (0, True)
    (item,) = checked.json["items"]
    assert (item["threadId"], item["steps"], item["problems"]) == (ended, 4, [])
    assert (item["workflow"], item["agents"]) == ("known", {"scripted": 4})
    assert "consistent; 4 steps; workflow ping registered;" in uwf("verify", ended).out


def test_the_report_says_what_a_thread_written_anew_as_a_whole_is(
    uwf: Uwf, ended: str
) -> None:
    store = uwf("store", "path").out.strip()
    opened = open_reading(Path(store))
    tip = Oid(uwf("thread", "show", ended, "--json").json["oid"])
    change = amend_step(output={"text": "what nobody said"})
    set_tip(opened, ended, forge(opened, tip, {1: change}, upto=1))

    text, data = uwf("verify", ended), uwf("verify", ended, "--json")

    assert (text.code, data.code) == (0, 0)
    assert "consistent; 1 step" in text.out
    assert "not who wrote it, nor that it is true" in text.err
    assert "not shown: who or what wrote" in uwf("verify", ended, "-v").err
    assert "that the whole was not rewritten" in data.json["meaning"]
    assert uwf("verify", ended, "-q").err == ""


def test_the_cli_s_own_events_are_consistent(uwf: Uwf, thread: str) -> None:
    asking = ("--agent", "scripted:asking.yaml")
    uwf("thread", "exec", thread, *asking)
    uwf("thread", "resume", thread, "-p", "Ærø", "--agent", "stdio:false")
    uwf("thread", "resume", thread, "-p", "that one", *asking)
    fork = uwf("thread", "fork", thread, "--at", "1", "--json").json["threadId"]
    uwf("thread", "poke", fork, "-p", "again", "--agent", "scripted:replies.yaml")
    uwf("thread", "cancel", fork, "--reason", "enough")

    checked = uwf("verify", "--json")

    assert [item["problems"] for item in checked.json["items"]] == [[], []]
    assert checked.code == 0


def test_a_changed_thread_is_named_and_exits_1(uwf: Uwf, ended: str) -> None:
    store = uwf("store", "path").out.strip()
    ref = f"refs/heads/thread/{ended}"
    git = ["git", f"--git-dir={store}", "-c", "user.name=x", "-c", "user.email=x@y"]
    forged = subprocess.run(
        [*git, "commit-tree", f"{ref}^{{tree}}", "-p", ref, "-m", "forged"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    subprocess.run([*git, "update-ref", ref, forged], check=True)

    checked = uwf("verify", ended, "--json")

    assert (checked.code, checked.json["ok"]) == (1, False)
    assert checked.json["items"][0]["problems"][0]["commit"] == forged
    assert "not consistent" in uwf("verify", ended).out


def test_verify_of_nothing(uwf: Uwf) -> None:
    uwf("init")

    assert uwf("verify").err == "no threads\n"
    assert uwf("verify", "zzzz").code == 1


@pytest.mark.parametrize("seconds", ["0", "-1", "86401", "9" * 30])
def test_the_time_for_a_check_has_bounds(uwf: Uwf, thread: str, seconds: str) -> None:
    checked = uwf("verify", thread, "--seconds", seconds, "--json")

    assert (checked.code, checked.error["code"]) == (2, "usage")
    assert f"{seconds} is not from 1 to 86400" in checked.error["message"]
    assert uwf("verify", thread, "--seconds", "86400").code == 0


def _clone(uwf: Uwf, folder: Path) -> Path:
    """Make a code repository that has the store's threads fetched beside code."""
    store = uwf("store", "path").out.strip()
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    specs = [
        "refs/heads/thread/*:refs/uwf/thread/*",
        "refs/heads/workflow/*:refs/uwf/workflow/*",
    ]
    subprocess.run(["git", "-C", folder, "fetch", "-q", store, *specs], check=True)
    return folder


def test_refs_of_any_clone_can_be_verified(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    uwf("workflow", "add", "ping.yaml")
    clone = str(_clone(uwf, tmp_path / "clone"))
    before = sorted(Path(clone).rglob("*"))

    checked = uwf("verify", "--repo", clone, f"refs/uwf/thread/{ended}", "--json")

    (item,) = checked.json["items"]
    assert (checked.code, item["threadId"], item["ok"]) == (0, ended, True)
    assert item["workflow"] == "known"
    assert sorted(Path(clone).rglob("*")) == before


@pytest.mark.usefixtures("ended")
def test_a_clone_s_ref_must_be_there_and_be_a_thread(uwf: Uwf, tmp_path: Path) -> None:
    clone = _clone(uwf, tmp_path / "clone")
    git = ["git", "-C", str(clone), "-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "code"], check=True)

    assert uwf("verify", "--repo", str(clone), "nothing", "--json").code == 1
    assert uwf("verify", "--repo", str(clone)).code == 2
    assert uwf("verify", "--repo", str(tmp_path), "main").code == 1
    assert "not consistent" in uwf("verify", "--repo", str(clone), "main").out


def test_a_clone_that_shows_a_changed_history_is_refused(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    clone = _clone(uwf, tmp_path / "clone")
    (clone / ".git" / "shallow").write_text("")

    checked = uwf("verify", "--repo", str(clone), f"uwf/thread/{ended}", "--json")

    assert (checked.code, checked.error["code"]) == (1, "untrusted")


@pytest.mark.usefixtures("ended")
def test_a_demanded_workflow_must_be_the_pinned_one(uwf: Uwf, work: Path) -> None:
    other = (work / "ping.yaml").read_text().replace("Write and check", "Otherwise")
    (work / "ping.yaml").write_text(other)
    uwf("workflow", "add", "ping.yaml")

    checked = uwf("verify", "--workflow", "ping", "--json")

    (item,) = checked.json["items"]
    assert (checked.code, item["workflow"]) == (1, "unknown")
    assert "; workflow ping not registered in this version;" in uwf("verify").out
    assert [problem["code"] for problem in item["problems"]] == ["workflow"]
    assert uwf("verify", "--workflow", "none").code == 1


@pytest.mark.usefixtures("ended")
def test_an_older_version_of_the_workflow_is_told_and_accepted(
    uwf: Uwf, work: Path
) -> None:
    uwf("workflow", "add", "ping.yaml")
    other = (work / "ping.yaml").read_text().replace("Write and check", "Otherwise")
    (work / "ping.yaml").write_text(other)
    uwf("workflow", "add", "ping.yaml")

    checked = uwf("verify", "--workflow", "ping", "--json")

    assert (checked.code, checked.json["items"][0]["workflow"]) == (0, "older")


def _sign(
    uwf: Uwf, thread: str, folder: Path, *, as_: str, text: str | None = None
) -> None:
    """Write the newest commit of a thread again, signed with an ssh key.

    With ``text`` it has the signature of that, which is none of its own.
    """
    store = uwf("store", "path").out.strip()
    ref = f"refs/heads/thread/{thread}"
    raw = _git(store, "cat-file", "commit", ref)
    signed = folder / "commit"
    signed.write_text(text or raw)
    key = _make_key(folder)
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", "git", signed],
        check=True,
        capture_output=True,
    )
    head, _, body = raw.partition("\n\n")
    lines = (folder / "commit.sig").read_text().rstrip("\n").split("\n")
    data = "\n".join([head, "gpgsig " + "\n ".join(lines), "", body])
    (folder / "signed").write_text(data)
    oid = _git(store, "hash-object", "-w", "-t", "commit", str(folder / "signed"))
    _git(store, "update-ref", ref, oid.strip())
    allow(folder, as_)


def _make_key(folder: Path) -> Path:
    key = folder / "key"
    if not key.exists():
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True
        )
    return key


def allow(folder: Path, principal: str) -> None:
    """Let git know whose the key is, in the user's own settings."""
    public = (folder / "key.pub").read_text()
    (folder / "allowed").write_text(f"{principal} {public}")
    settings = (
        f'[gpg]\n\tformat = ssh\n[gpg "ssh"]\n\tallowedSignersFile = {folder}/allowed\n'
    )
    (folder / "home" / ".gitconfig").write_text(settings)


def _git(store: str, *args: str) -> str:
    return subprocess.run(
        ["git", f"--git-dir={store}", *args], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize(
    ("principal", "code", "message"),
    [
        pytest.param("ada@example.org", 0, None, id="the committer's"),
        pytest.param(
            "eve@example.com",
            1,
            "signed by 'eve@example.com', committed by 'ada@example.org'",
            id="another's",
        ),
    ],
)
def test_a_signature_must_be_the_committer_s(
    uwf: Uwf, ended: str, tmp_path: Path, principal: str, code: int, message: str | None
) -> None:
    _sign(uwf, ended, tmp_path, as_=principal)

    checked = uwf("verify", "--signatures", "--json")

    (item,) = checked.json["items"]
    assert [each["message"] for each in item["problems"]] == (
        [message] if message else []
    )
    assert (checked.code, item["signed"]) == (code, 0 if message else 1)


def test_what_only_looks_like_a_signature_is_none(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    _sign(uwf, ended, tmp_path, as_="ada@example.org", text="another commit's")

    unchecked = uwf("verify", ended)
    checked = uwf("verify", ended, "--signatures", "--json")

    assert unchecked.code == 0
    assert "signed 1 of" in unchecked.out
    assert "not checked" in unchecked.out
    (item,) = checked.json["items"]
    assert (checked.code, item["signed"], item["signaturesChecked"]) == (1, 0, True)
    assert item["problems"][0]["code"] == "signature"
    trusted = uwf("trust", "add", "--from", ended)
    assert trusted.code == 1, trusted.out


def test_a_key_that_nobody_vouches_for_is_a_problem(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    _sign(uwf, ended, tmp_path, as_="ada@example.org")
    (tmp_path / "allowed").write_text("")

    checked = uwf("verify", "--signatures", "--json")

    assert checked.json["items"][0]["problems"][0]["code"] == "signature"


def test_a_thread_without_a_signature_is_a_problem_when_one_is_demanded(
    uwf: Uwf, ended: str
) -> None:
    checked = uwf("verify", ended, "--signatures", "--json")

    assert [each["message"] for each in checked.json["items"][0]["problems"]] == [
        "the newest event is not signed"
    ]


@pytest.mark.parametrize(
    "demand",
    [
        pytest.param(["--signatures"], id="signatures"),
        pytest.param(
            ["--workflow", "other"], id="another workflow", marks=pytest.mark.slow
        ),
    ],
)
def test_what_is_demanded_and_missing_makes_no_thread_inconsistent(
    uwf: Uwf, work: Path, ended: str, demand: list[str]
) -> None:
    other = (work / "ping.yaml").read_text().replace("name: ping", "name: other")
    (work / "other.yaml").write_text(other)
    uwf("workflow", "add", "other.yaml")

    text, data = uwf("verify", *demand), uwf("verify", *demand, "--json")

    (item,) = data.json["items"]
    assert (data.code, item["consistent"], item["ok"]) == (1, True, False)
    assert f"{ended}: consistent, but not as demanded; 4 steps" in text.out


def _sign_in_clone(uwf: Uwf, thread: str, tmp_path: Path) -> tuple[Path, Path]:
    """Give a clone with a signed thread, and a program nobody should start."""
    _sign(uwf, thread, tmp_path, as_="ada@example.org")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    program.chmod(0o755)
    return _clone(uwf, tmp_path / "clone"), program


def _second_config(git_dir: Path, text: str) -> None:
    config = git_dir / "config"
    config.write_text(config.read_text() + "[extensions]\n\tworktreeConfig = true\n")
    (git_dir / "config.worktree").write_text(text)


def _own_config(git_dir: Path, text: str) -> None:
    config = git_dir / "config"
    config.write_text(config.read_text() + text)


def _included(git_dir: Path, text: str) -> None:
    (git_dir / "more").write_text(text)
    _own_config(git_dir, "[include]\n\tpath = more\n")


@pytest.mark.parametrize("write", [_own_config, _second_config, _included])
def test_what_a_clone_s_config_says_of_signatures_counts_for_nothing(
    uwf: Uwf, ended: str, tmp_path: Path, write: Callable[[Path, str], None]
) -> None:
    clone, program = _sign_in_clone(uwf, ended, tmp_path)
    text = (
        f'[gpg]\n\tprogram = {program}\n\tformat = openpgp\n[gpg "ssh"]\n'
        f"\tprogram = {program}\n\tallowedSignersFile = /dev/null\n"
        "[log]\n\tmailmap = true\n[mailmap]\n\tfile = /dev/null\n"
    )
    write(clone / ".git", text)

    checked = uwf(
        *("verify", "--signatures", "--repo", str(clone), f"uwf/thread/{ended}"),
        "--json",
    )

    assert not (tmp_path / "started").exists()
    assert (checked.code, checked.json["items"][0]["signed"]) == (0, 1)


def test_a_folder_that_shows_the_history_of_another_is_refused(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    clone, program = _sign_in_clone(uwf, ended, tmp_path)
    _own_config(clone / ".git", f'[gpg "ssh"]\n\tprogram = {program}\n')
    bare = tmp_path / "bare"
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True)
    (bare / "commondir").write_text(f"{clone}/.git\n")

    for more in ((), ("--signatures",)):
        checked = uwf(
            *("verify", *more, "--repo", str(bare), f"uwf/thread/{ended}", "--json")
        )
        assert (checked.code, checked.error["code"]) == (1, "untrusted")
    assert not (tmp_path / "started").exists()


def test_a_linked_worktree_of_a_sparse_clone_can_be_verified(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    clone, _ = _sign_in_clone(uwf, ended, tmp_path)
    git = ["git", "-C", str(clone), "-c", "user.name=x", "-c", "user.email=x@y"]
    for words in (
        ["commit", "-q", "--allow-empty", "-m", "code"],
        ["sparse-checkout", "set", "--no-cone", "/src"],
        ["worktree", "add", "-q", str(tmp_path / "linked")],
    ):
        subprocess.run([*git, *words], check=True, capture_output=True)
    assert (clone / ".git" / "config.worktree").exists()

    for folder in ("clone", "linked"):
        place = ("--repo", str(tmp_path / folder), f"uwf/thread/{ended}")
        assert uwf("verify", "--signatures", *place).code == 0


def test_an_approval_in_a_clone_is_checked_there(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    _sign(uwf, ended, tmp_path, as_="ada@example.org")
    settings = tmp_path / "home" / ".gitconfig"
    settings.write_text(
        f"{settings.read_text()}[user]\n\tsigningKey = {tmp_path}/key\n"
        "[commit]\n\tgpgSign = true\n"
    )
    tag = uwf("review", "approve", ended, "--json").json["tag"]
    store, clone = uwf("store", "path").out.strip(), _clone(uwf, tmp_path / "clone")
    specs = ["refs/tags/*:refs/tags/*"]
    subprocess.run(["git", "-C", clone, "fetch", "-q", store, *specs], check=True)
    _git(f"{clone}/.git", "update-ref", f"refs/tags/{tag}0", f"refs/tags/{tag}")
    place = ("--repo", str(clone), f"uwf/thread/{ended}", "--signatures", "--json")

    checked = uwf("verify", *place)

    found = {
        each["tag"]: (each["signer"], bool(each["problem"]))
        for each in checked.json["items"][0]["approvals"]
    }
    assert found == {tag: ("ada@example.org", False), f"{tag}0": (None, True)}


def test_no_approval_is_told_of_a_thread_that_does_not_verify(
    uwf: Uwf, ended: str
) -> None:
    tag = uwf("review", "approve", ended, "--json").json["tag"]
    store, ref = uwf("store", "path").out.strip(), f"refs/heads/thread/{ended}"
    words = ("-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", "-m", "forged")
    forged = _git(store, *words, f"{ref}^{{tree}}", "-p", ref).strip()
    before = uwf("verify", ended, "--signatures", "--json").json["items"][0]
    _git(store, "update-ref", ref, forged)

    text = uwf("verify", ended, "--signatures")
    data = uwf("verify", ended, "--signatures", "--json")

    assert (text.code, "approved:" in text.out) == (1, False)
    assert [each["problem"] for each in before["approvals"]] == [None]
    (found,) = data.json["items"][0]["approvals"]
    assert (found["tag"], found["signer"]) == (tag, None)
    assert found["problem"] == "its thread does not verify"


def test_an_approval_is_told_of_a_thread_that_is_as_demanded(
    uwf: Uwf, ended: str, tmp_path: Path
) -> None:
    _sign(uwf, ended, tmp_path, as_="ada@example.org")
    tag = uwf("review", "approve", ended, "--json").json["tag"]

    good = uwf("verify", ended, "--signatures")
    allow(tmp_path, "eve@example.com")
    bad = uwf("verify", ended, "--signatures")

    assert f"approved: {tag} by ada@example.org, signed by nobody" in good.out
    assert (bad.code, "approved:" in bad.out) == (1, False)
