"""A push goes where ``git push`` in the repository around the store goes."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.cli.calls import Uwf
from tests.sync.serving import serve_http

PLACES: Final = ("one", "two", "three")
LOGIN: Final = base64.b64encode(b"ada:secret").decode()
SSH: Final = """\
#!/bin/sh
[ "$1" = -G ] && exit 1
echo "$0" >> {log}
for last; do :; done
exec sh -c "$last"
"""


@dataclass(slots=True, kw_only=True)
class World:
    """A repository, three bare ones to push to, and how git is told of them."""

    root: Path
    code: Path
    monkeypatch: pytest.MonkeyPatch
    ran: list[str] = field(default_factory=list)

    def url(self, place: str) -> str:
        return str(self.root / f"{place}.git")

    def config(self, key: str, value: str, *words: str) -> None:
        self.git("config", *words, "--add", key, value)

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words], cwd=self.code, capture_output=True, text=True, check=False
        )

    def setenv(self, **variables: str) -> None:
        for name, value in variables.items():
            self.monkeypatch.setenv(name, value)

    def ssh(self, name: str = "ssh.sh") -> Path:
        """Make a program that acts as ssh and leaves its name behind."""
        path = self.root / name
        path.write_text(SSH.format(log=self.root / "ssh.log"))
        path.chmod(0o755)
        return path

    def arrived(self, pattern: str) -> Mapping[str, int]:
        """Count the refs in each place, and the calls of what acts as ssh."""
        counts = {
            place: len(
                subprocess.run(
                    ["git", "--git-dir", self.url(place), "for-each-ref", pattern],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout.splitlines()
            )
            for place in PLACES
        }
        log = self.root / "ssh.log"
        used = sorted(set(log.read_text().split())) if log.exists() else []
        log.unlink(missing_ok=True)
        return {**counts, **dict.fromkeys(used, 1)}


@pytest.fixture
def world(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    root = tmp_path / "places"
    root.mkdir()
    for place in PLACES:
        subprocess.run(
            ["git", "init", "-q", "--bare", root / f"{place}.git"], check=True
        )
    made = World(root=root, code=work, monkeypatch=monkeypatch)
    made.git("init", "-q", "-b", "main")
    made.git("config", "user.email", "ada@example.org")
    made.git("config", "user.name", "Ada")
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    return made


def plain(world: World) -> None:
    world.git("remote", "add", "origin", world.url("one"))


def push_address(world: World) -> None:
    plain(world)
    world.config("remote.origin.pushurl", world.url("two"))


def guard(world: World) -> None:
    plain(world)
    world.config("remote.origin.pushurl", "DISABLED")


def two_addresses(world: World) -> None:
    plain(world)
    world.config("remote.origin.url", world.url("two"))


def two_push_addresses(world: World) -> None:
    plain(world)
    world.config("remote.origin.pushurl", world.url("two"))
    world.config("remote.origin.pushurl", world.url("three"))


def instead_of(world: World) -> None:
    world.git("remote", "add", "origin", "short:one.git")
    world.config(f"url.{world.root}/.insteadOf", "short:")


def instead_of_of_the_user(world: World) -> None:
    world.git("remote", "add", "origin", "short:one.git")
    world.config(f"url.{world.root}/.insteadOf", "short:", "--global")


def push_instead_of(world: World) -> None:
    plain(world)
    world.config(f"url.{world.url('two')}.pushInsteadOf", world.url("one"))


def push_instead_of_of_the_user(world: World) -> None:
    plain(world)
    world.config(f"url.{world.url('two')}.pushInsteadOf", world.url("one"), "--global")


def push_instead_of_does_not_touch_a_push_address(world: World) -> None:
    plain(world)
    world.config("remote.origin.pushurl", world.url("one"))
    world.config(f"url.{world.url('two')}.pushInsteadOf", world.url("one"))


def instead_of_touches_a_push_address(world: World) -> None:
    plain(world)
    world.config("remote.origin.pushurl", "short:two.git")
    world.config(f"url.{world.root}/.insteadOf", "short:")


def the_longest_instead_of(world: World) -> None:
    world.git("remote", "add", "origin", "short:to/one.git")
    world.config("url./nowhere/.insteadOf", "short:")
    world.config(f"url.{world.root}/.insteadOf", "short:to/")


def included_config(world: World) -> None:
    plain(world)
    text = f'[remote "origin"]\n\tpushurl = {world.url("two")}\n'
    (world.root / "more").write_text(text)
    world.config("include.path", str(world.root / "more"))


def conditional_include_of_the_user(world: World) -> None:
    plain(world)
    text = f'[url "{world.url("two")}"]\n\tpushInsteadOf = {world.url("one")}\n'
    (world.root / "more").write_text(text)
    key = f"includeIf.gitdir:{world.code}/.path"
    world.config(key, str(world.root / "more"), "--global")


def config_in_variables(world: World) -> None:
    plain(world)
    world.setenv(
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0=f"url.{world.url('two')}.insteadOf",
        GIT_CONFIG_VALUE_0=world.url("one"),
    )


def config_on_gits_command_line(world: World) -> None:
    plain(world)
    setting = f"url.{world.url('two')}.insteadOf={world.url('one')}"
    world.setenv(GIT_CONFIG_PARAMETERS=f"'{setting}'")


def config_of_the_work_tree(world: World) -> None:
    plain(world)
    world.config("extensions.worktreeConfig", "true")
    world.config("remote.origin.pushurl", world.url("two"), "--worktree")


def a_relative_address(world: World) -> None:
    world.git("remote", "add", "origin", "../places/one.git")


def a_file_address(world: World) -> None:
    world.git("remote", "add", "origin", f"file://{world.url('one')}")


def ssh_command(world: World) -> None:
    world.git("remote", "add", "origin", f"ssh://host{world.url('one')}")
    world.config("core.sshCommand", str(world.ssh()))


def ssh_command_with_a_relative_path(world: World) -> None:
    world.git("remote", "add", "origin", f"ssh://host{world.url('one')}")
    world.ssh()
    world.config("core.sshCommand", "../places/ssh.sh")


def ssh_command_of_the_environment_wins(world: World) -> None:
    world.git("remote", "add", "origin", f"host:{world.url('one')}")
    world.config("core.sshCommand", str(world.ssh("wrong.sh")))
    world.setenv(GIT_SSH_COMMAND=str(world.ssh()))


def ssh_command_of_the_user_is_overridden(world: World) -> None:
    world.git("remote", "add", "origin", f"host:{world.url('one')}")
    world.config("core.sshCommand", str(world.ssh("wrong.sh")), "--global")
    world.config("core.sshCommand", str(world.ssh()))


def ssh_for_pushing_alone(world: World) -> None:
    plain(world)
    world.config(f"url.ssh://host{world.root}/.pushInsteadOf", f"{world.root}/")
    world.config("core.sshCommand", str(world.ssh()))


def receive_pack_of_the_remote(world: World) -> None:
    plain(world)
    path = world.root / "receive.sh"
    log = world.root / "ssh.log"
    path.write_text(f'#!/bin/sh\necho receive >> {log}\nexec git-receive-pack "$@"\n')
    path.chmod(0o755)
    world.config("remote.origin.receivepack", str(path))


def another_name_for_the_same_address(world: World) -> None:
    world.git("remote", "add", "backup", world.url("one"))
    world.git("remote", "add", "origin", world.url("one"))
    world.config("remote.origin.pushurl", world.url("two"))


def a_mirror_of_the_user_for_fetching(world: World) -> None:
    plain(world)
    world.config(f"url.{world.url('three')}.insteadOf", world.url("one"))
    world.config("remote.origin.pushurl", world.url("two"))


TABLE: Final[tuple[Callable[[World], None], ...]] = (
    plain,
    push_address,
    guard,
    two_addresses,
    two_push_addresses,
    instead_of,
    instead_of_of_the_user,
    push_instead_of,
    push_instead_of_of_the_user,
    push_instead_of_does_not_touch_a_push_address,
    instead_of_touches_a_push_address,
    the_longest_instead_of,
    included_config,
    conditional_include_of_the_user,
    config_in_variables,
    config_on_gits_command_line,
    config_of_the_work_tree,
    a_relative_address,
    a_file_address,
    ssh_command,
    ssh_command_with_a_relative_path,
    ssh_command_of_the_environment_wins,
    ssh_command_of_the_user_is_overridden,
    ssh_for_pushing_alone,
    receive_pack_of_the_remote,
    another_name_for_the_same_address,
    a_mirror_of_the_user_for_fetching,
)


@pytest.mark.parametrize("configure", TABLE, ids=lambda each: each.__name__)
def test_a_push_goes_where_git_push_goes(
    world: World, uwf: Uwf, thread: str, configure: Callable[[World], None]
) -> None:
    configure(world)
    pushed = world.git("push", "-q", "origin", "main")
    expected = world.arrived("refs/heads/main")

    added = uwf("remote", "add")
    sent = uwf("push", thread)

    assert added.code == 0, added.err
    assert (sent.code == 0) == (pushed.returncode == 0), sent.err + pushed.stderr
    assert world.arrived("refs/uwf/thread") == expected
    if pushed.returncode == 0:
        assert uwf("push").code == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(
            "http.extraHeader",
            f"Authorization: Basic {LOGIN}",
            marks=pytest.mark.slow,
        ),
        ("http.{url}.extraHeader", f"Authorization: Basic {LOGIN}"),
        pytest.param(
            "credential.helper",
            "!f() { echo username=ada; echo password=secret; }; f",
            marks=pytest.mark.slow,
        ),
        (
            "credential.{url}.helper",
            "!f() { echo username=ada; echo password=secret; }; f",
        ),
    ],
)
def test_a_login_is_the_one_that_git_push_uses(
    world: World, uwf: Uwf, thread: str, key: str, value: str
) -> None:
    with (world.root / "one.git" / "config").open("a") as config:
        config.write("[http]\n\treceivepack = true\n")
    with serve_http(world.root, login=LOGIN) as url:
        world.git("remote", "add", "origin", f"{url}/one.git")
        world.config(key.format(url=url), value)
        pushed = world.git("push", "-q", "origin", "main")
        assert pushed.returncode == 0, pushed.stderr
        assert uwf("remote", "add").code == 0

        sent = uwf("push", thread)

    assert sent.code == 0, sent.err
    assert world.arrived("refs/uwf/thread")["one"] == 1


def test_a_push_stops_when_the_repository_pushes_elsewhere_by_now(
    world: World, uwf: Uwf, thread: str
) -> None:
    plain(world)
    assert uwf("remote", "add").code == 0
    world.config("remote.origin.pushurl", world.url("two"))

    refused = uwf("push", thread, "--json")

    assert refused.code == 1
    message = refused.error["message"]
    assert world.url("one") in message
    assert world.url("two") in message
    assert set(world.arrived("refs/uwf").values()) == {0}

    assert uwf("remote", "rm", "origin").code == 0
    assert uwf("remote", "add").code == 0
    assert uwf("push", thread).code == 0
    assert world.arrived("refs/uwf/thread") == {"one": 0, "two": 1, "three": 0}


def test_a_remote_of_ones_own_goes_where_it_was_said(
    world: World, uwf: Uwf, thread: str
) -> None:
    push_address(world)
    assert uwf("remote", "add", "own", world.url("three"), "--dedicated").code == 0

    assert uwf("push", "own", thread).code == 0

    assert world.arrived("refs/heads/thread") == {"one": 0, "two": 0, "three": 1}


def test_what_one_of_two_places_lacks_is_sent_again(
    world: World, uwf: Uwf, thread: str
) -> None:
    two_addresses(world)
    assert uwf("remote", "add").code == 0
    assert uwf("push", thread).code == 0
    lost = f"refs/uwf/thread/{thread}"
    subprocess.run(
        ["git", "--git-dir", world.url("two"), "update-ref", "-d", lost], check=True
    )

    assert uwf("push").code == 0

    assert world.arrived("refs/uwf/thread") == {"one": 1, "two": 1, "three": 0}


def test_variables_of_a_repository_still_do_not_reach_git(
    world: World, uwf: Uwf, thread: str
) -> None:
    plain(world)
    world.setenv(GIT_DIR=os.devnull, GIT_CONFIG=os.devnull)
    assert uwf("--store", str(world.code / ".git/uwf"), "verify", thread).code == 0
