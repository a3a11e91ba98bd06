"""What uwf knows to be secret is neither recorded nor shown."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import zlib
from pathlib import Path

import pytest

from tests.builders import git
from tests.cli.calls import Uwf
from tests.planted import GITHUB, noise
from tests.sync.people import make_bare
from uwfgit.sync.secrets.text import scan_text

VALUE = noise("known", 30)
SHOWN = "[redacted:SOME_TOKEN]"


@pytest.fixture(params=["variable", ".env", "agent", "provider", "named"])
def source(
    request: pytest.FixtureRequest, home: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Make the value known in one of the ways; give what stands for it."""
    home.mkdir(parents=True, exist_ok=True)
    config = home / "config.yaml"
    if request.param == "variable":
        monkeypatch.setenv("SOME_TOKEN", VALUE)
        return SHOWN
    if request.param == ".env":
        (home / ".env").write_text(f"export PLAIN_NAME='{VALUE}'\n")
        return "[redacted:PLAIN_NAME]"
    if request.param == "agent":
        config.write_text(f"agents: {{a: {{kind: stdio, env: {{X: {VALUE}}}}}}}\n")
        return "[redacted:X]"
    if request.param == "provider":
        config.write_text(f"providers: {{p: {{apiKey: {VALUE}}}}}\n")
        return "[redacted:providers.p.apiKey]"
    monkeypatch.setenv("ODD_NAME", VALUE)
    config.write_text("providers: {p: {apiKeyEnv: ODD_NAME}}\n")
    return "[redacted:ODD_NAME]"


