from __future__ import annotations

from typing import Final

import pytest
from msgspec.structs import replace

from tests.builders import edit_tree, git, make_workflow, workflow_data
from tests.history import check_store
from uwfgit.errors import CorruptError, NotFoundError, StateError
from uwfgit.ids import Hash
from uwfgit.model.ledger.ledger import Ledger
from uwfgit.model.ledger.registering import (
    Registered,
    add_workflow,
    remove_workflow,
    rollback_workflow,
)
from uwfgit.model.ledger.registry import (
    list_workflows,
    load_registered,
    trash_ref,
    workflow_history,
)
from uwfgit.model.node import WORKFLOW_TYPE, format_nodes, make_node
from uwfgit.model.thread.event import iter_events
from uwfgit.model.workflow.workflow import Workflow, workflow_nodes
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.objects import (
    Person,
    TreeEntry,
    read_commit,
    write_blob,
    write_commit,
)
from uwfgit.store.raw import BLOB, name_object
from uwfgit.store.refs import find_ref, move_ref

BRANCH: Final = "refs/heads/workflow/work"
FIRST: Final = make_workflow()
SECOND: Final = make_workflow(description="Better")


def _add(ledger: Ledger, workflow: Workflow) -> Registered:
    return add_workflow(ledger, workflow, workflow_data(workflow))


def _hash(workflow: Workflow) -> Hash:
    return workflow_nodes(workflow)[-1].hash


def test_a_registered_workflow_is_read_back(ledger: Ledger) -> None:
    added = _add(ledger, FIRST)

    found = load_registered(ledger, "work")

    pinned = workflow_nodes(FIRST)[-1]
    assert added == Registered(
        name="work", hash=pinned.hash, oid=name_object(BLOB, pinned.data), changed=True
    )
    assert (found.version.hash, found.version.oid) == (added.hash, added.oid)
    assert found.data == workflow_data(FIRST)
    assert workflow_nodes(found.workflow)[-1] == pinned


def test_a_version_is_one_commit_on_a_branch_from_genesis(ledger: Ledger) -> None:
    added = _add(ledger, FIRST)

    log = git(ledger.store, "log", "--format=%P%n%cn%n%B", "-1", BRANCH)
    assert log.strip() == (
        f"{GENESIS_OID}\nAda\nadd work\n\n"
        "Uwf-Format: 1\nUwf-Event: add\n"
        f"Uwf-Workflow: {added.hash} {added.oid}"
    )


def test_a_version_holds_the_file_and_every_node_it_needs(ledger: Ledger) -> None:
    _add(ledger, FIRST)

    names = git(
        ledger.store, "ls-tree", "-r", "--name-only", BRANCH, "workflows/"
    ).split()

    nodes = (*format_nodes(), *workflow_nodes(FIRST))
    assert names == sorted(
        ["workflows/work/workflow.yaml"]
        + [f"workflows/work/nodes/{node.name}" for node in nodes]
    )
    check_store(ledger.store)


def test_the_same_again_changes_nothing(ledger: Ledger) -> None:
    _add(ledger, FIRST)

    again = _add(ledger, FIRST)

    assert again.changed is False
    assert len(workflow_history(ledger, "work")) == 1


def test_other_bytes_of_one_workflow_are_a_version_of_one_hash(ledger: Ledger) -> None:
    _add(ledger, FIRST)

    again = add_workflow(ledger, FIRST, b"# a comment\n" + workflow_data(FIRST))

    assert again == replace(again, hash=_hash(FIRST), changed=True)
    assert load_registered(ledger, "work").data.startswith(b"# a comment\n")


def test_history_is_newest_first(ledger: Ledger) -> None:
    _add(ledger, FIRST)
    _add(ledger, SECOND)

    history = workflow_history(ledger, "work")

    assert [(v.hash, v.current) for v in history] == [
        (_hash(SECOND), True),
        (_hash(FIRST), False),
    ]
    assert history[0].timestamp_ms > history[1].timestamp_ms


