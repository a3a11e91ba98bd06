"""Secrets do not leave: by push, by plain git, by uwf git or in a bundle."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.acting import acting
from tests.builders import git, reply
from tests.history import names
from tests.planted import GITHUB, PEM, URL
from tests.sync.people import DONE, Person, make_bare, make_person, refs_of
from uwfgit.agents.base import AgentReply, Turn
from uwfgit.engine.run.executor import exec_thread
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.ids import ThreadId
from uwfgit.store.layout import thread_ref
from uwfgit.store.repository import open_store
from uwfgit.store.safety.trust import HOOKS
from uwfgit.sync.secrets.text import scan_text

pytestmark = pytest.mark.compat
BIN: Final = Path(sys.executable).parent


@pytest.fixture
def ada(tmp_path: Path) -> Person:
    person = make_person(tmp_path, "ada")
    person.join(make_bare(tmp_path / "remote.git"))
    return person


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return tmp_path / "remote.git"


def call(
    person: Person, *words: str, path: str | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program as this person would in their shell."""
    return subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd or person.folder,
        env={
            **os.environ,
            "UWF_HOME": str(person.store.path.parent / ".uwf"),
            "PATH": f"{BIN}:{os.environ['PATH']}" if path is None else path,
        },
    )


def uwf(person: Person, *words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "uwfgit", "--store", str(person.store.path))
    return call(person, *command, *words, cwd=Path(__file__).parents[2])


def plain_push(person: Person, *words: str) -> subprocess.CompletedProcess[str]:
    return call(person, "git", f"--git-dir={person.store.path}", "push", *words)


Plant = Callable[[Person, str], ThreadId]


def asked(ada: Person, text: str) -> ThreadId:
    return ada.begin(prompt=f"Use {text}")


def output(ada: Person, text: str) -> ThreadId:
    return ada.begin(reply(plan=text))


def body(ada: Person, text: str) -> ThreadId:
    return ada.begin(reply(plan="x", body=f"It is {text}"))


def turn(ada: Person, text: str) -> ThreadId:
    thread = ada.begin()
    turns = (Turn(index=0, role="assistant", content=text, at_ms=1),)
    exec_thread(
        acting(ada.ledger, lambda _: AgentReply(text=DONE, turns=turns)),
        thread,
        count=1,
    )
    return thread


def complaint(ada: Person, text: str) -> ThreadId:
    """Let an agent end badly, with it at the end of what it wrote to stderr."""
    thread = ada.begin()
    script = ada.folder / "agent"
    script.write_text(f"#!/bin/sh\ncat >/dev/null\ncat >&2 <<'E'\n{text}\nE\nexit 3\n")
    script.chmod(0o700)
    agent = f"stdio:{script}"
    call(
        ada,
        *(sys.executable, "-m", "uwfgit", "--store", str(ada.store.path)),
        *("thread", "exec", thread, "--agent", agent),
    )
    assert names(ada.store, thread)[-1] == "attempt"
    return thread


def reason(ada: Person, text: str) -> ThreadId:
    thread = ada.begin(DONE)
    cancel_thread(ada.ledger, thread, reason=f"Leaked: {text}", command="test")
    return thread


def note(ada: Person, text: str) -> ThreadId:
    thread = ada.begin(DONE)
    ada.poke(thread, DONE, note=f"Take {text}")
    return thread


def inherited(ada: Person, text: str) -> ThreadId:
    return fork_thread(ada.ledger, body(ada, text)).thread


def ways_out(
    person: Person, remote: Path, thread: ThreadId
) -> dict[str, subprocess.CompletedProcess[str]]:
    """Try each way in which a thread can leave this machine."""
    ref, bundle = thread_ref(thread), str(person.folder / "threads.bundle")
    return {
        "push": uwf(person, "push", thread, "--json"),
        "plain push": plain_push(person, "origin", ref),
        "all, as configured": plain_push(person, "origin"),
        "uwf git push": uwf(person, "git", "push", "origin", ref),
        "another address": plain_push(person, str(remote), ref),
        "bundle": uwf(person, "bundle", "create", bundle, thread),
        "review": uwf(person, "review", "open", thread),
    }


