from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.acting import acting, failure, saying
from tests.builders import Clock, begin, git, make_ledger, reply
from tests.keys import Keys, make_keys, needs_ssh, signing
from uwfgit.agents.base import AgentReply, AgentRequest
from uwfgit.engine.run.executor import exec_thread, poke_thread, resume_thread
from uwfgit.engine.run.hold import ask_to_pause
from uwfgit.engine.run.thread import cancel_thread, fork_thread
from uwfgit.errors import ConfigError, StoreError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.git.enclosing import find_enclosing
from uwfgit.store.git.settings import read_settings
from uwfgit.store.git.signing import Mode, Signer, Signing, read_signing, sign_commit
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_ref
from uwfgit.store.locks.flock import read_holder
from uwfgit.store.repository import init_store, open_store

pytestmark = needs_ssh

DONE = reply("done", plan="x")
BAD = reply("bad", reason="slow")
GOOD = reply("good")
ASK = reply("$SUSPEND", reason="Which one?")

Signed = Callable[[Mode], Ledger]


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return make_keys(tmp_path / "keys", ada="ada@example.com")


@pytest.fixture
def at(ledger: Ledger, keys: Keys) -> Signed:
    """Give the ledger with a time to sign."""
    assert keys.folder.is_dir()
    return lambda mode: replace(ledger, signer=signing(mode))


def grades(store: Store, thread: ThreadId) -> str:
    """Give git's grade of each event, the oldest first: G is good, N is none."""
    ref = thread_ref(thread)
    told = git(store, "log", "--first-parent", "--reverse", "--format=%G?", ref)
    return "".join(told.split()[1:])


def run(
    ledger: Ledger, thread: ThreadId, *replies: str | AgentReply, most: int | None
) -> None:
    exec_thread(acting(ledger, saying(*replies)), thread, count=most)


@pytest.mark.parametrize(
    ("mode", "replies", "most", "wanted"),
    [
        pytest.param("steps", (DONE, BAD, DONE), 3, "GGGG", id="every event"),
        pytest.param("tip", (DONE, BAD, DONE), 3, "GNNG", id="the last of a count"),
        pytest.param("tip", (DONE, BAD, DONE, GOOD), 9, "GNNNG", id="the end"),
        pytest.param("tip", (DONE, ASK), 9, "GNG", id="one that waits"),
        pytest.param("tip", (DONE, failure()), 9, "GNG", id="a failed try"),
        pytest.param("never", (DONE, GOOD), None, "NNN", id="none"),
    ],
)
def test_what_is_signed_of_a_run(
    at: Signed,
    tmp_path: Path,
    mode: Mode,
    replies: tuple[str | AgentReply, ...],
    most: int | None,
    wanted: str,
) -> None:
    ledger = at(mode)
    thread = begin(ledger, tmp_path).thread

    run(ledger, thread, *replies, most=most)

    assert grades(ledger.store, thread) == wanted


def test_the_step_before_a_pause_is_signed(at: Signed, tmp_path: Path) -> None:
    ledger = at("tip")
    thread = begin(ledger, tmp_path).thread

    def act(request: AgentRequest) -> str:
        holder = read_holder(ledger.store.locks / thread)
        if request.number == 2 and holder is not None:
            ask_to_pause(ledger, thread, holder)
        return BAD if request.role == "critic" else DONE

    exec_thread(acting(ledger, act), thread, count=9)

    assert grades(ledger.store, thread) == "GNG"


def test_commands_of_one_event_sign_it(at: Signed, tmp_path: Path) -> None:
    ledger = at("tip")
    thread = begin(ledger, tmp_path).thread
    run(ledger, thread, DONE, most=1)
    poke_thread(acting(ledger, saying(ASK)), thread, note="again")
    resume_thread(acting(ledger, saying(DONE)), thread, note="this one")
    fork = fork_thread(ledger, thread).thread
    cancel_thread(ledger, fork, reason="no", command="test")

    assert grades(ledger.store, fork) == "GGGGGG"


