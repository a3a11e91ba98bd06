"""Children in verify: what a step takes of another thread, and how that is forged."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acting import suspend
from tests.builders import Clock, git, make_ledger, reply
from tests.engine.nested import Play, child, children_of, parent, start
from tests.history import names
from tests.sync.changes import restart
from tests.sync.forge import Change, Draft, amend_step, forge, history
from tests.sync.people import Person, results, smuggle
from tests.sync.tour import Tour, tip_of
from uwfgit.errors import StateError
from uwfgit.ids import Oid, ThreadId
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.node import make_node
from uwfgit.model.thread.family import children_by_node
from uwfgit.model.thread.record import open_record
from uwfgit.model.thread.tip import read_tip
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import is_ancestor
from uwfgit.store.repository import init_store, open_store
from uwfgit.sync.diverged.diverge import set_aside
from uwfgit.sync.receive import ZERO, Push, check_pushes
from uwfgit.sync.verify.verify import verify_thread

START, READY, WAIT, TRY, BUILT_, SENT = range(6)
"""The parent's commits: started, prepared, asked, failed, built, sent."""

REPLIES: Final[dict[str, Any]] = {
    "preparer": [reply("ready", body="It is ready.")],
    "coder": [reply("coded", what="code")],
    "tester": [
        suspend("Which?"),
        ["no block"],
        reply("built", body="All green.", what="a tool"),
    ],
    "sender": [reply("sent")],
}


class Family(Tour):
    """A parent, its child, and a stranger of the same workflow as the child."""

    child: ThreadId
    stranger: ThreadId

    def tips(self) -> list[Oid]:
        return history(self.store, tip_of(self.ledger, self.child))


def _make(ledger: Ledger, folder: Path) -> Family:
    thread = start(ledger, folder, parent(), child())
    replies = {
        **REPLIES,
        "tester": [REPLIES["tester"][0], ["no block"], REPLIES["tester"][2]],
    }
    play = Play(ledger, folder, thread, replies)
    play.go()
    play.resume("The first")
    play.resume()
    play.go()
    stranger = start(ledger, folder, child())
    Play(ledger, folder, stranger, {**REPLIES, "tester": [REPLIES["tester"][2]]}).go()
    family = Family(ledger, thread, tip_of(ledger, thread))
    (made,) = children_of(ledger, thread)
    object.__setattr__(family, "child", made)
    object.__setattr__(family, "stranger", stranger)
    return family


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    folder = tmp_path_factory.mktemp("family")
    init_store(folder / "store", home=folder, fsync=False)
    store = open_store(folder / "store", home=folder, write=True, fsync=False)
    return _make(make_ledger(store, Clock(count(1_800_000_000_500, 700))), folder)


def test_a_family_verifies_and_counts_its_children_once(family: Family) -> None:
    report = family.verify(family.tip)

    assert report.problems == ()
    assert (report.children, report.children_here) == (1, 1)


def test_without_its_child_a_parent_verifies_and_says_what_is_missing(
    family: Family, tmp_path: Path
) -> None:
    init_store(tmp_path / "other", home=tmp_path, fsync=False)
    store = open_store(tmp_path / "other", home=tmp_path, write=True, fsync=False)
    refs = f"refs/heads/thread/{family.thread}:refs/heads/thread/{family.thread}"
    git(store, "fetch", "-q", str(family.store.path), refs)

    report = verify_thread(store, family.tip, family.thread)

    assert report.problems == ()
    assert (report.children, report.children_here) == (1, 0)


Make = Callable[[Family], Change]


def _names(**changes: Any) -> Make:  # noqa: ANN401 - fields of child
    """Let the step name another child, or another tip of it."""

    def make(family: Family) -> Change:
        tip = str(family.tips()[-1])
        named = {"thread": family.child, "oid": tip}
        made = {
            key: value(family) if callable(value) else value
            for key, value in changes.items()
        }
        return amend_step(step={"child": {**named, **made}})

    return make


def _step(**changes: Any) -> Make:  # noqa: ANN401 - fields of a StepNode
    return lambda _: amend_step(step=changes)


def _output(**changes: Any) -> Make:  # noqa: ANN401 - fields of the output
    return lambda _: amend_step(output=changes)


def _kind(kind: str) -> Make:
    return lambda _: amend_step(detail={"kind": kind})