def kept_beside(person: Person) -> bytes:
    """Give what stands in logs and in the lookup."""
    state = person.store.state_dir
    files = [*state.glob("logs/**/*"), *state.glob("lookup.sqlite3*")]
    return b"\n".join(file.read_bytes() for file in files if file.is_file())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "text"),
    [
        *(
            pytest.param(plant, GITHUB, id=f"token in {plant.__name__}")
            for plant in (asked, output, body, turn, complaint, reason, note, inherited)
        ),
        pytest.param(body, json.dumps({"key": PEM}), id="key in JSON"),
        pytest.param(complaint, json.dumps({"key": PEM}), id="end of a key in JSON"),
        pytest.param(complaint, b64encode(PEM.encode()).decode(), id="end of base64"),
        pytest.param(turn, b64encode(GITHUB.encode()).decode(), id="base64"),
        pytest.param(asked, URL, id="remote's URL"),
    ],
)
def test_no_way_out_takes_a_secret_along_or_shows_it(
    ada: Person, remote: Path, plant: Plant, text: str
) -> None:
    thread = plant(ada, text)
    before = refs_of(remote)

    ways = ways_out(ada, remote, thread)

    secrets = {match.secret for match in scan_text(text)}
    rules = {match.rule for match in scan_text(text)}
    for name, done in ways.items():
        said = done.stdout + done.stderr
        assert done.returncode == 1, name
        assert re.search(rf"[0-9a-zA-Z]:\d+: (?:{'|'.join(rules)}) ", said), name
        assert re.search(r"uwf thread redact [0-9A-Z]{26}", said), name
        assert not any(part in said for part in secrets | {text}), name
        assert not any(line in said for line in PEM.splitlines()[1:-1]), name
    assert refs_of(remote) == before
    assert list(ada.folder.glob("*.bundle")) == []
    assert text.encode() not in kept_beside(ada)


def test_a_secret_in_an_approval_s_message_stays(ada: Person, remote: Path) -> None:
    thread = ada.begin(DONE)
    uwf(ada, "review", "approve", thread, "--no-sign", "-m", f"as {GITHUB} says")
    (tag,) = (ref for ref in refs_of(ada.store) if ref.startswith("refs/tags/"))

    ours = uwf(ada, "push", thread)
    plain = plain_push(ada, "origin", tag)
    bundle = uwf(ada, "bundle", "create", str(ada.folder / "x"), thread)

    for done in (ours, plain, bundle):
        assert done.returncode == 1
        assert "github-token ghp_" in done.stdout + done.stderr
        assert GITHUB not in done.stdout + done.stderr
    assert set(refs_of(remote)) == {"refs/heads/main", thread_ref(thread)}
    assert not (ada.folder / "x").exists()


def test_what_is_clean_leaves_by_plain_git(ada: Person, remote: Path) -> None:
    thread = ada.begin(reply(plan="x"))

    done = plain_push(ada, "origin", thread_ref(thread))

    assert done.returncode == 0, done.stderr
    assert refs_of(remote)[thread_ref(thread)] == ada.tip(thread)


def test_a_deleted_branch_is_nothing_to_scan(ada: Person, remote: Path) -> None:
    thread = ada.begin(reply(plan="x"))
    plain_push(ada, "origin", thread_ref(thread))

    done = plain_push(ada, "origin", f":{thread_ref(thread)}")

    assert done.returncode == 0, done.stderr
    assert thread_ref(thread) not in refs_of(remote)


def test_without_uwf_on_the_path_nothing_is_sent(ada: Person, remote: Path) -> None:
    thread = ada.begin(reply(plan="x"))
    command = ("git", f"--git-dir={ada.store.path}", "push", "origin")

    done = call(ada, *command, thread_ref(thread), path="/usr/bin:/bin")

    assert done.returncode == 1
    assert "uwf is not on your PATH" in done.stderr
    assert "hint: put uwf on your PATH" in done.stderr
    assert refs_of(remote) == {}


@pytest.mark.parametrize("place", ["store", "above", "elsewhere"])
def test_the_hook_finds_its_store_wherever_git_was_called(
    ada: Person, tmp_path: Path, place: str
) -> None:
    thread = ada.begin(reply(plan=GITHUB))
    store = ada.store.path
    words = {
        "store": (["git"], store),
        "above": (["git", f"--git-dir={store.name}"], store.parent),
        "elsewhere": (["git", f"--git-dir={store}"], tmp_path),
    }[place]

    done = call(ada, *words[0], "push", "origin", thread_ref(thread), cwd=words[1])

    assert done.returncode == 1
    assert "github-token" in done.stderr


