from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pygit2
import pygit2.errors
import pytest

from uwfgit.errors import (
    CorruptError,
    FormatVersionError,
    InvalidError,
    LockedError,
    NotFoundError,
    StoreError,
    UntrustedError,
    UwfError,
)
from uwfgit.store.genesis import GENESIS_OID
from uwfgit.store.handle import git_errors
from uwfgit.store.locks import git_lock
from uwfgit.store.refs import move_ref
from uwfgit.store.repository import init_store, open_store, trust_store
from uwfgit.store.safety import init
from uwfgit.store.safety.stores import (
    list_stores,
    make_id,
    register_store,
    write_id,
)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

_SETTINGS = {
    "core.repositoryformatversion": "0",
    "core.filemode": "true",
    "core.bare": "true",
    "core.logallrefupdates": "always",
    "gc.auto": "0",
    "gc.cruftpacks": "false",
    "gc.writecommitgraph": "false",
    "gc.pruneexpire": "2.weeks.ago",
    "gc.reflogexpire": "90.days",
    "gc.reflogexpireunreachable": "30.days",
    "maintenance.auto": "false",
    "receive.autogc": "false",
    "receive.denynonfastforwards": "true",
    "receive.fsckobjects": "true",
    "transfer.fsckobjects": "true",
    "uwf.format": "1",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def make(path: Path, home: Path) -> bool:
    return init_store(path, home=home, fsync=False)


def git(*args: str) -> str:
    done = subprocess.run(["git", *args], capture_output=True, text=True, check=True)
    return done.stdout


def read_settings(path: Path) -> dict[str, str]:
    listed = git("config", "--file", str(path / "config"), "--list", "-z")
    return dict(item.split("\n", 1) for item in listed.split("\0") if item)


def list_modes(path: Path) -> set[tuple[bool, int]]:
    places = (place.lstat().st_mode for place in (path, *path.rglob("*")))
    return {(stat.S_ISDIR(mode), stat.S_IMODE(mode)) for mode in places}


# init


def test_a_new_store_is_a_plain_bare_repository_at_genesis(
    path: Path, home: Path
) -> None:
    assert make(path, home) is True

    assert read_settings(path) == _SETTINGS
    assert (path / "HEAD").read_text() == "ref: refs/heads/main\n"
    assert (path / "info" / "attributes").read_text().splitlines() == [
        "* -text",
        "**/nodes/** -diff linguist-generated gitlab-generated",
    ]
    repo = pygit2.Repository(str(path))
    assert repo.is_bare
    assert {name: str(repo.references[name].target) for name in repo.references} == {
        "refs/heads/main": GENESIS_OID
    }
    assert [hook.name for hook in (path / "hooks").iterdir()] == ["pre-push"]
    assert (path / "uwf").is_dir()
    assert list_stores(home) == (path,)


@pytest.mark.compat
def test_git_finds_nothing_wrong_with_a_new_store(path: Path, home: Path) -> None:
    make(path, home)

    assert git(f"--git-dir={path}", "fsck", "--strict", "--full") == ""


def test_all_that_init_makes_is_private_whatever_the_umask(
    path: Path, home: Path, umask: Callable[[int], int]
) -> None:
    umask(0)

    make(path, home)

    assert list_modes(path) == {
        *((True, 0o700), (False, 0o600), (False, 0o400)),
        # Its hook is the one file that git runs.
        (False, 0o700),
    }
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE((home / "stores").stat().st_mode) == 0o600


def test_init_does_not_depend_on_the_users_git_settings(
    path: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "template" / "hooks").mkdir(parents=True)
    (tmp_path / "template" / "hooks" / "pre-push").touch(mode=0o755)
    (tmp_path / "home" / ".gitconfig").write_text(
        f"[init]\ntemplateDir = {tmp_path}/template\ndefaultBranch = trunk\n"
    )
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))

    make(path, home)

    assert open_store(path, home=home).repo.references["HEAD"].target == (
        "refs/heads/main"
    )


def test_a_second_init_changes_nothing(path: Path, home: Path) -> None:
    make(path, home)
    before = {place: place.lstat().st_mtime_ns for place in path.rglob("*")}

    assert make(path, home) is False

    assert {place: place.lstat().st_mtime_ns for place in path.rglob("*")} == before
    assert list_stores(home) == (path,)


