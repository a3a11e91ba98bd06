"""Whole stories through the program, looked at with plain git afterwards."""

from __future__ import annotations

import itertools
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.calls import Uwf
from tests.proof import assert_verified
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.repository import open_store

pytestmark = pytest.mark.compat

EXAMPLES = Path(__file__).parents[2] / "examples"
JOURNEY = EXAMPLES / "solve-issue.journey.replies.yaml"
EVENTS = [
    "start",
    "step",
    "resume",
    *["step"] * 4,
    "poke",
    "step",
    "attempt",
    "resume",
    *["step"] * 3,
]


def git(path: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", f"--git-dir={path}", *words],
        capture_output=True,
        check=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(path.parent)},
    )
    return done.stdout


def head_commands() -> list[tuple[list[str], int]]:
    """Read the commands and exit codes off the head comment of the journey."""
    found: list[tuple[list[str], int]] = []
    for line in JOURNEY.read_text(encoding="utf-8").splitlines():
        text = line.removeprefix("#").strip()
        if text.startswith("uwf "):
            found.append((shlex.split(text)[1:], 0))
        elif text.startswith("exit ") and found:
            found[-1] = (found[-1][0], int(text[5]))
    return found


@pytest.fixture
def journey(uwf: Uwf, work: Path) -> str:
    """The thread of the long journey through solve-issue, run to its end."""
    thread = ""
    for words, code in head_commands():
        paths = [word.replace("examples/", f"{EXAMPLES}/") for word in words]
        done = uwf(*[thread if word == "T" else word for word in paths], "--json")
        assert done.code == code, (words, done.err)
        thread = thread or done.json["threadId"]
    assert work.is_dir()
    return thread


def store_path(uwf: Uwf) -> Path:
    return Path(uwf("store", "path").out.strip())


def test_the_journey_is_one_commit_an_event_with_its_trailers(
    uwf: Uwf, journey: str
) -> None:
    store = store_path(uwf)

    events = git(
        store,
        "log",
        "--reverse",
        "--format=%(trailers:key=Uwf-Event,valueonly,separator=)",
        f"{GENESIS_OID}..thread/{journey}",
    )
    trailers = git(store, "log", "-1", "--format=%(trailers:only)", f"thread/{journey}")

    assert events.split() == EVENTS
    assert trailers.startswith(f"Uwf-Format: 1\nUwf-Event: step\nUwf-Thread: {journey}")
    assert "Uwf-Next: $END" in trailers


def test_the_journey_is_sound_for_git_and_for_verify(
    uwf: Uwf, journey: str, home: Path
) -> None:
    store = store_path(uwf)

    assert git(store, "fsck", "--strict", "--no-dangling") == ""
    assert_verified(open_store(store, home=home))
    assert journey in git(store, "branch", "--list")


def test_the_journey_reads_as_a_transcript_whose_nodes_fold(
    uwf: Uwf, journey: str
) -> None:
    patch = git(store_path(uwf), "log", "-p", f"thread/{journey}")

    nodes = [line for line in patch.splitlines() if line.startswith("Binary files")]
    added = [line for line in patch.splitlines() if line.startswith("+++ ")]
    assert len(nodes) > len(EVENTS)
    assert all("/nodes/" in line for line in nodes)
    assert not any("/nodes/" in line for line in added)
    assert "+You have not looked at the credit notes. Do." in patch


def test_the_journey_is_a_folder_a_person_can_read(
    uwf: Uwf, journey: str, tmp_path: Path
) -> None:
    archive = tmp_path / "thread.tar"
    git(store_path(uwf), "archive", f"--output={archive}", f"thread/{journey}")
    subprocess.run(["tar", "-xf", archive, "-C", tmp_path], check=True)

    folder = tmp_path / "threads" / journey
    steps = sorted(path.name for path in (folder / "history" / "000").iterdir())
    assert steps[:2] == ["00001-planner", "00002-planner"]
    assert [int(name[:5]) for name in steps] == list(range(1, len(steps) + 1))
    assert (folder / "TASK.md").read_text().startswith("#63: sums in the invoice")
    assert next(folder.glob("history/000/*/replaced/1/output.md")).is_file()
    assert next(folder.glob("history/000/*/attempts/1/output.md")).is_file()


def test_the_shortlog_counts_steps_by_agent(uwf: Uwf, journey: str) -> None:
    counts = git(store_path(uwf), "shortlog", "-sn", f"thread/{journey}").split()

    assert counts[:2] == [str(len(EVENTS) - 1), "scripted"]


def test_each_commit_changes_only_its_own_thread(uwf: Uwf, journey: str) -> None:
    forked = uwf("thread", "fork", journey, "--at", "3", "--json").json["threadId"]
    uwf("thread", "exec", forked, "--agent", f"scripted:{JOURNEY}")
    store = store_path(uwf)

    commits = git(store, "rev-list", "--branches=thread/*", f"^{GENESIS_OID}").split()
    for commit in commits:
        own = git(
            store, "log", "-1", "--format=%(trailers:key=Uwf-Thread,valueonly)", commit
        ).strip()
        paths = git(
            store, "diff-tree", "--no-commit-id", "--name-only", "-r", commit
        ).splitlines()
        assert paths
        assert all(path.startswith(f"threads/{own}/") for path in paths)


