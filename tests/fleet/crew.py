"""Workers whose steps are functions, with a clock that tests turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from tests.sync.people import DONE, WIRE, Person
from uwfgit.errors import StateError
from uwfgit.fleet.hands import RunResult, Terms
from uwfgit.fleet.queue import Contents, Queue
from uwfgit.fleet.steer import put_all
from uwfgit.fleet.worker import Worker
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.thread.tip import Tip, load_tip
from uwfgit.store.layout import thread_ref
from uwfgit.sync.diverged.diverge import set_aside
from uwfgit.sync.exchange.queue_entry import Entry
from uwfgit.sync.exchange.remotes import get_remote
from uwfgit.sync.exchange.transport import list_refs_there


@dataclass(slots=True)
class Step:
    """A step that is over when the test says so; its work was done at once."""

    is_over: bool = True
    ran: int = 1
    did: list[str] = field(default_factory=list)

    def poll(self) -> RunResult | None:
        return RunResult(ran=self.ran) if self.is_over else None

    def stop(self) -> None:
        self.did.append("stop")
        self.is_over = True

    def kill(self) -> None:
        self.did.append("kill")
        self.is_over = True

    def freeze(self) -> None:
        self.did.append("freeze")

    def thaw(self) -> None:
        self.did.append("thaw")


@dataclass(slots=True)
class ActingHands:
    """Hands that run each step in the test's own process."""

    person: Person
    says: list[str] = field(default_factory=list)
    """What agents say, in turn; the last for ever."""
    by_role: Mapping[str, str] = field(default_factory=dict)
    """What each role says, whatever the turn."""
    slow: bool = False
    each_ran: int = 1
    """How many steps one took, with those of threads that did it."""
    suspect: Mapping[ThreadId, str] = field(default_factory=dict)
    secret: str | None = None
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    """How many steps of a claim each start was told of."""

    def pull(self, thread: ThreadId) -> str | None:
        self.person.pull(only=thread)
        return None

    def distrust_entry(self, entry: Entry) -> str | None:
        return self.suspect.get(entry.state.thread)

    def distrust_thread(self, _: Tip) -> str | None:
        return None

    def start(self, tip: Tip, *, taken: int) -> Step:
        self.taken.append(taken)
        said = self.by_role.get(tip.state.current_role or "")
        if said is None:
            said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if tip.state.status == "suspended":
            self.person.resume(tip.thread, said)
        else:
            self.person.go(tip.thread, said)
        self.steps.append(Step(is_over=not self.slow, ran=self.each_ran))
        return self.steps[-1]

    def blocked(self, _thread: ThreadId, _new: Oid, _old: Oid) -> str | None:
        return self.secret

    def send_children(self, _thread: ThreadId) -> str | None:
        return None

    def send_beside(self, thread: ThreadId) -> None:
        self.told.append(("beside", {"thread": thread}))

    def set_aside(self, thread: ThreadId, base: Oid) -> ThreadId | None:
        self.person.pull(only=thread)
        try:
            done = self.person.resolve(thread, "both")
        except StateError:
            aside = set_aside(self.person.ledger, thread, base=base, command="test")
            return aside.copy.thread if aside and aside.copy else None
        return done.copy.thread if done.copy else None

    def tell(self, event: str, **facts: str | float | None) -> None:
        self.told.append((event, facts))

    def events(self) -> list[str]:
        return [event for event, _ in self.told if event != "beside"]


_BEGINS_MS = 1_800_000_000_000


@dataclass(slots=True)
class Watch:
    """The clocks of a machine, which stand still until they are turned."""

    now: float = 1000.0
    slept: float = 0.0
    """Seconds that only the wall clock has seen."""

    def __call__(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return _BEGINS_MS + int((self.now + self.slept) * 1000)


def make_queue(person: Person) -> Queue:
    return Queue(
        ledger=person.ledger, remote=get_remote(person.store, "origin"), wire=WIRE
    )


def make_worker(
    person: Person,
    *says: str,
    watch: Watch | None = None,
    terms: Mapping[str, Any] | None = None,
    **hands: Any,  # noqa: ANN401 - as ActingHands takes them
) -> tuple[Worker, ActingHands]:
    watch = watch or Watch()
    person.ledger = replace(person.ledger, now_ms=watch.wall_ms)
    acting = ActingHands(person, says=list(says or (DONE,)), **hands)
    given = Terms(name=f"of-{person.folder.name}", poll=0.0, lease=60)
    worker = Worker(
        queue=make_queue(person),
        hands=acting,
        terms=replace(given, **(terms or {})),
        monotonic=watch,
        choose=lambda entries: entries[0],
        sleep=lambda _: None,
        jitter=lambda: 0.0,
    )
    return worker, acting


def queue_thread(person: Person, *replies: str) -> ThreadId:
    """Start a thread, push it, and put it into the queue."""
    thread = person.begin(*replies)
    person.push(thread)
    assert put(person, thread) is None
    return thread


def put(person: Person, thread: ThreadId) -> str | None:
    """Put a thread into the queue; say why it could not be."""
    queue = make_queue(person)
    return put_all(queue, queue.fetch(), [load_tip(person.store, thread)])[thread]


def contents(person: Person) -> Contents:
    return make_queue(person).fetch()


def word_of(person: Person, thread: ThreadId) -> str:
    return contents(person).entries[thread].state.word


def tip_there(person: Person, thread: ThreadId) -> Oid:
    remote = get_remote(person.store, "origin")
    refs = list_refs_there(WIRE, remote.url, name="origin", git_dir=person.store.path)
    return refs[remote.theirs(thread_ref(thread))]