def test_a_plain_bare_clone_is_completed_and_keeps_what_it_has(
    path: Path, home: Path, tmp_path: Path
) -> None:
    make(path, home)
    clone = tmp_path / "clone"
    git("clone", "-q", "--bare", str(path), str(clone))
    git("config", "--file", str(clone / "config"), "gc.pruneExpire", "never")

    assert make(clone, home) is False

    assert read_settings(clone) == _SETTINGS | {
        "gc.pruneexpire": "never",
        "remote.origin.url": str(path),
    }
    assert open_store(clone, home=home).repo.head.target == pygit2.Oid(hex=GENESIS_OID)
    assert (clone / "info" / "attributes").read_bytes() == (
        path / "info" / "attributes"
    ).read_bytes()
    assert list_stores(home) == (path, clone)


def test_an_empty_bare_repository_with_another_head_gets_main(
    path: Path, home: Path
) -> None:
    git("init", "-q", "--bare", "--initial-branch=trunk", str(path))

    assert make(path, home) is False

    repo = open_store(path, home=home).repo
    assert repo.references["HEAD"].target == "refs/heads/main"
    assert str(repo.head.target) == GENESIS_OID


def test_attributes_of_the_users_own_stay(path: Path, home: Path) -> None:
    git("init", "-q", "--bare", str(path))
    (path / "info" / "attributes").write_text("*.md text")

    make(path, home)

    assert (path / "info" / "attributes").read_text().splitlines() == [
        "*.md text",
        "* -text",
        "**/nodes/** -diff linguist-generated gitlab-generated",
    ]


def test_a_group_writable_clone_is_made_private(
    path: Path, home: Path, umask: Callable[[int], int]
) -> None:
    umask(0o002)
    git("init", "-q", "--bare", str(path))

    make(path, home)

    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    open_store(path, home=home)


def test_a_repository_shared_on_purpose_stays_shared(path: Path, home: Path) -> None:
    git("init", "-q", "--bare", "--shared=group", str(path))
    before = path.stat().st_mode

    make(path, home)

    assert path.stat().st_mode == before
    assert before & stat.S_IWGRP
    open_store(path, home=home)


def test_init_fills_an_empty_folder_without_replacing_it(
    path: Path, home: Path
) -> None:
    path.mkdir()
    before = path.stat().st_ino

    assert make(path, home) is True

    assert path.stat().st_ino == before
    assert read_settings(path) == _SETTINGS
    assert not list(path.glob(f"{init.SCRATCH}*"))


def _fill_with_text(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("mine")


def _make_file(path: Path) -> None:
    path.write_text("mine")


def _make_work_tree(path: Path) -> None:
    git("init", "-q", str(path))


def _make_git_dir(path: Path) -> None:
    git("init", "-q", f"--separate-git-dir={path}", str(path.parent / "work"))


def _make_sha256(path: Path) -> None:
    git("init", "-q", "--bare", "--object-format=sha256", str(path))


def _make_other_history(path: Path) -> None:
    git("init", "-q", "--bare", "--initial-branch=main", str(path))
    repo = pygit2.Repository(str(path))
    who = pygit2.Signature("a", "a@example.org", 1, 0)
    repo.create_commit("refs/heads/main", who, who, "x", repo.TreeBuilder().write(), [])


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(_fill_with_text, id="folder with files"),
        pytest.param(_make_file, id="file"),
        pytest.param(_make_work_tree, id="work tree"),
        pytest.param(_make_git_dir, id="repository of a work tree"),
        pytest.param(_make_sha256, id="sha256"),
        pytest.param(_make_other_history, id="other history"),
    ],
)
def test_init_refuses_what_cannot_be_a_store(
    path: Path, home: Path, prepare: Callable[[Path], None]
) -> None:
    prepare(path)

    with pytest.raises(StoreError):
        make(path, home)

    assert list_stores(home) == ()
    assert not path.is_dir() or "uwf.format" not in (
        read_settings(path) if (path / "config").exists() else {}
    )