def test_a_finding_that_is_none_can_be_let_through(ada: Person, remote: Path) -> None:
    thread = ada.begin(reply(plan=GITHUB))
    (secret,) = scan_text(GITHUB)

    wrong = uwf(ada, "hooks", "allow", "nonsense")
    allowed = uwf(ada, "hooks", "allow", secret.id, "--json")
    done = plain_push(ada, "origin", thread_ref(thread))

    assert wrong.returncode == 1
    assert json.loads(allowed.stdout) == {"allowed": [secret.id]}
    assert done.returncode == 0, done.stderr
    assert thread_ref(thread) in refs_of(remote)


def test_push_lets_a_finding_through_that_it_is_told(ada: Person, remote: Path) -> None:
    thread = ada.begin(reply(plan=GITHUB))
    (secret,) = scan_text(GITHUB)

    done = uwf(ada, "push", thread, "--allow", secret.id)

    assert done.returncode == 0, done.stderr
    assert thread_ref(thread) in refs_of(remote)
    assert plain_push(ada, "origin").returncode == 0


def test_only_the_thread_with_the_secret_stays(ada: Person, remote: Path) -> None:
    clean = [ada.begin(reply(plan="x")) for _ in range(3)]
    dirty = ada.begin(reply(plan=GITHUB))

    done = uwf(ada, "push", "--all", "--json")

    sent = {ThreadId(ref.rpartition("/")[2]) for ref in refs_of(remote)} - {"main"}
    assert done.returncode == 1
    assert sent == {*clean}
    assert dirty not in sent


def test_a_store_without_the_hook_gets_it_when_it_is_opened_for_writing(
    ada: Person,
) -> None:
    hook = ada.store.path / "hooks" / "pre-push"
    home = ada.store.path.parent / ".uwf"
    hook.unlink()
    open_store(ada.store.path, home=home)
    assert not hook.exists()

    open_store(ada.store.path, home=home, write=True)

    assert hook.read_bytes() == HOOKS["pre-push"]
    assert os.access(hook, os.X_OK)
    hook.chmod(0o600)
    open_store(ada.store.path, home=home, write=True)
    assert os.access(hook, os.X_OK)


def test_a_plain_bare_clone_gets_the_hook_when_it_is_completed(
    ada: Person, tmp_path: Path
) -> None:
    clone = tmp_path / "clone.git"
    git(ada.store, "clone", "--quiet", "--bare", str(ada.store.path), str(clone))

    done = call(ada, str(BIN / "uwf"), "init", "--store", str(clone))

    assert done.returncode == 0, done.stderr
    assert (clone / "hooks" / "pre-push").read_bytes() == HOOKS["pre-push"]
    assert uwf(ada, "store", "path").returncode == 0


def test_what_git_says_must_have_its_form(ada: Person) -> None:
    command = (sys.executable, "-m", "uwfgit", "--store", str(ada.store.path))
    done = subprocess.run(
        [*command, "hooks", "pre-push", "origin", "url"],
        check=False,
        capture_output=True,
        text=True,
        input="refs/heads/x nonsense y z\n",
        cwd=Path(__file__).parents[2],
        env={**os.environ, "UWF_HOME": str(ada.store.path.parent / ".uwf")},
    )

    assert done.returncode == 2


