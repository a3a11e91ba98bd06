from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders import git
from tests.sync.people import refs_of
from uwfgit.errors import NotFoundError, RemoteError, UsageError
from uwfgit.store.handle import Store
from uwfgit.store.repository import open_store
from uwfgit.sync.exchange.remotes import (
    RemoteKind,
    absolute_url,
    add_remote,
    choose_remote,
    get_remote,
    list_remotes,
    remove_remote,
    same_place,
    shown_url,
)

THREAD = "01M8FV0G61K8RNY396JMTGNRK5"
TOKEN = "ghp_" + "0a1B2c3D" * 4 + "5e6F"


def add(
    store: Store, name: str, url: str = "/x", kind: RemoteKind = "dedicated"
) -> None:
    add_remote(store, name, url, kind=kind, environment=os.environ)


def set_config(store: Store, *words: str) -> None:
    git(store, "config", *words)


@pytest.mark.parametrize(
    ("kind", "fetch", "push"),
    [
        pytest.param(
            "dedicated",
            [
                "refs/heads/thread/*:refs/remotes/o/thread/*",
                "refs/heads/workflow/*:refs/remotes/o/workflow/*",
                "refs/tags/approved/*:refs/tags/approved/*",
                "refs/heads/main:refs/remotes/o/main",
            ],
            [
                "refs/heads/thread/*:refs/heads/thread/*",
                "refs/heads/workflow/*:refs/heads/workflow/*",
                "refs/tags/approved/*:refs/tags/approved/*",
                "refs/heads/main:refs/heads/main",
            ],
            id="dedicated",
        ),
        pytest.param(
            "shared",
            [
                "refs/uwf/thread/*:refs/remotes/o/thread/*",
                "refs/uwf/workflow/*:refs/remotes/o/workflow/*",
                "refs/uwf/approved/*:refs/tags/approved/*",
            ],
            [
                "refs/heads/thread/*:refs/uwf/thread/*",
                "refs/heads/workflow/*:refs/uwf/workflow/*",
                "refs/tags/approved/*:refs/uwf/approved/*",
            ],
            id="shared",
        ),
    ],
)
def test_a_remotes_refspecs_stand_in_the_config_for_plain_git(
    store: Store, home: Path, kind: RemoteKind, fetch: list[str], push: list[str]
) -> None:
    add(store, "o", "https://example.com/x y.git", kind)

    def values(key: str) -> list[str]:
        return git(store, "config", "--get-all", f"remote.o.{key}").splitlines()

    assert values("fetch") == fetch
    assert values("push") == push
    assert values("url") == ["https://example.com/x y.git"]
    assert values("tagOpt") == ["--no-tags"]
    assert get_remote(store, "o").kind == kind
    assert open_store(store.path, home=home).path == store.path


def test_adding_the_same_remote_again_changes_nothing(store: Store) -> None:
    add(store, "o")
    before = (store.path / "config").read_text()

    add(store, "o")

    assert (store.path / "config").read_text() == before
    with pytest.raises(RemoteError):
        add(store, "o", "/y")
    with pytest.raises(RemoteError):
        add(store, "o", kind="shared")


@pytest.mark.parametrize(
    "mirror",
    [
        pytest.param(["remote", "add", "--mirror=push", "o", "/x"], id="mirror"),
        pytest.param(["remote", "add", "o", "/x"], id="plain"),
        pytest.param(["config", "remote.o.url", "/x"], id="url only"),
    ],
)
def test_a_remote_that_uwf_did_not_set_up_is_refused_until_it_does(
    store: Store, mirror: list[str]
) -> None:
    git(store, *mirror)

    with pytest.raises(RemoteError):
        get_remote(store, "o")

    add(store, "o")
    assert [each.kind for each in list_remotes(store)] == ["dedicated"]


def test_one_more_refspec_makes_a_remote_another(store: Store) -> None:
    add(store, "o")
    set_config(store, "--add", "remote.o.push", "+refs/heads/*:refs/heads/*")

    with pytest.raises(RemoteError):
        get_remote(store, "o")


def test_a_removed_remote_leaves_nothing(store: Store) -> None:
    add(store, "o")
    add(store, "other")
    git(store, "update-ref", f"refs/remotes/o/thread/{THREAD}", "main")

    remove_remote(store, "o", environment=os.environ)

    assert [each.name for each in list_remotes(store)] == ["other"]
    assert set(refs_of(store)) == {"refs/heads/main"}
    with pytest.raises(NotFoundError):
        remove_remote(store, "o", environment=os.environ)