def test_init_does_not_adopt_a_hostile_repository(path: Path, home: Path) -> None:
    git("init", "-q", "--bare", str(path))
    git("config", "--file", str(path / "config"), "core.sshCommand", "touch /x")
    before = (path / "config").read_bytes()

    with pytest.raises(UntrustedError) as caught:
        make(path, home)

    assert "core.sshcommand" in caught.value.message.lower()
    assert (path / "config").read_bytes() == before
    assert list_stores(home) == ()


def test_init_names_the_lock_of_a_config_that_stays_locked(
    path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git("init", "-q", "--bare", str(path))
    (path / "config.lock").touch()
    monkeypatch.setattr(git_lock, "_WAIT", 0.05)

    with pytest.raises(LockedError) as caught:
        make(path, home)

    assert "config.lock" in caught.value.what
    assert (path / "config.lock").exists()


@pytest.mark.parametrize("is_there", [False, True], ids=["nothing", "empty folder"])
def test_processes_that_init_at_once_make_one_whole_store(
    path: Path,
    home: Path,
    is_there: bool,  # noqa: FBT001 - a table's column
) -> None:
    if is_there:
        path.mkdir()
    code = (
        "import sys, pathlib\n"
        "from uwfgit.store.repository import init_store, open_store\n"
        "path, home = map(pathlib.Path, sys.argv[1:])\n"
        "made = init_store(path, home=home, fsync=False)\n"
        "open_store(path, home=home)\n"
        "print(made)\n"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), str(home)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]

    said = sorted(racer.communicate()[0].strip() for racer in racers)

    assert said == ["False"] * 5 + ["True"]
    assert read_settings(path) == _SETTINGS
    assert list_stores(home) == (path,)
    assert not list(path.parent.glob(f"{init.SCRATCH}*"))
    assert not list(path.glob(f"{init.SCRATCH}*"))


def test_what_a_killed_init_leaves_does_not_hinder_the_next(
    path: Path, home: Path
) -> None:
    path.mkdir()
    (path / f"{init.SCRATCH}1-dead").mkdir()
    (path.parent / f"{init.SCRATCH}2-dead").mkdir()

    assert make(path, home) is True
    open_store(path, home=home)


def test_a_store_that_another_process_just_fills_is_waited_for(
    path: Path, home: Path, tmp_path: Path
) -> None:
    make(path, home)
    (path / "HEAD").rename(tmp_path / "HEAD")
    (path / f"{init.SCRATCH}1-busy").mkdir()
    mover = threading.Timer(0.1, (tmp_path / "HEAD").rename, [path / "HEAD"])
    mover.start()

    assert make(path, home) is False
    mover.join()


def test_a_folder_that_cannot_be_made_is_a_store_error(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreError):
        make(tmp_path / "file" / "store", home)


def test_config_and_head_survive_when_a_key_is_missing(path: Path, home: Path) -> None:
    make(path, home)
    git("config", "--file", str(path / "config"), "--unset", "gc.cruftPacks")

    assert make(path, home) is False

    assert read_settings(path) == _SETTINGS
    assert not (path / "config.lock").exists()


# open


def test_a_store_opens_with_its_state_dir(path: Path, home: Path) -> None:
    make(path, home)

    store = open_store(path, home=home)

    assert (store.path, store.state_dir) == (path, path / "uwf")
    assert str(store.repo.head.target) == GENESIS_OID


def test_a_store_is_known_by_where_it_really_is(
    path: Path, home: Path, tmp_path: Path
) -> None:
    make(path, home)
    (tmp_path / "link").symlink_to(path)

    assert open_store(tmp_path / "link", home=home).path == path


def test_a_missing_store_is_not_found_and_the_hint_names_init(
    path: Path, home: Path
) -> None:
    with pytest.raises(NotFoundError) as caught:
        open_store(path, home=home)

    assert caught.value.hint == f"run: uwf init --store {path}"
    assert not path.exists()
    assert not home.exists()


def test_a_store_made_elsewhere_is_refused_until_it_is_trusted(
    path: Path, home: Path, tmp_path: Path
) -> None:
    make(path, tmp_path / "other-home")

    with pytest.raises(UntrustedError) as caught:
        open_store(path, home=home)
    assert caught.value.hint is not None
    assert f"uwf store trust {path}" in caught.value.hint

    assert trust_store(path, home=home) is True
    assert trust_store(path, home=home) is False
    assert open_store(path, home=home).path == path