def _unnamed(_: Family) -> Change:
    def change(draft: Draft) -> None:
        amend_step(step={"note": None})(draft)
        path = draft.find(rf"{draft.trailers()['Uwf-Node']}\.\w+\.json")
        payload = json.loads(draft.read(path))
        del payload["child"]
        node = make_node(path.split(".")[-2], payload)  # type: ignore[arg-type]
        del draft.files[path]
        draft.put_node(path.rpartition("/")[0], node)
        draft.trailer("Uwf-Node", node.hash)
        draft.state(head=node.hash)

    return change


def _forged_child(change: Change, *, at: int) -> Make:
    """Forge the child itself, and let the parent name the forged tip."""

    def make(family: Family) -> Change:
        tips = family.tips()
        forged = forge(family.store, tips[-1], {at: change}, upto=len(tips) - 1)
        named = {"thread": family.child, "oid": str(forged)}
        return amend_step(step={"child": named})

    return make


def _pins(amend: Callable[[dict[str, Any]], dict[str, Any]]) -> Make:
    return lambda _: lambda draft: restart(draft, amend)


def _without_pins(payload: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key != "children"}


def _pins_itself_too(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "children": {**payload["children"], "x": payload["workflow"]}}


def _pins_another(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "children": {"develop": payload["workflow"]}}


def _orphan(payload: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key != "parent"}


def _deep(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "depth": 2}


def _stray(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "parent": {**payload["parent"], "step": "0" * 13}}


def _adopted(payload: dict[str, Any]) -> dict[str, Any]:
    other = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    return {**payload, "parent": {**payload["parent"], "thread": other}}


USED: Final = {
    "turns": 1,
    "inputTokens": 2,
    "outputTokens": 3,
    "durationMs": 4,
    "costUsd": None,
}

FORGED: Final[list[tuple[str, int, Make, str]]] = [
    ("another result", BUILT_, _output(what="another tool"), "child"),
    ("another body", BUILT_, _step(body="All red."), "child"),
    ("a cost of its own", BUILT_, _step(usage=USED), "child"),
    ("another thread", BUILT_, _names(thread=lambda f: f.stranger), "child"),
    (
        "a stranger's tip",
        BUILT_,
        _names(oid=lambda f: str(tip_of(f.ledger, f.stranger))),
        "child",
    ),
    (
        "a stranger whole",
        BUILT_,
        _names(
            thread=lambda f: f.stranger, oid=lambda f: str(tip_of(f.ledger, f.stranger))
        ),
        "child",
    ),
    ("an earlier tip", BUILT_, _names(oid=lambda f: str(f.tips()[1])), "child"),
    ("the tip it waited at", BUILT_, _names(oid=lambda f: str(f.tips()[2])), "child"),
    ("the child's start", BUILT_, _names(oid=lambda f: str(f.tips()[0])), "child"),
    (
        "itself",
        BUILT_,
        _names(thread=lambda f: f.thread, oid=lambda f: str(f.commits()[TRY])),
        "child",
    ),
    (
        "its own start",
        BUILT_,
        _names(thread=lambda f: f.thread, oid=lambda f: str(f.commits()[START])),
        "child",
    ),
    ("no child at all", BUILT_, _unnamed, "child"),
    ("a child of an agent", WAIT, _kind("claude-code"), "child"),
    ("a child of a role that has none", READY, _names(), "child"),
    ("a role done by itself", READY, _kind("workflow"), "child"),
    ("a question it did not ask", WAIT, _output(reason="child x: What now?"), "child"),
    ("a question of its end", WAIT, _names(), "child"),
    ("a body it did not say", WAIT, _step(body="Well."), "child"),
    ("a failure of another kind", TRY, _output(phase="limit"), "child"),
    ("a failure of a stranger", TRY, _names(thread=lambda f: f.stranger), "child"),
    (
        "a forged answer in the child",
        BUILT_,
        _forged_child(amend_step(output={"what": "loot"}), at=4),
        "child",
    ),
    (
        "a forged child's file",
        BUILT_,
        _forged_child(lambda d: d.put(d.path("TASK.md"), b"x\n"), at=0),
        "child",
    ),
    (
        "a child of nobody",
        BUILT_,
        _forged_child(lambda d: restart(d, _orphan), at=0),
        "child",
    ),
    (
        "a child too deep",
        BUILT_,
        _forged_child(lambda d: restart(d, _deep), at=0),
        "child",
    ),
    (
        "a child of no step",
        BUILT_,
        _forged_child(lambda d: restart(d, _stray), at=0),
        "child",
    ),
    (
        "a child of another thread",
        BUILT_,
        _forged_child(lambda d: restart(d, _adopted), at=0),
        "child",
    ),
    ("a workflow that is not pinned", START, _pins(_without_pins), "child"),
    ("a workflow that no role names", START, _pins(_pins_itself_too), "child"),
    ("another workflow under the name", START, _pins(_pins_another), "child"),
    ("a depth without a parent", START, _pins(_deep), "child"),
]
"""What, the commit it changes, how, and what verify says of it."""


