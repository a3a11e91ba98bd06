"""Sessions put back: at their place, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from uwfgit.agents.base import SessionFiles, SessionFilesError
from uwfgit.agents.clis.kinds import load_cli

KINDS: Final = ("claude-code", "codex", "gemini")
SESSION: Final = "01a22303-487c-7660-9f42-745ffe360fe1"
DATA: Final = f'{{"sessionId": "{SESSION}"}}\n'.encode()


@pytest.fixture(params=KINDS)
def files(request: pytest.FixtureRequest) -> SessionFiles:
    found = load_cli(request.param).session_files
    assert found is not None
    return found(request.param)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def write(
    files: SessionFiles, work: Path, *, renew: bool = False, name: str | None = None
) -> str:
    """Put the session back, with one file more beside it."""
    content = {"session": DATA}
    if name is not None:
        content[f"beside/{name}"] = b"x"
    environment = {"HOME": str(work.parent / "home")}
    return files.write(SESSION, content, renew=renew, cwd=work, environment=environment)


def read(files: SessionFiles, work: Path, session: str) -> dict[str, bytes]:
    environment = {"HOME": str(work.parent / "home")}
    return dict(files.read(session, cwd=work, environment=environment))


def written(work: Path) -> list[Path]:
    home = work.parent / "home"
    return [path for path in home.rglob("*.jsonl") if path.is_file()]


def test_a_session_is_read_as_it_was_put_back(files: SessionFiles, work: Path) -> None:
    assert read(files, work, SESSION) == {}

    name = write(files, work)

    assert (name, read(files, work, name)["session"]) == (SESSION, DATA)
    (path,) = written(work)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_same_session_is_put_back_once(files: SessionFiles, work: Path) -> None:
    assert write(files, work) == write(files, work)
    assert len(written(work)) == 1


def test_one_with_other_bytes_is_left_alone(files: SessionFiles, work: Path) -> None:
    write(files, work)
    (path,) = written(work)
    path.write_bytes(b"mine\n")

    name = write(files, work)

    assert name != SESSION
    assert path.read_bytes() == b"mine\n"
    assert read(files, work, name)["session"] == DATA.replace(
        SESSION.encode(), name.encode()
    )


def test_a_copy_has_an_id_of_its_own_inside_too(
    files: SessionFiles, work: Path
) -> None:
    name = write(files, work, renew=True)

    assert name != SESSION
    assert SESSION.encode() not in read(files, work, name)["session"]


def test_a_link_in_place_of_the_file_is_not_followed(
    files: SessionFiles, work: Path
) -> None:
    write(files, work)
    (path,) = written(work)
    target = work / "precious"
    target.write_text("mine")
    path.unlink()
    path.symlink_to(target)

    name = write(files, work)

    assert target.read_text() == "mine"
    assert name != SESSION


def test_a_link_in_place_of_a_folder_is_not_followed(
    files: SessionFiles, work: Path
) -> None:
    write(files, work)
    (path,) = written(work)
    elsewhere = work.parent / "elsewhere"
    elsewhere.mkdir()
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(elsewhere)

    with pytest.raises(SessionFilesError):
        write(files, work)

    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", ["..", "../x", "/etc/x", ".hidden", "a/b/c", "a\n"])
def test_a_hostile_name_writes_nothing(name: str, work: Path) -> None:
    found = load_cli("claude-code").session_files
    assert found is not None
    files = found("claude")

    with pytest.raises(SessionFilesError):
        write(files, work, name=name)

    outside = [
        p for p in work.parent.rglob("*") if p.is_file() and "home" not in str(p)
    ]
    assert outside == []
