"""The jobs of 'uwf review setup', run as each CI runs them.

What a CI decides by itself is done here by hand: which commit it takes a job
from, what it checks out, what variables say. The lines of the job are run by a
shell, and pip installs this program from its wheel.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.builders import git
from tests.proof import verify_threads
from tests.sync.changes import OUTPUT, edit
from tests.sync.forge import commit, draft_of, forge
from tests.sync.people import BAD, DONE, WIRE, Person, let_pass, smuggle
from uwfgit.engine.run.thread import fork_thread
from uwfgit.ids import ThreadId
from uwfgit.model.yaml.core import parse_value
from uwfgit.sync.exchange.remotes import RemoteKind, get_remote
from uwfgit.sync.review.forges import Ci
from uwfgit.sync.review.jobs import set_up
from uwfgit.sync.review.review import Review, open_review, update_review

ROOT = Path(__file__).parents[2]
FILES = {
    "github": ".github/workflows/uwf-verify.yml",
    "gitea": ".gitea/workflows/uwf-verify.yml",
    "gitlab": ".gitlab-ci.yml",
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python as CIs have it, without this program; pip finds its wheel.

    What the program needs is there already: nothing is fetched.
    """
    pytest.importorskip("hatchling", reason="what builds the wheel")
    folder = tmp_path_factory.mktemp("python")
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d")
    subprocess.run([*build, str(folder / "dist")], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "env")], check=True)
    needed = folder / "needed"
    needed.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "uwfgit" not in path.name and "pip" not in path.name:
            (needed / path.name).symlink_to(path)
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    (site / "needed.pth").write_text(f"{needed}\n")
    return folder


@dataclass(frozen=True)
class Run:
    """How a job ended; ``code`` is ``None`` when there was none to run."""

    code: int | None
    told: str


