"""gc, reindex and doctor as commands."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import stat
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.builders import flip_byte, git, object_file, settle
from tests.cli.calls import Result, Uwf
from uwfgit.store.canonical import Json
from uwfgit.store.safety.trust import PRE_PUSH

GC_KEYS = {
    "threads",
    "refs",
    "objectsBefore",
    "objectsAfter",
    "bytesBefore",
    "bytesAfter",
    "codeChainsRemoved",
}


@pytest.fixture
def path(uwf: Uwf, thread: str) -> Path:
    """The store, with one thread in it."""
    assert thread
    return Path(uwf("store", "path").out.strip())


def checks(result: Result, name: str) -> list[Json]:
    return [each for each in result.json["checks"] if each["check"] == name]


def problems(result: Result) -> list[str]:
    return [e["message"] for e in result.json["checks"] if e["level"] == "problem"]


def write_config(home: Path, text: str) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.yaml").write_text(text)


def test_gc_tells_what_there_was_before_and_after(uwf: Uwf, path: Path) -> None:
    done = uwf("gc", "--json")

    assert done.code == 0
    assert done.json.keys() == GC_KEYS
    assert done.json["threads"] == 1
    assert git(path, "count-objects").startswith("0 objects")


def test_gc_for_people_is_three_lines(uwf: Uwf, path: Path) -> None:
    done = uwf("gc")

    names = [line.split()[0] for line in done.out.splitlines()]
    assert (done.code, done.err, names) == (0, "", ["threads", "objects", "size"])
    assert path.exists()


def test_gc_prune_now_wants_a_yes(uwf: Uwf, path: Path, thread: str) -> None:
    assert uwf("thread", "rm", thread).code == 0

    refused = uwf("gc", "--prune=now", "--json")
    assert refused.code == 2
    assert "--yes" in refused.error["hint"]
    assert git(path, "for-each-ref", "refs/uwf/trash")

    done = uwf("gc", "--prune=now", "--yes", "--json")
    assert (done.code, done.json["threads"]) == (0, 0)
    assert not git(path, "for-each-ref", "refs/uwf/trash")


def test_gc_prune_keeps_a_thread_removed_just_now(
    uwf: Uwf, path: Path, thread: str
) -> None:
    assert uwf("thread", "rm", thread).code == 0

    assert uwf("gc", "--prune").code == 0

    assert thread in git(path, "for-each-ref", "refs/uwf/trash")


def test_gc_takes_no_other_word_for_prune(uwf: Uwf, path: Path) -> None:
    done = uwf("gc", "--prune=1.day.ago", "--yes", "--json")

    assert (done.code, done.error["code"]) == (2, "usage")
    assert path.exists()


def test_gc_makes_no_store(uwf: Uwf) -> None:
    assert (uwf("gc").code, uwf("reindex").code) == (1, 1)


def test_gc_without_git_is_one_line(
    uwf: Uwf, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(path))

    done = uwf("gc", "--json")

    assert (done.code, done.out) == (1, "")
    assert done.error["message"] == "git is not installed, or not on your PATH"


def test_gc_names_the_lock_file_of_a_killed_git(uwf: Uwf, path: Path) -> None:
    left = path / "packed-refs.lock"
    left.touch()

    done = uwf("gc", "--json")

    assert (done.code, done.error["code"]) == (4, "locked")
    assert str(left) in done.error["message"]
    assert f"rm {left}" in done.error["hint"]


def test_cas_gc_is_the_same(uwf: Uwf, path: Path) -> None:
    assert uwf("cas", "gc", "--json").json.keys() == GC_KEYS
    assert uwf("cas", "reindex", "--json").json["threads"] == 1
    assert path.exists()


def test_reindex_counts_what_git_holds(uwf: Uwf, path: Path, ended: str) -> None:
    (path / "uwf" / "lookup.sqlite3").write_bytes(b"no database at all")

    done = uwf("reindex", "--json")

    assert done.code == 0
    assert done.json | {"nodes": 0} == {"refs": 1, "threads": 1, "nodes": 0, "steps": 4}
    assert uwf("thread", "show", ended).code == 0


def test_exec_hints_once_at_very_many_loose_objects(
    uwf: Uwf, path: Path, thread: str
) -> None:
    words = ("thread", "exec", thread, "--agent", "scripted:replies.yaml")
    assert "uwf gc" not in uwf(*words).err
    folder = path / "objects" / "17"
    folder.mkdir(exist_ok=True)
    for number in range(80):
        (folder / f"{number:038x}").touch()

    assert uwf(*words).err.count("uwf gc") == 1


def test_doctor_finds_nothing_wrong_with_a_fresh_store(uwf: Uwf, path: Path) -> None:
    done = uwf("doctor", "--json")

    assert (done.code, done.json["ok"], problems(done)) == (0, True, [])
    assert done.json["store"] == str(path)


def test_doctor_finds_nothing_wrong_with_tags(uwf: Uwf, ended: str) -> None:
    assert uwf("review", "approve", ended).code == 0
    assert uwf("git", "tag", "mine", f"thread/{ended}").code == 0

    assert checks(uwf("doctor", "--json"), "refs")[0]["level"] == "ok"


def test_doctor_works_without_a_store(uwf: Uwf) -> None:
    done = uwf("doctor", "--json")

    assert done.code == 0
    assert [each["level"] for each in checks(done, "store")] == ["note"]


def test_doctor_says_that_git_is_missing(
    uwf: Uwf, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(path))

    done = uwf("doctor", "--json")

    assert done.code == 1
    assert problems(done) == ["git is not installed, or not on your PATH"]


def test_doctor_mends_the_stores_settings(uwf: Uwf, path: Path) -> None:
    git(path, "config", "gc.auto", "6700")
    git(path, "config", "--unset", "gc.cruftPacks")

    seen = uwf("doctor", "--json")
    fixed = uwf("doctor", "--fix", "--json")

    wrong = ["gc.auto is '6700', not '0'", "gc.cruftPacks is missing, not 'false'"]
    assert (seen.code, problems(seen)) == (1, wrong)
    assert (fixed.code, [e["message"] for e in fixed.json["mended"]]) == (0, wrong)
    assert git(path, "config", "gc.auto") == "0\n"


def _unlink(hook: Path) -> None:
    hook.unlink()


def _disarm(hook: Path) -> None:
    hook.chmod(0o600)


def _replace(hook: Path) -> None:
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o600)


def _make_folder(hook: Path) -> None:
    hook.unlink()
    hook.mkdir()


@pytest.mark.parametrize("spoil", [_unlink, _disarm, _replace, _make_folder])
def test_doctor_restores_the_hook_that_scans_what_leaves(
    uwf: Uwf, path: Path, spoil: Callable[[Path], None]
) -> None:
    hook = path / "hooks" / "pre-push"
    spoil(hook)
    before = hook.read_bytes() if hook.is_file() else None

    told = uwf("doctor", "--json")
    mended = uwf("doctor", "--fix", "--json")

    (finding,) = checks(told, "hook")
    assert (finding["level"], finding["fixable"]) == ("problem", True)
    assert (told.code, mended.code) == (1, 0)
    assert [each["check"] for each in mended.json["mended"]] == ["hook"]
    assert hook.read_bytes() == PRE_PUSH
    assert os.access(hook, os.X_OK)
    aside = [file.read_bytes() for file in hook.parent.glob("*.old") if file.is_file()]
    assert aside == ([before] if spoil is _replace else [])


def test_doctor_tells_of_hooks_that_git_runs_instead(
    uwf: Uwf, path: Path, tmp_path: Path
) -> None:
    assert path.is_dir()
    hooks = tmp_path / "others"
    subprocess.run(
        ["git", "config", "--global", "core.hooksPath", str(hooks)], check=True
    )

    told = uwf("doctor", "--json")
    hooks.mkdir()
    (hooks / "pre-push").write_bytes(PRE_PUSH)
    (hooks / "pre-push").chmod(0o755)
    called = uwf("doctor", "--json")

    assert [each["level"] for each in checks(told, "hook")] == ["note"]
    assert told.code == 0
    assert [each["level"] for each in checks(called, "hook")] == ["ok"]


def test_doctor_lets_the_user_choose_how_long_things_stay(uwf: Uwf, path: Path) -> None:
    git(path, "config", "gc.pruneExpire", "6.weeks.ago")
    git(path, "config", "receive.denyNonFastForwards", "yes")

    assert problems(uwf("doctor", "--json")) == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        pytest.param(
            ("update-ref", "refs/heads/thread/mine", "main"),
            "not a name that uwf gives",
            id="a-thread-of-another-name",
        ),
        pytest.param(
            ("update-ref", "-d", "refs/heads/main"),
            "'refs/heads/main' is missing",
            id="no-main",
        ),
    ],
)
def test_doctor_names_a_ref_that_no_rule_gives(
    uwf: Uwf, path: Path, command: tuple[str, ...], told: str
) -> None:
    git(path, *command)

    (problem,) = checks(uwf("doctor", "--json"), "refs")

    assert told in problem["message"]
    assert problem["hint"]


def test_doctor_names_a_thread_that_leads_nowhere(
    uwf: Uwf, path: Path, thread: str
) -> None:
    tip = git(path, "rev-parse", f"thread/{thread}").strip()
    object_file(path, tip).unlink()

    done = uwf("doctor", "--json")

    assert done.code == 1
    assert any(thread in each for each in problems(done))


def _empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("text", ["", "1234", "0" * 39 + "\n"])
def test_doctor_restores_a_branch_whose_file_was_cut_from_its_log(
    uwf: Uwf, path: Path, thread: str, text: str
) -> None:
    tip = git(path, "rev-parse", f"thread/{thread}")
    (path / "refs/heads/thread" / thread).write_text(text)

    shown = uwf("thread", "show", thread, "--json")
    listed = uwf("thread", "list", "--json")
    seen = uwf("doctor", "--json")
    fixed = uwf("doctor", "--fix", "--json")

    assert (shown.code, shown.error["code"]) == (1, "corrupt")
    assert [item["status"] for item in listed.json["items"]] == ["corrupt"]
    hints = [e["hint"] for e in seen.json["checks"] if e["level"] == "problem"]
    assert hints[0] == "uwf doctor --fix"
    assert not any("thread rm" in hint for hint in hints)
    assert any(tip.strip() in each for each in problems(seen))
    assert fixed.code == 0, fixed
    assert git(path, "rev-parse", f"thread/{thread}") == tip
    assert not list(path.rglob("*.lock"))


@pytest.mark.parametrize("name", ["config", "HEAD"])
@pytest.mark.parametrize("how", ["gone", "cut"])
def test_a_store_whose_file_is_gone_or_cut_says_what_makes_it_again(
    uwf: Uwf, path: Path, thread: str, name: str, how: str
) -> None:
    (path / name).unlink()
    if how == "cut":
        (path / name).write_text("")

    told = uwf("thread", "list", "--json")
    command, *more = told.error["hint"].partition(";")[0].split(" && ")
    subprocess.run(["sh", "-c", command], check=True)
    for each in more:
        assert uwf(*shlex.split(each)[1:]).code == 0

    (item,) = uwf("thread", "list", "--json").json["items"]
    assert (told.code, item["threadId"]) == (1, thread)
    assert problems(uwf("doctor", "--json")) == []


def test_doctor_restores_main_whose_file_was_cut(uwf: Uwf, path: Path) -> None:
    oid = git(path, "rev-parse", "main")
    (path / "refs/heads/main").write_text("")

    seen = uwf("doctor", "--json")
    fixed = uwf("doctor", "--fix", "--json")

    (told,) = (e for e in checks(seen, "refs") if e["level"] == "problem")
    assert told["hint"] == "uwf doctor --fix"
    assert fixed.code == 0, fixed
    assert git(path, "rev-parse", "main") == oid


def test_doctor_names_no_loss_before_the_mend_of_a_thread(
    uwf: Uwf, path: Path, thread: str
) -> None:
    place = f"thread/{thread}:threads/{thread}/thread.json"
    blob = git(path, "rev-parse", place).strip()
    object_file(path, blob).unlink()
    uwf("reindex")

    done = uwf("doctor", "--json")

    (found,) = (e for e in checks(done, "threads") if e["level"] == "problem")
    (lost,) = (e for e in checks(done, "objects") if e["level"] == "problem")
    mend, _, loss = found["hint"].partition("when nothing brings it back: ")
    assert f"uwf verify {thread}" in mend
    assert loss == f"`uwf thread rm {thread}`"
    assert blob in lost["message"]


def test_doctor_without_a_log_to_go_by_says_where_a_branch_may_be(
    uwf: Uwf, path: Path, thread: str
) -> None:
    _empty(path / "refs/heads/thread" / thread)
    (path / "logs/refs/heads/thread" / thread).unlink()

    done = uwf("doctor", "--fix", "--json")

    hints = [e["hint"] for e in done.json["checks"] if e["level"] == "problem"]
    assert done.code == 1
    assert "uwf pull" in hints[0]
    assert not any("thread rm" in hint for hint in hints)


def test_doctor_names_a_branch_that_vanished(uwf: Uwf, path: Path, thread: str) -> None:
    tip = git(path, "rev-parse", f"thread/{thread}").strip()
    removed = json.loads(uwf("thread", "fork", thread, "--json").out)["threadId"]
    assert uwf("thread", "rm", removed).code == 0
    (path / "refs/heads/thread" / thread).unlink()

    done = uwf("doctor", "--json")

    found = [e for e in checks(done, "refs") if e["level"] == "problem"]
    assert [e["hint"] for e in found] == [
        f"uwf git update-ref refs/heads/thread/{thread} {tip}"
    ]


@pytest.mark.parametrize("damage", [flip_byte, Path.unlink], ids=["flipped", "missing"])
@pytest.mark.parametrize("name", ["~1", "^{{tree}}", ":threads/{0}/history"])
def test_doctor_names_each_object_that_is_damaged(
    uwf: Uwf, path: Path, ended: str, name: str, damage: Callable[[Path], None]
) -> None:
    oid = git(path, "rev-parse", f"thread/{ended}{name.format(ended)}").strip()
    damage(object_file(path, oid))

    done = uwf("doctor", "--json")

    (found,) = [e for e in checks(done, "objects") if e["level"] == "problem"]
    assert done.code == 1
    assert f"1 object is missing or damaged: {oid}" in found["message"]
    assert "verify" in found["hint"]


@pytest.mark.parametrize("damage", [flip_byte, _empty], ids=["flipped", "empty"])
def test_doctor_names_a_pack_whose_index_is_damaged(
    uwf: Uwf, path: Path, thread: str, damage: Callable[[Path], None]
) -> None:
    git(path, "repack", "-adq")
    (index,) = (path / "objects/pack").glob("*.idx")
    index.chmod(0o600)
    damage(index)

    done = uwf("doctor", "--json")
    hint = next(e["hint"] for e in checks(done, "objects") if "index" in e["message"])
    remove, rebuild = hint.replace("uwf git", f"git --git-dir={path}").split("; ")
    subprocess.run(shlex.split(remove), check=True)
    subprocess.run(shlex.split(rebuild), check=True, capture_output=True)

    assert done.code == 1
    assert problems(uwf("doctor", "--json")) == []
    assert uwf("thread", "show", thread).code == 0


@pytest.mark.parametrize("name", ["HEAD", "packed-refs"])
def test_doctor_names_a_damaged_file_of_refs_and_nobody_reads_on(
    uwf: Uwf, path: Path, thread: str, name: str
) -> None:
    git(path, "pack-refs", "--all")
    file = path / name
    file.write_text(file.read_text()[:9])

    listed = uwf("thread", "list", "--json")
    ran = uwf("thread", "exec", thread, "--json")
    done = uwf("doctor", "--json")

    assert (listed.code, listed.error["code"]) == (1, "store")
    assert (ran.code, ran.error["code"]) == (1, "store")
    (found,) = [e for e in checks(done, "store") if e["level"] == "problem"]
    assert name in found["message"]
    assert found["hint"]


def test_doctor_names_damaged_local_state_and_what_was_put_aside(
    uwf: Uwf, path: Path, thread: str
) -> None:
    file = path / "uwf" / "local.sqlite3"
    settle(file)
    file.write_bytes(b"no database at all" * 100)

    seen = uwf("doctor", "--json")
    assert uwf("thread", "fork", thread).code == 0
    later = uwf("doctor", "--json")

    ((first,), (second,)) = checks(seen, "local"), checks(later, "local")
    assert (seen.code, first["level"]) == (1, "problem")
    assert "--trust" in first["hint"]
    assert (later.code, second["level"]) == (0, "note")
    assert "local.sqlite3.damaged" in second["message"]


def test_what_cannot_be_kept_as_made_here_is_told(
    uwf: Uwf, path: Path, thread: str
) -> None:
    file = path / "uwf" / "local.sqlite3"
    settle(file)
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 2")

    forked = uwf("thread", "fork", thread)
    shown = uwf("thread", "show", thread)

    assert forked.code == 0
    assert "warning: local.sqlite3 could not be written: " in forked.err
    assert (shown.code, "warning" in shown.err) == (0, False)


def _garbage(file: Path) -> None:
    file.write_bytes(b"no database at all" * 100)


def _folder(file: Path) -> None:
    file.unlink()
    file.joinpath("with").mkdir(parents=True)


@pytest.mark.parametrize("damage", [_garbage, _folder])
def test_doctor_mends_a_damaged_lookup(
    uwf: Uwf, path: Path, thread: str, damage: Callable[[Path], None]
) -> None:
    assert uwf("thread", "list").code == 0
    damage(path / "uwf" / "lookup.sqlite3")

    seen = uwf("doctor", "--json")
    fixed = uwf("doctor", "--fix", "--json")

    assert seen.code == 1
    assert [each["hint"] for each in checks(seen, "lookup")] == ["uwf reindex"]
    assert (fixed.code, len(fixed.json["mended"])) == (0, 1)
    assert thread in uwf("thread", "list").out


def test_doctor_names_a_lock_file_that_was_left(uwf: Uwf, path: Path) -> None:
    left = path / "refs" / "heads" / "main.lock"
    left.touch()
    assert problems(uwf("doctor", "--json")) == []
    os.utime(left, (time.time() - 7200, time.time() - 7200))

    (problem,) = problems(uwf("doctor", "--json"))
    (found,) = checks(uwf("doctor", "--fix", "--json"), "locks")

    assert str(left) in problem
    assert (found["fixable"], f"rm {left}" in found["hint"]) == (False, True)


def test_doctor_tells_who_holds_what(uwf: Uwf, path: Path, thread: str) -> None:
    from uwfgit.store.locks.flock import lock  # noqa: PLC0415 - the one test that needs it

    with lock(path / "uwf" / "locks" / thread, command="uwf thread exec"):
        done = uwf("doctor", "--json")

    (found,) = checks(done, "locks")
    assert found["message"].startswith(f"thread {thread}: pid {os.getpid()} on ")
    assert done.code == 0


def test_doctor_warns_of_a_cruft_pack(uwf: Uwf, path: Path) -> None:
    git(path, "repack", "-adq")
    (pack,) = (path / "objects" / "pack").glob("*.pack")
    pack.with_suffix(".mtimes").touch()

    assert "a cruft pack" in problems(uwf("doctor", "--json"))[0]


def test_doctor_lists_threads_that_exist_only_here(
    uwf: Uwf, path: Path, thread: str
) -> None:
    assert uwf("doctor", "--json").json["onlyHere"] == [thread]
    git(path, "update-ref", f"refs/remotes/origin/thread/{thread}", f"thread/{thread}")

    assert uwf("doctor", "--json").json["onlyHere"] == []


def test_doctor_asks_to_share_no_private_thread(
    uwf: Uwf, path: Path, thread: str
) -> None:
    private = uwf(
        *("thread", "start", "ping.yaml", "-p", "x", "--private", "--json")
    ).json["threadId"]

    both = uwf("doctor", "--json")
    git(path, "update-ref", f"refs/remotes/origin/thread/{thread}", f"thread/{thread}")
    alone = uwf("doctor", "--json")

    ((first,), (second,)) = checks(both, "sharing"), checks(alone, "sharing")
    assert first["message"] == f"1 thread exists only here: {thread}"
    assert (second["level"], second["hint"]) == ("ok", None)
    assert both.json["onlyHere"] == [thread, private]


def test_doctor_reports_a_store_it_will_not_open(uwf: Uwf, path: Path) -> None:
    git(path, "config", "core.sshCommand", "touch /tmp/owned")

    done = uwf("doctor", "--json")

    assert done.code == 1
    assert "core.sshCommand" in problems(done)[0]


def test_doctor_calls_an_unknown_key_a_problem(uwf: Uwf, home: Path) -> None:
    write_config(home, "limts: {maxSteps: 3}\n")

    done = uwf("doctor", "--json")

    assert done.code == 1
    assert "did you mean 'limits'" in problems(done)[0]
    assert done.err == ""


def test_doctor_tells_which_keys_are_there_and_shows_none(
    uwf: Uwf, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-very-secret-0123456789"  # noqa: S105 - for this test
    write_config(
        home,
        "providers:\n  a: {baseUrl: 'https://a', apiKeyEnv: A_KEY}\n"
        "  b: {baseUrl: 'https://b', apiKeyEnv: B_KEY}\n"
        "  c: {baseUrl: 'https://c', apiKeyEnv: C_KEY}\n"
        f"  d: {{baseUrl: 'https://d', apiKey: {secret}}}\n",
    )
    (home / ".env").write_text(f"B_KEY={secret}\n")
    monkeypatch.setenv("A_KEY", secret)

    done = uwf("doctor", "--json")

    sources: Mapping[str, Any] = {e["provider"]: e["source"] for e in done.json["keys"]}
    assert sources == {
        "a": "environment",
        "b": ".env",
        "c": None,
        "d": "config.yaml",
    }
    assert secret not in done.out + done.err + uwf("doctor").out


def test_doctor_finds_the_program_of_an_agent(
    uwf: Uwf, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "answer"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    write_config(
        home,
        "agents:\n  here: {kind: stdio, command: answer}\n"
        "  gone: {kind: stdio, command: no-such-program}\n",
    )

    done = uwf("doctor", "--json")

    found = {each["name"]: each for each in done.json["agents"]}
    assert found["here"]["path"] == str(program)
    assert found["here"]["problem"] is None
    assert found["gone"]["problem"] == "command 'no-such-program' not found on PATH"
    assert done.code == 1
    # Only programs that are known to tell their version are asked for it.
    assert not Path("ran").exists()


def test_doctor_for_people_puts_the_mend_below_the_problem(
    uwf: Uwf, path: Path
) -> None:
    git(path, "config", "gc.auto", "1")

    lines = uwf("doctor").out.splitlines()

    place = lines.index("problem  settings: gc.auto is '1', not '0'")
    assert lines[place + 1].strip() == "fix: uwf git config gc.auto 0"
