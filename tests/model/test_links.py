from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from tests.acting import Act, acting, go, put
from tests.builders import (
    begin,
    git,
    make_role,
    make_workflow,
    record_of,
    reply,
    variant,
)
from tests.collision import COLLIDING, COLLIDING_HASH
from tests.history import check_store, check_thread, files, paths, state_of
from uwfgit.agents.base import AgentRequest
from uwfgit.constants import MAX_LINKED_NODES
from uwfgit.engine.run.ends import RunEnd
from uwfgit.engine.run.executor import exec_thread, resume_thread
from uwfgit.errors import AmbiguousError, CorruptError
from uwfgit.ids import ThreadId
from uwfgit.model.ledger.keep import drop_node, list_kept, put_nodes
from uwfgit.model.ledger.ledger import Ledger, find_linkable, load_node
from uwfgit.model.node import META_TYPE, Node, make_node, make_text
from uwfgit.model.thread.links import LinkRule, Links, collect_links
from uwfgit.model.thread.record import Record
from uwfgit.model.thread.step import Step
from uwfgit.store.raw import BLOB, name_object

PLAN: Final = make_text("1. Look.\n2. Fix.\n")
REF_TYPE: Final = make_node(
    META_TYPE,
    {
        "type": "object",
        "properties": {"to": {"type": "string", "format": "ocas_ref"}},
    },
)
LIST_TYPE: Final = make_node(
    META_TYPE, {"type": "array", "items": {"type": "string", "format": "ocas_ref"}}
)
PRIVATE: Final = make_text("The key is under the mat.")
THEIRS, OURS = (make_text(text) for text in COLLIDING)


def _ref(to: Node) -> Node:
    return make_node(REF_TYPE.hash, {"to": to.hash})


def _putting(ledger: Ledger, said: str, *nodes: Node) -> Act:
    """Make an agent that puts nodes and then says something."""

    def act(request: AgentRequest) -> str:
        put(ledger, request, *nodes)
        return said

    return act


def _step(ledger: Ledger, thread: ThreadId, act: Act) -> Step:
    """Run one cycle that must give a good step, and read it back."""
    report = exec_thread(acting(ledger, act), thread, count=1)
    assert report.end is RunEnd.DONE, report
    return record_of(ledger, thread).steps()[-1]


def _nodes(ledger: Ledger, thread: ThreadId, number: int) -> set[str]:
    names = paths(ledger.store, thread, f"nodes/000/{number:05d}/1")
    return {name.partition(".")[0] for name in names}