def test_threads_merge_into_main_in_any_order(
    uwf: Uwf, journey: str, tmp_path: Path
) -> None:
    forked = uwf("thread", "fork", journey, "--at", "2", "--json").json["threadId"]
    uwf("thread", "exec", forked, "--agent", f"scripted:{JOURNEY}")
    other = uwf("thread", "start", "ping.yaml", "-p", "x", "--json").json["threadId"]
    store = store_path(uwf)

    trees = set()
    for number, order in enumerate(itertools.permutations([journey, forked, other])):
        clone = tmp_path / f"clone-{number}"
        subprocess.run(["git", "clone", "-q", store, clone], check=True)
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        for thread in order:
            merge = ["merge", "-q", "--no-edit", f"origin/thread/{thread}"]
            subprocess.run(["git", "-C", str(clone), *who, *merge], check=True)
        done = subprocess.run(
            ["git", "-C", clone, "rev-parse", "HEAD^{tree}"],
            check=True,
            capture_output=True,
        )
        trees.add(done.stdout)

    assert len(trees) == 1


def test_every_node_of_every_thread_survives_a_prune(uwf: Uwf, journey: str) -> None:
    fork = uwf("thread", "fork", journey, "--at", "4", "--json").json["threadId"]
    uwf("git", "gc", "--prune=now", "--quiet")

    for thread in (journey, fork):
        head = uwf("thread", "show", thread, "--json").json["head"]
        walked = uwf("cas", "walk", head, "--json").json["hashes"]
        assert head in walked
        for node in walked:
            assert uwf("cas", "get", node, "--json").code == 0


def test_a_plan_put_by_an_agent_stands_in_the_thread_after_a_prune(
    uwf: Uwf, work: Path
) -> None:
    agent = work / "agent.sh"
    agent.write_text(
        "#!/bin/sh\ncat > /dev/null\n"
        "plan=$(echo 'the long plan' | uwf cas put-text -)\n"
        "printf -- '---\\n$status: done\\ntext: %s\\n---\\nSee the plan.\\n' $plan\n"
    )
    agent.chmod(0o755)
    thread = uwf("thread", "start", "ping.yaml", "-p", "x", "--json").json["threadId"]
    assert uwf("thread", "exec", thread, "--agent", f"stdio:{agent}").code == 0
    plan = uwf("step", "show", f"{thread}:1", "--json").json["output"]["text"]
    assert uwf("cas", "drop", plan).code == 0
    uwf("git", "reflog", "expire", "--expire=now", "--all")
    uwf("git", "gc", "--prune=now", "--quiet")

    found = uwf("cas", "get", plan, "--json")
    link = git(
        store_path(uwf),
        "show",
        f"thread/{thread}:threads/{thread}/history/000/00001-writer/links/text.md",
    )

    assert found.json["payload"] == "the long plan\n"
    assert link == "the long plan\n"


def test_the_hash_of_another_threads_node_links_nothing(uwf: Uwf, work: Path) -> None:
    private = uwf("thread", "start", "ping.yaml", "-p", "private", "--json").json
    agent = work / "agent.sh"
    agent.write_text(
        "#!/bin/sh\ncat > /dev/null\n"
        f"printf -- '---\\n$status: done\\ntext: {private['head']}\\n---\\n'\n"
    )
    agent.chmod(0o755)
    thread = uwf("thread", "start", "ping.yaml", "-p", "x", "--json").json["threadId"]

    done = uwf("thread", "exec", thread, "--agent", f"stdio:{agent}")
    step = uwf("step", "show", f"{thread}:1", "--json").json
    walked = uwf("cas", "walk", step["hash"], "--json").json["hashes"]

    assert done.code == 0
    assert private["head"] not in walked
    assert any(private["head"] in warning for warning in step["warnings"])


def test_a_bare_repository_planted_in_the_work_tree_is_never_the_store(
    uwf: Uwf, work: Path
) -> None:
    subprocess.run(["git", "init", "-q", "--bare", work / "sub"], check=True)
    trap = work / "ran"
    (work / "sub" / "hooks" / "post-index-change").write_text(f"touch {trap}\n")
    (work / "sub" / "config").write_text(f"[core]\n\tfsmonitor = touch {trap}\n")

    done = uwf("store", "path")

    assert str(work / "sub") not in done.out
    assert not trap.exists()


@pytest.mark.parametrize(
    ("plant", "names"),
    [
        pytest.param("[core]\n\tsshCommand = touch {trap}\n", "sshcommand", id="ssh"),
        pytest.param("[include]\n\tpath = {trap}\n", "include.path", id="include"),
        pytest.param("[gpg]\n\tprogram = {trap}\n", "gpg.program", id="gpg"),
        pytest.param(None, "hooks/", id="hook"),
        pytest.param("replace", "shows a changed history", id="replace"),
    ],
)
def test_a_store_that_would_run_or_hide_something_is_refused(
    uwf: Uwf, ended: str, work: Path, plant: str | None, names: str
) -> None:
    store, trap = store_path(uwf), work / "ran"
    if plant is None:
        hook = store / "hooks" / "reference-transaction"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
        hook.chmod(0o700)
    elif plant == "replace":
        tip = git(store, "rev-parse", f"thread/{ended}").strip()
        git(store, "update-ref", f"refs/replace/{tip}", GENESIS_OID)
    else:
        with (store / "config").open("a") as config:
            config.write(plant.format(trap=trap))

    for words in (
        ["thread", "list"],
        ["thread", "exec", ended, "--agent", "scripted:replies.yaml"],
        ["git", "log", "-1", f"thread/{ended}"],
    ):
        done = uwf(*words)
        assert done.code == 1
        assert names in done.err.lower()
        assert "Traceback" not in done.err
    assert not trap.exists()
