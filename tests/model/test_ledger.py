from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.acting import BAD, DONE, GOOD, NO_BLOCK, go, poke, steps_of
from tests.builders import begin, git, object_file
from tests.history import tip_oid
from uwfgit.engine.beside.trash import remove_thread
from uwfgit.engine.run.thread import fork_thread
from uwfgit.errors import AmbiguousError, CorruptError, NotFoundError, UsageError
from uwfgit.ids import Hash, ThreadId
from uwfgit.model.ledger.keep import drop_node, put_nodes
from uwfgit.model.ledger.ledger import (
    Ledger,
    find_step_commit,
    list_threads,
    load_node,
    load_nodes,
    resolve_step,
    resolve_thread,
)
from uwfgit.model.node import TEXT_TYPE, make_text
from uwfgit.model.thread.tip import load_tip
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.layout import thread_ref
from uwfgit.store.refs import move_ref

NOTE: Final = make_text("a note")


@pytest.fixture
def threads(ledger: Ledger, tmp_path: Path) -> tuple[ThreadId, ThreadId]:
    """Two threads: one of two steps, one that has not run."""
    one, two = (begin(ledger, tmp_path).thread for _ in range(2))
    go(ledger, one, DONE, BAD)
    ledger.lookup.refresh()
    return one, two


def test_a_thread_is_found_by_any_unique_part_of_its_id(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    one, two = threads
    assert one[:-1] != two[:-1]
    shared = next(n for n in range(26) if one[n] != two[n])

    for text in (one, one.lower(), one[: shared + 1], one[-4:], one[-9:].lower()):
        assert resolve_thread(ledger, text) == one


@pytest.mark.parametrize("text", ["", "ZZZZ", "no such", "@first", "1", "%", "_" * 26])
def test_a_name_that_fits_no_thread_is_not_found(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId], text: str
) -> None:
    del threads

    with pytest.raises(NotFoundError) as caught:
        resolve_thread(ledger, text)

    assert (caught.value.kind, caught.value.name) == ("thread", text)


