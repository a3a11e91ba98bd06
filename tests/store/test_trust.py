from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from uwfgit.errors import Problem
from uwfgit.store.repository import init_store
from uwfgit.store.safety import config, trust
from uwfgit.store.safety.trust import INNER, inspect_store

_NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Path:
    init_store(tmp_path / "store", home=home, fsync=False)
    return tmp_path / "store"


def check_store(path: Path) -> tuple[Problem, ...]:
    return inspect_store(path).problems


def codes(store: Path) -> list[str]:
    return [problem.code for problem in check_store(store)]


def add_config(store: Path, text: str) -> None:
    with (store / "config").open("a") as file:
        file.write(text)


def test_a_store_that_init_made_has_no_problem(store: Path) -> None:
    assert check_store(store) == ()


@as_root
@pytest.mark.parametrize(
    "name", [".", "config", "HEAD", "refs", "objects", "hooks", "uwf", "packed-refs"]
)
def test_a_part_of_another_user_is_refused(store: Path, name: str) -> None:
    (store / "packed-refs").touch(mode=0o600)
    os.chown(store / name, _NOBODY, -1)

    (problem,) = check_store(store)

    assert (problem.code, problem.file) == (trust.OWNER, str(store / name))


@pytest.mark.parametrize("name", [".", "config", "refs", "objects", "hooks", "uwf"])
@pytest.mark.parametrize("bit", [0o020, 0o002])
def test_a_part_that_others_may_write_is_refused(
    store: Path, name: str, bit: int
) -> None:
    place = store / name
    place.chmod(place.stat().st_mode | bit)

    (problem,) = check_store(store)

    assert (problem.code, problem.file) == (trust.MODE, str(place))


@pytest.mark.parametrize("name", INNER)
def test_what_lies_below_is_looked_at_too(store: Path, name: str) -> None:
    place = store / name
    if not place.exists():
        place.mkdir(mode=0o700)

    place.chmod(0o707)
    by_anyone = check_store(store)
    place.chmod(0o770)
    by_a_group = codes(store)
    store.chmod(0o710)
    by_a_group_that_comes_in = codes(store)

    assert [(each.code, each.file) for each in by_anyone] == [(trust.MODE, str(place))]
    assert (by_a_group, by_a_group_that_comes_in) == ([], [trust.MODE])


@as_root
@pytest.mark.parametrize("name", INNER)
def test_what_lies_below_is_the_users_own(store: Path, name: str) -> None:
    place = store / name
    if not place.exists():
        place.mkdir(mode=0o700)
    os.chown(place, _NOBODY, -1)

    (problem,) = check_store(store)

    assert (problem.code, problem.file) == (trust.OWNER, str(place))


def test_a_link_below_the_stores_folders_is_refused(
    store: Path, tmp_path: Path
) -> None:
    pack = store / "objects" / "pack"
    pack.rename(tmp_path / "elsewhere")
    pack.symlink_to(tmp_path / "elsewhere")

    assert codes(store) == [trust.LINK]


@pytest.mark.parametrize("name", ["HEAD", "packed-refs"])
def test_files_git_rewrites_may_have_the_umasks_mode_only_in_a_private_store(
    store: Path, name: str
) -> None:
    (store / name).touch()
    (store / name).chmod(0o664)

    assert codes(store) == []
    store.chmod(0o755)
    assert codes(store) == [trust.MODE]


