from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from uwfgit.errors import ConfigError
from uwfgit.store.git import settings
from uwfgit.store.git.enclosing import Enclosing, enclosing_setting, find_enclosing
from uwfgit.store.git.settings import Identity, read_settings
from uwfgit.store.git.worktree import read_head, root_commit

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
pytestmark = pytest.mark.compat


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "LOGNAME": "jo",
    }


class Work:
    """A work tree and git in it."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self.root = root
        self.environment = environment | {
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@example.org",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@example.org",
        }

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.root), *args],
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    @property
    def enclosing(self) -> Enclosing:
        found = find_enclosing(self.root)
        assert found is not None
        return found


@pytest.fixture
def work(tmp_path: Path, environment: dict[str, str]) -> Work:
    root = tmp_path / "work"
    root.mkdir()
    made = Work(root, environment)
    made.git("init", "-q")
    return made


# find_enclosing


def test_the_repository_is_found_from_anywhere_below_its_root(work: Work) -> None:
    (work.root / "a" / "b").mkdir(parents=True)

    assert find_enclosing(work.root / "a" / "b") == Enclosing(
        root=work.root, git_dir=work.root / ".git", common_dir=work.root / ".git"
    )


def test_worktrees_of_one_repository_share_the_common_dir(
    work: Work, tmp_path: Path
) -> None:
    work.commit("x")
    work.git("worktree", "add", "-q", str(tmp_path / "linked"))

    assert find_enclosing(tmp_path / "linked") == Enclosing(
        root=tmp_path / "linked",
        git_dir=work.root / ".git" / "worktrees" / "linked",
        common_dir=work.root / ".git",
    )


def test_a_submodule_is_a_repository_of_its_own(work: Work, tmp_path: Path) -> None:
    inner = Work(tmp_path / "inner", work.environment)
    inner.root.mkdir()
    inner.git("init", "-q")
    inner.commit("x")
    options = ("-c", "protocol.file.allow=always")
    work.git(*options, "submodule", "add", "-q", str(inner.root), "sub")

    modules = work.root / ".git" / "modules" / "sub"
    assert find_enclosing(work.root / "sub") == Enclosing(
        root=work.root / "sub", git_dir=modules, common_dir=modules
    )


def test_a_separate_git_dir_is_followed(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    made = Work(tmp_path, environment)
    made.git("init", "-q", f"--separate-git-dir={tmp_path}/data", "tree")

    found = find_enclosing(tmp_path / "tree")

    assert found is not None
    assert found.common_dir == tmp_path / "data"


def test_a_bare_repository_on_the_way_up_is_passed_by(work: Work) -> None:
    work.git("init", "-q", "--bare", "planted")
    inside = work.root / "planted" / "refs"

    found = find_enclosing(inside)

    assert found is not None
    assert found.root == work.root


def test_a_bare_repository_alone_encloses_nothing(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    Work(tmp_path, environment).git("init", "-q", "--bare", "planted")

    assert find_enclosing(tmp_path / "planted") is None


def test_git_variables_do_not_matter(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(work.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))

    assert find_enclosing(tmp_path) is None


def test_an_empty_dot_git_folder_is_passed_by(work: Work) -> None:
    (work.root / "sub" / ".git").mkdir(parents=True)

    found = find_enclosing(work.root / "sub")

    assert found is not None
    assert found.root == work.root


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"gitdir: /nowhere\n", id="leads nowhere"),
        pytest.param(b"gitdir: \n", id="no path"),
        pytest.param(b"gitdir: a\0b\n", id="nul"),
        pytest.param(b"hello\n", id="no pointer"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff" * 100_000, id="large"),
    ],
)
def test_a_dot_git_file_that_leads_nowhere_ends_the_walk(
    work: Work, content: bytes
) -> None:
    (work.root / "sub").mkdir()
    (work.root / "sub" / ".git").write_bytes(content)

    assert find_enclosing(work.root / "sub") is None


def test_a_folder_that_is_gone_is_in_no_repository(tmp_path: Path) -> None:
    assert find_enclosing(tmp_path / "gone") is None


# enclosing_setting


def test_a_setting_is_read_from_the_repositorys_own_file_only(
    work: Work, environment: dict[str, str]
) -> None:
    (Path(environment["HOME"]) / ".gitconfig").write_text("[uwf]\n\tstore = /global\n")
    assert enclosing_setting(work.enclosing, "uwf.store") is None

    work.git("config", "UWF.Store", "/here")

    assert enclosing_setting(work.enclosing, "uwf.store") == "/here"


def test_a_linked_worktree_reads_the_shared_config(work: Work, tmp_path: Path) -> None:
    work.commit("x")
    work.git("worktree", "add", "-q", str(tmp_path / "linked"))
    work.git("config", "uwf.store", "/here")
    linked = find_enclosing(tmp_path / "linked")
    assert linked is not None

    assert enclosing_setting(linked, "uwf.store") == "/here"


def test_a_config_in_any_form_git_reads_is_read(work: Work) -> None:
    with (work.root / ".git" / "config").open("a") as file:
        file.write("[alias] x = !a \\\n b\n[uwf]\n\tstore = /here\n")

    assert enclosing_setting(work.enclosing, "uwf.store") == "/here"
    assert enclosing_setting(work.enclosing, "uwf.none") is None


def test_a_broken_config_is_an_error_that_names_the_file(work: Work) -> None:
    (work.root / ".git" / "config").write_text("[core\n")

    with pytest.raises(ConfigError) as caught:
        enclosing_setting(work.enclosing, "uwf.store")

    assert caught.value.source == work.root / ".git" / "config"


# read_head, root_commit


def test_head_of_a_work_tree(work: Work, environment: dict[str, str]) -> None:
    assert read_head(work.root, environment=environment) is None

    oid = work.commit("x")

    assert read_head(work.root) == oid
    work.git("checkout", "-q", "--detach")
    assert read_head(work.root) == oid


def test_head_of_a_linked_worktree_is_its_own(work: Work, tmp_path: Path) -> None:
    first = work.commit("first")
    work.git("worktree", "add", "-q", str(tmp_path / "linked"))
    second = work.commit("second")

    assert (read_head(tmp_path / "linked"), read_head(work.root)) == (first, second)


def test_a_folder_without_a_repository_has_no_head(tmp_path: Path) -> None:
    assert read_head(tmp_path) is None
    assert root_commit(tmp_path) is None


def test_a_sha256_repository_is_asked_through_git(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    made = Work(tmp_path / "work", environment)
    made.root.mkdir()
    made.git("init", "-q", "--object-format=sha256")
    first = made.commit("first")
    second = made.commit("second")

    assert len(second) == 64
    assert read_head(made.root, environment=environment) == second
    assert root_commit(made.root, environment=environment) == first
    assert read_head(made.root) is None
    assert root_commit(made.root) is None


def test_the_first_commit_is_remembered_while_history_goes_on(
    work: Work, tmp_path: Path, environment: dict[str, str]
) -> None:
    memory = tmp_path / "memory"

    def find() -> str | None:
        return root_commit(work.root, environment=environment, memory=memory)

    first = work.commit("first")
    assert find() == first
    (file,) = (memory / "roots").iterdir()
    # What is made up here shows that the history is not walked again.
    file.write_text(f"{first} {'a' * 40}\n")
    assert find() == "a" * 40
    second = work.commit("second")
    assert find() == "a" * 40
    assert file.read_text() == f"{second} {'a' * 40}\n"
    work.git("checkout", "-q", "--orphan", "other")
    other = work.commit("another first")
    assert find() == other
    file.write_text("nonsense")
    assert find() is not None
    assert file.stat().st_mode & 0o077 == 0


@as_root
def test_a_strangers_repository_has_no_head_and_runs_nothing(
    work: Work, tmp_path: Path, environment: dict[str, str]
) -> None:
    oid = work.commit("x")
    ran = tmp_path / "ran"
    work.git("config", "core.fsmonitor", f"touch {ran}")
    for place in (work.root, work.root / ".git", work.root / ".git" / "config"):
        os.chown(place, 65534, -1)

    assert read_head(work.root, environment=environment) is None
    assert root_commit(work.root, environment=environment) is None
    assert not ran.exists()
    (Path(environment["HOME"]) / ".gitconfig").write_text("[safe]\ndirectory = *\n")
    assert read_head(work.root, environment=environment) == oid


@pytest.mark.parametrize("with_git", [True, False], ids=["git", "libgit2"])
def test_the_root_commit_is_the_first_along_first_parents(
    work: Work,
    environment: dict[str, str],
    with_git: bool,  # noqa: FBT001 - a table's column
) -> None:
    given = environment if with_git else {}
    assert root_commit(work.root, environment=given) is None
    first = work.commit("first")
    work.commit("second")
    branch = work.git("symbolic-ref", "--short", "HEAD")
    work.git("checkout", "-q", "--orphan", "other")
    work.commit("another root")
    work.git("checkout", "-q", branch)
    work.git("merge", "-q", "--allow-unrelated-histories", "-m", "merge", "other")

    assert root_commit(work.root, environment=given) == first


@pytest.mark.parametrize("with_git", [True, False], ids=["git", "libgit2"])
def test_a_shallow_clone_has_no_root_commit(
    work: Work,
    tmp_path: Path,
    environment: dict[str, str],
    with_git: bool,  # noqa: FBT001 - a table's column
) -> None:
    work.commit("first")
    work.commit("second")
    work.git("clone", "-q", "--depth=1", f"file://{work.root}", str(tmp_path / "c"))

    given = environment if with_git else {}
    assert root_commit(tmp_path / "c", environment=given) is None


# find_identity


def find_identity(
    environment: dict[str, str], *, enclosing: Enclosing | None = None
) -> Identity:
    found = read_settings(environment, enclosing=enclosing)
    return settings.find_identity(environment, found)


def test_the_environment_names_the_committer_first(
    work: Work, environment: dict[str, str]
) -> None:
    work.git("config", "user.name", "Config")
    work.git("config", "user.email", "config@example.org")
    given = environment | {
        "GIT_COMMITTER_NAME": "Env",
        "GIT_COMMITTER_EMAIL": "env@example.org",
    }

    assert find_identity(given, enclosing=work.enclosing) == Identity(
        name="Env", email="env@example.org"
    )


def test_the_repositorys_config_beats_the_users(
    work: Work, environment: dict[str, str]
) -> None:
    (Path(environment["HOME"]) / ".gitconfig").write_text(
        "[user]\nname = Global\nemail = global@example.org\n"
    )
    assert str(find_identity(environment, enclosing=work.enclosing)) == (
        "Global <global@example.org>"
    )

    work.git("config", "user.email", "local@example.org")

    assert str(find_identity(environment, enclosing=work.enclosing)) == (
        "Global <local@example.org>"
    )
    assert str(find_identity(environment)) == "Global <global@example.org>"


def test_committer_settings_beat_user_settings(
    work: Work, environment: dict[str, str]
) -> None:
    (Path(environment["HOME"]) / ".gitconfig").write_text("[committer]\nname = C\n")
    work.git("config", "user.name", "U")
    work.git("config", "user.email", "u@example.org")

    assert find_identity(environment, enclosing=work.enclosing).name == "C"


def test_conditional_includes_of_the_user_hold(
    work: Work, environment: dict[str, str]
) -> None:
    home = Path(environment["HOME"])
    (home / "job").write_text("[user]\nname = Job\nemail = job@example.org\n")
    (home / ".gitconfig").write_text(
        f'[includeIf "gitdir:{work.root}/"]\npath = {home}/job\n'
    )

    assert find_identity(environment, enclosing=work.enclosing).name == "Job"


@pytest.mark.parametrize(
    ("file", "variables"),
    [
        pytest.param(".config/git/config", {}, id="xdg default"),
        pytest.param("xdg/git/config", {"XDG_CONFIG_HOME": "{home}/xdg"}, id="xdg"),
        pytest.param("mine", {"GIT_CONFIG_GLOBAL": "{home}/mine"}, id="global"),
    ],
)
def test_the_users_config_is_found_where_git_finds_it(
    environment: dict[str, str], file: str, variables: dict[str, str]
) -> None:
    home = environment["HOME"]
    path = Path(home) / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[user]\nname = U\nemail = u@example.org\n")
    given = {name: value.format(home=home) for name, value in variables.items()}

    assert find_identity(environment | given) == Identity(
        name="U", email="u@example.org"
    )


def test_without_an_identity_login_and_host_stand_in(
    environment: dict[str, str],
) -> None:
    assert find_identity(environment) == Identity(
        name="jo", email=f"jo@{socket.gethostname()}", is_default=True
    )


def test_the_email_variable_completes_a_name(environment: dict[str, str]) -> None:
    given = environment | {"GIT_COMMITTER_NAME": "N", "EMAIL": "n@example.org"}

    assert find_identity(given) == Identity(name="N", email="n@example.org")


def test_a_missing_part_alone_is_made_up(environment: dict[str, str]) -> None:
    found = find_identity(environment | {"GIT_COMMITTER_NAME": "N"})

    assert (found.name, found.is_default) == ("N", True)
    assert found.email == f"jo@{socket.gethostname()}"


def test_a_broken_config_never_fails(work: Work, environment: dict[str, str]) -> None:
    (Path(environment["HOME"]) / ".gitconfig").write_text("[user\n")
    enclosing = work.enclosing
    (work.root / ".git" / "config").write_text("[user\n")

    assert find_identity(environment, enclosing=enclosing).is_default


def test_a_repository_libgit2_does_not_open_still_gives_its_identity(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    made = Work(tmp_path / "work", environment)
    made.root.mkdir()
    made.git("init", "-q", "--object-format=sha256")
    made.git("config", "user.name", "Local")

    assert find_identity(environment, enclosing=made.enclosing).name == "Local"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("  Jo  Doe ", "Jo  Doe", id="blanks at the ends"),
        pytest.param("Jo <jo@example.org>", "Jo jo@example.org", id="brackets"),
        pytest.param("Jo\nDoe\x00\x1b[31m\x9b", "JoDoe[31m", id="control"),
        pytest.param("\u202eJo\u2066\u200f\u2028", "Jo", id="bidirectional"),
        pytest.param("Jo\udcff", "Jo\ufffd", id="undecodable"),
        pytest.param("Zo\u00eb \u6797", "Zo\u00eb \u6797", id="not ascii"),
        pytest.param(".,:;'\"\\", "jo", id="nothing left"),
        pytest.param("\n", "jo", id="only a line end"),
    ],
)
def test_a_name_is_made_fit_for_a_commit(
    environment: dict[str, str], given: str, expected: str
) -> None:
    assert find_identity(environment | {"GIT_COMMITTER_NAME": given}).name == expected


def test_git_is_not_needed_for_an_identity(environment: dict[str, str]) -> None:
    assert shutil.which("git", path="/nowhere") is None
    assert find_identity(environment | {"PATH": "/nowhere"}).name == "jo"