@pytest.mark.parametrize(
    "name", ["", "-x", "a/b", "a b", ".x", "x.", "a..b", "x.lock", "bundle", THREAD]
)
def test_a_name_that_git_or_a_command_would_misread_is_refused(
    store: Store, name: str
) -> None:
    with pytest.raises(UsageError):
        add(store, name)


def test_the_remote_to_take_is_named_shared_the_only_one_or_origin(
    store: Store,
) -> None:
    with pytest.raises(NotFoundError):
        choose_remote(store, None, share=None)
    add(store, "one")
    assert choose_remote(store, None, share=None).name == "one"
    add(store, "two")
    with pytest.raises(UsageError):
        choose_remote(store, None, share=None)
    assert choose_remote(store, None, share="two").name == "two"
    assert choose_remote(store, "one", share="two").name == "one"
    add(store, "origin")
    assert choose_remote(store, None, share=None).name == "origin"


@pytest.mark.parametrize(
    ("ref", "ours"),
    [
        (f"refs/uwf/thread/{THREAD}", f"refs/heads/thread/{THREAD}"),
        ("refs/uwf/workflow/solve-issue", "refs/heads/workflow/solve-issue"),
        (f"refs/uwf/approved/{THREAD}/3", f"refs/tags/approved/{THREAD}/3"),
        (f"refs/uwf/thread/{THREAD.lower()}", None),
        (f"refs/uwf/thread/{THREAD}/x", None),
        ("refs/uwf/keep", None),
        (f"refs/uwf/trash/{THREAD}", None),
        ("refs/uwf/workflow/Not-One", None),
        (f"refs/uwf/approved/{THREAD}", None),
        (f"refs/uwf/approved/{THREAD}/../x", None),
        (f"refs/heads/thread/{THREAD}", None),
        ("refs/heads/main", None),
    ],
)
def test_only_names_that_may_travel_are_taken_from_a_shared_remote(
    store: Store, ref: str, ours: str | None
) -> None:
    add(store, "o", kind="shared")
    remote = get_remote(store, "o")

    assert remote.ours(ref) == ours
    if ours is not None:
        assert remote.theirs(ours) == ref


@pytest.mark.parametrize(
    "ref",
    [
        "refs/uwf/keep",
        "refs/heads/other",
        f"refs/uwf/trash/{THREAD}",
        "refs/heads/main",
        "refs/tags/v1",
    ],
)
def test_nothing_else_is_ever_sent_to_a_shared_remote(store: Store, ref: str) -> None:
    add(store, "o", kind="shared")

    with pytest.raises(ValueError, match="not exchanged"):
        get_remote(store, "o").theirs(ref)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("https://me:pass@h/x", "https://me:***@h/x", id="password"),
        pytest.param("HTTPS://me:p@ss@h/x", "HTTPS://me:***@h/x", id="with an at"),
        pytest.param("https://:pass@h/x", "https://:***@h/x", id="no user"),
        pytest.param(f"https://{TOKEN}@h/x", "https://***@h/x", id="token"),
        pytest.param(f"https://{TOKEN}:x@h/x", "https://***:***@h/x", id="token first"),
        pytest.param(f"https://{TOKEN}:@h/x", "https://***:@h/x", id="nothing behind"),
        pytest.param(f"http://oauth2:{TOKEN}@h", "http://oauth2:***@h", id="no path"),
        pytest.param("https://a%2Fb@h/x", "https://***@h/x", id="no plain name"),
        pytest.param("https://deploy_bot@h/x", "https://deploy_bot@h/x", id="login"),
        pytest.param("ssh://git@h:22/x@y", "ssh://git@h:22/x@y", id="ssh"),
        pytest.param("git@host:x", "git@host:x", id="scp"),
        pytest.param("https://h/x@y", "https://h/x@y", id="nobody"),
        pytest.param("/a/b:c@d", "/a/b:c@d", id="path"),
    ],
)
def test_an_address_shows_no_secret(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_addresses_hold_from_any_folder(tmp_path: Path) -> None:
    assert absolute_url("../x", tmp_path / "y") == str(tmp_path / "x")
    assert absolute_url("host:x", tmp_path) == "host:x"
    assert absolute_url("ssh://host/x", tmp_path) == "ssh://host/x"
    assert same_place("/x/y.git/", "file:///x/y")
    for url in ("", "-x", "ext::sh -c id"):
        with pytest.raises(UsageError):
            absolute_url(url, tmp_path)