def test_a_signature_is_all_that_differs(tmp_path: Path, keys: Keys) -> None:
    assert keys.folder.is_dir()
    said = reply("done", "Ünicode — and a *body*\n\n\n  with blank lines. \n", plan="ß")
    found = []
    modes: tuple[Mode, ...] = ("never", "steps")
    for mode in modes:
        home, path = tmp_path / mode / "home", tmp_path / mode / "store"
        init_store(path, home=home, fsync=False)
        store = open_store(path, home=home, write=True, fsync=False)
        clock = Clock(count(1_800_000_000_000, 1000))
        ledger = make_ledger(store, clock, utc_offset=-210)
        thread = begin(ledger, tmp_path).thread
        ledger = replace(ledger, signer=signing(mode))
        run(ledger, thread, said, most=1)
        found.append(git(store, "cat-file", "commit", thread_ref(thread)))
    plain, signed = found

    assert plain == re.sub(r"gpgsig [^\n]*\n(?: [^\n]*\n)*", "", signed)


def test_nothing_runs_when_it_could_not_be_signed(
    at: Signed, tmp_path: Path, keys: Keys
) -> None:
    ledger = at("tip")
    thread = begin(ledger, tmp_path).thread
    keys.set("user.signingkey=/nowhere/key")
    asked: list[AgentRequest] = []

    def act(request: AgentRequest) -> str:
        asked.append(request)
        return DONE

    with pytest.raises(StoreError, match=r"cannot sign: .*/nowhere/key"):
        exec_thread(acting(ledger, act), thread, count=1)

    assert (asked, grades(ledger.store, thread)) == ([], "G")


def test_an_event_without_a_reply_is_not_written_unsigned(
    at: Signed, tmp_path: Path, keys: Keys
) -> None:
    ledger = at("tip")
    thread = begin(ledger, tmp_path).thread
    before = git(ledger.store, "for-each-ref")
    keys.set("user.signingkey=/nowhere/key")

    with pytest.raises(StoreError):
        cancel_thread(ledger, thread, reason=None, command="test")
    with pytest.raises(StoreError):
        begin(ledger, tmp_path)

    assert git(ledger.store, "for-each-ref") == before


@pytest.mark.parametrize("is_attempt", [False, True])
def test_a_reply_is_kept_when_the_key_goes_meanwhile(
    at: Signed, tmp_path: Path, keys: Keys, *, is_attempt: bool
) -> None:
    ledger, told = at("tip"), list[str]()
    ledger.signer.warn = told.append
    thread = begin(ledger, tmp_path).thread

    def act(_: AgentRequest) -> str | AgentReply:
        keys.make("ada").unlink()
        return failure("it broke") if is_attempt else DONE

    exec_thread(acting(ledger, act), thread, count=1)

    assert grades(ledger.store, thread) == "GN"
    assert [each.partition(":")[0] for each in told] == ["kept, but not signed"]


# Python leaves a child that an interrupt found for later.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_while_it_is_signed_loses_no_reply(
    at: Signed, tmp_path: Path, keys: Keys
) -> None:
    ledger, told = at("steps"), list[str]()
    ledger.signer.warn = told.append
    thread = begin(ledger, tmp_path).thread
    program = tmp_path / "interrupts"
    # ssh-keygen waits for a passphrase; whoever should type it has had enough.
    program.write_text("#!/bin/sh\nkill -INT $(ps -o ppid= $PPID)\nexec sleep 1\n")
    program.chmod(0o755)

    def act(_: AgentRequest) -> str:
        keys.set(f"gpg.ssh.program={program}")
        return DONE

    exec_thread(acting(ledger, act), thread, count=1)

    keys.set("gpg.ssh.program=ssh-keygen")
    assert grades(ledger.store, thread) == "GN"
    assert told == ["kept, but not signed: cannot sign: it was interrupted"]