def test_trusting_does_not_allow_what_no_store_may_hold(
    path: Path, home: Path, tmp_path: Path
) -> None:
    make(path, tmp_path / "other-home")
    (path / "hooks" / "post-update").touch(mode=0o700)

    with pytest.raises(UntrustedError):
        trust_store(path, home=home)

    assert list_stores(home) == ()


def test_trusting_nothing_is_not_found(path: Path, home: Path) -> None:
    with pytest.raises(NotFoundError):
        trust_store(path, home=home)


def test_a_store_that_turned_hostile_is_refused_and_nothing_of_it_runs(
    path: Path, home: Path, tmp_path: Path
) -> None:
    make(path, home)
    ran = tmp_path / "ran"
    (tmp_path / "more").write_text(f"[core]\nfsmonitor = touch {ran}\n")
    with (path / "config").open("a") as file:
        file.write(f"[include]\n\tpath = {tmp_path / 'more'}\n")

    with pytest.raises(UntrustedError) as caught:
        open_store(path, home=home)

    assert "'include.path'" in caught.value.message
    assert f"{path / 'config'}:" in caught.value.message
    assert not ran.exists()


@as_root
def test_a_store_of_another_user_is_refused(path: Path, home: Path) -> None:
    make(path, home)
    os.chown(path, 65534, -1)

    with pytest.raises(UntrustedError) as caught:
        open_store(path, home=home)

    assert "belongs to another user" in caught.value.message


@as_root
@pytest.mark.parametrize("inner", [".", "objects", "refs/heads"])
def test_what_a_container_s_root_left_in_a_store_is_told_to_be_taken_back(
    path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, inner: str
) -> None:
    make(path, home)
    user = os.geteuid() or 12345
    for place in (home, path, *home.rglob("*"), *path.rglob("*")):
        os.chown(place, user, -1)
    os.chown(path / inner, 0, -1)
    monkeypatch.setattr("os.geteuid", lambda: user)

    with pytest.raises(UntrustedError) as caught:
        open_store(path, home=home)

    assert f"sudo chown -R {user} {path}" in str(caught.value.hint)


def test_a_bare_repository_that_is_not_yet_a_store_names_init(
    path: Path, home: Path
) -> None:
    git("init", "-q", "--bare", str(path))
    path.chmod(0o700)
    trust_store(path, home=home)

    with pytest.raises(StoreError) as caught:
        open_store(path, home=home)

    assert caught.value.hint == f"run: uwf init --store {path}"


def test_a_newer_format_is_refused_by_open_and_init_naming_both(
    path: Path, home: Path
) -> None:
    make(path, home)
    git("config", "--file", str(path / "config"), "uwf.format", "2")

    for use in (open_store, init_store):
        with pytest.raises(FormatVersionError) as caught:
            use(path, home=home)

        assert (caught.value.found, caught.value.supported) == ("2", "1")


@pytest.mark.parametrize("value", ["0", "x", "-1", "1.0", "\u0661"])
def test_a_format_that_is_no_number_is_invalid(
    path: Path, home: Path, value: str
) -> None:
    make(path, home)
    git("config", "--file", str(path / "config"), "uwf.format", value)

    with pytest.raises(InvalidError):
        open_store(path, home=home)


def test_a_repository_in_another_format_is_named_with_the_mend(
    path: Path, home: Path
) -> None:
    _make_sha256(path)
    write_id(path, make_id(home))

    with pytest.raises(StoreError) as caught:
        open_store(path, home=home)

    assert "sha256" in caught.value.message
    assert caught.value.hint is not None
    assert "fast-import" in caught.value.hint


def test_opening_makes_no_file(path: Path, home: Path) -> None:
    make(path, home)
    before = sorted(path.rglob("*"))

    open_store(path, home=home, write=True, fsync=False)

    assert sorted(path.rglob("*")) == before


def test_opening_leaves_the_umask_of_agents_alone(
    path: Path, home: Path, umask: Callable[[int], int]
) -> None:
    umask(0o027)
    make(path, home)

    open_store(path, home=home, write=True, fsync=False)

    assert umask(0) == 0o027


# the list


def test_the_list_keeps_order_and_knows_each_store_once(
    tmp_path: Path, home: Path
) -> None:
    for name in ("b", "a", "b"):
        register_store(tmp_path / name, home=home)

    assert list_stores(home) == (tmp_path / "b", tmp_path / "a")
    assert (home / "stores").read_text() == f"{tmp_path}/b\n{tmp_path}/a\n"