def test_a_text_put_in_a_step_and_named_in_a_plain_field_stands_in_the_thread(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread

    step = _step(ledger, thread, _putting(ledger, reply(plan=PLAN.hash), PLAN))

    assert step.warnings == ()
    found = files(ledger.store, thread)
    assert found[f"nodes/000/00001/1/{PLAN.name}"] == PLAN.data
    assert found["history/000/00001-worker/links/plan.md"] == PLAN.data
    check_thread(ledger.store, thread)


def test_a_linked_plan_survives_gc_without_grace(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    _step(ledger, thread, _putting(ledger, reply(plan=PLAN.hash), PLAN))
    drop_node(ledger, PLAN.hash)
    git(ledger.store, "reflog", "expire", "--expire=now", "--all")

    git(ledger.store, "gc", "--quiet", "--prune=now")

    assert load_node(ledger, PLAN.hash) == PLAN
    assert load_node(ledger, PLAN.hash, thread=thread) == PLAN
    check_thread(ledger.store, thread)
    check_store(ledger.store)


def test_a_text_named_as_a_word_of_the_body_stands_in_the_thread(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    said = reply(body=f"See ({PLAN.hash}).", plan="none")

    step = _step(ledger, thread, _putting(ledger, said, PLAN))

    assert PLAN.hash in _nodes(ledger, thread, 1)
    assert step.warnings == ()


def test_a_text_named_deep_in_the_output_stands_in_the_thread_but_has_no_file(
    ledger: Ledger, tmp_path: Path
) -> None:
    roles = make_workflow().roles
    free = make_role(variant("done", plan={}))
    workflow = make_workflow(roles={**roles, "worker": free})
    thread = begin(ledger, tmp_path, workflow=workflow).thread
    said = reply(plan={"steps": [{"text": PLAN.hash}]})

    step = _step(ledger, thread, _putting(ledger, said, PLAN))

    assert step.warnings == ()
    assert PLAN.hash in _nodes(ledger, thread, 1)
    assert "000/00001-worker/links/plan.md" not in paths(ledger.store, thread)
    check_thread(ledger.store, thread)


def test_what_was_put_but_not_named_stays_outside(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread

    _step(ledger, thread, _putting(ledger, reply(plan="x"), PLAN))

    assert PLAN.hash not in record_of(ledger, thread).places


def test_the_hash_of_another_threads_node_links_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    other = begin(ledger, tmp_path).thread
    _step(ledger, other, _putting(ledger, reply(plan=PRIVATE.hash), PRIVATE))
    thread = begin(ledger, tmp_path).thread

    said = reply(plan=PRIVATE.hash, body=f"and {PRIVATE.hash}")
    step = _step(ledger, thread, lambda _: said)

    assert PRIVATE.hash not in record_of(ledger, thread).places
    assert [w.partition(" ")[0] for w in step.warnings] == [PRIVATE.hash]
    assert "history/000/00001-worker/links/plan.md" not in files(ledger.store, thread)
    check_thread(ledger.store, thread)


def test_a_node_kept_by_hand_links_nothing_unless_somebody_named_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    put_nodes(ledger, [PRIVATE])
    thread = begin(ledger, tmp_path).thread

    step = _step(ledger, thread, lambda _: reply(plan=PRIVATE.hash))

    assert PRIVATE.hash not in record_of(ledger, thread).places
    assert len(step.warnings) == 1


def test_a_node_put_in_an_earlier_step_and_not_linked_then_links_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    _step(ledger, thread, _putting(ledger, reply(plan="x"), PLAN))

    step = _step(ledger, thread, lambda _: reply("bad", reason=PLAN.hash))

    assert PLAN.hash not in record_of(ledger, thread).places
    assert len(step.warnings) == 1


def test_a_node_the_task_names_is_linked(ledger: Ledger, tmp_path: Path) -> None:
    put_nodes(ledger, [PLAN])
    thread = begin(ledger, tmp_path, prompt=f"Follow {PLAN.hash}!").thread

    step = _step(ledger, thread, lambda _: reply(plan=PLAN.hash))

    assert step.warnings == ()
    assert PLAN.hash in _nodes(ledger, thread, 1)


def test_a_node_of_another_thread_that_a_note_names_is_linked(
    ledger: Ledger, tmp_path: Path
) -> None:
    other = begin(ledger, tmp_path).thread
    _step(ledger, other, _putting(ledger, reply(plan=PLAN.hash), PLAN))
    drop_node(ledger, PLAN.hash)
    thread = begin(ledger, tmp_path).thread
    go(ledger, thread, "---\n$status: $SUSPEND\nreason: which plan?\n---\n")

    engine = acting(ledger, lambda _: reply(plan=PLAN.hash))
    resume_thread(engine, thread, note=f"Take {PLAN.hash}.")

    assert PLAN.hash in _nodes(ledger, thread, 2)
    check_thread(ledger.store, thread)


def test_a_named_node_brings_all_it_refers_to_with_the_types(
    ledger: Ledger, tmp_path: Path
) -> None:
    root = _ref(_ref(PLAN))
    put_nodes(ledger, [REF_TYPE, PLAN, _ref(PLAN), root])
    thread = begin(ledger, tmp_path, prompt=f"Follow {root.hash}").thread

    step = _step(ledger, thread, lambda _: reply(plan=root.hash))

    assert step.warnings == ()
    assert {root.hash, _ref(PLAN).hash, PLAN.hash, REF_TYPE.hash} <= _nodes(
        ledger, thread, 1
    )
    check_thread(ledger.store, thread)


def test_nodes_put_in_a_step_bring_each_other(ledger: Ledger, tmp_path: Path) -> None:
    thread = begin(ledger, tmp_path).thread
    root = _ref(PLAN)

    step = _step(
        ledger, thread, _putting(ledger, reply(plan=root.hash), REF_TYPE, PLAN, root)
    )

    assert step.warnings == ()
    assert {root.hash, PLAN.hash, REF_TYPE.hash} <= _nodes(ledger, thread, 1)
    check_thread(ledger.store, thread)


def test_a_node_put_in_a_step_cannot_bring_a_private_one_along(
    ledger: Ledger, tmp_path: Path
) -> None:
    other = begin(ledger, tmp_path).thread
    _step(ledger, other, _putting(ledger, reply(plan=PRIVATE.hash), PRIVATE))
    put_nodes(ledger, [REF_TYPE])
    thread = begin(ledger, tmp_path).thread
    trick = _ref(PRIVATE)

    step = _step(ledger, thread, _putting(ledger, reply(plan=trick.hash), trick))

    assert {trick.hash, PRIVATE.hash}.isdisjoint(record_of(ledger, thread).places)
    assert PRIVATE.hash in step.warnings[0]
    check_thread(ledger.store, thread)


def test_a_hash_of_the_threads_own_node_is_linked_without_a_copy(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    first = _step(ledger, thread, _putting(ledger, reply(plan=PLAN.hash), PLAN))

    step = _step(
        ledger,
        thread,
        lambda _: reply("bad", body=f"see {first.hash}", reason=PLAN.hash),
    )

    assert step.warnings == ()
    assert PLAN.hash not in _nodes(ledger, thread, 2)
    link = "history/000/00002-critic/links/reason.md"
    assert files(ledger.store, thread)[link] == PLAN.data
    check_thread(ledger.store, thread)


def test_a_string_that_only_looks_like_a_hash_is_a_warning_a_word_is_not(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = begin(ledger, tmp_path).thread
    field, word = "0123456789ABC", "1123456789ABC"

    step = _step(ledger, thread, lambda _: reply(plan=field, body=f"is {word}"))

    assert [w.partition(" ")[0] for w in step.warnings] == [field]


@pytest.fixture
def record(ledger: Ledger, tmp_path: Path) -> Record:
    return record_of(ledger, begin(ledger, tmp_path).thread)


def _rule(put_now: Iterable[Node] = ()) -> LinkRule:
    nodes = {node.hash: node for node in (*put_now, REF_TYPE, LIST_TYPE)}
    return LinkRule(
        put=frozenset(node.hash for node in put_now),
        named=frozenset(),
        find=nodes.get,
    )


def _list(items: Iterable[Node]) -> Node:
    return make_node(LIST_TYPE.hash, [item.hash for item in items])


@pytest.mark.parametrize(
    ("count", "fits"),
    [
        # The list itself and its type are linked too.
        pytest.param(MAX_LINKED_NODES - 2, True, id="as-many-as-may-be"),
        pytest.param(MAX_LINKED_NODES - 1, False, id="one-more"),
    ],
)
def test_a_link_that_brings_too_many_nodes_links_nothing(
    record: Record,
    count: int,
    fits: bool,  # noqa: FBT001 - a table's column
) -> None:
    items = [make_text(str(number)) for number in range(count)]
    root = _list(items)

    links = collect_links(record, _rule([root, *items]), strings=[root.hash], words=[])

    assert len(links.nodes) == (MAX_LINKED_NODES if fits else 0)
    assert len(links.warnings) == (0 if fits else 1)


def test_links_that_bring_too_many_bytes_link_nothing(record: Record) -> None:
    big = [make_text(f"{number}" * (15 * 1024 * 1024)) for number in range(5)]
    root, small = _list(big), make_text("small")
    rule = _rule([root, small, *big])

    links = collect_links(record, rule, strings=[root.hash, small.hash], words=[])

    assert links.nodes == (small,)
    assert len(links.warnings) == 1


def test_one_link_that_is_too_much_does_not_take_the_others_along(
    record: Record,
) -> None:
    items = [make_text(str(number)) for number in range(MAX_LINKED_NODES)]
    root = _list(items)

    links = collect_links(
        record,
        _rule([root, PLAN, *items]),
        strings=[root.hash],
        words=[PLAN.hash],
    )

    assert links.nodes == (PLAN,)


def test_a_link_to_something_missing_links_nothing(record: Record) -> None:
    root = _ref(PLAN)

    links = collect_links(record, _rule([root]), strings=[root.hash], words=[])

    assert links.nodes == ()
    assert PLAN.hash in links.warnings[0]


def test_each_link_is_gathered_once(record: Record) -> None:
    root = _ref(PLAN)

    links = collect_links(
        record,
        _rule([root, PLAN]),
        strings=[PLAN.hash, root.hash, PLAN.hash],
        words=[root.hash],
    )

    assert links == Links(nodes=(PLAN, root, REF_TYPE), warnings=())


# Two texts of one hash must never answer for each other.


def _thread_with(ledger: Ledger, cwd: Path, node: Node) -> ThreadId:
    thread = begin(ledger, cwd).thread
    _step(ledger, thread, _putting(ledger, reply(plan=node.hash), node))
    drop_node(ledger, node.hash)
    return thread


@pytest.mark.parametrize(
    ("said", "nodes"),
    [
        pytest.param(
            reply("bad", body="My words.", reason=COLLIDING_HASH), [OURS], id="in-field"
        ),
        pytest.param(
            reply("good", body=f"My words: {COLLIDING_HASH}."), [OURS], id="in-body"
        ),
        pytest.param(
            reply("bad", body="My words.", reason=_ref(OURS).hash),
            [REF_TYPE, OURS, _ref(OURS)],
            id="referred-to",
        ),
    ],
)
def test_a_second_content_in_a_thread_is_a_hard_error_and_the_words_are_kept(
    ledger: Ledger, tmp_path: Path, said: str, nodes: list[Node]
) -> None:
    thread = _thread_with(ledger, tmp_path, THEIRS)

    report = exec_thread(
        acting(ledger, _putting(ledger, said, *nodes)), thread, count=1
    )

    assert report.end is RunEnd.AGENT_FAILED
    error = report.steps[0].error
    assert error is not None
    assert name_object(BLOB, THEIRS.data) in error
    assert name_object(BLOB, OURS.data) in error
    attempt = files(ledger.store, thread)[
        "history/000/00002-critic/attempts/1/output.md"
    ]
    assert b"My words" in attempt
    state = state_of(ledger.store, thread)
    assert (state.status, state.steps) == ("suspended", 1)
    assert load_node(ledger, COLLIDING_HASH, thread=thread) == THEIRS
    check_thread(ledger.store, thread)


def test_the_same_content_again_is_no_collision(ledger: Ledger, tmp_path: Path) -> None:
    thread = _thread_with(ledger, tmp_path, THEIRS)

    step = _step(
        ledger,
        thread,
        _putting(ledger, reply("bad", reason=COLLIDING_HASH), THEIRS),
    )

    assert step.warnings == ()


def test_a_second_content_put_but_not_named_does_no_harm(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = _thread_with(ledger, tmp_path, THEIRS)

    _step(ledger, thread, _putting(ledger, reply("good"), OURS))

    assert load_node(ledger, COLLIDING_HASH, thread=thread) == THEIRS


def test_across_threads_the_lookup_holds_both_and_a_thread_must_be_named(
    ledger: Ledger, tmp_path: Path
) -> None:
    one = _thread_with(ledger, tmp_path, THEIRS)
    other = _thread_with(ledger, tmp_path, OURS)
    ledger.lookup.refresh()

    rows = ledger.lookup.find_nodes(COLLIDING_HASH)

    assert {row.oid for row in rows} == {
        name_object(BLOB, THEIRS.data),
        name_object(BLOB, OURS.data),
    }
    with pytest.raises(AmbiguousError) as caught:
        load_node(ledger, COLLIDING_HASH)
    assert caught.value.candidates == tuple(sorted([one, other]))
    assert load_node(ledger, COLLIDING_HASH, thread=one) == THEIRS
    assert load_node(ledger, COLLIDING_HASH, thread=other) == OURS


def test_a_kept_content_does_not_answer_for_a_threads(
    ledger: Ledger, tmp_path: Path
) -> None:
    thread = _thread_with(ledger, tmp_path, THEIRS)
    put_nodes(ledger, [OURS])
    ledger.lookup.refresh()

    with pytest.raises(AmbiguousError) as caught:
        load_node(ledger, COLLIDING_HASH)

    assert caught.value.candidates == (thread, "refs/uwf/keep")
    assert load_node(ledger, COLLIDING_HASH, thread=thread) == THEIRS


def test_a_named_hash_that_is_ambiguous_links_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    for node in (THEIRS, OURS):
        _thread_with(ledger, tmp_path, node)
    ledger.lookup.refresh()
    thread = begin(ledger, tmp_path, prompt=f"Take {COLLIDING_HASH}").thread

    step = _step(ledger, thread, lambda _: reply(plan=COLLIDING_HASH))

    assert find_linkable(ledger, COLLIDING_HASH) is None
    assert len(step.warnings) == 1
    assert COLLIDING_HASH not in record_of(ledger, thread).places


def test_what_was_put_for_the_answer_is_linked_whatever_other_threads_hold(
    ledger: Ledger, tmp_path: Path
) -> None:
    _thread_with(ledger, tmp_path, THEIRS)
    thread = begin(ledger, tmp_path).thread

    _step(ledger, thread, _putting(ledger, reply(plan=COLLIDING_HASH), OURS))

    assert load_node(ledger, COLLIDING_HASH, thread=thread) == OURS


def test_the_second_content_cannot_be_kept_beside_the_first(ledger: Ledger) -> None:
    put_nodes(ledger, [THEIRS])

    with pytest.raises(CorruptError) as caught:
        put_nodes(ledger, [OURS])

    assert name_object(BLOB, THEIRS.data) in str(caught.value)
    assert name_object(BLOB, OURS.data) in str(caught.value)
    assert load_node(ledger, COLLIDING_HASH) == THEIRS


def test_both_contents_in_one_put_are_refused_and_neither_is_kept(
    ledger: Ledger,
) -> None:
    with pytest.raises(CorruptError) as caught:
        put_nodes(ledger, [PLAN, THEIRS, OURS])

    assert name_object(BLOB, OURS.data) in str(caught.value)
    assert list_kept(ledger) == ()


def test_links_beyond_those_that_fit_are_refused_in_time(record: Record) -> None:
    items = [make_text(f"{number}") for number in range(20_000)]
    words = [item.hash for item in items]
    before = time.process_time()

    links = collect_links(record, _rule(items), strings=words, words=words)

    assert len(links.nodes) == MAX_LINKED_NODES
    # Measuring all that fit for each that did not took minutes.
    assert time.process_time() - before < 4
