"""People with a store each, and a repository between them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.acting import acting, go, saying
from tests.builders import Clock, begin, git, make_ledger, reply
from tests.proof import verify_threads
from uwfgit.engine.run.executor import poke_thread, resume_thread
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.store.git.settings import Identity
from uwfgit.store.handle import Store
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import find_ref
from uwfgit.store.repository import init_store, open_store
from uwfgit.sync.diverged.diverge import Resolved, Way, resolve_thread
from uwfgit.sync.exchange.exchange import RefOutcome
from uwfgit.sync.exchange.incoming import bring_in
from uwfgit.sync.exchange.pull import PullReport, finish, look
from uwfgit.sync.exchange.push import PushReport, Scan, push
from uwfgit.sync.exchange.remotes import RemoteKind, add_remote, get_remote
from uwfgit.sync.exchange.transport import Wire

DONE = reply("done", plan="a plan")
GOOD = reply("good")
BAD = reply("bad", reason="too short")
ASK = reply("$SUSPEND", reason="Which one?")

WIRE = Wire(environment=os.environ)


def let_pass(_: Sequence[tuple[str, Oid, Oid | None]]) -> Mapping[str, str]:
    """Find no secrets."""
    return {}


@dataclass(slots=True)
class Person:
    """Somebody with a store of their own."""

    ledger: Ledger
    folder: Path
    scan: Scan = field(default=let_pass)

    @property
    def store(self) -> Store:
        return self.ledger.store

    def join(
        self, url: Path | str, *, name: str = "origin", kind: RemoteKind = "dedicated"
    ) -> None:
        add_remote(self.store, name, str(url), kind=kind, environment=os.environ)

    def begin(self, *replies: str, **changes: Any) -> ThreadId:  # noqa: ANN401 - as start takes them
        """Start a thread and run as many steps as there are replies."""
        thread = begin(self.ledger, self.folder, **changes).thread
        self.go(thread, *replies)
        return thread

    def go(self, thread: ThreadId, *replies: str) -> None:
        if replies:
            go(self.ledger, thread, *replies)

    def resume(
        self, thread: ThreadId, said: str = DONE, note: str = "The first"
    ) -> None:
        resume_thread(acting(self.ledger, saying(said)), thread, note=note)

    def poke(self, thread: ThreadId, said: str, note: str = "Again") -> None:
        poke_thread(acting(self.ledger, saying(said)), thread, note=note)

    def resolve(
        self, thread: ThreadId, way: Way, *, remote: str | None = None
    ) -> Resolved:
        return resolve_thread(
            self.ledger,
            thread,
            way=way,
            verify=verify_threads,
            command="test",
            remote=remote,
        )

    def push(
        self,
        *threads: ThreadId,
        to: str = "origin",
        **options: Any,  # noqa: ANN401 - as push takes them
    ) -> PushReport:
        return push(
            self.ledger,
            get_remote(self.store, to),
            named=[thread_ref(thread) for thread in threads],
            **{"wire": WIRE, "verify": verify_threads, "scan": self.scan, **options},
        )

    def pull(
        self,
        *,
        of: str = "origin",
        **options: Any,  # noqa: ANN401 - as look takes them
    ) -> PullReport:
        found = look(self.ledger, get_remote(self.store, of), wire=WIRE, **options)
        brought = found.source and bring_in(
            self.ledger,
            found.source,
            wire=WIRE,
            verify=verify_threads,
            command="test",
        )
        report = finish(self.ledger, found, brought or (), wire=WIRE)
        self.ledger.lookup.refresh()
        return report

    def tip(self, thread: ThreadId) -> Oid | None:
        return find_ref(self.store, thread_ref(thread))


def plain_git(person: Person, *args: str) -> str:
    """Run plain git in somebody's store as they would, hooks and all."""
    home = person.store.path.parent / ".uwf"
    done = subprocess.run(
        ["git", f"--git-dir={person.store.path}", *args],
        check=True,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "UWF_HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
    )
    return done.stdout


def smuggle(person: Person, target: Path | str, oid: Oid, ref: str) -> None:
    """Push a commit somewhere past every check of ours."""
    hooks = ("-c", "core.hooksPath=/dev/null")
    git(person.store, *hooks, "push", "--quiet", "-f", str(target), f"{oid}:{ref}")


def approve(
    person: Person,
    thread: ThreadId,
    name: str,
    *,
    tag: str | None = None,
    note: str = "Good.",
) -> str:
    """Make the tag by which somebody approves what a thread is at."""
    ref = f"refs/tags/approved/{thread}/{name}"
    text = (
        f"object {person.tip(thread)}\ntype commit\n"
        f"tag {tag or ref.removeprefix('refs/tags/')}\n"
        f"tagger Ada <ada@example.com> 1800000000 +0000\n\n{note}\n"
    )
    file = person.folder / "tag"
    file.write_text(text)
    oid = git(person.store, "hash-object", "-t", "tag", "-w", str(file)).strip()
    git(person.store, "update-ref", ref, oid)
    return ref


def make_person(folder: Path, name: str, *, hours: int = 0) -> Person:
    """Give somebody a home, a store and a folder; clocks differ by hours."""
    base = folder / name
    (base / "work").mkdir(parents=True)
    init_store(base / "store", home=base / ".uwf", fsync=False)
    store = open_store(base / "store", home=base / ".uwf", write=True, fsync=False)
    start = 1_800_000_000_000 + hours * 3_600_000
    ledger = make_ledger(
        store,
        Clock(itertools.count(start, 1000)),
        identity=Identity(
            name=name.title(), email=f"{name}@example.com", is_default=False
        ),
        random=os.urandom,
    )
    return Person(ledger=ledger, folder=base / "work")


def make_bare(path: Path) -> Path:
    """Make the repository between them."""
    git(path, "init", "--quiet", "--bare", "--initial-branch=main", str(path))
    return path


def refs_of(path: Path | Store) -> dict[str, str]:
    """Give all refs of a repository."""
    lines = git(path, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


def results(outcomes: Iterable[RefOutcome]) -> dict[str, str]:
    """Give what became of each ref, threads by their id."""
    return {outcome.thread or outcome.ref: outcome.result for outcome in outcomes}


def objects_of(store: Store) -> set[str]:
    """Give every object a store has, reachable or not."""
    lines = git(store, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return set(lines.split())
