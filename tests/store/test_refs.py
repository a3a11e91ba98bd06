from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.builders import git
from tests.program import PATIENCE
from uwfgit.errors import LockedError, RefConflictError, StoreError
from uwfgit.ids import Oid
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import Store
from uwfgit.store.objects import Person, read_commit, write_commit
from uwfgit.store.refs import find_ref, list_refs, move_ref, move_refs, replace_ref

NAME: Final = "refs/heads/x"
OTHER: Final = "refs/uwf/y"


def _commit(store: Store, message: str) -> Oid:
    person = Person(name="Ada", email="ada@example.com", time=1)
    return write_commit(
        store,
        tree=read_commit(store, GENESIS_OID).tree,
        parents=(GENESIS_OID,),
        author=person,
        committer=person,
        message=message,
    )


@pytest.fixture(params=["loose", "packed"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tips(store: Store, mode: str) -> tuple[Oid, Oid]:
    """Two commits; the ref points at the first, loose or packed."""
    one, two = _commit(store, "one"), _commit(store, "two")
    git(store, "update-ref", NAME, one)
    if mode == "packed":
        git(store, "pack-refs", "--all")
    return one, two


def test_an_absent_ref_is_none(store: Store) -> None:
    assert find_ref(store, NAME) is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("refs/remotes/a b/x", id="blank"),
        pytest.param("refs/heads/..", id="dots"),
        pytest.param("", id="empty"),
        pytest.param(f"{NAME}\0", id="NUL"),
    ],
)
@pytest.mark.usefixtures("tips")
def test_what_cannot_be_a_name_is_no_damaged_ref(store: Store, name: str) -> None:
    assert find_ref(store, name) is None


def test_a_ref_is_found_whoever_wrote_it(store: Store, tips: tuple[Oid, Oid]) -> None:
    assert find_ref(store, NAME) == tips[0]


def test_a_ref_is_moved_from_what_was_expected(
    store: Store, tips: tuple[Oid, Oid]
) -> None:
    one, two = tips

    move_ref(store, NAME, old=one, new=two, reason="because")

    assert git(store, "rev-parse", NAME).strip() == two
    assert "because" in git(store, "reflog", "show", NAME)


@pytest.mark.parametrize("new", ["two", "none"])
def test_a_stale_expectation_changes_nothing(
    store: Store, tips: tuple[Oid, Oid], new: str
) -> None:
    one, two = tips

    with pytest.raises(RefConflictError) as caught:
        move_ref(
            store, NAME, old=two, new=two if new == "two" else None, reason="because"
        )

    error = caught.value
    assert (error.ref, error.expected, error.actual) == (NAME, two, one)
    assert find_ref(store, NAME) == one
    assert not (store.path / f"{NAME}.lock").exists()


def test_a_ref_that_exists_is_not_created(store: Store, tips: tuple[Oid, Oid]) -> None:
    one, two = tips

    with pytest.raises(RefConflictError) as caught:
        move_ref(store, NAME, old=None, new=two, reason="create")

    assert (caught.value.expected, caught.value.actual) == (None, one)
    assert find_ref(store, NAME) == one


def test_a_ref_that_is_gone_is_not_moved(store: Store, tips: tuple[Oid, Oid]) -> None:
    one, two = tips
    git(store, "update-ref", "-d", NAME)

    with pytest.raises(RefConflictError) as caught:
        move_ref(store, NAME, old=one, new=two, reason="move")

    assert (caught.value.expected, caught.value.actual) == (one, None)
    assert find_ref(store, NAME) is None


def test_a_ref_is_created_only_once(store: Store) -> None:
    one, two = _commit(store, "one"), _commit(store, "two")

    move_ref(store, NAME, old=None, new=one, reason="create")

    with pytest.raises(RefConflictError):
        move_ref(store, NAME, old=None, new=two, reason="create")
    assert find_ref(store, NAME) == one


def test_a_ref_is_removed_from_both_places(store: Store, tips: tuple[Oid, Oid]) -> None:
    move_ref(store, NAME, old=tips[0], new=None, reason="rm")

    assert find_ref(store, NAME) is None
    assert NAME not in git(store, "for-each-ref")


def test_several_refs_move_together(store: Store, tips: tuple[Oid, Oid]) -> None:
    one, _ = tips

    move_refs(store, {OTHER: (None, one), NAME: (one, None)}, reason="trash")

    assert (find_ref(store, NAME), find_ref(store, OTHER)) == (None, one)


def test_of_several_refs_none_moves_when_one_expectation_fails(
    store: Store, tips: tuple[Oid, Oid]
) -> None:
    one, two = tips

    with pytest.raises(RefConflictError) as caught:
        move_refs(store, {OTHER: (None, one), NAME: (two, None)}, reason="trash")

    assert caught.value.ref == NAME
    assert (find_ref(store, NAME), find_ref(store, OTHER)) == (one, None)