@dataclass
class Runner:
    """A CI beside a repository: it has an empty folder and a Python."""

    bare: Path
    folder: Path
    python: Path

    def environment(self, **variables: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("HOME", "GIT_CONFIG_GLOBAL")}
        return {
            **kept,
            "PATH": f"{self.python / 'env' / 'bin'}:/usr/bin:/bin",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.python / "dist"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **variables,
        }

    def shell(self, script: str, **variables: str) -> Run:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            check=False,
        )
        return Run(done.returncode, done.stdout + done.stderr)

    def check_out(self, path: Path, oid: str, refs: str) -> None:
        """Bring all branches and tags, and check one commit out."""
        specs = ("+refs/heads/*:refs/remotes/origin/*", f"+{refs}:{refs}")
        for words in (
            ("init", "--quiet"),
            ("fetch", "--quiet", "--tags", str(self.bare), *specs),
            ("checkout", "--quiet", "--force", "--detach", oid),
        ):
            path.mkdir(exist_ok=True)
            subprocess.run(["git", *words], check=True, cwd=path)

    def read(self, oid: str, file: str) -> Mapping[str, Any] | None:
        """Read a CI's file of a commit."""
        if not git(self.bare, "ls-tree", "--name-only", oid, "--", file):
            return None
        text = git(self.bare, "show", f"{oid}:{file}")
        # As CIs do: in YAML 1.1 the key "on" would be true.
        found: Mapping[str, Any] = parse_value(text)
        return found

    def merge(self, review: Review) -> str | None:
        """Merge what is reviewed into its base, as forges do to try it, if it can."""
        words = ("merge-tree", "--write-tree", review.base, review.head)
        done = subprocess.run(
            ["git", f"--git-dir={self.bare}", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return None
        tree = done.stdout.split()[0]
        who = ("-c", "user.name=Forge", "-c", "user.email=forge@example.org")
        parents = ("-p", review.base, "-p", review.head)
        made = git(self.bare, *who, "commit-tree", tree, *parents, "-m", "x")
        return made.strip()


def run_actions(runner: Runner, review: Review, sources: Mapping[str, str]) -> Run:
    """Run the job of a pull request, by GitHub's rules of syntax.

    Args:
        runner: Where.
        review: What is reviewed.
        sources: Event → the file, and the commit that it is taken from.
    """
    head = git(runner.bare, "rev-parse", review.head).strip()
    git(runner.bare, "update-ref", "refs/pull/1/head", head)
    for event, source in sources.items():
        oid, _, file = source.partition(":")
        workflow = runner.read(oid, file)
        if workflow is not None and event in workflow["on"]:
            job = workflow["jobs"]["verify"]
            assert workflow["permissions"] == {"contents": "read"}
            return _run_steps(
                runner, job["steps"], {"github.event.pull_request.head.sha": head}
            )
    return Run(None, "no job")


def _run_steps(
    runner: Runner, steps: list[Mapping[str, Any]], values: Mapping[str, str]
) -> Run:
    def fill(text: str) -> str:
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text)

    done = Run(None, "no step")
    for step in steps:
        given = {name: fill(str(each)) for name, each in step.get("with", {}).items()}
        if step.get("uses", "").startswith("actions/checkout@"):
            assert given["fetch-depth"] == "0"
            path = runner.folder / given.get("path", ".")
            runner.check_out(path, given["ref"], "refs/pull/1/head")
        elif step.get("uses", "").startswith("actions/setup-python@"):
            assert given["python-version"] == "3.12"
        else:
            variables = {name: fill(text) for name, text in step.get("env", {}).items()}
            done = runner.shell(fill(step["run"]), **variables)
            if done.code:
                break
    return done


def run_gitlab(runner: Runner, review: Review, *, source: str, tried: bool) -> Run:
    """Run the job of a merge request.

    Args:
        runner: Where.
        review: What is reviewed.
        source: The commit that the file is taken from.
        tried: Whether the merged result is checked out, or what is reviewed.
    """
    head = git(runner.bare, "rev-parse", review.head).strip()
    at = (runner.merge(review) if tried else head) or head
    git(runner.bare, "update-ref", "refs/pipelines/1", at)
    config = runner.read(source, ".gitlab-ci.yml")
    if config is None:
        return Run(None, "no job")
    job = config["uwf-verify"]
    variables = {
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_COMMIT_SHA": at,
        "CI_PROJECT_DIR": str(runner.folder),
        **({"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": head} if tried else {}),
        **job["variables"],
    }
    assert job["rules"] == [{"if": '$CI_PIPELINE_SOURCE == "merge_request_event"'}]
    assert job["variables"]["GIT_DEPTH"] == "0"
    runner.check_out(runner.folder, at, "refs/pipelines/1")
    return runner.shell("\n".join(job["script"]), **variables)


@dataclass
class Forge:
    """A repository on a forge, with the job set up."""

    ci: Ci
    kind: RemoteKind
    bare: Path
    folder: Path
    python: Path
    runs: int = 0

    def run(self, review: Review) -> Run:
        """Run what the forge runs when a review is opened or goes on."""
        self.runs += 1
        runner = Runner(self.bare, self.folder / f"run{self.runs}", self.python)
        runner.folder.mkdir()
        default = git(self.bare, "rev-parse", "HEAD").strip()
        file = FILES[self.ci]
        if self.ci == "gitlab":
            # Beside code: merged results. Else: the path in the project's settings.
            is_tried = self.kind == "shared"
            source = runner.merge(review) if is_tried else "main"
            assert source, "it runs what is reviewed: not a case of these tests"
            return run_gitlab(runner, review, source=source, tried=is_tried)
        if self.ci == "gitea":
            sources = {
                "pull_request": f"{review.head}:{file}",
                "pull_request_target": f"{review.base}:{file}",
            }
        else:
            merged = runner.merge(review)
            sources = {
                **({"pull_request": f"{merged}:{file}"} if merged else {}),
                "pull_request_target": f"{default}:{file}",
            }
        return run_actions(runner, review, sources)


PLACES: dict[str, tuple[Ci, RemoteKind]] = {
    "github": ("github", "dedicated"),
    "github beside code": ("github", "shared"),
    "gitea": ("gitea", "dedicated"),
    "gitlab": ("gitlab", "dedicated"),
    "gitlab beside code": ("gitlab", "shared"),
}


@pytest.fixture(params=PLACES)
def there(
    request: pytest.FixtureRequest,
    ada: Person,
    bare: Path,
    tmp_path: Path,
    python: Path,
) -> Forge:
    ci, kind = PLACES[request.param]
    if kind == "shared":
        # The code's own branch, which is none of ours.
        tree = git(bare, "hash-object", "-w", "-t", "tree", "/dev/null").strip()
        who = ("-c", "user.name=C", "-c", "user.email=c@example.org")
        code = git(bare, *who, "commit-tree", tree, "-m", "code").strip()
        git(bare, "update-ref", "refs/heads/main", code)
    ada.join(bare, name="forge", kind=kind)
    remote = get_remote(ada.store, "forge")
    set_up(ada.ledger, remote, ci, install="uwfgit", wire=WIRE, scan=let_pass)
    return Forge(ci, kind, bare, tmp_path, python)


def review(person: Person, thread: ThreadId, first: int | None = None) -> Review:
    remote = get_remote(person.store, "forge")
    options: dict[str, Any] = {
        "wire": WIRE,
        "verify": verify_threads,
        "scan": let_pass,
    }
    return open_review(person.ledger, remote, thread, first=first, **options)


def update(person: Person, thread: ThreadId) -> Review:
    remote = get_remote(person.store, "forge")
    return update_review(
        person.ledger,
        remote,
        thread,
        wire=WIRE,
        verify=verify_threads,
        scan=let_pass,
    )


def test_a_thread_that_went_on_passes_and_a_forged_one_fails(
    ada: Person, there: Forge
) -> None:
    thread = ada.begin(DONE)
    review(ada, thread)
    ada.go(thread, BAD, DONE)
    opened = update(ada, thread)

    good = there.run(opened)
    bad = forge(
        ada.store, opened.oid, {2: edit(OUTPUT, b'{\n  "$status": "good"\n}\n')}
    )
    smuggle(ada, there.bare, bad, f"refs/heads/{opened.head}")
    forged = there.run(opened)

    assert (good.code, forged.code) == (0, 1), (good, forged)
    assert f"{thread}: consistent; 3 steps" in good.told
    assert "[hash]" in forged.told


FROM_BASE = ["github beside code", "gitea", "gitlab beside code"]


@pytest.mark.parametrize("there", FROM_BASE, indirect=True)
def test_a_part_of_a_thread_has_a_job_too(ada: Person, there: Forge) -> None:
    thread = ada.begin(DONE, BAD)

    done = there.run(review(ada, thread, first=2))

    assert done.code == 0, done
    assert f"{thread}: consistent" in done.told


@pytest.mark.parametrize("there", FROM_BASE[:1], indirect=True)
def test_a_fork_has_a_job_too(ada: Person, there: Forge) -> None:
    fork = fork_thread(ada.ledger, ada.begin(DONE, BAD)).thread
    ada.go(fork, DONE)

    done = there.run(review(ada, fork))

    assert done.code == 0, done
    assert f"{fork}: consistent" in done.told


@pytest.mark.parametrize("there", ["github", "gitea", "gitlab"], indirect=True)
def test_what_is_reviewed_neither_runs_nor_brings_a_job(
    ada: Person, there: Forge
) -> None:
    opened = review(ada, ada.begin(DONE))
    mark = there.folder / "mark"
    draft = draft_of(ada.store, opened.oid)
    for name in ("pip.py", "uwfgit.py", "uwf", "sitecustomize.py", "bash"):
        draft.put(name, f"open({str(mark)!r}, 'w')\n".encode())
    job = git(there.bare, "show", f"{opened.base}:{FILES[there.ci]}")
    draft.put(FILES[there.ci], job.replace("uwf verify", "true").encode())
    smuggle(ada, there.bare, commit(draft), f"refs/heads/{opened.head}")

    done = there.run(opened)

    assert (done.code, mark.exists()) == (1, False), done
