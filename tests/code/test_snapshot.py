"""A snapshot is what the files are, and nothing of the user's notices."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.code.repo import PEOPLE, THREAD, Repo
from uwfgit.code.chain import Label, chain_ref, list_chain
from uwfgit.code.snapshots.keep import Keeper, Kept
from uwfgit.code.snapshots.leave_out import Bounds
from uwfgit.code.snapshots.take import sweep
from uwfgit.code.worktree import WorkTree

BEFORE = Label(thread=THREAD, number=1, run=1, when="before")
AFTER = Label(thread=THREAD, number=1, run=1, when="after")


def keep(keeper: Keeper, repo: Repo, label: Label = BEFORE) -> Kept:
    return keeper.keep(repo.root, label)


def whole(repo: Repo) -> dict[str, str]:
    """Say what plain ``git add -A`` in a copy of the index would record."""
    copy = repo.root.parent / "plain-index"
    index = repo.root / ".git" / "index"
    if index.exists():
        copy.write_bytes(index.read_bytes())
    environment = {**os.environ, **PEOPLE, "GIT_INDEX_FILE": str(copy)}
    written = b""
    for words in (["add", "-A"], ["write-tree"]):
        written = subprocess.run(
            ["git", "-c", "core.safecrlf=false", *words],
            cwd=repo.root,
            env=environment,
            capture_output=True,
            check=True,
        ).stdout
    copy.unlink()
    return repo.list_tree(written.decode().strip())


CHANGES = {
    "nothing": "true",
    "an edit": "echo more >> a.txt",
    "a new file": "mkdir -p new && echo x > new/file",
    "a deletion": "rm a.txt",
    "a rename": "mv a.txt c.txt",
    "a mode": "chmod +x a.txt",
    "a link": "ln -s a.txt link",
    "a link for a file": "rm a.txt && ln -s src/b.txt a.txt",
    "a file for a folder": "rm -r src && echo x > src",
    "a folder for a file": "rm a.txt && mkdir a.txt && echo x > a.txt/in",
    "a link for a folder": "mv src other && ln -s other src",
    "binary": "head -c 3000 /dev/urandom > bin",
    "empty": ": > empty",
    "a name with spaces": "echo x > ' a  b '",
    "a name with quotes": """echo x > 'a"b'"'"'c'""",
    "a name with a line break": "echo x > 'a\nb'",
    "a name that is not a text": "echo x > \"$(printf 'a\\377b')\"",
    "a name like an option": "echo x > -rf && echo x > ':(exclude)a'",
    "a name like a pattern": "echo x > '*' && echo y > '[a].txt'",
    "staged and changed again": "echo s >> a.txt && git add a.txt && echo w >> a.txt",
    "staged deletion, file kept": "git rm -q --cached a.txt",
    "intent to add": "echo x > later && git add -N later",
    "an ignored file": "echo log > .gitignore && echo x > log",
    "a forced ignored file": (
        "echo log > .gitignore && echo x > log && git add -f log && echo y > log"
    ),
    "no permission to write": "echo x >> a.txt && chmod 444 a.txt",
    "a detached head": "git checkout -q --detach && echo x >> a.txt",
    "an unborn branch": "git checkout -q --orphan fresh && echo x >> a.txt",
    "a merge": (
        "git checkout -q -b side && echo s > a.txt && git commit -qam s && "
        "git checkout -q main && echo m > a.txt && git commit -qam m && "
        "(git merge side || true)"
    ),
    "a merge, one side deleted": (
        "git checkout -q -b side && git rm -q a.txt && git commit -qm s && "
        "git checkout -q main && echo m > a.txt && git commit -qam m && "
        "(git merge side || true) && rm -f a.txt"
    ),
    "sparse": "git sparse-checkout set src && echo x >> src/b.txt",
    "crlf": "git config core.autocrlf true && git config core.safecrlf true && "
    "printf 'x\\r\\ny\\n' > mixed",
    "split index": "git update-index --split-index && echo x >> a.txt",
    "index version 4": "git update-index --index-version 4 && echo x >> a.txt",
    "status settings": "git config status.showUntrackedFiles no && "
    "git config status.short true && git config status.renames copies && echo x > new",
    "a clean filter": "git config filter.up.clean 'tr a-z A-Z' && "
    "echo '*.txt filter=up' > .gitattributes && echo x >> a.txt && echo y > n.txt",
}


@pytest.mark.parametrize("script", CHANGES.values(), ids=CHANGES.keys())
def test_a_snapshot_holds_what_git_add_would_and_touches_nothing(
    repo: Repo, keeper: Keeper, script: str
) -> None:
    repo.sh(script)
    expected, own, files = whole(repo), repo.own_state(), repo.files()

    kept = keep(keeper, repo)

    assert kept.warnings == ()
    assert kept.tree is not None
    assert repo.list_tree(kept.tree) == expected
    assert repo.own_state() == own
    assert repo.files() == files
    assert list((keeper.camera.folder).iterdir()) == []


def test_an_edit_of_equal_size_in_the_same_second_is_seen(
    repo: Repo, keeper: Keeper
) -> None:
    # As on a file system that counts in seconds: git knows only that the file is
    # no older than the index.
    repo.git("config", "core.trustctime", "false")
    file, index = repo.root / "a.txt", repo.root / ".git" / "index"
    os.utime(file, (1_700_000_000, 1_700_000_000))
    repo.git("add", "a.txt")
    repo.write("a.txt", "One\nTwo\nThree\n")
    for each in (file, index):
        os.utime(each, (1_700_000_000, 1_700_000_000))

    kept = keep(keeper, repo)

    assert repo.git("show", f"{kept.tree}:a.txt") == "One\nTwo\nThree\n"


def test_hooks_stash_and_reflogs_are_left_alone(repo: Repo, keeper: Keeper) -> None:
    repo.sh(
        "echo s >> a.txt && git stash -q && git config core.logAllRefUpdates always"
    )
    for name in ("reference-transaction", "post-index-change", "pre-commit"):
        hook = repo.write(f".git/hooks/{name}", f"#!/bin/sh\ntouch {repo.root}/ran\n")
        hook.chmod(0o755)
    repo.write("a.txt", "new\n")
    own = repo.own_state()

    keep(keeper, repo)
    repo.write("a.txt", "newer\n")
    keep(keeper, repo, AFTER)

    assert not (repo.root / "ran").exists()
    assert repo.own_state() == own


def test_a_linked_worktree_has_its_own_files_and_the_common_chain(
    repo: Repo, keeper: Keeper
) -> None:
    repo.git("worktree", "add", "-q", "../linked")
    linked = Repo(root=repo.root.parent / "linked")
    linked.write("only-here", "x\n")

    kept = keep(keeper, linked)

    assert "only-here" in repo.list_tree(kept.tree or "")
    assert len(list_chain(repo.tree, chain_ref(THREAD))) == 1


def test_a_folder_below_the_top_gives_the_whole_work_tree(
    repo: Repo, keeper: Keeper
) -> None:
    kept = keeper.keep(repo.root / "src", BEFORE)

    assert set(repo.list_tree(kept.tree or "")) == {"a.txt", "src/b.txt"}


def test_a_submodule_is_kept_as_its_commit(repo: Repo, keeper: Keeper) -> None:
    other = Repo.make(repo.root.parent / "other")
    repo.sh("git -c protocol.file.allow=always submodule --quiet add ../other sub")
    repo.commit("sub")
    Repo(root=repo.root / "sub").write("a.txt", "changed in it\n")
    head = Repo(root=repo.root / "sub").commit("in it")
    assert head != other.git("rev-parse", "HEAD").strip()

    kept = keep(keeper, repo)

    assert repo.list_tree(kept.tree or "")["sub"] == f"160000 commit {head}"


LEFT_OUT: dict[str, tuple[str, str, str]] = {
    "a secret's name": ("echo x > .env", ".env", "its name is that of a secret"),
    "a key's name": ("echo x > id_rsa", "id_rsa", "its name is that of a secret"),
    "a state": ("echo x > t.tfstate", "t.tfstate", "its name is that of a secret"),
    "a secret inside": ("echo SECRET > n", "n", "a secret stands in it"),
    "a large file": ("head -c 3000 /dev/zero > n", "n", "larger than 0 MiB"),
    "an empty repository": ("git init -q in", "in/", "another repository"),
    "a repository with a commit": (
        "git init -q in && cd in && echo x > f && git add f && git commit -qm x",
        "in/",
        "another repository",
    ),
    "uwfignore": ("echo n > .uwfignore && echo x > n", "n", ".uwfignore"),
    "a filter that fails": (
        (
            "git config filter.bad.clean false && "
            "git config filter.bad.required true && "
            "echo '*.bad filter=bad' > .gitattributes && echo x > n.bad"
        ),
        "n.bad",
        "git cannot add it",
    ),
}


@pytest.mark.parametrize(("script", "path", "why"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_is_left_out_is_named_and_all_else_is_kept(
    repo: Repo, keeper: Keeper, script: str, path: str, why: str
) -> None:
    repo.sh(script)
    repo.write("beside", "kept\n")
    camera = replace(keeper.camera, bounds=Bounds(file_bytes=2000))

    kept = keep(replace(keeper, camera=camera), repo)

    assert kept.warnings == (f"not in the code snapshot ({why}): {path}",)
    held = repo.list_tree(kept.tree or "")
    assert "beside" in held
    assert not any(name.startswith(path) for name in held)


def test_a_sample_of_settings_is_no_secret(repo: Repo, keeper: Keeper) -> None:
    repo.sh("echo x > .env.example && echo x > id_map.py && echo x > id_rsa.pub")

    kept = keep(keeper, repo)

    assert {".env.example", "id_map.py", "id_rsa.pub"} <= set(
        repo.list_tree(kept.tree or "")
    )


def test_a_tracked_file_that_grew_too_large_stays_as_it_was(
    repo: Repo, keeper: Keeper
) -> None:
    repo.write("a.txt", "x" * 3000)
    camera = replace(keeper.camera, bounds=Bounds(file_bytes=2000))

    kept = keep(replace(keeper, camera=camera), repo)

    assert repo.git("show", f"{kept.tree}:a.txt") == "one\ntwo\nthree\n"
    assert "a.txt" in kept.warnings[0]


def test_too_much_that_is_new_gives_no_snapshot_but_a_warning(
    repo: Repo, keeper: Keeper
) -> None:
    repo.write("a", "x" * 600)
    repo.write("b", "x" * 600)
    camera = replace(keeper.camera, bounds=Bounds(total_bytes=1000))

    kept = keep(replace(keeper, camera=camera), repo)

    assert kept.tree is None
    assert "no code snapshot before the run: more than" in kept.warnings[0]


def test_the_home_folder_is_never_kept(repo: Repo, keeper: Keeper) -> None:
    told: list[WorkTree] = []
    camera = replace(keeper.camera, home=repo.root)

    kept = keep(replace(keeper, camera=camera, on_kept=told.append), repo)
    keep(replace(keeper, on_kept=told.append), repo)

    assert [tree.root for tree in told] == [repo.root]

    assert kept == Kept(
        warnings=("no code snapshot before the run: the work tree is the home folder",)
    )


def test_outside_of_a_work_tree_there_is_nothing_to_keep(
    tmp_path: Path, keeper: Keeper
) -> None:
    assert keeper.keep(tmp_path, BEFORE) == Kept()


def _hang(repo: Repo) -> None:
    repo.sh(
        "git config filter.slow.clean 'sleep 60' && "
        "echo '*.slow filter=slow' > .gitattributes && echo x > n.slow"
    )


def _break_objects(repo: Repo) -> None:
    # Not permissions: root may write anywhere.
    repo.sh("mv .git/objects .git/o && ln -s /dev/null/nothing .git/objects")


def _break_index(repo: Repo) -> None:
    (repo.root / ".git" / "index").write_bytes(b"no index")


def _reftable(repo: Repo) -> None:
    repo.git("config", "core.repositoryformatversion", "1")
    repo.git("config", "extensions.refstorage", "reftable")


TROUBLE: dict[str, Callable[[Repo], None]] = {
    "a filter that hangs": _hang,
    "no object folder": _break_objects,
    "a broken index": _break_index,
    "a format git does not know": _reftable,
}


@pytest.mark.parametrize("spoil", TROUBLE.values(), ids=TROUBLE)
def test_trouble_is_a_warning(
    repo: Repo, keeper: Keeper, spoil: Callable[[Repo], None]
) -> None:
    spoil(repo)
    camera = replace(keeper.camera, bounds=Bounds(seconds=1.0))

    kept = keep(replace(keeper, camera=camera), repo)

    assert kept.tree is None
    assert len(kept.warnings) <= 1


def test_a_held_index_lock_is_nothing_to_a_snapshot(repo: Repo, keeper: Keeper) -> None:
    repo.write(".git/index.lock", "an editor's")
    repo.write("a.txt", "new\n")

    kept = keep(keeper, repo)

    assert repo.git("show", f"{kept.tree}:a.txt") == "new\n"
    assert (repo.root / ".git" / "index.lock").read_text() == "an editor's"


def test_the_users_fsmonitor_runs_as_for_any_git_command(
    repo: Repo, keeper: Keeper
) -> None:
    hook = repo.write(
        ".git/watch",
        f"#!/bin/sh\ntouch {repo.root}/.git/watched\nprintf 'token\\0/\\0'\n",
    )
    hook.chmod(0o755)
    repo.git("config", "core.fsmonitor", ".git/watch")
    repo.git("status")
    (repo.root / ".git" / "watched").unlink()
    repo.write("a.txt", "new\n")

    kept = keep(keeper, repo)

    assert (repo.root / ".git" / "watched").exists()
    assert repo.git("show", f"{kept.tree}:a.txt") == "new\n"


def test_nothing_new_costs_no_commit(repo: Repo, keeper: Keeper) -> None:
    for number in range(1, 4):
        keep(keeper, repo, replace(BEFORE, number=number))
        keep(keeper, repo, replace(AFTER, number=number))

    assert len(list_chain(repo.tree, chain_ref(THREAD))) == 1


def test_head_is_a_parent_when_it_is_another_than_last_time(
    repo: Repo, keeper: Keeper
) -> None:
    first = repo.git("rev-parse", "HEAD").strip()
    keep(keeper, repo)
    repo.write("a.txt", "new\n")
    keep(keeper, repo, AFTER)
    second = repo.commit("second")
    keep(keeper, repo, replace(BEFORE, number=2))

    chain = list_chain(repo.tree, chain_ref(THREAD))

    assert [each.parents for each in chain] == [
        (chain[1].commit, second),
        (chain[2].commit,),
        (first,),
    ]
    assert [each.head for each in chain] == [second, first, first]
    assert repo.git("fsck", "--strict") == ""


def test_what_a_killed_process_left_is_swept_away(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    (tmp_path / f"{dead.pid}-x").mkdir()
    (tmp_path / f"{os.getpid()}-y").mkdir()

    sweep(tmp_path)

    assert [each.name for each in tmp_path.iterdir() if each.name != "home"] == [
        f"{os.getpid()}-y"
    ]


def test_modes_are_those_of_the_user(repo: Repo, keeper: Keeper) -> None:
    keep(keeper, repo)

    assert stat.S_IMODE(keeper.camera.folder.stat().st_mode) == 0o700
