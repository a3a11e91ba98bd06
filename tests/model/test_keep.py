from __future__ import annotations

import time
from typing import Final

import pytest

from tests.builders import Clock, git, make_ledger
from tests.history import check_store
from uwfgit.errors import CorruptError, InvalidError, NotFoundError
from uwfgit.ids import Hash
from uwfgit.model.ledger.keep import (
    check_node,
    drop_node,
    list_kept,
    load_type,
    put_nodes,
)
from uwfgit.model.ledger.ledger import Ledger, find_kept, find_node, load_node
from uwfgit.model.node import (
    BUILTIN_NAMES,
    META_TYPE,
    TEXT_TYPE,
    make_node,
    make_text,
)
from uwfgit.store.objects import write_blob
from uwfgit.store.raw import BLOB, name_object

ONE: Final = make_text("one")
TWO: Final = make_text("two")
POINT: Final = make_node(
    META_TYPE,
    {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
)


def _files(ledger: Ledger) -> list[str]:
    return git(ledger.store, "ls-tree", "-r", "--name-only", "refs/uwf/keep").split()


def test_nothing_is_kept_at_first(ledger: Ledger) -> None:
    assert list_kept(ledger) == ()
    assert find_kept(ledger, ONE.hash) is None


def test_a_node_put_is_kept_under_the_start_of_its_hash(ledger: Ledger) -> None:
    put_nodes(ledger, [ONE])

    assert _files(ledger) == [f"nodes/{ONE.hash[:2]}/{ONE.hash}.{TEXT_TYPE}.md"]
    assert find_kept(ledger, ONE.hash) == (TEXT_TYPE, name_object(BLOB, b"one"))
    assert load_node(ledger, ONE.hash) == ONE
    assert load_node(ledger, ONE.hash.lower()) == ONE


def test_what_is_put_by_others_or_here_is_found_at_once(
    ledger: Ledger, clock: Clock
) -> None:
    other = make_ledger(ledger.store, clock)

    for putter, node in ((other, ONE), (ledger, TWO)):
        assert find_node(ledger, node.hash) is None
        put_nodes(putter, [node])
        assert find_node(ledger, node.hash) == node


def test_what_others_drop_is_gone_in_a_moment(ledger: Ledger, clock: Clock) -> None:
    put_nodes(ledger, [ONE])
    assert find_node(ledger, ONE.hash) == ONE

    drop_node(make_ledger(ledger.store, clock), ONE.hash)
    ledger.lookup.rebuild()
    time.sleep(0.02)

    assert find_node(ledger, ONE.hash) is None


def test_kept_nodes_that_cannot_be_read_are_told_each_time(ledger: Ledger) -> None:
    blob = write_blob(ledger.store, b"no commit")
    (ledger.store.path / "refs/uwf").mkdir(parents=True, exist_ok=True)
    (ledger.store.path / "refs/uwf/keep").write_text(f"{blob}\n")

    for _ in range(2):
        with pytest.raises(CorruptError):
            ledger.kept.refresh()


def test_kept_nodes_are_there_again_once_their_ref_is_mended(ledger: Ledger) -> None:
    put_nodes(ledger, [ONE])
    ledger.kept.refresh()
    ref = ledger.store.path / "refs/uwf/keep"
    good = ref.read_text()
    ref.write_text(f"{write_blob(ledger.store, b'no commit')}\n")
    with pytest.raises(CorruptError):
        ledger.kept.refresh()

    ref.write_text(good)
    ledger.kept.refresh()

    assert ledger.kept.find(ONE.hash) is not None


def test_many_nodes_in_one_call_make_one_commit(ledger: Ledger) -> None:
    put_nodes(ledger, [make_text(str(number)) for number in range(300)])

    assert len(_files(ledger)) == 300
    assert len(list_kept(ledger)) == 300
    assert git(ledger.store, "reflog", "show", "refs/uwf/keep").count("\n") == 1


def test_keep_is_one_commit_without_parents(ledger: Ledger) -> None:
    put_nodes(ledger, [ONE])
    put_nodes(ledger, [TWO])

    assert git(ledger.store, "log", "--format=%P", "refs/uwf/keep").strip() == ""
    assert list_kept(ledger) == tuple(sorted([ONE.hash, TWO.hash]))
    check_store(ledger.store)


def test_putting_a_kept_node_again_changes_nothing(ledger: Ledger) -> None:
    put_nodes(ledger, [ONE])
    before = git(ledger.store, "rev-parse", "refs/uwf/keep")

    put_nodes(ledger, [ONE, ONE])

    assert git(ledger.store, "rev-parse", "refs/uwf/keep") == before


def test_putting_nothing_writes_no_ref(ledger: Ledger) -> None:
    put_nodes(ledger, [])

    assert git(ledger.store, "for-each-ref", "refs/uwf/") == ""


def test_a_kept_node_survives_gc_without_grace(ledger: Ledger) -> None:
    put_nodes(ledger, [ONE])
    git(ledger.store, "reflog", "expire", "--expire=now", "--all")

    git(ledger.store, "gc", "--quiet", "--prune=now")

    assert load_node(ledger, ONE.hash) == ONE


def test_a_schema_put_before_is_kept_with_its_node(ledger: Ledger) -> None:
    node = make_node(POINT.hash, {"x": 1})
    put_nodes(ledger, [POINT])

    put_nodes(ledger, [node])
    drop_node(ledger, POINT.hash)
    put_nodes(ledger, [POINT, node])

    assert list_kept(ledger) == tuple(sorted([POINT.hash, node.hash]))


def test_a_dropped_node_is_kept_no_longer(ledger: Ledger) -> None:
    put_nodes(ledger, [ONE, TWO])

    drop_node(ledger, ONE.hash)

    assert list_kept(ledger) == (TWO.hash,)
    assert find_kept(ledger, ONE.hash) is None


def test_the_last_node_can_be_dropped(ledger: Ledger) -> None:
    put_nodes(ledger, [ONE])

    drop_node(ledger, ONE.hash)
    put_nodes(ledger, [TWO])

    assert list_kept(ledger) == (TWO.hash,)
    check_store(ledger.store)


def test_what_is_not_kept_cannot_be_dropped(ledger: Ledger) -> None:
    put_nodes(ledger, [TWO])

    with pytest.raises(NotFoundError) as caught:
        drop_node(ledger, ONE.hash)

    assert caught.value.name == ONE.hash


def test_a_kept_node_is_found_though_the_lookup_cannot_be_used(
    ledger: Ledger,
) -> None:
    put_nodes(ledger, [ONE])
    file = ledger.store.state_dir / "lookup.sqlite3"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"garbage" * 1000)

    assert find_kept(ledger, ONE.hash) == (TEXT_TYPE, name_object(BLOB, b"one"))
    assert load_node(ledger, ONE.hash) == ONE