def test_a_prefix_of_several_threads_is_ambiguous_and_names_them(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    with pytest.raises(AmbiguousError) as caught:
        resolve_thread(ledger, "01")

    assert sorted(caught.value.candidates) == sorted(threads)


def test_a_short_suffix_names_nothing(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    with pytest.raises(NotFoundError):
        resolve_thread(ledger, threads[0][-3:])


def test_the_last_thread_is_the_one_used_last_here(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    with pytest.raises(NotFoundError):
        resolve_thread(ledger, "@last")

    ledger.local.set_last(threads[0])

    assert resolve_thread(ledger, "@last") == threads[0]


def test_threads_are_listed_newest_first_with_their_state(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    one, two = threads

    rows = list_threads(ledger)

    assert [row.thread for row in rows] == [two, one]
    assert [row.state for row in rows] == [
        load_tip(ledger.store, each).state for each in (two, one)
    ]
    assert [row.commit for row in rows] == [
        tip_oid(ledger.store, each) for each in (two, one)
    ]


def test_a_damaged_thread_is_a_row_with_its_problem(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    one, two = threads
    tip = tip_oid(ledger.store, one)
    move_ref(ledger.store, thread_ref(one), old=tip, new=GENESIS_OID, reason="x")
    ledger.lookup.refresh()

    rows = {row.thread: row for row in list_threads(ledger)}

    assert rows[two].problem is None
    assert rows[one].state is None
    assert rows[one].problem


def test_threads_in_the_trash_are_not_listed(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    remove_thread(ledger, threads[0], command="rm")
    ledger.lookup.refresh()

    assert [row.thread for row in list_threads(ledger)] == [threads[1]]


def test_a_step_is_found_by_number_and_by_hash(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    step = steps_of(ledger, threads[0])[1]

    for text in (f"{threads[0]}:2", f"{threads[0][-4:]}:02", step.hash):
        record, found = resolve_step(ledger, text)
        assert (record.tip.thread, found) == (threads[0], step)


def test_attempts_and_replaced_steps_are_found_by_hash(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    one = threads[0]
    replaced = steps_of(ledger, one)[1]
    poke(ledger, one, BAD)
    attempt = go(ledger, one, NO_BLOCK).steps[0].hash
    ledger.lookup.refresh()
    assert attempt is not None

    assert resolve_step(ledger, replaced.hash)[1] == replaced
    assert resolve_step(ledger, attempt)[1].number == 3
    assert resolve_step(ledger, f"{one}:2")[1] != replaced


def test_a_step_of_a_fork_has_the_number_it_has_there(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    fork = fork_thread(ledger, threads[0], at=1).thread
    go(ledger, fork, GOOD)
    ledger.lookup.refresh()

    record, step = resolve_step(ledger, f"{fork}:1")

    assert (record.tip.thread, step.role) == (fork, "worker")
    assert resolve_step(ledger, f"{fork}:2")[1].status == "good"


@pytest.mark.parametrize("number", ["0", "3", "99999"])
def test_a_step_that_is_not_in_the_chain_is_not_found(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId], number: str
) -> None:
    with pytest.raises(NotFoundError):
        resolve_step(ledger, f"{threads[0]}:{number}")


@pytest.mark.parametrize(
    "number", ["", "x", "-1", "1.5", "²", "٣", pytest.param("9" * 5000, id="no-end")]
)
def test_a_step_is_numbered_in_plain_digits(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId], number: str
) -> None:
    with pytest.raises(UsageError):
        resolve_step(ledger, f"{threads[0]}:{number}")


@pytest.mark.parametrize("text", ["", "0123456789ABC", "step", TEXT_TYPE])
def test_what_is_no_step_is_not_found(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId], text: str
) -> None:
    del threads

    with pytest.raises(NotFoundError) as caught:
        resolve_step(ledger, text)

    assert (caught.value.kind, caught.value.name) == ("step", text)


def test_the_commit_of_a_step_is_the_event_that_added_it(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    tip = load_tip(ledger.store, threads[0])
    one, two = steps_of(ledger, threads[0])

    newest = find_step_commit(ledger.store, tip, two.hash)
    start = find_step_commit(ledger.store, tip, tip.state.start)

    assert newest is not None
    assert newest.commit.oid == tip.commit
    assert start is not None
    assert start.name == "start"
    assert find_step_commit(ledger.store, tip, one.output_hash) is None


def test_a_node_is_found_in_keep_in_a_thread_or_among_the_builtin_types(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    put_nodes(ledger, [NOTE])
    step = steps_of(ledger, threads[0])[0]

    assert load_node(ledger, NOTE.hash) == NOTE
    assert load_node(ledger, step.output_hash.lower()).payload == step.output
    assert load_node(ledger, TEXT_TYPE).payload == {"type": "string"}


def test_many_nodes_come_in_the_order_of_their_names_or_not_at_all(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    put_nodes(ledger, [NOTE])
    one, two = steps_of(ledger, threads[0])
    wanted = [two.hash, TEXT_TYPE, NOTE.hash, one.hash, NOTE.hash]

    assert [node.hash for node in load_nodes(ledger, wanted)] == wanted
    with pytest.raises(NotFoundError):
        load_nodes(ledger, [*wanted, Hash("0000000000000")])


def test_a_node_that_is_gone_from_git_is_not_found(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    del threads
    put_nodes(ledger, [NOTE])
    assert load_node(ledger, NOTE.hash) == NOTE
    drop_node(ledger, NOTE.hash)
    git(ledger.store, "reflog", "expire", "--expire=now", "--all")
    git(ledger.store, "gc", "--quiet", "--prune=now")

    with pytest.raises(NotFoundError):
        load_node(ledger, NOTE.hash)


def test_a_node_of_one_thread_is_not_looked_for_elsewhere(
    ledger: Ledger, threads: tuple[ThreadId, ThreadId]
) -> None:
    step = steps_of(ledger, threads[0])[0]

    assert load_node(ledger, step.hash, thread=threads[0]).hash == step.hash
    with pytest.raises(NotFoundError):
        load_node(ledger, step.hash, thread=threads[1])


def test_what_is_no_hash_is_a_wrong_word(ledger: Ledger) -> None:
    with pytest.raises(UsageError):
        load_node(ledger, "not a hash")


def test_a_blob_damaged_on_disk_is_corrupt(ledger: Ledger) -> None:
    put_nodes(ledger, [NOTE])
    oid = git(ledger.store, "rev-parse", f"refs/uwf/keep:nodes/{NOTE.hash[:2]}")
    blob = git(ledger.store, "ls-tree", oid.strip()).split()[2]
    file = object_file(ledger.store, blob)
    file.chmod(0o600)
    file.write_bytes(b"damage")

    with pytest.raises(CorruptError):
        load_node(ledger, NOTE.hash)