@pytest.mark.parametrize(
    ("at", "make", "code"), [pytest.param(*facts[1:], id=facts[0]) for facts in FORGED]
)
def test_a_forged_child_is_refused(
    family: Family, at: int, make: Make, code: str
) -> None:
    tip = forge(family.store, family.tip, {at: make(family)}, upto=at)

    report = family.verify(tip)

    found = {problem.code for problem in report.problems}
    assert code in found, report.problems


@pytest.mark.parametrize(
    ("at", "make"), [pytest.param(*facts[1:3], id=facts[0]) for facts in FORGED]
)
def test_a_server_takes_no_forged_child(family: Family, at: int, make: Make) -> None:
    tip = forge(family.store, family.tip, {at: make(family)}, upto=at)
    push = Push(old=ZERO, new=tip, ref=thread_ref(family.thread))

    (refused,) = check_pushes(family.store, [push], shared=False, now=0)

    assert refused is not None
    assert "push the threads" not in refused


_QUICK: Final = ("another result", "itself")


@pytest.mark.parametrize(
    ("at", "make"),
    [
        pytest.param(
            *facts[1:3],
            id=facts[0],
            marks=() if facts[0] in _QUICK else pytest.mark.slow,
        )
        for facts in FORGED
    ],
)
def test_a_pull_takes_no_forged_child(
    family: Family, at: int, make: Make, bare: Path, bob: Person
) -> None:
    tip = forge(family.store, family.tip, {at: make(family)}, upto=at)
    _offer(family, tip, bare)

    report = bob.pull()

    assert results(report.outcomes)[family.thread] == "refused"
    assert bob.tip(family.thread) is None


def test_a_pull_takes_the_honest_family(
    family: Family, bare: Path, bob: Person
) -> None:
    _offer(family, family.tip, bare)

    assert bob.pull().ok
    assert bob.tip(family.thread) == family.tip


def _offer(family: Family, tip: Oid, bare: Path) -> None:
    """Put a thread on a remote past every check, and all that it names."""
    person = Person(family.ledger, bare.parent)
    real = {
        each: tip_of(family.ledger, each) for each in (family.child, family.stranger)
    }
    record = open_record(family.store, read_tip(family.store, family.thread, tip))
    for named in children_by_node(record).values():
        known = real.get(named.thread)
        is_known = any(
            is_ancestor(family.store, named.oid, each) for each in (tip, *real.values())
        )
        if known is not None and not is_known:
            real[named.thread] = named.oid
    for thread, oid in {family.thread: tip, **real}.items():
        smuggle(person, bare, oid, thread_ref(thread))


def test_the_family_has_the_events_the_forgeries_change(family: Family) -> None:
    assert names(family.store, family.thread) == [
        *("start", "step", "step", "attempt", "resume", "step")
    ]


def test_what_did_a_step_of_another_thread_is_not_set_aside(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = start(ledger, tmp_path, parent(), child())
    said = {**REPLIES, "tester": REPLIES["tester"][2:]}
    assert Play(ledger, tmp_path, thread, said).go().end == "done"
    (made,) = children_of(ledger, thread)
    *_, before, tip = history(ledger.store, tip_of(ledger, made))

    with pytest.raises(StateError) as caught:
        set_aside(ledger, made, base=before, command="test")

    assert f"did a step of thread {thread}" in caught.value.message
    assert tip_of(ledger, made) == tip
    assert set_aside(ledger, made, base=tip, command="test") is None