@pytest.mark.parametrize("name", ["text", "step", "object"])
def test_the_schema_of_a_builtin_type_needs_no_store(ledger: Ledger, name: str) -> None:
    assert "type" in load_type(ledger, BUILTIN_NAMES[name])


def test_the_schema_of_a_type_is_found_where_it_was_put(ledger: Ledger) -> None:
    put_nodes(ledger, [POINT])

    assert load_type(ledger, POINT.hash) == POINT.payload


@pytest.mark.parametrize("node_type", [ONE.hash, Hash("0123456789ABC")])
def test_what_is_no_schema_is_no_type(ledger: Ledger, node_type: Hash) -> None:
    put_nodes(ledger, [ONE])

    with pytest.raises(NotFoundError) as caught:
        load_type(ledger, node_type)

    assert (caught.value.kind, caught.value.name) == ("type", node_type)


def test_a_node_that_fits_its_type_is_fine(ledger: Ledger) -> None:
    put_nodes(ledger, [POINT])

    check_node(ledger, make_node(POINT.hash, {"x": 1}))


@pytest.mark.parametrize(
    ("node_type", "payload", "path"),
    [
        pytest.param(POINT.hash, {"x": "1"}, "x", id="of-a-put-schema"),
        pytest.param(TEXT_TYPE, 1, None, id="text"),
        pytest.param(META_TYPE, {"type": "nothing"}, "type", id="no-schema"),
        pytest.param(META_TYPE, {"$ref": "x"}, "$ref", id="refused-keyword"),
    ],
)
def test_a_node_that_does_not_fit_its_type_is_refused_with_its_path(
    ledger: Ledger, node_type: Hash, payload: object, path: str | None
) -> None:
    put_nodes(ledger, [POINT])

    with pytest.raises(InvalidError) as caught:
        check_node(ledger, make_node(node_type, payload))

    assert [problem.path for problem in caught.value.problems] == [path]
