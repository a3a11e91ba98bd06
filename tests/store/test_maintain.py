"""gc, counting, and the settings that opening for writing mends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders import begin, git, record_of, reply, run, write_script
from uwfgit.engine.beside.trash import remove_thread
from uwfgit.engine.run.ends import RunEnd
from uwfgit.errors import LockedError, StoreError
from uwfgit.ids import Oid
from uwfgit.model.ledger.keep import put_nodes
from uwfgit.model.ledger.ledger import Ledger, load_node
from uwfgit.model.node import make_text
from uwfgit.store.care import maintain
from uwfgit.store.care.maintain import (
    GcReport,
    Prune,
    collect_garbage,
    count_objects,
)
from uwfgit.store.handle import Store
from uwfgit.store.layout import TRASH_PREFIX, thread_ref
from uwfgit.store.objects import write_blob
from uwfgit.store.pack import estimate_loose
from uwfgit.store.refs import find_ref
from uwfgit.store.repository import open_store

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
HOST = socket.gethostname()
WEEKS = 15 * 24 * 3600


def collect(store: Store, prune: Prune = "never") -> GcReport:
    return collect_garbage(
        store, prune=prune, environment=ENVIRONMENT, on_phase=lambda _: None
    )


def age_objects(store: Store, seconds: float) -> None:
    """Let all object files look that old."""
    then = time.time() - seconds
    for path in (store.path / "objects").rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def exists(store: Store, oid: Oid) -> bool:
    # A new handle: libgit2 remembers what it has read.
    done = subprocess.run(
        ["git", f"--git-dir={store.path}", "cat-file", "-e", oid],
        check=False,
        capture_output=True,
    )
    return done.returncode == 0


@pytest.fixture
def thread_tip(ledger: Ledger, tmp_path: Path) -> Oid:
    """A thread with two steps; gives its newest commit."""
    folder = tmp_path / "scripts"
    folder.mkdir()
    tip = begin(ledger, tmp_path)
    agent = write_script(
        folder, {"worker": [reply(plan="A")], "critic": [reply("bad", reason="B")]}
    )
    assert run(ledger, tip.thread, agent, count=2).end is RunEnd.DONE
    found = find_ref(ledger.store, thread_ref(tip.thread))
    assert found is not None
    return found


def test_gc_packs_every_object_and_every_ref(ledger: Ledger, thread_tip: Oid) -> None:
    store = ledger.store
    before = count_objects(store.path)

    report = collect(store)

    after = count_objects(store.path)
    assert (before.packs, after.loose, after.packs) == (3, 0, 1)
    assert report == GcReport(
        threads=1,
        refs=2,
        objects_before=before.objects,
        objects_after=after.packed,
        bytes_before=before.size,
        bytes_after=after.size,
    )
    assert not list((store.path / "refs" / "heads").rglob("0*"))
    assert git(store, "rev-parse", "HEAD") != thread_tip


def test_a_thread_reads_the_same_after_gc(ledger: Ledger, thread_tip: Oid) -> None:
    thread = ledger.lookup.list_threads()[0].thread
    before = record_of(ledger, thread).steps()

    collect(ledger.store, "now")

    assert record_of(ledger, thread).steps() == before
    assert find_ref(ledger.store, thread_ref(thread)) == thread_tip
    assert git(ledger.store, "fsck", "--strict") == ""


@pytest.mark.parametrize("prune", ["never", "old"])
def test_what_nothing_names_stays_within_the_grace(
    ledger: Ledger, prune: Prune
) -> None:
    oid = write_blob(ledger.store, b"written by somebody who is not done")

    collect(ledger.store, prune)

    assert exists(ledger.store, oid)


@pytest.mark.parametrize(
    ("prune", "stays"), [("never", True), ("old", False), ("now", False)]
)
def test_what_nothing_has_named_for_weeks_goes_with_prune(
    ledger: Ledger, prune: Prune, *, stays: bool
) -> None:
    oid = write_blob(ledger.store, b"left by somebody who was killed")
    age_objects(ledger.store, WEEKS)

    collect(ledger.store, prune)

    assert exists(ledger.store, oid) is stays


def test_prune_now_takes_what_nothing_names(ledger: Ledger) -> None:
    oid = write_blob(ledger.store, b"just written")

    collect(ledger.store, "now")

    assert not exists(ledger.store, oid)


def test_prune_now_leaves_what_is_kept_by_hand(ledger: Ledger) -> None:
    node = make_text("a note")
    put_nodes(ledger, [node])

    collect(ledger.store, "now")

    assert load_node(ledger, node.hash) == node


@pytest.mark.parametrize(
    ("prune", "stays"), [("never", True), ("old", True), ("now", False)]
)
def test_a_thread_removed_just_now_stays_in_the_trash_but_for_prune_now(
    ledger: Ledger, thread_tip: Oid, prune: Prune, *, stays: bool
) -> None:
    thread = ledger.lookup.list_threads()[0].thread
    remove_thread(ledger, thread, command="uwf thread rm")

    collect(ledger.store, prune)

    trashed = find_ref(ledger.store, TRASH_PREFIX + thread)
    assert (trashed == thread_tip) is stays
    assert exists(ledger.store, thread_tip) is stays


def test_a_thread_removed_weeks_ago_leaves_the_trash_with_prune(
    ledger: Ledger, thread_tip: Oid
) -> None:
    thread = ledger.lookup.list_threads()[0].thread
    remove_thread(ledger, thread, command="uwf thread rm")
    log = ledger.store.path / "logs" / TRASH_PREFIX / thread
    stamp = log.read_text().partition("> ")[2].split()[0]
    log.write_text(log.read_text().replace(stamp, str(int(time.time()) - WEEKS)))
    age_objects(ledger.store, WEEKS)

    collect(ledger.store, "old")

    assert find_ref(ledger.store, TRASH_PREFIX + thread) is None
    assert not exists(ledger.store, thread_tip)


@pytest.mark.parametrize("prune", ["never", "old", "now"])
def test_no_list_of_commits_outlives_the_commits_in_it(
    ledger: Ledger, thread_tip: Oid, prune: Prune
) -> None:
    git(ledger.store, "commit-graph", "write", "--reachable")
    thread = ledger.lookup.list_threads()[0].thread
    remove_thread(ledger, thread, command="uwf thread rm")

    collect(ledger.store, prune)

    info = ledger.store.path / "objects" / "info"
    assert not [*info.glob("commit-graph*")]
    assert exists(ledger.store, thread_tip) is (prune != "now")
    git(ledger.store, "fsck", "--strict", "--no-dangling")


def test_prune_now_waits_for_a_writer_and_gives_up_naming_the_store(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintain, "_ALONE_SECONDS", 0.05)
    oid = write_blob(ledger.store, b"in the middle of a step")
    path = ledger.store.locks / "store"
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from uwfgit.store.locks.flock import lock\n"
        "with lock(Path(sys.argv[1]), command='write', shared=True):\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()

        with pytest.raises(LockedError):
            collect(ledger.store, "now")

        writer.communicate()
    assert exists(ledger.store, oid)


def test_without_git_it_says_so(ledger: Ledger) -> None:
    with pytest.raises(StoreError, match="git is not installed"):
        collect_garbage(
            ledger.store, prune="never", environment={}, on_phase=lambda _: None
        )


def test_an_older_git_repacks_plainly(
    ledger: Ledger, thread_tip: Oid, tmp_path: Path
) -> None:
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text(
        '#!/bin/sh\nfor word; do case "$word" in\n'
        "version) echo git version 2.31.1; exit 0;;\n"
        "--geometric*) echo unknown option >&2; exit 129;;\nesac; done\n"
        f'exec env PATH="{os.environ["PATH"]}" git "$@"\n'
    )
    old.chmod(0o700)
    environment = {"PATH": f"{old.parent}{os.pathsep}{os.environ['PATH']}"}

    collect_garbage(
        ledger.store, prune="never", environment=environment, on_phase=lambda _: None
    )

    assert count_objects(ledger.store.path).packs == 1
    assert exists(ledger.store, thread_tip)


def test_a_pack_of_what_nothing_names_is_counted_apart(tmp_path: Path) -> None:
    packs = tmp_path / "objects" / "pack"
    packs.mkdir(parents=True)
    for name in ("pack-a.pack", "pack-b.pack", "pack-b.mtimes"):
        (packs / name).touch()

    counted = count_objects(tmp_path)

    assert (counted.packs, counted.cruft_packs, counted.objects) == (2, 1, 0)


def test_a_failure_of_git_is_one_line(ledger: Ledger, tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "git"
    broken.parent.mkdir()
    broken.write_text(
        '#!/bin/sh\ncase "$*" in *version*) echo git version 2.40.0;;'
        " *) echo fatal: no luck >&2; exit 128;; esac\n"
    )
    broken.chmod(0o700)

    with pytest.raises(StoreError) as caught:
        collect_garbage(
            ledger.store,
            prune="never",
            environment={"PATH": str(broken.parent)},
            on_phase=lambda _: None,
        )

    assert caught.value.message == "git pack-refs failed: fatal: no luck"


@pytest.mark.parametrize(
    ("age", "pid", "host", "stays"),
    [
        pytest.param(2 * 3600, 2**22 + 1, HOST, False, id="of-a-dead-process"),
        pytest.param(60, 2**22 + 1, HOST, True, id="too-young-to-tell"),
        pytest.param(2 * 3600, os.getpid(), HOST, True, id="of-a-living-process"),
        pytest.param(2 * 3600, 2**22 + 1, "other", True, id="of-another-machine"),
    ],
)
def test_a_pack_that_a_killed_process_kept_is_given_free(
    ledger: Ledger, age: int, pid: int, host: str, *, stays: bool
) -> None:
    nodes = [make_text(f"text {number}") for number in range(100)]
    put_nodes(ledger, nodes)
    (pack,) = (ledger.store.path / "objects" / "pack").glob("*.pack")
    keep = pack.with_suffix(".keep")
    keep.write_text(f"uwf pid {pid} on {host}\n")
    os.utime(keep, (time.time() - age, time.time() - age))

    collect(ledger.store)

    assert keep.exists() is stays


def test_a_keep_file_of_somebody_elses_stays(ledger: Ledger) -> None:
    put_nodes(ledger, [make_text(f"text {number}") for number in range(100)])
    (pack,) = (ledger.store.path / "objects" / "pack").glob("*.pack")
    keep = pack.with_suffix(".keep")
    keep.write_text("by hand\n")
    os.utime(keep, (0, 0))

    collect(ledger.store)

    assert keep.read_text() == "by hand\n"


def test_the_phases_are_told(ledger: Ledger) -> None:
    told: list[str] = []

    collect_garbage(
        ledger.store, prune="now", environment=ENVIRONMENT, on_phase=told.append
    )

    assert told == ["packing refs", "expiring reflogs", "packing objects"]


def test_counts_are_those_of_git(ledger: Ledger, thread_tip: Oid) -> None:
    store = ledger.store
    put_nodes(ledger, [make_text(f"text {number}") for number in range(200)])

    count = count_objects(store.path)

    told = dict(
        line.split(": ") for line in git(store, "count-objects", "-v").splitlines()
    )
    assert count.loose == int(told["count"])
    assert (count.packed, count.packs) == (int(told["in-pack"]), int(told["packs"]))
    assert exists(store, thread_tip)


def test_loose_objects_are_guessed_by_one_folder(store: Store) -> None:
    folder = store.path / "objects" / "17"
    folder.mkdir(exist_ok=True)
    before = len(list(folder.iterdir()))
    for number in range(80):
        (folder / f"{number:038x}").touch()

    assert estimate_loose(store.path) == (80 + before) * 256


def test_an_index_that_cannot_be_read_counts_nothing(store: Store) -> None:
    folder = store.path / "objects" / "pack"
    (folder / "pack-1.pack").write_bytes(b"x")
    (folder / "pack-1.idx").write_bytes(b"no index")
    (folder / "pack-2.pack").write_bytes(b"x")

    count = count_objects(store.path)

    assert (count.packs, count.packed) == (2, 0)


def test_opening_for_writing_adds_the_settings_a_store_lacks(
    store: Store, home: Path
) -> None:
    git(store, "config", "--unset", "gc.cruftPacks")
    git(store, "config", "receive.autogc", "true")

    open_store(store.path, home=home)
    assert "cruftpacks" not in git(store, "config", "--list").lower()

    open_store(store.path, home=home, write=True, fsync=False)
    assert git(store, "config", "gc.cruftPacks") == "false\n"
    assert git(store, "config", "receive.autogc") == "true\n"