@pytest.mark.parametrize(
    ("value", "mode", "expected"),
    [
        pytest.param("group", 0o770, [], id="group"),
        pytest.param("true", 0o770, [], id="true"),
        pytest.param("0660", 0o770, [], id="octal"),
        pytest.param("all", 0o775, [], id="all"),
        pytest.param("0640", 0o770, [trust.MODE], id="octal without group"),
        pytest.param("umask", 0o770, [trust.MODE], id="umask"),
        pytest.param("false", 0o770, [trust.MODE], id="false"),
        pytest.param("all", 0o777, [trust.MODE], id="others never"),
    ],
)
def test_a_shared_repository_may_be_written_by_its_group(
    store: Path, value: str, mode: int, expected: list[str]
) -> None:
    add_config(store, f"[core]\n\tsharedRepository = {value}\n")
    store.chmod(mode)

    assert codes(store) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[core]\nsshCommand = x", id="core.sshCommand"),
        pytest.param("[core]\nhooksPath = x", id="core.hooksPath"),
        pytest.param("[core]\nfsmonitor = x", id="core.fsmonitor"),
        pytest.param("[core]\npager = x", id="core.pager"),
        pytest.param("[core]\neditor = x", id="core.editor"),
        pytest.param("[core]\naskPass = x", id="core.askPass"),
        pytest.param("[core]\ngitProxy = x", id="core.gitProxy"),
        pytest.param("[core]\nattributesFile = x", id="core.attributesFile"),
        pytest.param("[core]\nworktree = /", id="core.worktree"),
        pytest.param("[core]\nalternateRefsCommand = x", id="core.alternateRefs"),
        pytest.param("[include]\npath = x", id="include.path"),
        pytest.param('[includeIf "gitdir:/"]\npath = x', id="includeIf"),
        pytest.param('[url "ext::x"]\ninsteadOf = https:', id="url.insteadOf"),
        pytest.param('[filter "x"]\nsmudge = x', id="filter"),
        pytest.param('[diff "x"]\ntextconv = x', id="diff driver"),
        pytest.param('[merge "x"]\ndriver = x', id="merge driver"),
        pytest.param("[gpg]\nprogram = x", id="gpg.program"),
        pytest.param('[gpg "ssh"]\nprogram = x', id="gpg.ssh.program"),
        pytest.param("[alias]\nx = !x", id="alias"),
        pytest.param("[credential]\nhelper = !x", id="credential.helper"),
        pytest.param("[uploadpack]\npackObjectsHook = x", id="packObjectsHook"),
        pytest.param("[gc]\nrecentObjectsHook = x", id="gc.recentObjectsHook"),
        pytest.param("[gc]\nrepackFilterTo = /x", id="gc.repackFilterTo"),
        pytest.param("[sequence]\neditor = x", id="sequence.editor"),
        pytest.param("[safe]\ndirectory = *", id="safe.directory"),
        pytest.param("[extensions]\nworktreeConfig = true", id="worktreeConfig"),
        pytest.param("[extensions]\npartialClone = origin", id="partialClone"),
        pytest.param('[remote "o"]\npromisor = true', id="promisor"),
        pytest.param('[remote "o"]\nmirror = true', id="mirror"),
        pytest.param('[remote "o"]\nvcs = x', id="remote helper"),
        pytest.param('[remote "o"]\nuploadpack = x', id="remote uploadpack"),
        pytest.param('[remote "o"]\nreceivepack = x', id="remote receivepack"),
        pytest.param('[remote "o"]\nproxy = x', id="remote proxy"),
        pytest.param('[remote "o"]\nurl = ext::sh -c x', id="ext url"),
        pytest.param('[remote "o"]\npushurl = EXT::x', id="ext push url"),
        pytest.param('[remote "o"]\nurl = fd::0', id="fd url"),
        pytest.param('[remote "o"]\nurl = --upload-pack=x', id="url as option"),
        pytest.param('[remote "o"]\nurl = "--upload-pack=x"', id="quoted option"),
        pytest.param('[remote "o"]\nfetch = --all', id="refspec as option"),
        pytest.param('[remote "o"]\ntagOpt = --upload-pack=x', id="tagOpt"),
        pytest.param('[remote "-x"]\nurl = /x', id="name as option"),
        pytest.param("[remote]\npushDefault = x", id="pushDefault"),
        pytest.param('[branch "x"]\nremote = -x', id="branch remote as option"),
        pytest.param('[branch "x"]\nremote = ext::x', id="branch remote ext"),
        pytest.param("[pack]\npackSizeLimit = x", id="no number"),
        pytest.param("[remote.o]\npromisor = true", id="dotted section"),
    ],
)
def test_a_setting_that_is_not_the_stores_is_named(store: Path, text: str) -> None:
    before = len((store / "config").read_text().splitlines())
    add_config(store, text + "\n")

    (problem,) = check_store(store)

    header, setting = text.split("\n")
    name = setting.split(" = ")[0]
    section = header.strip("[]").split(" ")[0]
    assert (problem.code, problem.file, problem.line) == (
        config.CONFIG,
        str(store / "config"),
        before + 2,
    )
    assert f"'{section}" in problem.message
    assert f".{name}'" in problem.message