def test_refs_are_listed_by_prefix_and_name(store: Store, mode: str) -> None:
    one = _commit(store, "one")
    for name in ("heads/thread/B", "heads/thread/A", "heads/threads", "uwf/thread/C"):
        git(store, "update-ref", f"refs/{name}", one)
    if mode == "packed":
        git(store, "pack-refs", "--all")

    found = list_refs(store, "refs/heads/thread/")

    assert list(found.items()) == [
        ("refs/heads/thread/A", one),
        ("refs/heads/thread/B", one),
    ]


def test_a_ref_is_seen_as_soon_as_plain_git_moved_it(
    store: Store, tips: tuple[Oid, Oid]
) -> None:
    assert find_ref(store, NAME) == tips[0]

    git(store, "update-ref", NAME, tips[1])

    assert find_ref(store, NAME) == tips[1]


@pytest.mark.slow
def test_a_ref_that_git_keeps_locked_is_a_conflict_that_names_the_file(
    store: Store,
) -> None:
    file = store.path / f"{NAME}.lock"
    file.touch()

    with pytest.raises(LockedError) as caught:
        move_ref(store, NAME, old=None, new=GENESIS_OID, reason="move")

    assert caught.value.what == f"ref '{NAME}'"
    assert str(file) in str(caught.value)
    assert file.exists()
    assert find_ref(store, NAME) is None


def test_a_name_git_does_not_allow_is_an_error_of_ours(store: Store) -> None:
    with pytest.raises(StoreError):
        move_ref(store, "refs/heads/a..b", old=None, new=GENESIS_OID, reason="x")


RACER = """
import sys
from pathlib import Path
from uwfgit.errors import RefConflictError
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.objects import Person, read_commit, write_commit
from uwfgit.store.refs import find_ref, move_ref
from uwfgit.store.repository import open_store

store = open_store(Path(sys.argv[1]), home=Path(sys.argv[2]), write=True, fsync=False)
person = Person(name=sys.argv[3], email="x", time=1)
tree = read_commit(store, GENESIS_OID).tree
print("ready", flush=True)
sys.stdin.readline()
lost = 0
for number in range(20):
    while True:
        old = find_ref(store, "refs/heads/x") or GENESIS_OID
        new = write_commit(store, tree=tree, parents=(old,), author=person,
                           committer=person, message=str(number))
        expected = None if old == GENESIS_OID else old
        try:
            move_ref(store, "refs/heads/x", old=expected, new=new, reason="race")
        except RefConflictError:
            lost += 1
        else:
            break
print(lost)
"""


@pytest.mark.slow
def test_two_processes_race_and_no_commit_is_lost(store: Store, home: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, store.path, home, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("ada", "bob")
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()

    outputs = [racer.communicate(timeout=PATIENCE) for racer in racers]

    assert [racer.returncode for racer in racers] == [0, 0], outputs
    log = git(store, "log", "--format=%an", NAME).split()
    assert (log.count("ada"), log.count("bob")) == (20, 20)


ADA: Final = Person(name="Ada", email="ada@example.com", time=7, offset=-90)


def test_a_ref_that_is_replaced_is_logged_as_by_git(
    store: Store, tips: tuple[Oid, Oid]
) -> None:
    one, two = tips

    replace_ref(store, NAME, old=one, new=two, person=ADA, reason="why")

    line = (store.path / "logs" / NAME).read_text().splitlines()[-1]
    assert find_ref(store, NAME) == two
    assert line == f"{one} {two} Ada <ada@example.com> 7 -0130\twhy"
    assert git(store, "rev-parse", f"{NAME}@{{1}}").strip() == one
    assert not list(store.path.rglob("*.lock"))


def test_a_ref_that_another_moved_is_not_replaced(
    store: Store, tips: tuple[Oid, Oid]
) -> None:
    one, two = tips

    with pytest.raises(RefConflictError) as raised:
        replace_ref(store, NAME, old=two, new=two, person=ADA, reason="why")

    assert (raised.value.expected, raised.value.actual) == (two, one)
    assert find_ref(store, NAME) == one
    assert not list(store.path.rglob("*.lock"))


@pytest.mark.slow
def test_a_ref_that_git_keeps_locked_is_not_replaced(store: Store) -> None:
    new = _commit(store, "one")
    lock = store.path / f"{OTHER}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_bytes(b"")

    with pytest.raises(LockedError):
        replace_ref(store, OTHER, old=None, new=new, person=ADA, reason="why")

    assert find_ref(store, OTHER) is None
    assert lock.exists()