def test_a_path_with_odd_characters_survives_the_list(
    tmp_path: Path, home: Path
) -> None:
    odd = tmp_path / "a\u2028b \x0b \udcff"
    register_store(odd, home=home)

    assert list_stores(home) == (odd,)


def test_a_path_with_a_line_break_is_refused(tmp_path: Path, home: Path) -> None:
    with pytest.raises(StoreError):
        register_store(tmp_path / "a\nb", home=home)


def test_a_list_that_others_may_write_trusts_nothing(path: Path, home: Path) -> None:
    make(path, home)
    (home / "store-ids").chmod(0o666)

    with pytest.raises(UntrustedError):
        open_store(path, home=home)


def test_a_list_that_cannot_be_read_is_a_store_error(path: Path, home: Path) -> None:
    (home / "stores").mkdir(parents=True)

    with pytest.raises(StoreError):
        list_stores(home)
    with pytest.raises(StoreError):
        make(path, home)


@as_root
def test_a_list_of_another_user_trusts_nothing(path: Path, home: Path) -> None:
    make(path, home)
    os.chown(home / "stores", 65534, -1)

    with pytest.raises(UntrustedError):
        list_stores(home)


def test_a_store_that_was_deleted_is_not_found(path: Path, home: Path) -> None:
    make(path, home)
    shutil.rmtree(path)

    with pytest.raises(NotFoundError):
        open_store(path, home=home)


# errors


@pytest.mark.parametrize("name", pygit2.errors.__all__)
def test_every_error_of_pygit2_becomes_one_of_uwfs(name: str) -> None:
    kind = getattr(pygit2, name)

    with pytest.raises(UwfError) as caught, git_errors("read x"):
        raise kind

    assert str(caught.value).startswith("cannot read x: ")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(KeyError("0" * 40), CorruptError, id="missing object"),
        pytest.param(
            OSError("failed to lock file"), StoreError, id="libgit2's OSError"
        ),
        pytest.param(PermissionError(13, "denied", "/x"), StoreError, id="permission"),
        pytest.param(ValueError("odd"), StoreError, id="invalid value"),
    ],
)
def test_other_errors_at_the_seam_are_mapped(
    error: Exception, expected: type[UwfError]
) -> None:
    with pytest.raises(expected) as caught, git_errors("read x"):
        raise error

    assert caught.value.__cause__ is error


def test_uwfs_own_errors_pass_the_seam_unchanged() -> None:
    error = StoreError("mine")

    with pytest.raises(StoreError) as caught, git_errors("read x"):
        raise error

    assert caught.value is error


def test_a_programming_error_is_not_hidden() -> None:
    with pytest.raises(TypeError), git_errors("read x"):
        raise TypeError


def test_a_main_that_is_whole_is_not_written_again(path: Path, home: Path) -> None:
    make(path, home)
    file = path / "refs/heads/main"
    before = file.stat().st_ino

    open_store(path, home=home, write=True, fsync=False)

    assert file.stat().st_ino == before


@pytest.mark.parametrize("mode", [None, 0o644], ids=["gone", "not to be run"])
def test_a_hook_that_git_would_not_run_is_written_again(
    path: Path, home: Path, mode: int | None
) -> None:
    make(path, home)
    hook = path / "hooks" / "pre-push"
    text = hook.read_bytes()
    hook.unlink()
    if mode is not None:
        hook.write_bytes(text)
        hook.chmod(mode)

    open_store(path, home=home, write=True, fsync=False)

    assert hook.read_bytes() == text
    assert os.access(hook, os.X_OK)


@pytest.mark.parametrize("left", [b"", b"\0" * 41, b"9a4de2aff"])
def test_a_main_without_an_oid_is_written_again(
    path: Path, home: Path, left: bytes
) -> None:
    make(path, home)
    file = path / "refs/heads/main"
    file.write_bytes(left)

    store = open_store(path, home=home, write=True, fsync=False)
    move_ref(store, "refs/heads/thread/x", old=None, new=GENESIS_OID, reason="test")

    assert file.read_text() == f"{GENESIS_OID}\n"
