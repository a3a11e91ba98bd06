"""A real bare repository with the hook, and real pushes to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import git, make_workflow, workflow_data
from tests.sync.changes import OUTPUT, edit
from tests.sync.forge import forge
from tests.sync.people import BAD, DONE, Person, make_person, refs_of
from tests.sync.tour import set_tip
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.registry import add_workflow
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.hooks import HOOKS, PRE_RECEIVE, install_hook
from uwfgit.store.repository import init_store, open_store, trust_store

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server(bare: Path) -> Path:
    install_hook(bare, "pre-receive")
    return bare


def push(
    person: Person, server: Path, *specs: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Push with plain git; the hook finds this program first on its PATH."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [
            "git",
            f"--git-dir={person.store.path}",
            "push",
            "--no-verify",
            "--porcelain",
            str(server),
            *specs,
        ],
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def spec(thread: ThreadId, *, shared: bool = False, force: bool = False) -> str:
    there = "refs/uwf/thread" if shared else "refs/heads/thread"
    return f"{'+' * force}refs/heads/thread/{thread}:{there}/{thread}"


def forged(person: Person, thread: ThreadId) -> Oid:
    tip = person.tip(thread)
    assert tip is not None
    return forge(person.store, tip, {2: edit(OUTPUT, b'{\n  "$status": "good"\n}\n')})


def test_the_hook_of_the_repository_is_the_one_that_is_installed() -> None:
    assert (ROOT / "hooks" / "pre-receive").read_bytes() == PRE_RECEIVE


def test_what_uwf_makes_is_taken(ada: Person, server: Path) -> None:
    thread = ada.begin(DONE, BAD)
    workflow = "refs/heads/workflow/work"
    add_workflow(ada.ledger, make_workflow(), workflow_data(make_workflow()))
    tag = f"approved/{thread}/2"
    git(
        ada.store,
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b",
        "tag",
        "-am",
        "ok",
        tag,
        str(ada.tip(thread)),
    )

    first = push(
        ada,
        server,
        spec(thread),
        "main",
        f"{workflow}:{workflow}",
        f"refs/heads/thread/{thread}:refs/heads/uwf/{thread}",
        f"refs/tags/{tag}:refs/tags/{tag}",
    )
    ada.go(thread, DONE)
    second = push(ada, server, spec(thread), spec(thread, shared=True))

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert refs_of(server)[f"refs/uwf/thread/{thread}"] == ada.tip(thread)


@pytest.mark.parametrize(
    "shared", [pytest.param(False, id="branch"), pytest.param(True, id="shared")]
)
def test_a_rewind_and_a_deletion_are_refused(
    ada: Person, server: Path, *, shared: bool
) -> None:
    thread = ada.begin(DONE, BAD)
    assert push(ada, server, spec(thread, shared=shared)).returncode == 0
    before = refs_of(server)
    name = spec(thread, shared=shared).partition(":")[2]

    deleted = push(ada, server, f":{name}")
    set_tip(
        ada.store, thread, git(ada.store, "rev-parse", f"{ada.tip(thread)}^").strip()
    )
    rewound = push(ada, server, spec(thread, shared=shared, force=True))

    assert "a thread is not deleted" in deleted.stderr
    assert "not a fast-forward" in rewound.stderr
    assert (deleted.returncode, rewound.returncode) == (1, 1)
    assert refs_of(server) == before


def test_a_bad_thread_is_refused_with_its_problem_and_leaves_nothing(
    ada: Person, server: Path
) -> None:
    thread = ada.begin(DONE, BAD)
    tip = forged(ada, thread)
    objects = set(server.rglob("objects/??/*")) | set(server.rglob("*.pack"))

    done = push(ada, server, f"{tip}:refs/heads/thread/{thread}")

    assert done.returncode == 1
    assert f"refused refs/heads/thread/{thread}" in done.stderr
    assert "[hash]" in done.stderr
    assert refs_of(server) == {}
    assert set(server.rglob("objects/??/*")) | set(server.rglob("*.pack")) == objects


@pytest.mark.parametrize(
    "ref",
    [
        pytest.param("refs/heads/code", id="a branch"),
        pytest.param("refs/heads/thread/x", id="a thread's name that is none"),
        pytest.param("refs/heads/thread", id="thread"),
        pytest.param("refs/uwf/keep", id="keep"),
        pytest.param(f"refs/replace/{GENESIS_OID}", id="replace"),
        pytest.param("refs/heads/uwf/x", id="a review's name that is none"),
        pytest.param("refs/tags/v1", id="a tag"),
        pytest.param("refs/heads/workflow/work", id="a workflow that is none"),
    ],
)
def test_other_refs_are_refused(ada: Person, server: Path, ref: str) -> None:
    thread = ada.begin(DONE)

    done = push(ada, server, f"refs/heads/thread/{thread}:{ref}")

    assert (done.returncode, refs_of(server)) == (1, {})


def test_beside_code_only_threads_are_checked(ada: Person, server: Path) -> None:
    git(server, "config", "uwf.shared", "true")
    thread = ada.begin(DONE, BAD)

    code = push(ada, server, f"refs/heads/thread/{thread}:refs/heads/main")
    keep = push(ada, server, f"refs/heads/thread/{thread}:refs/uwf/keep")
    bad = push(ada, server, f"{forged(ada, thread)}:refs/uwf/thread/{thread}")

    assert (code.returncode, keep.returncode, bad.returncode) == (0, 1, 1)
    assert set(refs_of(server)) == {"refs/heads/main"}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import time\ntime.sleep(600)\n", id="hangs"),
        pytest.param("import os\nos.abort()\n", id="crashes"),
        pytest.param(
            "import os\nos._exit(0)\n", id="ends at once, as if all were well"
        ),
    ],
)
def test_a_check_that_does_not_come_to_its_end_refuses(
    ada: Person, server: Path, tmp_path: Path, code: str
) -> None:
    git(server, "config", "uwf.receiveSeconds", "2")
    thread = ada.begin(DONE)
    broken = tmp_path / "broken"
    broken.mkdir()
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    (broken / "sitecustomize.py").write_text(
        f"import sys\nif 'uwfgit.cli.limited_child' in sys.orig_argv:\n{lines}"
    )

    done = push(ada, server, spec(thread), PYTHONPATH=str(broken))

    assert (done.returncode, refs_of(server)) == (1, {})
    assert "refused refs/heads/thread/" in done.stderr


def test_without_the_program_nothing_is_taken(ada: Person, server: Path) -> None:
    thread = ada.begin(DONE)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}

    done = push(ada, server, spec(thread), **environment)

    assert (done.returncode, refs_of(server)) == (1, {})


def test_a_server_with_grafts_takes_nothing(ada: Person, server: Path) -> None:
    (server / "info").mkdir(exist_ok=True)
    (server / "info" / "grafts").write_text("")

    done = push(ada, server, spec(ada.begin(DONE)))

    assert (done.returncode, "grafts" in done.stderr) == (1, True)


def test_a_store_may_have_the_hook_and_no_other(tmp_path: Path) -> None:
    person = make_person(tmp_path, "eve")
    path, home = person.store.path, tmp_path / "eve" / ".uwf"
    install_hook(path, "pre-receive")

    assert init_store(path, home=home) is False
    assert open_store(path, home=home).path == path
    (path / "hooks" / "pre-receive").write_bytes(HOOKS["pre-receive"] + b"rm -rf /\n")
    with pytest.raises(Exception, match="hook that uwf did not write"):
        trust_store(path, home=home)
