"""Workflows from others' repositories, as a person registers and keeps them up."""

from __future__ import annotations

import base64
import io
import shlex
import sys
from pathlib import Path

import pytest

from tests.builders import git
from tests.cli.calls import WORKFLOW, Result, Uwf
from tests.sync.elsewhere import Elsewhere, make_elsewhere
from tests.sync.serving import serve_http


class _Terminal(io.StringIO):
    """Somebody who types one line."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def there(tmp_path: Path) -> Elsewhere:
    made = make_elsewhere(tmp_path / "there")
    made.git("tag", "v1")
    return made


def change(there: Elsewhere, text: str = "You write well.") -> str:
    there.write(".workflows/ping.yaml", WORKFLOW.replace("You write.", text))
    return there.commit("change")


def typed(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch, answer: str, *words: str
) -> Result:
    with monkeypatch.context() as terminal:
        terminal.setattr(sys, "stdin", _Terminal(answer))
        terminal.setattr(sys.stderr, "isatty", lambda: True)
        return uwf(*words)


def test_it_is_shown_and_asked_about_once(
    uwf: Uwf, there: Elsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = ("workflow", "add", f"{there.address}@v1:ping")
    pinned = there.git("rev-parse", "v1")

    nobody = uwf(*add)
    refused = typed(uwf, monkeypatch, "\n", *add)
    agreed = typed(uwf, monkeypatch, "y\n", *add)
    again = uwf(*add, "--json")

    assert (nobody.code, refused.code, agreed.code) == (1, 1, 0)
    for shown in (nobody, refused, agreed):
        assert f"  commit:  {pinned} (tag)\n" in shown.err
        assert "  by:      Mallory <m@example.org>, " in shown.err
        assert "goal: You write." in shown.err
        assert 'prompt: "Check {{{text}}}"' in shown.err
    assert agreed.out.startswith("registered  ping\n")
    assert again.json["changed"] is False
    assert again.json["origin"] == f"{there.address}@v1:.workflows/ping.yaml#{pinned}"


def test_without_a_terminal_yes_has_to_be_said(uwf: Uwf, there: Elsewhere) -> None:
    asked = uwf("workflow", "add", there.address, "--json")
    agreed = uwf("workflow", "add", there.address, "--yes", "--json")

    assert (asked.code, asked.error["code"]) == (1, "untrusted")
    assert "--yes" in asked.error["hint"]
    assert agreed.json["changed"] is True
    assert (
        uwf("workflow", "show", "ping", "--json")
        .json["origin"]
        .startswith(f"{there.address}@HEAD:.workflows/ping.yaml#")
    )


def test_what_it_says_reaches_a_terminal_escaped(uwf: Uwf, there: Elsewhere) -> None:
    change(there, r'"You write.\e[2J\a\u202e"')

    shown = uwf("workflow", "add", there.address)

    assert "You write." in shown.err
    assert not {"\x1b", "\a", "\u202e"} & set(shown.err)


def test_a_newer_one_is_told_shown_as_a_diff_and_taken(
    uwf: Uwf, there: Elsewhere
) -> None:
    uwf("workflow", "add", f"{there.address}@main:ping", "--yes")
    before = uwf("workflow", "outdated", "--json")
    head = change(there)

    after = uwf("workflow", "outdated", "--json")
    asked = uwf("workflow", "update", "ping")
    taken = uwf("workflow", "update", "ping", "--yes", "--json")

    (was,), (now,) = before.json["items"], after.json["items"]
    assert (was["state"], was["found"]) == ("current", was["pinned"])
    assert (now["state"], now["pinned"], now["found"]) == (
        *("outdated", was["pinned"]),
        head,
    )
    assert (asked.code, after.code) == (1, 0)
    assert "  -    goal: You write.\n  +    goal: You write well.\n" in asked.err
    assert "roles:\n  planner" not in asked.err
    assert taken.json["origin"].endswith(f"#{head}")
    assert "outdated" in uwf("workflow", "--help").out
    assert uwf("workflow", "update", "ping", "--json").json["changed"] is False
    history = uwf("workflow", "history", "ping", "--json").json["items"]
    assert [item["origin"].rpartition("#")[2] for item in history] == [
        head,
        was["pinned"],
    ]


@pytest.mark.slow
def test_a_commit_elsewhere_that_changes_nothing_is_no_new_version(
    uwf: Uwf, there: Elsewhere
) -> None:
    uwf("workflow", "add", f"{there.address}@main:ping", "--yes")
    there.write("README", "more")
    there.commit()

    outdated = uwf("workflow", "outdated", "--json").json["items"]
    updated = uwf("workflow", "update", "ping", "--json")

    assert [item["state"] for item in outdated] == ["current"]
    assert (updated.code, updated.json["changed"]) == (0, False)


def test_a_tag_that_was_moved_is_told(uwf: Uwf, there: Elsewhere) -> None:
    added = uwf("workflow", "add", f"{there.address}@v1:ping", "--yes", "--json").json
    change(there)
    there.git("tag", "--force", "v1")

    again = uwf("workflow", "add", added["origin"], "--yes", "--json")
    updated = uwf("workflow", "update", "ping", "--yes")

    assert (again.code, again.error["code"]) == (1, "remote")
    assert "tag 'v1' was moved: it was " in updated.err
    assert updated.out.startswith("registered  ping\n")


def test_one_that_is_pinned_to_a_commit_never_moves(uwf: Uwf, there: Elsewhere) -> None:
    commit = there.git("rev-parse", "main")
    uwf("workflow", "add", f"{there.address}:ping#{commit}", "--yes")
    change(there)

    (item,) = uwf("workflow", "outdated", "--json").json["items"]
    updated = uwf("workflow", "update", "ping")

    assert (item["state"], item["pinned"]) == ("fixed", commit)
    assert updated.out.startswith("unchanged  ping\n")


@pytest.mark.slow
def test_what_cannot_be_had_any_more_fails_and_the_rest_is_told(
    uwf: Uwf, there: Elsewhere
) -> None:
    uwf("workflow", "add", f"{there.address}@v1:ping", "--yes")
    uwf("workflow", "add", f"{there.address}@main:flows/parts.yaml", "--yes")
    there.git("tag", "--delete", "v1")

    text = uwf("workflow", "outdated")

    assert text.code == 1
    assert "workflow 'ping': branch or tag 'v1' not found" in text.err
    assert [line.split()[:2] for line in text.out.splitlines()[1:]] == [
        ["parts", "current"],
        ["ping", "failed"],
    ]
    assert all(len(line.split()[-1]) for line in text.out.splitlines())


def test_one_of_a_file_has_nothing_to_be_compared_with(uwf: Uwf) -> None:
    uwf("workflow", "add", "ping.yaml")

    assert uwf("workflow", "outdated", "--json").json == {"items": []}
    updated = uwf("workflow", "update", "ping", "--json")
    assert (updated.code, updated.error["code"]) == (1, "state")


@pytest.mark.slow
def test_one_that_is_called_otherwise_by_now_is_no_update(
    uwf: Uwf, there: Elsewhere
) -> None:
    uwf("workflow", "add", f"{there.address}:flows/pong", "--yes")
    there.git("mv", "flows/pong", "flows/was")
    there.git("commit", "--quiet", "--message", "moved")

    assert uwf("workflow", "update", "pong", "--yes").code == 1


@pytest.mark.slow
def test_workflows_of_its_roles_are_named(uwf: Uwf, there: Elsewhere) -> None:
    role = "  checker:\n    description: Checks\n    workflow: pong\n    frontmatter:\n"
    head, _, tail = WORKFLOW.partition("  checker:\n")
    there.write(
        "flows/outer.yaml",
        head.replace("name: ping", "name: outer")
        + role
        + tail.partition("    frontmatter:\n")[2],
    )
    there.commit()

    added = uwf("workflow", "add", f"{there.address}:flows/outer.yaml", "--yes")
    hint = shlex.split(added.err.rpartition("uwf workflow add ")[2])[0]
    child = uwf("workflow", "add", hint, "--yes")
    again = uwf("workflow", "add", f"{there.address}:flows/outer.yaml", "--yes")
    started = uwf("thread", "start", "outer", "-p", "x", "--json")

    assert "a role is done by workflow 'pong', which is not here" in added.err
    assert child.out.startswith("registered  pong\n")
    assert "which is not here" not in again.err
    assert started.code == 0, started.err


@pytest.mark.slow
def test_a_password_is_kept_nowhere(
    uwf: Uwf, there: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert there.folder.is_dir()
    login = base64.b64encode(b"ada:s3cret-word").decode()
    with serve_http(tmp_path, login=login) as url:
        address = f"git+{url}/there/.git".replace("//127", "//ada:s3cret-word@127")
        said = [
            uwf("workflow", "add", address, "--yes"),
            uwf("workflow", "add", f"{address}@nope", "--yes"),
            uwf("workflow", "add", address.replace("there", "gone"), "--yes"),
            uwf("workflow", "add", address.replace("s3cret", "s3cret-bad"), "--yes"),
            uwf("workflow", "history", "ping", "--json"),
            uwf("workflow", "update", "ping"),
        ]
    store = Path(uwf("store", "path").out.strip())

    assert [each.code for each in said] == [0, 1, 1, 1, 0, 1]
    assert not any("s3cret" in each.out + each.err for each in said)
    assert "s3cret" not in git(store, "log", "--all", "--format=%B")
    assert not any(b"s3cret" in file.read_bytes() for file in _files(store.parent))


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def test_export_writes_one_file_that_stands_alone(
    uwf: Uwf, there: Elsewhere, work: Path
) -> None:
    uwf("workflow", "add", f"{there.address}:flows/parts.yaml", "--yes")
    pinned = uwf("workflow", "show", "parts", "--json").json["hash"]

    printed = uwf("workflow", "export", "parts")
    wrote = uwf("workflow", "export", "parts", "-o", "parts.yaml")
    again = uwf("workflow", "export", "parts", "-o", "parts.yaml")
    other = uwf("workflow", "export", "parts", "-o", "other.yaml")

    text = (work / "parts.yaml").read_text()
    assert (printed.out, wrote.out) == (text, "wrote parts.yaml\n")
    assert "!include texts" not in text
    assert "You write, as it stands in a file." in text
    assert uwf("workflow", "show", "./parts.yaml", "--json").json["hash"] == pinned
    assert (again.code, other.code) == (1, 0)
    assert "must be called parts.yaml" in other.err
    assert uwf("workflow", "export", "parts", "--json").json["text"] == text


def test_an_included_file_is_exported_too(uwf: Uwf, there: Elsewhere) -> None:
    printed = uwf("workflow", "export", f"{there.folder}/flows/parts.yaml")

    assert "You write, as it stands in a file." in printed.out


def test_a_removed_workflow_is_listed_and_restored(uwf: Uwf) -> None:
    added = uwf("workflow", "add", "ping.yaml", "--json").json
    nothing = uwf("workflow", "list", "--trash")
    removed = uwf("workflow", "rm", "ping")

    listed = uwf("workflow", "list", "--trash", "--json").json["items"]
    text = uwf("workflow", "list", "--trash").out
    back = uwf("workflow", "restore", "ping", "--json")
    twice = uwf("workflow", "restore", "ping", "--json")

    assert nothing.err == "the trash holds no workflow\n"
    assert removed.err == "bring it back: uwf workflow restore ping\n"
    assert [(item["name"], item["hash"]) for item in listed] == [
        ("ping", added["hash"])
    ]
    assert text.splitlines()[1].split()[:2] == ["ping", added["hash"]]
    assert (back.json["hash"], back.json["changed"]) == (added["hash"], True)
    assert (twice.code, twice.error["code"]) == (1, "state")
    assert uwf("workflow", "list", "--trash", "--json").json == {"items": []}
    assert uwf("workflow", "restore", "never", "--json").error["code"] == "not-found"
