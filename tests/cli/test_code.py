"""The code beside a thread, from the command line: what changed, why, and back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import repeat
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.builders import Clock, begin, make_ledger
from tests.cli.calls import Result, Uwf
from tests.code.repo import PEOPLE, Repo
from tests.code.test_agent_trace import SCHEMA
from uwfgit.cli.code.cmd_why import _model_id
from uwfgit.model.workflow.source import read_workflow
from uwfgit.store.repository import open_store

AGENT = """\
#!/bin/sh
# Runs the next script of the thread's work, then answers as its role does.
cat > /dev/null
number=$(echo "$UWF_STEP" | cut -d: -f2)
if [ -f "$SCRIPTS/$number" ]; then . "$SCRIPTS/$number"; fi
case $UWF_ROLE in
  writer) printf -- '---\\n$status: done\\ntext: t%s\\n---\\nWritten.\\n' "$number" ;;
  checker)
    if [ "$number" -ge "${LAST:-2}" ]; then printf -- '---\\n$status: good\\n---\\n\\n'
    else printf -- '---\\n$status: bad\\nwhy: more\\n---\\n\\n'; fi ;;
esac
"""


def printed(desk: Desk, *words: str) -> str:
    """Run the program as a process: what git prints goes past this one."""
    done = subprocess.run(
        [sys.executable, "-m", "uwfgit", *words],
        cwd=desk.repo.root,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()


class Desk:
    """A work tree in which threads run scripts, one a step."""

    def __init__(self, uwf: Uwf, repo: Repo, scripts: Path) -> None:
        self.uwf, self.repo, self.scripts = uwf, repo, scripts
        self.agent = f"stdio:{scripts / 'agent'}"

    def run(self, *steps: str, start: tuple[str, ...] = ()) -> str:
        """Run a thread of these steps and return its id."""
        os.environ["LAST"] = str(len(steps))
        for number, script in enumerate(steps, 1):
            (self.scripts / str(number)).write_text(script + "\n")
        begun = self.uwf("thread", "start", "../ping.yaml", "-p", "t", *start, "--json")
        assert begun.code == 0, begun.err
        thread: str = begun.json["threadId"]
        self.go_on(thread)
        return thread

    def run_one(self) -> None:
        """Start another thread and run its first step."""
        begun = self.uwf("thread", "start", "../ping.yaml", "-p", "t", "--json")
        thread = begun.json["threadId"]
        done = self.uwf("thread", "exec", thread, "--agent", self.agent)
        assert done.code == 0, done.err

    def go_on(self, thread: str) -> Result:
        done = self.uwf("thread", "exec", thread, "--all", "--agent", self.agent)
        assert done.code == 0, done.err
        return done

    def step(self, thread: str, number: int) -> dict[str, object]:
        found: dict[str, object] = self.uwf(
            "step", "show", f"{thread}:{number}", "--json"
        ).json
        return found


@pytest.fixture
def desk(uwf: Uwf, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A repository with a commit, and the program called in its work tree."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "agent").write_text(AGENT)
    (scripts / "agent").chmod(0o755)
    (tmp_path / "ping.yaml").write_bytes((work / "ping.yaml").read_bytes())
    repo = Repo.make(tmp_path / "code")
    repo.sh("git config user.name Ada && git config user.email ada@example.org")
    monkeypatch.chdir(repo.root)
    monkeypatch.setenv("SCRIPTS", str(scripts))
    monkeypatch.setenv("LAST", "2")
    return Desk(uwf, repo, scripts)


def test_a_step_records_its_snapshots_and_changes_nothing_of_the_users(
    desk: Desk,
) -> None:
    desk.uwf("thread", "start", "../ping.yaml", "-p", "t")
    own = desk.repo.own_state()

    thread = desk.run("echo one >> a.txt", "rm src/b.txt")

    code = desk.step(thread, 1)["code"]
    assert isinstance(code, dict)
    shown = desk.repo.git("show", f"{code['snapshot']['after']}:a.txt")
    assert shown.endswith("one\n")
    changed = {
        path for path, what in desk.repo.own_state().items() if own.get(path) != what
    }
    assert all(path.startswith("uwf/") for path in changed)
    assert desk.uwf("verify", thread).code == 0


def test_step_diff_is_what_git_diff_says(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "echo two >> a.txt && echo n > 'n w'")

    shown = printed(desk, "step", "diff", f"{thread}:2")
    assert "+two" in shown
    assert "+one" not in shown
    words = ("step", "diff", f"{thread}:2", "--name-only", "n w")
    assert printed(desk, *words) == "n w\n"
    files = desk.uwf("step", "diff", f"{thread}:2", "--json").json["files"]
    assert [(each["path"], each["change"], each["added"]) for each in files] == [
        ("a.txt", "modified", 1),
        ("n w", "added", 1),
    ]


def test_thread_code_tells_all_steps(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "echo two >> a.txt")

    assert "+one\n+two" in printed(desk, "thread", "code", thread)
    stat = desk.uwf("thread", "code", thread, "--stat", "--at", "1")
    assert stat.out.splitlines()[-1] == "in all: 1 file, +1 -0"
    found = desk.uwf("thread", "code", thread, "--json").json
    assert [len(step["files"]) for step in found["steps"]] == [1, 1]


def test_step_show_names_the_files(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "true")

    assert "modified  a.txt  +1 -0" in desk.uwf("step", "show", f"{thread}:1").out
    assert desk.step(thread, 1)["files"] == [
        {
            "path": "a.txt",
            "change": "modified",
            "oldPath": None,
            "added": 1,
            "deleted": 0,
        }
    ]
    assert desk.step(thread, 2)["files"] == []


def test_rewind_and_the_printed_way_back(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "rm a.txt && echo x > n")
    after = desk.repo.files()

    done = desk.uwf("thread", "rewind", thread, "--at", "1")

    assert done.code == 0, done.err
    assert (desk.repo.root / "a.txt").read_text().endswith("one\n")
    assert not (desk.repo.root / "n").exists()
    way_back = done.err.splitlines()[-1].removeprefix("back: uwf ")
    assert desk.uwf(*way_back.split()).code == 0
    assert desk.repo.files() == after


def test_rewind_to_before_the_first_step(desk: Desk) -> None:
    before = desk.repo.files()
    thread = desk.run("echo one >> a.txt", "rm a.txt && echo x > n")

    desk.uwf("thread", "rewind", thread, "--at", "0")

    assert desk.repo.files() == before


def test_the_code_of_a_try_that_failed_is_found_and_taken_back(desk: Desk) -> None:
    before = desk.repo.files()
    (desk.scripts / "1").write_text("echo tried > n; exit 3\n")
    begun = desk.uwf("thread", "start", "../ping.yaml", "-p", "t", "--json")
    thread = begun.json["threadId"]
    failed = desk.uwf("thread", "exec", thread, "--agent", desk.agent)
    (attempt,) = desk.uwf("step", "list", thread, "--json").json["attempts"]

    why = desk.uwf("why", "n").out
    numbered = desk.uwf("step", "show", f"{thread}:1")
    shown = desk.uwf("thread", "show", thread).out
    rewound = desk.uwf("thread", "rewind", thread, "--at", "0")

    assert failed.code == 5
    assert f"more:  uwf step show {attempt['hash']}\n" in why
    assert f"uwf step show {attempt['hash']}" in numbered.err
    assert "1 turns" not in shown
    assert rewound.code == 0, rewound.err
    assert desk.repo.files() == before


def test_a_line_of_a_replaced_step_is_led_to_that_step(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "echo two >> n")
    old = desk.step(thread, 2)["hash"]
    (desk.scripts / "2").write_text("echo three >> n\n")

    desk.uwf("thread", "poke", thread, "-p", "again", "--agent", desk.agent)

    lines = desk.uwf("why", "n").out.splitlines()
    more = [line.split()[-1] for line in lines if "more:" in line]
    assert desk.step(thread, 2)["hash"] != old
    assert more == [old, f"{thread}:2"]


def test_a_change_by_hand_stops_a_rewind(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "echo two >> a.txt")
    desk.repo.write("a.txt", "mine\n")

    refused = desk.uwf("thread", "rewind", thread, "--at", "1", "--json")

    assert refused.code == 1
    assert "a.txt" in refused.error["message"]
    assert "--yes" in refused.error["hint"]
    assert (desk.repo.root / "a.txt").read_text() == "mine\n"
    assert desk.uwf("thread", "rewind", thread, "--at", "1", "--yes").code == 0


def test_a_change_by_hand_stops_an_undo_of_a_fork(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "echo two >> a.txt")
    fork = desk.uwf("thread", "fork", thread, "--json").json["threadId"]
    desk.repo.write("a.txt", "mine\n")

    refused = desk.uwf("thread", "undo", fork, "--json")

    assert refused.code == 1
    assert "a.txt" in refused.error["message"]
    assert (desk.repo.root / "a.txt").read_text() == "mine\n"
    desk.repo.commit("mine is safe")
    assert desk.uwf("thread", "undo", fork).code == 0


def test_undo_forks_before_the_last_step_and_takes_its_files_back(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "echo two >> a.txt")

    done = desk.uwf("thread", "undo", thread, "--json")

    assert done.code == 0, done.err
    fork = done.json["fork"]
    assert (desk.repo.root / "a.txt").read_text().endswith("one\n")
    assert desk.uwf("thread", "show", fork, "--json").json["steps"] == 1
    desk.go_on(fork)
    told = desk.uwf("why", "a.txt:4", "a.txt:5", "--json").json["files"]
    steps = [each["lines"][0]["steps"][0] for each in told]
    assert [(step["threadId"], step["number"]) for step in steps] == [
        (thread, 1),
        (fork, 2),
    ]


def test_rewind_from_a_folder_below_the_top_is_of_the_whole_work_tree(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = desk.run("echo one >> a.txt && echo x > src/n", "rm -r src a.txt")
    (desk.repo.root / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(desk.repo.root / "deep" / "er")

    done = desk.uwf("thread", "rewind", thread, "--at", "1")

    assert done.code == 0, done.err
    files = {path: data for path, (_, data) in desk.repo.files().items()}
    assert files["a.txt"].endswith(b"one\n")
    assert (files["src/b.txt"], files["src/n"]) == (b"b\n", b"x\n")


def test_a_thread_at_work_below_the_top_keeps_and_rewinds_the_whole_work_tree(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk.repo.root / "src")
    (desk.repo.root / "ping.yaml").write_bytes(Path("../../ping.yaml").read_bytes())
    thread = desk.run("echo in >> b.txt && echo up >> ../a.txt", "rm b.txt ../a.txt")

    done = desk.uwf("thread", "rewind", thread, "--at", "1")

    assert done.code == 0, done.err
    assert (desk.repo.root / "src" / "b.txt").read_text() == "b\nin\n"
    assert (desk.repo.root / "a.txt").read_text().endswith("up\n")


def test_why_after_a_squash_merge_and_a_deleted_branch(desk: Desk) -> None:
    desk.repo.git("checkout", "-q", "-b", "work")
    thread = desk.run("echo one >> a.txt", "echo two >> a.txt")
    desk.repo.sh(
        "git commit -qam w && git checkout -q main && git merge -q --squash work "
        ">/dev/null && git commit -qm squashed && git branch -qD work"
    )

    told = desk.uwf("why", "a.txt:1", "a.txt:5")
    lines = desk.uwf("why", "a.txt", "--json").json["files"][0]["lines"]

    assert f"step 2 of {thread}: checker" in told.out
    assert "asked: Check t1" in told.out
    assert [line["kind"] for line in lines] == [*["commit"] * 3, "step", "step"]
    assert lines[0]["commit"]["author"] == "Ada"
    blame = desk.uwf("blame", "a.txt").out.splitlines()
    assert blame[4].startswith(f"{thread[-5:]}:2 checker ")


def test_why_without_a_thread_is_what_git_says(desk: Desk) -> None:
    told = desk.uwf("why", "a.txt")

    assert told.code == 0
    assert "commit" in told.out
    assert "Ada <ada@example.org>" in told.out


def test_why_says_how_many_threads_it_did_not_ask(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = desk.run("echo one >> a.txt", "true")
    desk.run("echo two >> a.txt", "true")
    monkeypatch.setattr("uwfgit.code.blame.why.MOST_CHAINS", 1)

    told = desk.uwf("why", "a.txt:4")
    line = desk.uwf("why", "a.txt:4", "--json").json["files"][0]["lines"][0]
    record = desk.uwf("why", "a.txt:4", "--export", "agent-trace").json

    assert "of no known step; 1 thread not asked (--all asks)" in told.out
    assert (line["kind"], line["threadsNotAsked"]) == ("unsure", 1)
    talk = record["files"][0]["conversations"][0]
    assert talk["contributor"] == {"type": "unknown"}
    assert f"step 1 of {first}" in desk.uwf("why", "a.txt:4", "--all").out
    assert "not asked" in desk.uwf("blame", "a.txt").out
    assert "not asked" not in desk.uwf("blame", "a.txt", "--all").out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["why", "nothing"], 1),
        (["why", "a.txt:99"], 1),
        (["why", "a.txt:0"], 2),
        (["why", "src"], 1),
        (["why", "../ping.yaml"], 1),
        (["why"], 2),
        (["why", "a.txt", "--export", "other"], 2),
        (["why", "--staged"], 1),
        (["blame", "nothing"], 1),
        (["thread", "rewind", "@last"], 2),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    desk: Desk, words: list[str], code: int
) -> None:
    desk.run("echo one >> a.txt", "true")

    told = desk.uwf(*words)

    assert told.code == code
    assert told.err.startswith("error: ")


def test_why_of_what_is_staged(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "true")
    desk.repo.sh("echo hand >> a.txt && git add a.txt && echo open >> a.txt")

    lines = desk.uwf("why", "--staged", "--json").json["files"][0]["lines"]

    assert [(each["line"], each["kind"]) for each in lines] == [
        (4, "step"),
        (5, "uncommitted"),
    ]
    assert lines[0]["steps"][0]["threadId"] == thread


def test_bisect_finds_the_step_and_leaves_the_work_tree(desk: Desk) -> None:
    steps = [f"echo {number} >> a.txt" for number in range(1, 9)]
    steps[5] = "sed -i s/two/bug/ a.txt"
    thread = desk.run(*steps)
    files, own = desk.repo.files(), desk.repo.own_state()

    found = desk.uwf("bisect", thread, "--json", "--", "grep", "-q", "two", "a.txt")

    assert found.code == 0, found.err
    assert [step["number"] for step in found.json["steps"]] == [6]
    assert desk.repo.files() == files
    now = desk.repo.own_state()
    changed = {path for path in {*own, *now} if own.get(path) != now.get(path)}
    assert all(path.startswith("uwf/") for path in changed)


def test_agent_trace_holds_no_prompt_and_no_absolute_path(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "true")

    record = desk.uwf("why", "--export", "agent-trace", "a.txt").json

    Draft202012Validator(SCHEMA).validate(record)
    conversations = record["files"][0]["conversations"]
    assert [each["contributor"]["type"] for each in conversations] == ["human", "ai"]
    assert conversations[1]["url"] == f"urn:uwf:{thread}:1"
    assert conversations[1]["ranges"][0]["start_line"] == 4
    text = json.dumps(record)
    assert "Write it" not in text
    assert str(desk.repo.root) not in text
    assert "vcs" not in record


def test_two_at_work_in_one_folder_are_told_and_recorded(desk: Desk) -> None:
    other = desk.uwf("thread", "start", "../ping.yaml", "-p", "t", "--json").json
    script = f"[ $UWF_THREAD = {other['threadId']} ] || uwf thread exec "
    script += f"{other['threadId']} --agent '{desk.agent}' || exit 1"
    (desk.scripts / "1").write_text(script)

    thread = desk.uwf("thread", "start", "../ping.yaml", "-p", "t", "--json").json
    done = desk.uwf("thread", "exec", thread["threadId"], "--agent", desk.agent)

    assert done.code == 0, done.err
    code = desk.step(thread["threadId"], 1)["code"]
    assert isinstance(code, dict)
    assert code["shared"] == [other["threadId"]]


def test_a_range_of_lines_is_written_with_a_comma_or_a_hyphen(desk: Desk) -> None:
    desk.run("echo one >> a.txt", "true")

    told = [desk.uwf("why", f"a.txt:3{mark}4").out for mark in ",-"]

    assert told[0] == told[1]
    assert "step 1" in told[0]


def test_no_code_is_kept_when_it_is_not_to_be(desk: Desk) -> None:
    desk.repo.write(".uwf.yaml", "record: {code: none}\n")

    thread = desk.run("echo one >> a.txt", "true")

    code = desk.step(thread, 1)["code"]
    assert isinstance(code, dict)
    assert "snapshot" not in code
    assert "refs/uwf" not in desk.repo.git("for-each-ref")
    refused = desk.uwf("step", "diff", f"{thread}:1")
    assert refused.code == 1
    assert "was not kept" in refused.err
    assert "record.code" in desk.uwf("thread", "code", thread).err


def test_a_failed_snapshot_is_a_warning_on_the_step(desk: Desk) -> None:
    thread = desk.run("printf broken > .git/index", "true")

    found = desk.step(thread, 1)

    assert found["status"] == "done"
    warnings = found["warnings"]
    assert isinstance(warnings, list)
    assert any("no code snapshot after the run" in each for each in warnings)


def test_what_was_left_out_is_named_on_the_step(desk: Desk) -> None:
    thread = desk.run("echo x > .env", "true")

    warnings = desk.step(thread, 1)["warnings"]

    assert warnings == ["not in the code snapshot (its name is that of a secret): .env"]


def test_a_warning_that_each_step_has_is_told_once_a_run(desk: Desk) -> None:
    desk.repo.write(".uwfignore", "*.log\n")
    desk.repo.write("a.log", "x\n")
    begun = desk.uwf("thread", "start", "../ping.yaml", "-p", "t", "--json").json

    told = desk.go_on(begun["threadId"]).err

    assert told.count("(.uwfignore): a.log") == 1


def test_a_chain_without_its_thread_names_no_step(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "true")
    desk.repo.git(
        "--git-dir=.git/uwf", "update-ref", "-d", f"refs/heads/thread/{thread}"
    )

    lines = desk.uwf("why", "a.txt:4", "--json").json["files"][0]["lines"]

    assert lines[0]["kind"] == "uncommitted"


def test_git_gc_takes_no_snapshot(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "rm a.txt")
    subprocess.run(
        ["git", "gc", "-q", "--prune=now"],
        cwd=desk.repo.root,
        env={**os.environ, **PEOPLE},
        check=True,
    )

    assert desk.uwf("step", "diff", f"{thread}:1").code == 0
    assert desk.uwf("thread", "rewind", thread, "--at", "1").code == 0


def test_a_fork_with_a_work_tree_has_code_and_thread_of_its_step(desk: Desk) -> None:
    thread = desk.run(
        "echo one >> a.txt && git commit -qam one", "echo two >> a.txt", "echo x > n"
    )
    files = desk.repo.files()

    done = desk.uwf(
        "thread", "fork", thread, "--at", "2", "--worktree", "../own", "--json"
    )

    assert done.code == 0, done.err
    fork = done.json["threadId"]
    own = Repo(root=desk.repo.root.parent / "own")
    assert (own.root / "a.txt").read_text().endswith("one\ntwo\n")
    assert not (own.root / "n").exists()
    assert own.git("status", "--short") == " M a.txt\n"
    assert own.git("log", "-1", "--format=%s") == "one\n"
    branch = own.git("symbolic-ref", "--short", "HEAD").strip()
    assert branch == f"agent/ping-{fork[-5:].lower()}"
    (desk.scripts / "3").write_text("echo there > here\n")
    desk.go_on(fork)
    assert (own.root / "here").exists()
    assert desk.repo.files() == files
    assert desk.step(fork, 3)["cwd"] == str(own.root)


@pytest.mark.parametrize("inside", ["../outside", "{outside}", "src/../../outside"])
def test_a_fork_never_works_outside_of_its_work_tree(
    desk: Desk, home: Path, inside: str
) -> None:
    outside = desk.repo.root.parent / "outside"
    outside.mkdir()
    assert desk.uwf("init").code == 0
    store = open_store(desk.repo.root / ".git" / "uwf", home=home, write=True)
    source = read_workflow(desk.repo.root.parent / "ping.yaml")
    thread = begin(
        make_ledger(store, Clock(repeat(1_790_000_000_000))),
        desk.repo.root,
        workflow=source.workflow,
        data=source.data,
        cwd_in_repo=inside.format(outside=outside),
    ).thread
    words = ("--agent", desk.agent, "--trust", "--cwd", ".")
    assert desk.uwf("thread", "exec", thread, *words).code == 0

    done = desk.uwf(
        "thread", "fork", thread, "--at", "1", "--worktree", "../own", "--json"
    )
    assert done.code == 0, done.err
    desk.go_on(done.json["threadId"])

    cwd = desk.step(done.json["threadId"], 2)["cwd"]
    assert cwd == str(desk.repo.root.parent / "own")


def test_a_fork_whose_work_tree_cannot_be_made_is_none(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "true")
    desk.repo.write("taken/file", "x")

    refused = desk.uwf("thread", "fork", thread, "--at", "1", "--worktree", "taken")

    assert refused.code == 1
    assert len(desk.uwf("thread", "list", "--all", "--json").json["items"]) == 1
    assert desk.repo.git("branch", "--list", "agent/*") == ""


def test_a_thread_can_be_started_in_a_work_tree_of_its_own(desk: Desk) -> None:
    files = desk.repo.files()

    thread = desk.run("echo one >> a.txt", "true", start=("--worktree", "../own"))

    own = Repo(root=desk.repo.root.parent / "own")
    assert own.git("status", "--short") == " M a.txt\n"
    assert desk.repo.files() == files
    assert desk.uwf("step", "diff", f"{thread}:1", "--json").json["files"]


def test_a_work_tree_of_its_own_is_beside_the_other_by_default(desk: Desk) -> None:
    begun = desk.uwf(
        "thread", "start", "../ping.yaml", "-p", "t", "--worktree", "--branch", "b/new"
    )

    assert begun.code == 0, begun.err
    assert (desk.repo.root.parent / "code-new" / "a.txt").exists()


def test_a_start_that_fails_leaves_no_work_tree(desk: Desk) -> None:
    words = ("thread", "start", "../ping.yaml", "-p", " ", "--worktree", "../own")

    assert desk.uwf(*words).code == 1

    assert not (desk.repo.root.parent / "own").exists()
    assert desk.repo.git("branch", "--list", "agent/*") == ""


def test_no_code_of_one_thread_alone(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "true", start=("--no-code",))

    code = desk.step(thread, 1)["code"]
    assert isinstance(code, dict)
    assert "snapshot" not in code


def test_gc_drops_the_code_of_threads_that_are_gone_for_good(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "true")
    kept = desk.run("echo one >> a.txt", "true")
    assert desk.uwf("thread", "rm", thread).code == 0
    assert desk.uwf("gc", "--json").json["codeChainsRemoved"] == 0
    assert thread in desk.repo.git("for-each-ref")

    done = desk.uwf("gc", "--prune=now", "--yes", "--json")

    assert done.json["codeChainsRemoved"] == 1
    refs = desk.repo.git("for-each-ref", "--format=%(refname)", "refs/uwf")
    assert refs.split() == [f"refs/uwf/code/{kept}"]


def test_doctor_without_git_looks_at_the_rest(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.run("echo one >> a.txt")
    monkeypatch.setenv("PATH", "/nonexistent")

    done = desk.uwf("doctor", "--json")

    assert done.code == 1
    checks = {each["check"]: each["level"] for each in done.json["checks"]}
    assert checks["git"] == "problem"
    assert {"store", "refs", "config"} <= set(checks)


def test_doctor_names_orphans_and_mirrors(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "true")
    ref = f"refs/heads/thread/{thread}"
    desk.repo.git("--git-dir=.git/uwf", "update-ref", "-d", ref)
    desk.repo.git("config", "remote.backup.mirror", "true")

    told = desk.uwf("doctor", "--json").json["checks"]

    said = [each["message"] for each in told if each["check"] == "code"]
    assert said == [
        f"code of 1 removed thread: {thread}",
        "remote 'backup' of the code is a mirror: git push takes refs/uwf/code/ there",
    ]


def test_doctor_restores_a_cut_branch_whose_code_is_kept(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "true")
    branch = desk.repo.root / ".git/uwf/refs/heads/thread" / thread
    tip = branch.read_text()
    branch.write_text("")

    collected = desk.uwf("gc", "--json")
    seen = desk.uwf("doctor", "--json")
    fixed = desk.uwf("doctor", "--fix", "--json")

    assert collected.error["hint"] == "uwf doctor says what is wrong"
    assert fixed.code == 0, fixed
    for told in (seen, fixed):
        assert not [e for e in told.json["checks"] if e["check"] == "code"]
    assert branch.read_text() == tip


def test_nothing_is_rewound_while_a_thread_is_at_work_there(desk: Desk) -> None:
    thread = desk.run("echo one >> a.txt", "echo two >> a.txt")
    (desk.scripts / "1").write_text(
        f"{sys.executable} -m uwfgit thread rewind {thread} --at 1 --yes; "
        "echo $? > ../code-of-rewind\n"
    )
    desk.run_one()

    assert (desk.repo.root.parent / "code-of-rewind").read_text() == "4\n"
    assert (desk.repo.root / "a.txt").read_text().endswith("one\ntwo\n")


@pytest.mark.parametrize(
    ("kind", "model", "wanted"),
    [
        ("claude-code", "sonnet", "anthropic/sonnet"),
        ("opencode", "openai/gpt-5", "openai/gpt-5"),
        ("cursor", "auto", "auto"),
        ("stdio", None, None),
    ],
)
def test_a_model_is_told_with_whose_it_is_where_that_is_known(
    kind: str, model: str | None, wanted: str | None
) -> None:
    assert _model_id(kind, model) == wanted