def test_nodes_of_the_version_before_do_not_stay_in_the_tree(ledger: Ledger) -> None:
    _add(ledger, FIRST)

    _add(ledger, SECOND)

    names = git(ledger.store, "ls-tree", "-r", "--name-only", BRANCH)
    assert _hash(SECOND) in names
    assert _hash(FIRST) not in names


def test_an_older_version_can_be_read(ledger: Ledger) -> None:
    _add(ledger, FIRST)
    _add(ledger, SECOND)

    found = load_registered(ledger, "work", _hash(FIRST))

    assert found.workflow.description == FIRST.description
    assert found.version.current is False


def test_rollback_goes_to_the_version_before_as_a_new_commit(ledger: Ledger) -> None:
    first = _add(ledger, FIRST)
    _add(ledger, SECOND)

    back = rollback_workflow(ledger, "work")

    assert back == replace(first, changed=True)
    assert [v.hash for v in workflow_history(ledger, "work")] == [
        _hash(FIRST),
        _hash(SECOND),
        _hash(FIRST),
    ]
    assert load_registered(ledger, "work").data == workflow_data(FIRST)
    assert "Uwf-Event: rollback" in git(ledger.store, "log", "-1", BRANCH)
    check_store(ledger.store)


def test_rollback_goes_to_any_version(ledger: Ledger) -> None:
    third = make_workflow(description="Best")
    for workflow in (FIRST, SECOND, third):
        _add(ledger, workflow)

    rollback_workflow(ledger, "work", _hash(FIRST))

    assert load_registered(ledger, "work").version.hash == _hash(FIRST)


def test_rollback_to_the_current_version_changes_nothing(ledger: Ledger) -> None:
    _add(ledger, FIRST)

    back = rollback_workflow(ledger, "work", _hash(FIRST))

    assert back.changed is False
    assert len(workflow_history(ledger, "work")) == 1


def test_rollback_needs_a_version_before(ledger: Ledger) -> None:
    _add(ledger, FIRST)

    with pytest.raises(StateError):
        rollback_workflow(ledger, "work")


@pytest.mark.parametrize("wanted", [None, FIRST, SECOND], ids=["last", "1", "2"])
def test_rollback_brings_a_removed_workflow_back(
    ledger: Ledger, wanted: Workflow | None
) -> None:
    for workflow in (FIRST, SECOND):
        _add(ledger, workflow)
    remove_workflow(ledger, "work")
    with pytest.raises(NotFoundError) as told:
        workflow_history(ledger, "work")
    assert told.value.hint == (
        "it was removed; bring it back: uwf workflow restore work"
    )

    back = rollback_workflow(ledger, "work", None if wanted is None else _hash(wanted))

    assert find_ref(ledger.store, trash_ref("work")) is None
    current = wanted or SECOND
    assert (back.hash, back.changed) == (_hash(current), True)
    assert load_registered(ledger, "work").version.hash == _hash(current)
    assert {v.hash for v in workflow_history(ledger, "work")} >= {
        _hash(FIRST),
        _hash(SECOND),
    }
    check_store(ledger.store)


def test_rollback_to_an_unknown_version_is_not_found(ledger: Ledger) -> None:
    _add(ledger, FIRST)

    with pytest.raises(NotFoundError) as caught:
        rollback_workflow(ledger, "work", Hash("0123456789ABC"))

    assert caught.value.name == "work@0123456789ABC"


def test_an_unknown_version_is_not_found(ledger: Ledger) -> None:
    _add(ledger, FIRST)

    with pytest.raises(NotFoundError) as caught:
        load_registered(ledger, "work", Hash("0123456789ABC"))

    assert (caught.value.kind, caught.value.name) == ("version", "work@0123456789ABC")


@pytest.mark.parametrize("name", ["work", "No Name", "../main", ""])
def test_what_is_not_registered_is_not_found(ledger: Ledger, name: str) -> None:
    for ask in (workflow_history, load_registered, rollback_workflow, remove_workflow):
        with pytest.raises(NotFoundError) as caught:
            ask(ledger, name)
        assert (caught.value.kind, caught.value.name) == ("workflow", name)