@pytest.mark.parametrize(
    "text",
    [
        '[remote "o"]\nurl = git@example.org:x.git\npushurl = https://example.org/x',
        '[remote "o"]\nfetch = refs/heads/thread/*:refs/remotes/o/thread/*',
        '[remote "o"]\npush = refs/tags/*:refs/uwf/tags/*\ntagOpt = --no-tags',
        '[branch "main"]\nremote = o\nmerge = refs/heads/main',
        "[uwf]\nanything = x",
        '[uwf "o"]\nshared = true',
        "[core]\nignoreCase = true\nprecomposeUnicode = true\nsymlinks = false",
        "[pack]\nthreads = 2\nwindowMemory = 10m\n[repack]\nwriteBitmaps = false",
        "[extensions]\nobjectFormat = sha1",
        "[receive]\ndenyDeletes = true\nmaxInputSize = 1g",
    ],
)
def test_settings_of_a_store_pass(store: Path, text: str) -> None:
    add_config(store, text + "\n")

    assert check_store(store) == ()


def test_all_settings_are_named_and_not_only_the_first(store: Path) -> None:
    add_config(store, "[core]\nsshCommand = x\npager = y\n")

    assert [problem.message for problem in check_store(store)] == [
        "'core.sshCommand' is not allowed in a store's config",
        "'core.pager' is not allowed in a store's config",
    ]


def test_a_config_that_is_not_plain_is_refused(store: Path) -> None:
    add_config(store, "[core]\nbare = true \\\n[core] sshCommand = x\n")

    assert codes(store) == ["config"]


def _sha256(path: Path) -> None:
    subprocess.run(
        ["git", "init", "-q", "--bare", "--object-format=sha256", str(path)],
        check=True,
    )


def _reftable(path: Path) -> None:
    # As a git that knows reftable writes it.
    subprocess.run(["git", "init", "-q", "--bare", str(path)], check=True)
    add_config(
        path,
        "[core]\nrepositoryFormatVersion = 1\n[extensions]\nrefStorage = reftable\n",
    )


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        pytest.param(_sha256, "fast-import", id="sha256"),
        pytest.param(_reftable, "refs migrate --ref-format=files", id="reftable"),
    ],
)
def test_a_format_uwf_cannot_read_comes_with_the_command_that_converts(
    tmp_path: Path, make: Callable[[Path], None], hint: str
) -> None:
    make(tmp_path / "other")
    (tmp_path / "other").chmod(0o700)

    (problem,) = check_store(tmp_path / "other")

    assert problem.code == config.FORMAT
    assert problem.hint is not None
    assert hint in problem.hint


def test_a_work_trees_repository_is_no_store(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path / "w")], check=True)

    assert config.SHAPE in codes(tmp_path / "w" / ".git")
    assert codes(tmp_path / "w") == [config.SHAPE]


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("pre-push", 0o700),
        ("post-update", 0o610),
        ("reference-transaction", 0o601),
    ],
)
def test_an_executable_hook_is_refused(store: Path, name: str, mode: int) -> None:
    (store / "hooks" / name).write_text("#!/bin/sh\n")
    (store / "hooks" / name).chmod(mode)

    (problem,) = check_store(store)

    assert (problem.code, problem.file) == (trust.HOOK, str(store / "hooks" / name))


def test_samples_and_files_git_does_not_run_are_no_hooks(store: Path) -> None:
    (store / "hooks" / "pre-push.sample").write_text("")
    (store / "hooks" / "pre-push.sample").chmod(0o700)
    (store / "hooks" / "README").write_text("")

    assert check_store(store) == ()


def test_a_hook_that_is_a_link_is_refused(store: Path) -> None:
    (store / "hooks" / "pre-push").unlink()
    (store / "hooks" / "pre-push").symlink_to("/bin/true")

    assert codes(store) == [trust.HOOK]


