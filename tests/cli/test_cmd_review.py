"""Words, exit codes and text of 'uwf review …'."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import git
from tests.cli.calls import Uwf
from tests.cli.seats import Seat, make_seat
from tests.sync.people import make_bare, refs_of
from uwfgit.store.genesis import GENESIS_OID

NOBODY = "01M8FV0G61K8RNY396JMTGNRK5"

PIN = "uwfgit @ git+https://example.org/uwfgit@" + "a" * 40


def heads(bare: Path) -> set[str]:
    return {ref.removeprefix("refs/heads/") for ref in refs_of(bare)}


def test_a_thread_is_opened_for_review(uwf: Uwf, bare: Path, ended: str) -> None:
    text = uwf("review", "open", ended)
    data = uwf("review", "open", ended, "--json")

    tip = uwf("thread", "show", ended, "--json").json["oid"]
    assert (text.code, data.code) == (0, 0)
    assert [line.split() for line in text.out.splitlines()] == [
        ["branch", f"uwf/{ended}"],
        ["compared", "with", "main"],
    ]
    assert data.json == {
        "threadId": ended,
        "remote": "origin",
        "head": f"uwf/{ended}",
        "base": "main",
        "oid": tip,
        "baseOid": GENESIS_OID,
        "link": None,
        "children": [],
    }
    assert heads(bare) == {"main", f"uwf/{ended}"}


def test_a_part_is_opened_beside_what_was_before(
    uwf: Uwf, bare: Path, ended: str
) -> None:
    done = uwf("review", "open", ended, "--from", "2", "--to", "3", "--json")

    assert (done.code, done.json["base"]) == (0, f"uwf/{ended}-base")
    assert refs_of(bare) == {
        f"refs/heads/uwf/{ended}": done.json["oid"],
        f"refs/heads/uwf/{ended}-base": done.json["baseOid"],
    }


def test_a_review_goes_on_and_is_closed(uwf: Uwf, bare: Path, thread: str) -> None:
    uwf("review", "open", thread)
    uwf("thread", "exec", thread, "--agent", "scripted:replies.yaml")

    updated = uwf("review", "update", thread, "--json")
    shown = uwf("review", "update", thread)
    closed = uwf("review", "close", thread, "--json")
    again = uwf("review", "close", thread)
    late = uwf("review", "update", thread, "--json")

    tip = uwf("thread", "show", thread, "--json").json["oid"]
    assert (updated.code, updated.json["oid"], updated.json["base"]) == (0, tip, "main")
    assert f"uwf/{thread}" in shown.out
    assert closed.json == {
        "threadId": thread,
        "remote": "origin",
        "removed": [f"uwf/{thread}"],
    }
    assert (again.code, again.out) == (0, "no review is open there\n")
    assert (late.code, late.error["hint"]) == (
        1,
        f"open one: uwf review open {thread}",
    )
    assert heads(bare) == {"main"}


def test_the_review_of_a_thread_that_is_gone_can_be_closed(
    uwf: Uwf, bare: Path, thread: str
) -> None:
    uwf("review", "open", thread)
    assert uwf("thread", "rm", thread).code == 0

    done = uwf("review", "close", thread)

    assert (done.code, done.out) == (0, f"removed uwf/{thread}\n")
    assert heads(bare) == {"main"}


def test_an_update_of_a_part_names_the_base_it_has(
    uwf: Uwf, bare: Path, ended: str
) -> None:
    opened = uwf("review", "open", ended, "--from", "2", "--to", "2", "--json").json

    done = uwf("review", "update", ended, "--json")

    assert done.json["base"] == opened["base"]
    assert done.json["baseOid"] == opened["baseOid"]
    assert heads(bare) == {f"uwf/{ended}", f"uwf/{ended}-base"}
    assert len(uwf("review", "close", ended, "--json").json["removed"]) == 2


def test_a_review_of_another_part_is_closed_first(
    uwf: Uwf, bare: Path, ended: str
) -> None:
    uwf("review", "open", ended, "--from", "2")
    before = refs_of(bare)

    refused = uwf("review", "open", ended, "--json")

    assert (refused.code, refused.error["code"]) == (1, "state")
    assert f"uwf review update {ended}" in refused.error["hint"]
    assert f"uwf review close {ended}" in refused.error["hint"]
    assert refs_of(bare) == before


@pytest.mark.parametrize(
    ("opened", "asked"),
    [
        pytest.param("--from 2 --to 3", "--from 3", id="a later first step"),
        pytest.param("--from 3", "--from 2", id="an earlier first step"),
        pytest.param("--to 3", "--from 3", id="a part of the whole"),
        pytest.param("", "--from 1", id="all but the start"),
        pytest.param(
            "--from 2 --to 3", "--from 2 --to 2", id="a part that ends before"
        ),
    ],
)
def test_bounds_of_an_open_review_do_not_move(
    uwf: Uwf, bare: Path, ended: str, opened: str, asked: str
) -> None:
    assert uwf("review", "open", ended, *opened.split()).code == 0
    before = refs_of(bare)

    refused = uwf("review", "open", ended, *asked.split(), "--json")

    assert (refused.code, refused.error["code"]) == (1, "state")
    assert f"uwf review close {ended}" in refused.error["hint"]
    assert "uwf pull" not in refused.error["hint"]
    assert refs_of(bare) == before


@pytest.mark.parametrize(
    ("opened", "asked"),
    [
        pytest.param("--from 2", "--from 2", id="a part again"),
        pytest.param("--from 2 --to 2", "--from 2", id="a part that grew"),
        pytest.param("--to 2", "", id="the whole that grew"),
    ],
)
def test_a_review_of_the_same_bounds_is_opened_again(
    uwf: Uwf, bare: Path, ended: str, opened: str, asked: str
) -> None:
    first = uwf("review", "open", ended, *opened.split(), "--json").json

    again = uwf("review", "open", ended, *asked.split(), "--json").json

    tip = uwf("thread", "show", ended, "--json").json["oid"]
    assert again == {**first, "oid": tip}
    assert refs_of(bare)[f"refs/heads/uwf/{ended}"] == tip


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        pytest.param(("open", NOBODY), 1, "thread", id="unknown thread"),
        pytest.param(("update", NOBODY), 1, "thread", id="unknown thread to update"),
        pytest.param(("close", NOBODY[:6]), 1, "thread", id="nothing to close"),
        pytest.param(("approve", NOBODY), 1, "thread", id="unknown thread to approve"),
        pytest.param(("open", "@last", "--from", "9"), 1, "step", id="no such step"),
        pytest.param(
            ("open", "@last", "--from", "3", "--to", "2"),
            2,
            "step 3 comes after step 2",
            id="no steps",
        ),
        pytest.param(
            ("open", "@last", "--from", "0", "--to", "2"), 1, "step", id="from none"
        ),
        pytest.param(("open", "@last", "--to", "0"), 1, "step", id="up to none"),
        pytest.param(("approve", "@last", "--step", "9"), 1, "step", id="no such one"),
        pytest.param(("approve", "@last", "--step", "0"), 1, "step", id="the start"),
        pytest.param(("open", "@last", "--remote", "x"), 1, "remote", id="no remote"),
        pytest.param(("open", "@last", "--forge", "x"), 2, "github", id="no forge"),
        pytest.param(("open", "@last", "--from", "x"), 2, "--from", id="no number"),
        pytest.param(("setup", "--ci", "x"), 2, "gitlab", id="no CI"),
        pytest.param(("setup",), 2, "--ci", id="no CI named"),
        pytest.param(("update", "@last"), 1, "is open", id="not opened"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_and_sends_nothing(
    uwf: Uwf, bare: Path, ended: str, words: tuple[str, ...], code: int, message: str
) -> None:
    assert ended

    done = uwf("review", *words)

    assert (done.code, refs_of(bare)) == (code, {})
    assert message in done.err
    assert done.out == ""


def test_without_a_remote_it_says_how_to_set_one_up(uwf: Uwf, ended: str) -> None:
    for words in (("open", ended), ("update", ended), ("close", ended)):
        done = uwf("review", *words, "--json")

        assert (done.code, done.error["code"]) == (1, "not-found")
        assert done.error["hint"].startswith("set it up: uwf remote add origin URL, ")
    assert uwf("review", "setup", "--ci", "github", "--install", PIN).code == 1


@pytest.mark.parametrize("command", ["open", "approve"])
def test_a_thread_that_does_not_verify_is_neither_opened_nor_approved(
    uwf: Uwf, bare: Path, ended: str, command: str
) -> None:
    # Its newest event again, under another name: made by plain git.
    tip = f"refs/heads/thread/{ended}"
    store = Path(uwf("store", "path").out.strip())
    who = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")
    forged = git(store, *who, "commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", "x")
    git(store, "update-ref", tip, forged.strip())

    done = uwf("review", command, ended)

    assert (done.code, refs_of(bare)) == (1, {})
    assert "does not verify" in done.err
    assert not [ref for ref in refs_of(store) if ref.startswith("refs/tags/")]


@pytest.mark.parametrize(
    ("url", "forge", "link"),
    [
        pytest.param(
            "git@github.com:o/r.git",
            None,
            "https://github.com/o/r/compare/main...{head}?expand=1",
            id="github ssh",
        ),
        pytest.param(
            "https://me:secret@github.com/o/r.git",
            None,
            "https://github.com/o/r/compare/main...{head}?expand=1",
            id="github https",
        ),
        pytest.param(
            "git@gitlab.com:a/b/c.git",
            None,
            "https://gitlab.com/a/b/c/-/merge_requests/new"
            "?merge_request%5Bsource_branch%5D={quoted}"
            "&merge_request%5Btarget_branch%5D=main",
            id="gitlab ssh",
        ),
        pytest.param(
            "https://gitlab.example.org/a/b.git",
            None,
            "https://gitlab.example.org/a/b/-/merge_requests/new"
            "?merge_request%5Bsource_branch%5D={quoted}"
            "&merge_request%5Btarget_branch%5D=main",
            id="gitlab https",
        ),
        pytest.param(
            "ssh://git@gitea.example.org:2222/o/r.git",
            None,
            "https://gitea.example.org/o/r/compare/main...{head}",
            id="gitea ssh",
        ),
        pytest.param(
            "https://codeberg.org/o/r",
            None,
            "https://codeberg.org/o/r/compare/main...{head}",
            id="forgejo https",
        ),
        pytest.param(
            "https://git.example.org/o/r.git",
            "forgejo",
            "https://git.example.org/o/r/compare/main...{head}",
            id="forgejo by its flag",
        ),
        pytest.param(
            "git@bitbucket.org:o/r.git",
            None,
            "https://bitbucket.org/o/r/pull-requests/new?source={quoted}&dest=main",
            id="bitbucket ssh",
        ),
        pytest.param(
            "https://me@bitbucket.org/o/r.git",
            None,
            "https://bitbucket.org/o/r/pull-requests/new?source={quoted}&dest=main",
            id="bitbucket https",
        ),
        pytest.param("git@git.example.org:o/r.git", None, None, id="another host"),
        pytest.param("/srv/github.com/r.git", None, None, id="a path"),
    ],
)
def test_the_link_is_that_of_the_forge_at_the_remote_s_address(
    uwf: Uwf, bare: Path, ended: str, url: str, forge: str | None, link: str | None
) -> None:
    # Fetched from there by name, pushed to a folder: nobody is called.
    uwf("git", "config", "remote.origin.url", url)
    uwf("git", "config", "remote.origin.pushurl", str(bare))
    flags = ("--forge", forge) if forge else ()

    text = uwf("review", "open", ended, *flags)
    data = uwf("review", "update", ended, *flags, "--json")

    head = f"uwf/{ended}"
    wanted = link and link.format(head=head, quoted=head.replace("/", "%2F"))
    assert (text.code, data.code, data.json["link"]) == (0, 0, wanted), text.err
    assert ("open it" in text.out) == (link is not None)
    can_be_made = link is None and not url.startswith("/")
    assert ("--forge KIND" in text.err) == can_be_made
    assert wanted is None or f" {wanted}\n" in text.out
    assert "secret" not in text.out + text.err + data.out


@pytest.mark.parametrize(
    ("ci", "file"),
    [
        pytest.param("github", ".github/workflows/uwf-verify.yml", id="github"),
        pytest.param("gitea", ".gitea/workflows/uwf-verify.yml", id="gitea"),
        pytest.param("gitlab", ".gitlab-ci.yml", id="gitlab"),
    ],
)
def test_a_job_is_set_up_once(uwf: Uwf, bare: Path, ci: str, file: str) -> None:
    done = uwf("review", "setup", "--ci", ci, "--install", PIN, "--json")
    text = uwf("review", "setup", "--ci", ci, "--install", PIN)

    assert done.json == {
        "remote": "origin",
        "base": "main",
        "oid": refs_of(bare)["refs/heads/main"],
        "file": file,
    }
    assert text.out == f"{file} is in branch main of origin\n"
    assert "uwf verify" in git(bare, "show", f"main:{file}")


@pytest.mark.parametrize(
    ("ci", "shared", "told"),
    [
        pytest.param(
            "github", False, "main has to be the repository's default", id="h"
        ),
        pytest.param("gitlab", False, ".gitlab-ci.yml@o/r:main", id="gitlab"),
        pytest.param("gitlab", True, "merged results", id="gitlab beside code"),
        pytest.param("gitea", True, "", id="gitea"),
        pytest.param("github", True, "", id="github beside code"),
    ],
)
def test_what_a_forge_must_be_told_for_its_job_is_said(
    uwf: Uwf, bare: Path, ci: str, told: str, *, shared: bool
) -> None:
    url = "git@example.org:o/r.git"
    uwf("remote", "rm", "origin")
    kind = "--shared" if shared else "--dedicated"
    assert uwf("remote", "add", "there", url, kind).code == 0
    uwf("git", "config", "remote.there.pushurl", str(bare))

    done = uwf("review", "setup", "--ci", ci, "--install", PIN)

    assert done.code == 0, done.err
    assert heads(bare) == {"uwf/main" if shared else "main"}
    assert told in done.err
    assert told or done.err == ""


def test_an_approval_is_a_tag_once_a_step(uwf: Uwf, bare: Path, ended: str) -> None:
    steps = uwf("step", "list", ended, "--json").json["items"]

    done = uwf("review", "approve", ended, "-m", "Fine.", "--json")
    text = uwf("review", "approve", ended, "--step", "1")
    again = uwf("review", "approve", ended, "--json")

    tag = f"approved/{ended}/{steps[-1]['hash']}"
    tip = uwf("thread", "show", ended, "--json").json["oid"]
    assert {**done.json, "oid": ""} == {
        "threadId": ended,
        "tag": tag,
        "oid": "",
        "commit": tip,
        "step": steps[-1]["hash"],
        "signed": False,
    }
    assert text.out == f"approved/{ended}/{steps[0]['hash']} (not signed)\n"
    assert text.err == f"share it: uwf push {ended}\n"
    assert (again.code, "approved already" in again.error["message"]) == (1, True)
    uwf("push", ended)
    assert refs_of(bare)[f"refs/tags/{tag}"] == done.json["oid"]


@pytest.fixture
def pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[Seat, Seat]:
    """Ada and Bob, with a repository between them."""
    bare = make_bare(tmp_path / "between.git")
    ada = make_seat(tmp_path, "Ada", monkeypatch, capsys)
    bob = make_seat(tmp_path, "Bob", monkeypatch, capsys)
    for seat in (ada, bob):
        seat.do("init", "--user")
        seat.do("remote", "add", "origin", str(bare))
    return ada, bob


def test_a_review_that_somebody_took_further_is_pulled_first(
    pair: tuple[Seat, Seat],
) -> None:
    ada, bob = pair
    thread = ada.start()
    ada.do("push", thread)
    ada.do("review", "open", thread)
    bob.do("pull")
    asked = ("-p", "this one", "--agent", "scripted:asking.yaml", *bob.trust())
    bob.do("thread", "resume", thread, *asked)
    bob.do("review", "update", thread)
    bob.do("push")
    ada.do("thread", "cancel", thread, "--reason", "mine")

    behind = ada.do("review", "update", thread, "--json", code=1)
    ada.do("pull", code=1)
    ada.do("thread", "resolve", thread, "--keep-theirs")
    after = ada.do("review", "update", thread)

    assert f"uwf pull {thread}" in behind.error["hint"]
    assert after.code == 0


def test_bob_s_job_comes_from_the_base_he_does_not_have(
    pair: tuple[Seat, Seat], tmp_path: Path
) -> None:
    ada, bob = pair
    thread = ada.start(agent="replies.yaml")
    ada.do("thread", "exec", thread, "--agent", "scripted:replies.yaml")
    ada.do("review", "setup", "--ci", "gitea", "--install", PIN)
    ada.do("push", thread)
    bob.do("pull", thread)

    opened = bob.do("review", "open", thread, "--from", "2", "--json").json

    files = git(
        tmp_path / "between.git", "ls-tree", "-r", "--name-only", opened["base"]
    )
    assert ".gitea/workflows/uwf-verify.yml" in files