def test_workflows_are_listed_by_name_in_their_newest_version(ledger: Ledger) -> None:
    for workflow in (FIRST, SECOND, make_workflow(name="another")):
        _add(ledger, workflow)

    entered = [load_registered(ledger, name) for name in list_workflows(ledger)]
    found = [(each.version.name, each.workflow.description) for each in entered]

    assert found == [("another", FIRST.description), ("work", "Better")]


def test_a_removed_workflow_stands_in_the_trash(ledger: Ledger) -> None:
    _add(ledger, FIRST)
    tip = git(ledger.store, "rev-parse", BRANCH).strip()

    assert remove_workflow(ledger, "work") == tip

    assert list_workflows(ledger) == ()
    trash = git(ledger.store, "rev-parse", "refs/uwf/trash/workflow-work").strip()
    assert trash == tip


def test_a_removed_workflow_can_be_added_and_removed_again(ledger: Ledger) -> None:
    _add(ledger, FIRST)
    remove_workflow(ledger, "work")
    _add(ledger, SECOND)

    second = remove_workflow(ledger, "work")

    trash = git(ledger.store, "rev-parse", "refs/uwf/trash/workflow-work").strip()
    assert trash == second


def _plant(ledger: Ledger, changes: dict[str, bytes | None], message: str = "") -> None:
    """Put a commit of another hand on top of the workflow's branch."""
    store = ledger.store
    old = workflow_history(ledger, "work")[0].commit
    commit = read_commit(store, old)
    entries = {
        f"workflows/work/{path}": None
        if data is None
        else TreeEntry(oid=write_blob(store, data))
        for path, data in changes.items()
    }
    person = Person(name="Eve", email="eve@example.com", time=1_900_000_000)
    new = write_commit(
        store,
        tree=edit_tree(store, commit.tree, entries),
        parents=(old,),
        author=person,
        committer=person,
        message=message or commit.message,
    )
    move_ref(store, BRANCH, old=old, new=new, reason="plant")


def test_a_version_without_its_file_is_corrupt(ledger: Ledger) -> None:
    _add(ledger, FIRST)
    _plant(ledger, {"workflow.yaml": None})

    with pytest.raises(CorruptError):
        load_registered(ledger, "work")


def test_a_version_without_its_node_is_corrupt(ledger: Ledger) -> None:
    _add(ledger, FIRST)
    _plant(ledger, {f"nodes/{workflow_nodes(FIRST)[-1].name}": None})

    with pytest.raises(CorruptError):
        load_registered(ledger, "work")


def test_a_version_without_trailers_is_corrupt(ledger: Ledger) -> None:
    _add(ledger, FIRST)
    _plant(ledger, {}, "just a commit\n")

    with pytest.raises(CorruptError):
        workflow_history(ledger, "work")


def test_a_node_with_other_bytes_is_corrupt(ledger: Ledger) -> None:
    _add(ledger, FIRST)
    _plant(ledger, {f"nodes/{workflow_nodes(FIRST)[-1].name}": b"{}\n"})

    with pytest.raises(CorruptError):
        load_registered(ledger, "work")


def test_a_workflow_node_that_is_none_is_corrupt(ledger: Ledger) -> None:
    _add(ledger, FIRST)
    node = make_node(WORKFLOW_TYPE, {"roles": {"x": 1}})
    _plant(
        ledger,
        {f"nodes/{node.name}": node.data},
        f"add work\n\nUwf-Workflow: {node.hash} {name_object(BLOB, node.data)}\n",
    )

    with pytest.raises(CorruptError):
        load_registered(ledger, "work")


def test_a_registrys_branch_is_no_thread(ledger: Ledger) -> None:
    _add(ledger, FIRST)

    with pytest.raises(CorruptError):
        list(iter_events(ledger.store, workflow_history(ledger, "work")[0].commit))
    assert ledger.lookup.list_threads() == ()
