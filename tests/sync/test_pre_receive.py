"""A real bare repository with the hook, and real pushes to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pygit2.enums import ObjectType

from tests.builders import git, make_workflow, workflow_data
from tests.sync.changes import OTHER, OUTPUT, edit, subject
from tests.sync.forge import commit, draft_of, forge, write
from tests.sync.forged_histories import FORK, HISTORIES, HONEST, forked
from tests.sync.people import (
    BAD,
    DONE,
    WIRE,
    Person,
    let_pass,
    make_person,
    objects_of,
    refs_of,
)
from tests.sync.tour import make_tour, set_tip, tip_of
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.registering import add_workflow
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.repository import init_store, open_store, trust_store
from uwfgit.store.safety.trust import HOOKS, PRE_RECEIVE, install_hook
from uwfgit.sync.exchange.remotes import get_remote
from uwfgit.sync.review.jobs import add_jobs, set_up

ROOT = Path(__file__).parents[2]
SLOW = pytest.mark.slow


@pytest.fixture
def server(bare: Path) -> Path:
    install_hook(bare, "pre-receive")
    return bare


def with_program(**variables: str) -> dict[str, str]:
    """Give an environment in which git's hooks find this program."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, **variables}


def push(
    person: Person, server: Path, *specs: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Push with plain git; the hook finds this program first on its PATH."""
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
        env=with_program(**variables),
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
    "shared",
    [
        pytest.param(False, id="branch", marks=pytest.mark.slow),
        pytest.param(True, id="shared"),
    ],
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


def test_other_refs_are_refused(ada: Person, server: Path) -> None:
    thread = ada.begin(DONE)
    refs = [
        "refs/heads/code",
        "refs/heads/thread/x",
        f"refs/heads/thread/{OTHER.lower()}",
        f"refs/heads/thread/{OTHER}/x",
        "refs/heads/thread",
        "refs/uwf/keep",
        f"refs/replace/{GENESIS_OID}",
        "refs/heads/uwf/x",
        "refs/tags/v1",
        "refs/heads/workflow/work",
    ]

    done = push(ada, server, *(f"refs/heads/thread/{thread}:{ref}" for ref in refs))

    assert (done.returncode, refs_of(server)) == (1, {})
    assert re.findall(r"refused (\S+):", done.stderr) == refs


def test_beside_code_only_threads_are_checked(ada: Person, server: Path) -> None:
    git(server, "config", "uwf.shared", "true")
    thread = ada.begin(DONE, BAD)

    code = push(ada, server, f"refs/heads/thread/{thread}:refs/heads/main")
    keep = push(ada, server, f"refs/heads/thread/{thread}:refs/uwf/keep")
    bad = push(ada, server, f"{forged(ada, thread)}:refs/uwf/thread/{thread}")

    assert (code.returncode, keep.returncode, bad.returncode) == (0, 1, 1)
    assert set(refs_of(server)) == {"refs/heads/main"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("shared", 0, id="no value"),
        pytest.param("shared = ON", 0, id="a word for true"),
        pytest.param("shared =", 1, id="empty"),
        pytest.param("shared\nshared = false", 1, id="the last counts"),
    ],
)
def test_the_server_s_settings_are_read_as_git_reads_them(
    ada: Person, server: Path, text: str, code: int
) -> None:
    with (server / "config").open("a") as config:
        config.write(f"[uwf]\n{text}\n")
    thread = ada.begin(DONE)
    said = git(server, "config", "--type=bool", "uwf.shared").strip()

    done = push(ada, server, f"refs/heads/thread/{thread}:refs/heads/code")

    assert (done.returncode, said) == (code, "false" if code else "true")


@pytest.mark.parametrize("seconds", ["0", "-1", "2 s", "30001", "9" * 5000])
def test_a_time_that_is_none_refuses(ada: Person, server: Path, seconds: str) -> None:
    git(server, "config", "uwf.receiveSeconds", seconds)

    done = push(ada, server, spec(ada.begin(DONE)))

    assert (done.returncode, refs_of(server)) == (1, {})
    assert "must be seconds" in done.stderr


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            "import time\ntime.sleep(600)\n", id="hangs", marks=pytest.mark.slow
        ),
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
        f"import sys\nif 'uwfgit.cli.check.limited_child' in sys.orig_argv:\n{lines}"
    )

    done = push(ada, server, spec(thread), PYTHONPATH=str(broken))

    assert (done.returncode, refs_of(server)) == (1, {})
    assert "refused refs/heads/thread/" in done.stderr


def test_without_the_program_nothing_is_taken(ada: Person, server: Path) -> None:
    thread = ada.begin(DONE)
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}

    done = push(ada, server, spec(thread), **environment)

    assert (done.returncode, refs_of(server)) == (1, {})


@pytest.mark.parametrize(
    ("file", "text", "word"),
    [
        pytest.param("info/grafts", "", "grafts", id="grafts"),
        pytest.param("shallow", f"{GENESIS_OID}\n", "shallow", id="shallow"),
        pytest.param(
            "objects/info/alternates", "/nowhere\n", "another repo", id="alternates"
        ),
        pytest.param(
            f"refs/replace/{GENESIS_OID}", f"{GENESIS_OID}\n", "replace", id="replace"
        ),
    ],
)
def test_a_server_that_shows_another_history_takes_nothing(
    ada: Person, server: Path, file: str, text: str, word: str
) -> None:
    thread = ada.begin(DONE)
    assert push(ada, server, "main").returncode == 0
    (server / file).parent.mkdir(parents=True, exist_ok=True)
    (server / file).write_text(text)

    done = push(ada, server, spec(thread))

    assert (done.returncode, word in done.stderr) == (1, True), done.stderr
    assert spec(thread).partition(":")[2] not in refs_of(server)


def test_a_shallow_clone_cannot_push_a_thread_s_end(
    ada: Person, server: Path, tmp_path: Path
) -> None:
    git(server, "config", "receive.shallowUpdate", "true")
    thread = ada.begin(DONE, BAD)
    shallow = tmp_path / "shallow.git"
    source = f"file://{ada.store.path}"
    names = ("--branch", f"thread/{thread}", source, str(shallow))
    git(ada.store, "clone", "--quiet", "--bare", "--depth=1", *names)

    done = subprocess.run(
        ["git", f"--git-dir={shallow}", "push", str(server), spec(thread)],
        env=with_program(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, refs_of(server)) == (1, {})
    assert not (server / "shallow").exists()


def test_a_store_may_have_the_hook_and_no_other(tmp_path: Path) -> None:
    person = make_person(tmp_path, "eve")
    path, home = person.store.path, tmp_path / "eve" / ".uwf"
    install_hook(path, "pre-receive")

    assert init_store(path, home=home) is False
    assert open_store(path, home=home).path == path
    (path / "hooks" / "pre-receive").write_bytes(HOOKS["pre-receive"] + b"rm -rf /\n")
    with pytest.raises(Exception, match="hook that uwf did not write"):
        trust_store(path, home=home)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        pytest.param(".gitlab-ci.yml", "x: 1\n", "job", id="another job"),
        pytest.param("notes.md", "x\n", "job", id="another file", marks=SLOW),
        pytest.param(".gitlab-ci.yml", None, "Psst", id="another message", marks=SLOW),
        pytest.param(None, None, "job", id="nothing", marks=SLOW),
    ],
)
def test_what_a_part_is_compared_with_holds_the_base_s_job_and_nothing_else(
    ada: Person, server: Path, path: str | None, text: str | None, message: str
) -> None:
    remote = get_remote(ada.store, "origin")
    thread = ada.begin(DONE, BAD)
    (server / "hooks" / "pre-receive").unlink()
    _, main = set_up(
        ada.ledger, remote, "gitlab", install="uwfgit", wire=WIRE, scan=let_pass
    )
    install_hook(server, "pre-receive")
    ref = f"refs/heads/uwf/{thread}-base"
    cut = tip_of(ada.ledger, thread)
    made = add_jobs(ada.ledger, remote, cut, main, wire=WIRE)

    draft = draft_of(ada.store, made)
    if path is None:
        del draft.files[".gitlab-ci.yml"]
    elif text is not None:
        draft.put(path, text.encode())
    if message != "job":
        draft.message = f"{message}\n".encode()
    bad = push(ada, server, f"{commit(draft)}:{ref}")
    good = push(ada, server, f"{made}:{ref}")

    assert (bad.returncode, good.returncode) == (1, 0), bad.stderr + good.stderr


@dataclass(frozen=True)
class Answer:
    """Why refs were refused, by git's own word and by the hook's."""

    by_git: Mapping[str, str]
    by_hook: Mapping[str, str]


def send(person: Person, server: Path, tips: Mapping[str, Oid]) -> Answer:
    """Send refs as no honest git would: every object there is, whole or not."""
    pack = ("pack-objects", "--stdout", "--window=0", "-q")
    packed = subprocess.run(
        ["git", f"--git-dir={person.store.path}", *pack],
        input="\n".join(objects_of(person.store)).encode(),
        capture_output=True,
        check=True,
    )
    lines = [f"{'0' * 40} {oid} {ref}" for ref, oid in tips.items()]
    lines[0] += "\0report-status"
    asked = b"".join(f"{len(line) + 4:04x}{line}".encode() for line in lines)
    done = subprocess.run(
        ["git", "receive-pack", "--stateless-rpc", str(server)],
        input=asked + b"0000" + packed.stdout,
        env=with_program(),
        capture_output=True,
        check=False,
    )
    said = re.findall(r"ng (\S+) ([^\n]+)\n", done.stdout.decode())
    told = re.findall(r"refused (\S+): ([^\n]+)\n", done.stderr.decode())
    return Answer(by_git=dict(said), by_hook=dict(told))


def names_of(thread: ThreadId) -> tuple[str, ...]:
    """Give all names under which a server may have a thread's commits."""
    return (
        f"refs/heads/thread/{thread}",
        f"refs/uwf/thread/{thread}",
        f"refs/heads/uwf/{thread}",
        f"refs/heads/uwf/{thread}-base",
    )


@pytest.mark.slow
def test_every_forged_history_is_refused_and_leaves_nothing(
    ada: Person, server: Path
) -> None:
    before = set(server.rglob("*"))
    forged: dict[str, Oid] = {}
    made: dict[str, str] = {}
    for start in range(0, len(HISTORIES), 4):
        thread = make_tour(ada.ledger, ada.folder)
        group = HISTORIES[start : start + 4]
        for ref, (name, make, _) in zip(names_of(thread), group, strict=False):
            forged[ref], made[ref] = make(ada.store, tip_of(ada.ledger, thread)), name
    honest = {
        names_of(thread)[0]: make(ada.store, tip_of(ada.ledger, thread))
        for _, make in HONEST
        if (thread := make_tour(ada.ledger, ada.folder))
    }

    answer = send(ada, server, forged)

    assert answer.by_git.keys() == made.keys()
    # Of what it found to be incomplete, a git need not even ask the hook.
    by_git = {ref for ref, why in answer.by_git.items() if "missing" in why}
    assert answer.by_hook.keys() | by_git == made.keys()
    assert refs_of(server) == {}
    assert set(server.rglob("*")) == before
    done = push(ada, server, *(f"{oid}:{ref}" for ref, oid in honest.items()))
    assert done.returncode == 0, done.stderr
    assert refs_of(server) == honest


def test_approvals_that_the_program_would_not_make_are_refused(
    ada: Person, server: Path
) -> None:
    thread = ada.begin(DONE, BAD, DONE, BAD)
    made: dict[str, Oid] = {}
    for number, back, tagger, text in (
        (1, "~3", "\x1b[2JE\u009bve\u202e <a@b> 1800000099 +0000", "ok\n"),
        (2, "~2", "Ada <a@b> 99999999999999999999 +0000", "ok\n"),
        (3, "~1", "Ada <a@b> 1800000099 +9999", "ok\n"),
        (4, "", "Ada <a@b> 1800000099 +0000", "\x1b]0;pwned\x07ok\n"),
        (5, "", "Ada <a@b> 1800000099 +0000", "ok\n"),
        (99999, "", "Ada <a@b> 1800000099 +0000", "ok\n"),
    ):
        target = git(ada.store, "rev-parse", f"thread/{thread}{back}").strip()
        tag = f"approved/{thread}/{number}"
        head = f"object {target}\ntype commit\ntag {tag}\ntagger {tagger}"
        data = f"{head}\n\n{text}".encode()
        made[f"refs/tags/{tag}"] = write(ada.store, ObjectType.TAG, data)
    assert push(ada, server, spec(thread)).returncode == 0

    answer = send(ada, server, made)

    assert answer.by_hook.keys() == made.keys()
    assert refs_of(server).keys() == {f"refs/heads/thread/{thread}"}


def test_beside_code_nothing_may_stand_in_the_way_of_threads(
    ada: Person, server: Path
) -> None:
    git(server, "config", "uwf.shared", "true")
    tip = ada.tip(ada.begin(DONE))
    assert tip is not None
    names = ("heads/thread", "heads/workflow", "heads/uwf", "tags/approved", "uwf")
    below = ("uwf/thread", "uwf/workflow", "uwf/approved")
    refs = {f"refs/{name}": tip for name in (*names, *below)}

    answer = send(ada, server, refs)

    assert (answer.by_hook.keys(), refs_of(server)) == (refs.keys(), {})


def test_beside_code_what_stood_in_the_way_of_reviews_may_go(
    ada: Person, server: Path
) -> None:
    git(server, "config", "uwf.shared", "true")
    thread = ada.begin(DONE)
    (server / "hooks" / "pre-receive").rename(server / "pre-receive")
    assert push(ada, server, f"thread/{thread}:refs/heads/uwf").returncode == 0
    (server / "pre-receive").rename(server / "hooks" / "pre-receive")

    done = push(ada, server, ":refs/heads/uwf")
    review = push(ada, server, f"thread/{thread}:refs/heads/uwf/{thread}")

    assert (done.returncode, review.returncode) == (0, 0), done.stderr + review.stderr


def test_a_fork_with_the_subject_of_a_step_is_refused(
    ada: Person, server: Path
) -> None:
    tip = tip_of(ada.ledger, make_tour(ada.ledger, ada.folder))
    ref = f"refs/heads/thread/{FORK}"

    lies = forked(ada.store, tip, change=subject("critic: good"))
    bad = push(ada, server, f"{lies}:{ref}")
    good = push(ada, server, f"{forked(ada.store, tip)}:{ref}")

    assert (bad.returncode, good.returncode) == (1, 0), bad.stderr + good.stderr
    assert "[message]" in bad.stderr