@pytest.mark.parametrize(
    ("words", "way"),
    [
        pytest.param("send-pack URL REF", "uwf push", id="send-pack"),
        pytest.param("--no-pager send-pack URL REF", "uwf push", id="options before"),
        pytest.param("-c alias.zz=send-pack zz URL REF", "uwf push", id="alias"),
        pytest.param(
            "-c alias.a=b -c alias.b=send-pack a URL REF", "uwf push", id="two aliases"
        ),
        pytest.param("-c alias.Zz=send-pack zZ URL REF", "uwf push", id="alias's case"),
        pytest.param("http-push URL REF", "uwf push", id="http-push"),
        pytest.param("remote-https origin URL", "uwf push", id="remote helper"),
        pytest.param("bundle create FILE REF", "uwf bundle create", id="bundle"),
        pytest.param("bundle -q create FILE REF", "uwf bundle create", id="quiet"),
        pytest.param(
            "-c alias.b=bundle b create FILE REF",
            "uwf bundle create",
            id="bundle alias",
        ),
        pytest.param("daemon --export-all", "uwf push", id="daemon"),
        pytest.param("upload-pack .", "uwf push", id="upload-pack"),
        pytest.param("send-email REF", "uwf push", id="mail"),
        pytest.param("-c alias.x=!git x URL", "the git command itself", id="shell"),
    ],
)
def test_git_sends_by_nothing_but_a_push(
    ada: Person, remote: Path, words: str, way: str
) -> None:
    thread = ada.begin(reply(plan=GITHUB))
    file = ada.folder / "threads.bundle"
    for name, value in (("URL", remote), ("REF", thread_ref(thread)), ("FILE", file)):
        words = words.replace(name, str(value))

    done = uwf(ada, "git", *words.split())

    assert done.returncode == 2
    assert done.stderr.count("\n") == 2
    assert way in done.stderr.partition("hint: ")[2]
    assert refs_of(remote) == {}
    assert not file.exists()


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("-c", "alias.zz=push", "zz"), id="alias"),
        pytest.param(("-c", "alias.zz=-p push --quiet", "zz"), id="alias with options"),
        pytest.param(("-c", "core.hooksPath=/dev/null", "push"), id="other hooks"),
        pytest.param(("-c", "help.autocorrect=immediate", "pus"), id="a guess"),
    ],
)
def test_a_push_by_another_name_is_scanned(
    ada: Person, remote: Path, words: tuple[str, ...]
) -> None:
    thread = ada.begin(reply(plan=GITHUB))

    done = uwf(ada, "git", *words, "origin", thread_ref(thread))

    assert done.returncode == 1, done.stderr
    assert refs_of(remote) == {}


def test_an_alias_of_the_users_is_resolved_too(ada: Person, remote: Path) -> None:
    thread = ada.begin(reply(plan=GITHUB))
    git(ada.store, "config", "--global", "alias.give", "send-pack")
    git(ada.store, "config", "--global", "alias.lg", "log --format=%s")
    git(ada.store, "config", "--global", "alias.show", "!false")
    git(ada.store, "config", "--global", "alias.loop", "loop")

    given = uwf(ada, "git", "give", str(remote), thread_ref(thread))
    logged = uwf(ada, "git", "lg", "-1", "main")
    shown = uwf(ada, "git", "show", "--format=%s", "main")
    looped = uwf(ada, "git", "loop")

    assert (given.returncode, refs_of(remote)) == (2, {})
    assert (logged.returncode, logged.stdout) == (0, "uwf store, format 1\n")
    assert shown.returncode == 0, "git knows no alias for a command of its own"
    assert looped.returncode == 128


def test_git_push_without_the_scan_says_so(ada: Person, remote: Path) -> None:
    thread = ada.begin(reply(plan="x"))
    ref = thread_ref(thread)

    done = uwf(ada, "git", "-c", "alias.zz=push --no-verif", "zz", "origin", ref)

    assert done.returncode == 0, done.stderr
    assert "--no-verify: nothing is scanned" in done.stderr
    assert ref in refs_of(remote)


def test_git_push_mends_the_hook_or_sends_nothing(ada: Person, remote: Path) -> None:
    thread = ada.begin(reply(plan=GITHUB))
    hook = ada.store.path / "hooks" / "pre-push"
    push = ("git", "push", "origin", thread_ref(thread))

    hook.unlink()
    mended = uwf(ada, *push)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o600)
    refused = uwf(ada, *push)

    assert "github-token" in mended.stderr
    assert "hint: uwf doctor --fix" in refused.stderr
    assert (mended.returncode, refused.returncode) == (1, 1)
    assert refs_of(remote) == {}


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--version",), id="version"),
        pytest.param(("--no-pager", "log", "-1", "push"), id="a branch named push"),
        pytest.param(("bundle", "list-heads", "gone"), id="bundle"),
    ],
)
def test_other_words_reach_git_as_they_are(ada: Person, words: tuple[str, ...]) -> None:
    ada.begin(DONE)
    git(ada.store, "branch", "push", "main")

    done = uwf(ada, "git", *words)

    plain = call(ada, "git", f"--git-dir={ada.store.path}", *words)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