def test_the_probe_leaves_nothing(at: Signed, tmp_path: Path) -> None:
    ledger = at("steps")
    thread = begin(ledger, tmp_path).thread

    run(ledger, thread, DONE, most=1)

    assert git(ledger.store, "fsck", "--unreachable", "--no-reflogs") == ""
    assert list((ledger.store.state_dir / "scratch").iterdir()) == []


def test_without_signing_no_git_is_asked(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer = signing("never")
    signer.environment = {"PATH": ""}
    monkeypatch.setenv("PATH", "")
    ledger = replace(ledger, signer=signer)
    thread = begin(ledger, tmp_path).thread

    run(ledger, thread, DONE, BAD, DONE, most=3)


@pytest.mark.parametrize(
    ("user", "repository", "own", "wanted"),
    [
        pytest.param({}, {}, {}, "never", id="nothing said"),
        pytest.param({"commit.gpgsign": "true"}, {}, {}, "tip", id="as git signs"),
        pytest.param(
            {"commit.gpgsign": "false"}, {}, {}, "never", id="as git does not"
        ),
        pytest.param({}, {"commit.gpgsign": "1"}, {}, "tip", id="as git signs here"),
        pytest.param(
            {"commit.gpgsign": "true", "uwf.sign": "never"}, {}, {}, "never", id="said"
        ),
        pytest.param({"uwf.sign": "Steps"}, {}, {}, "steps", id="in any case"),
        pytest.param(
            {"uwf.sign": "steps"}, {"uwf.sign": "tip"}, {}, "tip", id="here otherwise"
        ),
        pytest.param(
            {"uwf.sign": "steps"},
            {"uwf.sign": "tip"},
            {"uwf.sign": "never"},
            "never",
            id="in this store otherwise",
        ),
        pytest.param(
            {}, {}, {"commit.gpgsign": "true"}, "never", id="not as the store would"
        ),
    ],
)
def test_where_it_is_said_when_to_sign(
    tmp_path: Path,
    store: Store,
    user: dict[str, str],
    repository: dict[str, str],
    own: dict[str, str],
    wanted: str,
) -> None:
    folder = make_repository(tmp_path / "code")
    configure(store.path / "config", own)
    configure(folder / ".git" / "config", repository)
    configure(tmp_path / "home" / ".gitconfig", user)

    assert read(store, folder).mode == wanted


def test_another_word_is_refused(tmp_path: Path, store: Store) -> None:
    configure(store.path / "config", {"uwf.sign": "always"})

    with pytest.raises(ConfigError, match=r"uwf\.sign: 'always' is none of"):
        read(store, make_repository(tmp_path / "code"))


def test_a_repository_may_choose_the_key_but_no_program(
    tmp_path: Path, store: Store, keys: Keys, clock: Clock
) -> None:
    folder, trap = make_repository(tmp_path / "code"), tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/owned\n")
    trap.chmod(0o755)
    configure(
        folder / ".git" / "config",
        {
            "uwf.sign": "steps",
            "user.signingkey": str(keys.make("other")),
            "gpg.ssh.program": str(trap),
            "gpg.ssh.defaultKeyCommand": str(trap),
        },
    )
    keys.allow(ada="ada@example.com", other="other@example.com")
    signer = Signer(
        signing=lambda: read(store, folder), make=sign_commit, environment=os.environ
    )
    ledger = make_ledger(store, clock, signer=signer)

    thread = begin(ledger, tmp_path).thread

    signed_by = git(store, "log", "-1", "--format=%G? %GS", thread_ref(thread))
    assert signed_by == "G other@example.com\n"
    assert not (tmp_path / "owned").exists()


def make_repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def configure(file: Path, settings: dict[str, str]) -> None:
    for key, value in settings.items():
        subprocess.run(["git", "config", "-f", str(file), key, value], check=True)


def read(store: Store, folder: Path) -> Signing:
    settings = read_settings(os.environ, enclosing=find_enclosing(folder))
    return read_signing(settings, store=store.path)