def recorded(uwf: Uwf) -> str:
    """Give the content of every object of the store."""
    path = Path(uwf("store", "path").out.strip())
    listed = git(path, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return "\n".join(
        git(path, "cat-file", "-p", oid)
        for oid in listed.split()
        if git(path, "cat-file", "-t", oid).strip() != "tree"
    )


def agent(folder: Path, script: str) -> str:
    path = folder / "agent"
    path.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
    path.chmod(0o700)
    return f"stdio:{shlex.quote(str(path))}"


def test_a_value_is_masked_wherever_it_is_known_from(
    uwf: Uwf, source: str, thread: str
) -> None:
    cancelled = uwf("thread", "cancel", thread, "--reason", f"use {VALUE}")

    assert f"use {source}" in recorded(uwf)
    assert VALUE not in recorded(uwf)
    assert "--reason: the value of" in cancelled.err
    assert VALUE not in cancelled.err


def test_a_task_stays_what_its_user_wrote_and_is_warned_of(
    uwf: Uwf, source: str
) -> None:
    started = uwf("thread", "start", "ping.yaml", "-p", f"use {VALUE}", "--json")
    thread = started.json["threadId"]

    assert f"use {VALUE}" in uwf("thread", "read", thread).out
    name = source.removeprefix("[redacted:").removesuffix("]")
    assert f"--prompt has the value of {name}, and is kept for good" in started.err
    assert VALUE not in started.err


def test_masking_can_be_switched_off(
    uwf: Uwf, home: Path, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text("record: {mask: none}\n")

    uwf("thread", "cancel", thread, "--reason", f"use {VALUE}")

    assert VALUE in recorded(uwf)


def test_what_an_agent_prints_is_masked_in_record_and_on_screen(
    uwf: Uwf, work: Path, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    said = 'printf -- "---\\n$status: done\\ntext: x\\n---\\nI saw $SOME_TOKEN"'
    words = said.replace("$status", "\\$status")

    done = uwf("thread", "exec", thread, "--agent", agent(work, words), "--json")
    step = uwf("step", "show", f"{thread}:1", "--json")

    assert done.code == 0, done.err
    assert step.json["body"] == f"I saw {SHOWN}"
    assert step.json["warnings"] == [f"the value of SOME_TOKEN was replaced by {SHOWN}"]
    assert VALUE not in recorded(uwf) + done.out + done.err + step.out


def test_an_agents_complaint_is_masked_in_record_and_on_screen(
    uwf: Uwf, work: Path, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    script = 'echo "no entry with $SOME_TOKEN" >&2; exit 3'

    done = uwf("thread", "exec", thread, "--agent", agent(work, script))

    assert done.code == 5
    assert SHOWN in done.out
    assert VALUE not in recorded(uwf) + done.out + done.err


def test_a_cancels_reason_is_masked(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", VALUE)

    uwf("thread", "cancel", thread, "--reason", f"leaked {VALUE}")

    objects = recorded(uwf)
    assert f"cancel: leaked {SHOWN}\n" in objects
    assert VALUE not in objects


def test_nodes_are_masked_before_they_are_named(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    assert thread

    text = uwf("cas", "put-text", f"it is {VALUE}", "--json").json["hash"]
    value = uwf("cas", "put", "object", json.dumps({"a": [VALUE]}), "--json").json

    assert uwf("cas", "get", text).out == f"it is {SHOWN}\n"
    assert uwf("cas", "get", value["hash"], "--json").json["payload"] == {"a": [SHOWN]}
    assert VALUE not in recorded(uwf)


def test_an_error_shows_no_known_secret(
    uwf: Uwf, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", VALUE)
    assert thread

    for form in ("--format=text", "--json"):
        done = uwf("thread", "show", VALUE, form)
        assert done.code == 1
        assert SHOWN in done.err
        assert VALUE not in done.err


def test_settings_that_do_not_load_are_no_bar_to_masking_the_error(
    uwf: Uwf, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(f"defaultAgent: [{VALUE}")
    monkeypatch.setenv("SOME_TOKEN", VALUE)

    done = uwf("thread", "start", "ping.yaml", "-p", VALUE)

    assert done.code == 1
    assert VALUE not in done.out + done.err


def test_redact_names_the_new_thread_and_what_to_do_next(uwf: Uwf) -> None:
    (secret,) = scan_text(GITHUB)
    started = uwf("thread", "start", "ping.yaml", "-p", f"use {GITHUB}", "--json")
    thread = started.json["threadId"]

    done = uwf("thread", "redact", thread)

    listed = uwf("thread", "list", "--json").json["items"]
    (copy,) = [item["threadId"] for item in listed]
    assert done.code == 0, done.err
    assert f"{thread} is now {copy}" in done.out
    assert secret.id in done.out
    assert "uwf gc --prune=now --yes" in done.err
    assert uwf("verify").code == 0
    assert (
        uwf("thread", "list", "--trash", "--json").json["items"][0]["threadId"]
        == thread
    )
    assert uwf("gc", "--prune=now", "--yes").code == 0
    assert GITHUB not in recorded(uwf)


@pytest.mark.slow
def test_after_redact_and_gc_no_file_of_the_store_has_the_secret(
    uwf: Uwf, work: Path, home: Path, tmp_path: Path
) -> None:
    uwf("init", "--user")
    uwf("remote", "add", "origin", str(make_bare(tmp_path / "bare.git")))
    say = f"echo 'boom {GITHUB}' >&2; echo 'said {GITHUB}'; exit 3"
    started = uwf("thread", "start", "ping.yaml", "-p", "x", "--json")
    thread = started.json["threadId"]
    uwf("thread", "exec", thread, "--agent", agent(work, say))
    for words in (("show",), ("read",), ("resume", "--agent", agent(work, say))):
        uwf("thread", words[0], thread, *words[1:])
    uwf("thread", "list")
    assert holding(home, GITHUB)

    assert uwf("thread", "redact", thread).code == 0
    assert uwf("push", "--all").code == 0
    assert uwf("gc", "--prune=now", "--yes").code == 0

    assert holding(home, GITHUB) == []
    assert holding(tmp_path / "bare.git", GITHUB) == []
    assert uwf("verify").code == 0
    assert GITHUB not in uwf("thread", "read", "@last").out


def holding(folder: Path, secret: str) -> list[str]:
    """Give the files in which a secret stands, packed ones too."""
    found = []
    for file in folder.rglob("*"):
        data = file.read_bytes() if file.is_file() else b""
        if file.suffix == ".pack":
            data = unpacked(file)
        elif len(file.parent.name) == 2 and file.parent.parent.name == "objects":
            data = zlib.decompress(data)
        if secret.encode() in data:
            found.append(str(file.relative_to(folder)))
    return found


def unpacked(pack: Path) -> bytes:
    """Give the content of all objects in a pack."""
    store = pack.parents[2]
    lines = git(store, "verify-pack", "-v", str(pack)).splitlines()
    oids = [line.split()[0] for line in lines if re.match("[0-9a-f]{40} ", line)]
    return b"\n".join(
        subprocess.run(
            ["git", f"--git-dir={store}", "cat-file", "--batch"],
            input=f"{oid}\n".encode(),
            capture_output=True,
            check=True,
        ).stdout
        for oid in oids
    )


def test_redact_tells_programs_what_it_did(uwf: Uwf) -> None:
    (secret,) = scan_text(GITHUB)
    started = uwf("thread", "start", "ping.yaml", "-p", f"use {GITHUB}", "--json")
    thread = started.json["threadId"]

    done = uwf("thread", "redact", thread, "--finding", secret.id, "--json")

    copy = done.json["threadId"]
    assert done.json == {
        "threadId": copy,
        "status": "idle",
        "redacted": True,
        "threads": [{"from": thread, "to": copy}],
        "findings": [secret.id],
        "dropped": [],
    }


def test_redact_of_a_clean_thread_fails(uwf: Uwf, thread: str) -> None:
    done = uwf("thread", "redact", thread, "--json")

    assert done.code == 1
    assert done.error["code"] == "state"