@pytest.mark.parametrize(
    "name",
    [
        *("info/grafts", "shallow", "commondir", "refs/replace/" + "0" * 40),
        *("objects/info/alternates", "objects/info/http-alternates"),
    ],
)
def test_what_changes_history_is_refused(store: Path, name: str) -> None:
    (store / name).parent.mkdir(exist_ok=True)
    (store / name).write_text("x\n")

    (problem,) = check_store(store)

    assert problem.code == trust.HISTORY
    assert "shows a changed history" in problem.message


def test_packed_replace_refs_are_refused(store: Path) -> None:
    oid = (store / "refs/heads/main").read_text().strip()
    (store / "packed-refs").write_text(f"{oid} refs/replace/{oid}\n")

    assert codes(store) == [trust.HISTORY]
    assert [each.code for each in trust.check_history(store)] == [trust.HISTORY]


def test_the_folder_that_a_deleted_replace_ref_leaves_is_fine(store: Path) -> None:
    (store / "refs" / "replace").mkdir()

    assert check_store(store) == ()


def test_replace_refs_behind_a_link_are_refused(store: Path, tmp_path: Path) -> None:
    (store / "refs" / "replace").symlink_to(tmp_path)

    assert codes(store) == [trust.HISTORY]


def test_a_store_without_hooks_folder_passes(store: Path) -> None:
    (store / "hooks" / "pre-push").unlink()
    (store / "hooks").rmdir()

    assert check_store(store) == ()


@pytest.mark.parametrize("name", ["commondir", "config.worktree"])
def test_files_that_lead_git_to_other_settings_are_refused(
    store: Path, name: str
) -> None:
    (store / name).write_text("/elsewhere\n")

    (problem,) = check_store(store)

    assert problem.file == str(store / name)


@pytest.mark.parametrize("name", ["config", "refs", "objects", "hooks", "HEAD", "uwf"])
def test_links_in_place_of_the_stores_parts_are_refused(
    store: Path, tmp_path: Path, name: str
) -> None:
    (store / name).rename(tmp_path / "moved")
    (store / name).symlink_to(tmp_path / "moved")

    assert codes(store) == [trust.LINK]


def test_a_config_that_is_no_file_is_not_read(store: Path) -> None:
    (store / "config").unlink()
    os.mkfifo(store / "config")

    assert codes(store) == [config.SHAPE]


_SHA = "1" * 40
_GOOD_PACKED = (
    "# pack-refs with: peeled fully-peeled sorted \n"
    f"{_SHA} refs/heads/main\n{_SHA} refs/tags/v1\n^{_SHA}\n"
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("HEAD", "", id="empty-head"),
        pytest.param("HEAD", "main\n", id="head-of-no-form"),
        pytest.param("HEAD", "ref: refs/heads/main\nmore\n", id="longer-head"),
        pytest.param("packed-refs", "garbage\n", id="garbage"),
        pytest.param("packed-refs", _GOOD_PACKED[:-20], id="cut-peeled"),
        pytest.param("packed-refs", _GOOD_PACKED[:-60], id="cut-name"),
        pytest.param("packed-refs", _GOOD_PACKED[:70], id="cut-oid"),
        pytest.param("packed-refs", _GOOD_PACKED + "\0\0\n", id="zeros-at-the-end"),
    ],
)
def test_a_file_of_refs_that_was_cut_is_named_with_its_mend(
    store: Path, name: str, text: str
) -> None:
    (store / name).write_text(text)

    (problem,) = check_store(store)

    assert (problem.code, problem.file) == (config.SHAPE, str(store / name))
    assert problem.hint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("HEAD", "ref: refs/heads/trunk\n", id="another-branch"),
        pytest.param("HEAD", f"{_SHA}\n", id="detached"),
        pytest.param("packed-refs", "", id="nothing-packed"),
        pytest.param("packed-refs", _GOOD_PACKED, id="with-a-peeled-tag"),
        pytest.param("packed-refs", f"{_SHA} refs/heads/main\n", id="without-a-head"),
    ],
)
def test_files_of_refs_as_git_writes_them_are_fine(
    store: Path, name: str, text: str
) -> None:
    (store / name).write_text(text)
    (store / name).chmod(0o600)

    assert check_store(store) == ()
