"""``thread check``: what is here for going on, and the command for what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.code.repo import Repo


def _checks(uwf: Uwf, *words: str) -> dict[str, tuple[bool, str, str | None]]:
    found = uwf(*words, "--json")
    assert found.code == (0 if found.json["ok"] else 1), found.err
    return {
        check["what"]: (check["ok"], check["message"], check["command"])
        for check in found.json["checks"]
    }


def test_a_thread_that_can_go_on_has_everything(
    uwf: Uwf, thread: str, work: Path
) -> None:
    uwf("config", "set", "defaultAgent", "stdio:cat")

    found = _checks(uwf, "thread", "check", thread)

    assert found == {
        "state": (True, "idle", f"uwf thread exec {thread}"),
        "folder": (True, str(work), None),
        "agent": (True, "stdio (stdio)", None),
        "session": (True, "stdio starts over and is told what happened", None),
    }
    assert uwf("thread", "check", thread).out.startswith("ok       state    idle\n")


def test_what_is_missing_comes_with_its_command(
    uwf: Uwf, thread: str, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    uwf("thread", "cancel", thread)
    store = uwf("store", "path").out.strip()
    work.rename(work.with_name("gone"))
    monkeypatch.chdir(work.with_name("gone"))

    found = _checks(uwf, "--store", store, "thread", "check", thread)

    assert found["state"] == (False, "cancelled", f"uwf thread fork {thread}")
    assert found["folder"][0] is False
    assert str(work) in found["folder"][1]
    assert found["agent"][0] is False
    assert "uwf setup" in (found["agent"][2] or "")


def test_a_command_that_is_not_there_is_told(uwf: Uwf, thread: str) -> None:
    uwf("config", "set", "agents.a.kind", "stdio")
    uwf("config", "set", "agents.a.command", "no-such-program")
    uwf("config", "set", "defaultAgent", "a")

    ok, message, command = _checks(uwf, "thread", "check", thread)["agent"]

    assert not ok
    assert "command 'no-such-program' not found on PATH" in message
    assert command == "uwf doctor"


def test_a_thread_of_others_lacks_trust_and_a_folder(
    uwf: Uwf, thread: str, tmp_path: Path
) -> None:
    theirs = str(tmp_path / "theirs.git")
    uwf("clone", uwf("store", "path").out.strip(), theirs)
    uwf("config", "set", "defaultAgent", "stdio:cat")

    found = _checks(uwf, "--store", theirs, "thread", "check", thread)

    assert found["trust"][0] is False
    assert found["trust"][2] == f"uwf thread exec {thread} --trust"
    assert found["folder"][0] is False


def test_a_thread_of_others_that_waits_is_trusted_by_the_command_that_goes_on(
    uwf: Uwf, tmp_path: Path
) -> None:
    uwf("init", "--user")
    started = uwf("thread", "start", "ping.yaml", "-p", "task", "--json").json
    thread = started["threadId"]
    uwf("thread", "exec", thread, "--agent", "scripted:asking.yaml")
    theirs = str(tmp_path / "theirs.git")
    uwf("clone", uwf("store", "path").out.strip(), theirs)

    found = _checks(uwf, "--store", theirs, "thread", "check", thread)

    assert found["state"][2] == f"uwf thread resume {thread} -p TEXT"
    assert found["trust"][2] == f"uwf thread resume {thread} -p TEXT --trust"
    assert found["folder"][2] == f"uwf thread resume {thread} -p TEXT --cwd DIR"


def test_a_work_tree_of_its_repository_is_a_folder_for_a_thread_of_others(
    uwf: Uwf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = Repo.make(tmp_path / "code")
    monkeypatch.chdir(code.root)
    started = uwf("thread", "start", "../work/ping.yaml", "-p", "task", "--json")
    thread, theirs = started.json["threadId"], str(tmp_path / "theirs.git")
    uwf("clone", uwf("store", "path").out.strip(), theirs)
    code.git("clone", "-q", ".", "../clone")
    monkeypatch.chdir(tmp_path / "clone")

    found = _checks(uwf, "--store", theirs, "thread", "check", thread)

    assert found["folder"] == (True, str(tmp_path / "clone"), None)
