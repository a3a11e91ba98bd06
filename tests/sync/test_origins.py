"""Workflows fetched from others' repositories: every way to name one, and to harm."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.builders import Clock, make_ledger
from tests.cli.calls import WORKFLOW
from tests.sync.elsewhere import INCLUDING, Elsewhere, make_elsewhere
from tests.sync.serving import serve_http
from uwfgit.errors import (
    AmbiguousError,
    InvalidError,
    NotFoundError,
    RemoteError,
    UwfError,
)
from uwfgit.model.ledger.registering import add_workflow, rollback_workflow
from uwfgit.model.ledger.registry import load_registered
from uwfgit.model.workflow.origin import parse_origin
from uwfgit.store.handle import Store
from uwfgit.store.layout import workflow_ref
from uwfgit.store.objects import write_object
from uwfgit.store.raw import COMMIT
from uwfgit.store.refs import find_ref
from uwfgit.sync.exchange.transport import Wire
from uwfgit.sync.origins import Fetched, fetch_workflow
from uwfgit.sync.verify.registry import check_entries

_SLOW: Final = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def there(tmp_path: Path) -> Elsewhere:
    return make_elsewhere(tmp_path / "there")


def fetch(store: Store, address: str) -> Fetched:
    wire = Wire(environment=os.environ)
    return fetch_workflow(wire, store, parse_origin(address))


@pytest.mark.parametrize(
    "protocol", ["file", pytest.param("http", marks=pytest.mark.slow)]
)
def test_every_way_to_name_one_is_pinned_to_its_commit(
    store: Store, there: Elsewhere, tmp_path: Path, protocol: str
) -> None:
    first = there.commit()
    there.git("tag", "light")
    there.git("tag", "--annotate", "--message", "one", "noted")
    there.git("branch", "feature/one")
    there.write(".workflows/ping.yaml", WORKFLOW.replace("You write.", "Write!"))
    last = there.commit("second")
    table = [
        (":ping", "ping", last, "HEAD", "branch"),
        ("", "ping", last, "HEAD", "branch"),
        ("@main", "ping", last, "main", "branch"),
        ("@feature/one:ping", "ping", first, "feature/one", "branch"),
        ("@light:.workflows/ping.yaml", "ping", first, "light", "tag"),
        ("@noted:ping", "ping", first, "noted", "tag"),
        (f"@{first}:ping", "ping", first, first, "commit"),
        (f"#{last}", "ping", last, last, "commit"),
        (f"@light#{first}", "ping", first, "light", "tag"),
        ("@refs/heads/main:ping", "ping", last, "refs/heads/main", "ref"),
        ("@light:flows/parts.yaml", "parts", first, "light", "tag"),
        ("@light:flows/pong", "pong", first, "light", "tag"),
        ("@light:flows/pong/index.yaml", "pong", first, "light", "tag"),
    ]

    with serve_http(tmp_path) as url:
        base = there.address if protocol == "file" else f"git+{url}/there/.git"
        found = [fetch(store, base + tail) for tail, *_ in table]

    assert [
        (each.source.workflow.name, each.origin.oid, each.origin.rev, each.kind)
        for each in found
    ] == [tuple(facts) for _, *facts in table]
    assert all(each.is_tip for each in found)
    assert {each.origin.place for each in found} == {base.removeprefix("git+")}
    parts = found[10].source
    assert parts.workflow.roles["writer"].goal.startswith("You write, as it stands")
    assert parts.data.startswith(b"# Written by uwf: !include resolved")


def test_nothing_of_the_repository_stays(store: Store, there: Elsewhere) -> None:
    found = fetch(store, f"{there.address}@main")

    assert found.origin.oid is not None
    assert not store.raw.exists(found.origin.oid)
    assert not any((store.state_dir / "scratch").iterdir())


def test_the_repository_does_not_hear_what_the_store_has(
    store: Store, there: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = tmp_path / "said"
    monkeypatch.setenv("GIT_TRACE_PACKET", str(said))
    fetch(store, there.address)

    packets = said.read_text("utf-8")
    assert "fetch> want " in packets
    assert "fetch> have " not in packets


@pytest.mark.parametrize(
    ("tail", "kind"),
    [
        ("@nope", NotFoundError),
        ("@mian", NotFoundError),
        ("@refs/heads/nope", NotFoundError),
        ("@both", AmbiguousError),
        ("@blob", InvalidError),
        ("@0123456789012345678901234567890123456789", RemoteError),
        (":nope.yaml", NotFoundError),
        (":nope", NotFoundError),
        (":flows", NotFoundError),
        (":flows/texts/goal.md", InvalidError),
    ],
)
def test_what_is_not_there_is_told(
    store: Store, there: Elsewhere, tail: str, kind: type[UwfError]
) -> None:
    there.git("branch", "both")
    there.git("tag", "both")
    there.git("tag", "blob", "HEAD:flows/parts.yaml")

    with pytest.raises(kind) as caught:
        fetch(store, there.address + tail)

    assert caught.value.hint


def test_the_only_workflow_of_several_has_to_be_named(
    store: Store, there: Elsewhere
) -> None:
    there.write(".workflows/more.yaml", WORKFLOW.replace("name: ping", "name: more"))
    there.commit()

    with pytest.raises(AmbiguousError) as caught:
        fetch(store, there.address)

    assert caught.value.candidates == (".workflows/more.yaml", ".workflows/ping.yaml")


def test_a_wrong_oid_and_a_moved_tag_are_refused(
    store: Store, there: Elsewhere
) -> None:
    first = there.commit()
    there.git("tag", "v1")
    pinned = fetch(store, f"{there.address}@v1").origin
    last = there.commit()
    there.git("tag", "--force", "v1")

    for address in (str(pinned), f"{there.address}@main#{first}"):
        with pytest.raises(RemoteError) as caught:
            fetch(store, address)
        assert last in caught.value.message
        assert first in caught.value.message
    assert fetch(store, f"{there.address}@{first}").origin.oid == first


def test_a_commit_that_no_branch_ends_at_is_told(
    store: Store, there: Elsewhere
) -> None:
    there.git("checkout", "--quiet", "--detach")
    stray = there.commit("of nobody")
    there.git("checkout", "--quiet", "main")

    found = fetch(store, f"{there.address}@{stray}:ping")
    there.git("tag", "--annotate", "--message", "x", "noted", stray)
    noted = fetch(store, f"{there.address}@{stray}:ping")

    assert (found.origin.oid, found.is_tip) == (stray, False)
    assert noted.is_tip


def _evil(there: Elsewhere, text: str) -> None:
    there.write("flows/evil.yaml", text.replace("name: parts", "name: evil"))


def _symlink(there: Elsewhere) -> None:
    there.link("flows/evil.yaml", "parts.yaml")


def _symlink_out(there: Elsewhere) -> None:
    there.link("flows/evil.yaml", "/etc/passwd")


def _folder_link(there: Elsewhere) -> None:
    there.git("mv", "flows", "real")
    there.link("flows", "real")
    there.write("real/evil.yaml", WORKFLOW.replace("name: ping", "name: evil"))


def _submodule(there: Elsewhere) -> None:
    head = there.git("rev-parse", "HEAD")
    there.git("rm", "-r", "--quiet", "flows")
    there.write(
        ".gitmodules", '[submodule "flows"]\n\tpath=flows\n\turl=ext::sh -c "x"\n'
    )
    there.git("add", ".gitmodules")
    there.git("update-index", "--add", "--cacheinfo", f"160000,{head},flows")
    there.git("commit", "--quiet", "--message", "sub")


def _include(target: str) -> Callable[[Elsewhere], None]:
    return lambda there: _evil(there, INCLUDING.replace("texts/goal.md", target))


def _include_link(there: Elsewhere) -> None:
    there.link("flows/texts/link.md", "/etc/passwd")
    _include("texts/link.md")(there)


def _include_circle(there: Elsewhere) -> None:
    there.write("flows/texts/a.yaml", "!include b.yaml\n")
    there.write("flows/texts/b.yaml", "!include a.yaml\n")
    _include("texts/a.yaml")(there)


def _pointer(there: Elsewhere) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    there.write(".gitattributes", "*.yaml filter=lfs diff=lfs merge=lfs\n")
    there.git("config", "filter.lfs.clean", "cat")
    there.git("config", "filter.lfs.smudge", "cat")
    there.write("flows/evil.yaml", pointer)


def _included_pointer(there: Elsewhere) -> None:
    there.write(
        "flows/texts/big.md", "version https://git-lfs.github.com/spec/v1\nsize 9\n"
    )
    _include("texts/big.md")(there)


def _huge(there: Elsewhere) -> None:
    _evil(there, INCLUDING + "# " + "x" * 1_100_000)


def _huge_include(there: Elsewhere) -> None:
    there.write("flows/texts/huge.md", "x" * 1_100_000)
    _include("texts/huge.md")(there)


def _conflict(there: Elsewhere) -> None:
    _evil(there, INCLUDING + "<<<<<<< a\n=======\n>>>>>>> b\n")


def _wide(there: Elsewhere) -> None:
    _evil(there, INCLUDING)
    for number in range(2_001):
        there.write(f"flows/{number}.md", "")


def _tagged(there: Elsewhere) -> None:
    _evil(there, INCLUDING.replace("!include texts/goal.md", "!!python/name:os.system"))


@pytest.mark.parametrize(
    ("make", "code"),
    [
        pytest.param(_symlink, "Y15", id="symlink"),
        pytest.param(_symlink_out, "Y15", id="symlink-out", marks=_SLOW),
        pytest.param(_folder_link, "Y15", id="folder-link"),
        pytest.param(_submodule, "Y15", id="submodule"),
        pytest.param(_include("../.workflows/ping.yaml"), "Y13", id="include-up"),
        pytest.param(
            _include("/etc/passwd"), "Y13", id="include-absolute", marks=_SLOW
        ),
        pytest.param(
            _include("texts/../../x"), "Y13", id="include-around", marks=_SLOW
        ),
        pytest.param(_include("texts/none.md"), "Y12", id="include-missing"),
        pytest.param(_include("texts"), "Y15", id="include-folder", marks=_SLOW),
        pytest.param(_include_link, "Y15", id="include-link"),
        pytest.param(_include_circle, "Y14", id="include-circle", marks=_SLOW),
        pytest.param(_pointer, "Y17", id="lfs"),
        pytest.param(_included_pointer, "Y17", id="lfs-include", marks=_SLOW),
        pytest.param(_huge, "Y3", id="huge"),
        pytest.param(_huge_include, "Y3", id="huge-include", marks=_SLOW),
        pytest.param(_conflict, "Y17", id="conflict", marks=_SLOW),
        pytest.param(_wide, "corrupt", id="wide", marks=_SLOW),
        pytest.param(_tagged, "Y5", id="python-tag", marks=_SLOW),
        pytest.param(
            lambda t: _evil(t, WORKFLOW), "S6", id="another-name", marks=_SLOW
        ),
    ],
)
def test_a_hostile_tree_is_refused(
    store: Store, there: Elsewhere, make: Callable[[Elsewhere], None], code: str
) -> None:
    make(there)
    if make is not _submodule:
        there.commit("evil")

    with pytest.raises(InvalidError) as caught:
        fetch(store, f"{there.address}:flows/evil.yaml")

    assert code in {problem.code for problem in caught.value.problems}
    assert "root:" not in str(caught.value)


def test_what_is_too_large_is_not_even_sent(store: Store, there: Elsewhere) -> None:
    there.git("config", "uploadpack.allowFilter", "true")
    there.write("flows/evil.yaml", INCLUDING + "# " + "x" * 1_100_000)
    there.write("media.bin", os.urandom(2_000_000))
    there.commit("large")

    with pytest.raises(InvalidError) as caught:
        fetch(store, f"{there.address}:flows/evil.yaml")
    found = fetch(store, f"{there.address}:flows/parts.yaml")

    assert [problem.code for problem in caught.value.problems] == ["Y3"]
    assert found.source.workflow.name == "parts"


HOOKS: Final = (
    *("post-checkout", "post-merge", "post-update", "pre-receive", "update"),
    *("reference-transaction", "pre-push", "fsmonitor-watchman", "post-index-change"),
)


def _arm(there: Elsewhere, marker: Path) -> None:
    """Let everything of the repository that could run a command leave a marker."""
    shot = f"touch {marker}"
    git_dir = there.folder / ".git"
    there.write(".gitattributes", "* filter=evil diff=evil merge=evil -text ident\n")
    there.write(
        ".gitmodules", f'[submodule "s"]\n\tpath = s\n\turl = ext::sh -c "{shot}"\n'
    )
    there.write(".lfsconfig", f"[lfs]\n\turl = ext::{shot}\n")
    there.git("add", "--all")
    there.git(
        "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "armed"
    )
    for name in HOOKS:
        (git_dir / "hooks" / name).write_text(f"#!/bin/sh\n{shot}\n")
        (git_dir / "hooks" / name).chmod(0o755)
    for key in (
        *("core.fsmonitor", "core.sshCommand", "core.editor", "core.pager"),
        *("core.gitProxy", "core.alternateRefsCommand", "core.askPass"),
        *("filter.evil.smudge", "filter.evil.clean", "filter.evil.process"),
        *("diff.evil.command", "diff.evil.textconv", "merge.evil.driver"),
        *("uploadpack.packObjectsHook", "credential.helper", "gpg.program"),
        *("remote.origin.uploadpack", "alias.upload-pack", "diff.external"),
    ):
        there.git("config", key, f"!{shot}" if key.startswith("alias") else shot)
    there.git("config", "core.hooksPath", str(git_dir / "hooks"))
    there.git("config", "protocol.ext.allow", "always")
    there.git("config", "uploadpack.allowAnySHA1InWant", "true")


@pytest.mark.parametrize(
    "protocol", ["file", pytest.param("http", marks=pytest.mark.slow)]
)
def test_nothing_of_a_hostile_repository_runs(
    store: Store, there: Elsewhere, tmp_path: Path, protocol: str
) -> None:
    marker = tmp_path / "ran"
    _arm(there, marker)

    with serve_http(tmp_path) as url:
        base = there.address if protocol == "file" else f"git+{url}/there/.git"
        found = fetch(store, f"{base}@main:flows/parts.yaml")

    assert found.source.workflow.name == "parts"
    assert not marker.exists()
    with suppress(subprocess.CalledProcessError):
        there.git("checkout", "--quiet", "-b", "by-hand")
    assert marker.exists()


@pytest.mark.parametrize(
    "address",
    [
        "git+ssh://-oProxyCommand=touch%20ran/r",
        "git+ssh://h;touch%20ran/r",
        "git+file:///nope/--upload-pack=x",
        "git+http://127.0.0.1:1/r",
    ],
)
def test_an_address_that_tries_more_is_a_remote_that_fails(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_SSH_COMMAND", "false")

    with pytest.raises(RemoteError):
        fetch(store, address)

    assert not (tmp_path / "ran").exists()


def test_where_a_version_came_from_is_kept_proved_and_rolled_back(
    store: Store, there: Elsewhere
) -> None:
    ledger = make_ledger(store, Clock(count(1_800_000_000_000, 1_000)))
    old = fetch(store, f"{there.address}@main")
    add_workflow(ledger, old.source.workflow, old.source.data, origin=old.origin)
    there.write(".workflows/ping.yaml", WORKFLOW.replace("You write.", "Write!"))
    there.commit()
    new = fetch(store, f"{there.address}@main")

    added = add_workflow(
        ledger, new.source.workflow, new.source.data, origin=new.origin
    )
    same = add_workflow(ledger, new.source.workflow, new.source.data)
    back = rollback_workflow(ledger, "ping")

    tip = find_ref(store, workflow_ref("ping"))
    assert tip is not None
    assert check_entries(store, tip, "ping") is None
    assert (added.changed, added.origin) == (True, str(new.origin))
    assert (same.changed, same.origin) == (False, str(new.origin))
    assert back.origin == str(old.origin)
    assert load_registered(ledger, "ping").version.origin == str(old.origin)


def test_the_same_text_from_another_place_is_pinned_there(
    store: Store, there: Elsewhere
) -> None:
    ledger = make_ledger(store, Clock(count(1_800_000_000_000, 1_000)))
    there.git("branch", "other")
    one = fetch(store, f"{there.address}@main")
    two = fetch(store, f"{there.address}@other")
    there.commit()
    later = fetch(store, f"{there.address}@other")
    facts = (one.source.workflow, one.source.data)

    changed = [
        add_workflow(ledger, *facts, origin=origin).changed
        for origin in (None, one.origin, two.origin, later.origin)
    ]

    assert changed == [True, True, True, False]


@pytest.mark.parametrize(
    "forged",
    [
        f"git+https://a:b@h/r@main:x.yaml#{'0' * 40}",
        "git+https://h/r@main:x.yaml",
        f"git+ext::sh -c id#{'0' * 40}",
        "",
    ],
)
def test_a_forged_origin_is_refused(
    store: Store, there: Elsewhere, forged: str
) -> None:
    ledger = make_ledger(store, Clock(count(1_800_000_000_000, 1_000)))
    found = fetch(store, f"{there.address}@main")
    add_workflow(ledger, found.source.workflow, found.source.data, origin=found.origin)
    tip = find_ref(store, workflow_ref("ping"))
    assert tip is not None
    data = store.raw.read(tip, COMMIT, limit=10_000)

    other = data.replace(str(found.origin).encode(), forged.encode())

    assert check_entries(store, tip, "ping") is None
    assert check_entries(store, write_object(store, COMMIT, other), "ping")


@pytest.mark.parametrize("user", ["ghp_secretToken", "ada:s3cretWord"])
def test_what_git_says_of_a_login_is_told_without_it(
    store: Store, tmp_path: Path, user: str
) -> None:
    with serve_http(tmp_path, is_open=False) as url, pytest.raises(RemoteError) as said:
        fetch(store, f"git+{url.replace('://', f'://{user}@')}/there/.git")

    told = f"{said.value.message} {said.value.hint}"
    assert "127.0.0.1" in told
    assert not [part for part in user.split(":") if part in told]
