"""The library as README and docs/library.md promise it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import uwfgit
from tests.builders import (
    Clock,
    begin,
    git,
    make_ledger,
    object_file,
    reply,
    run,
    write_script,
)
from uwfgit.errors import InvalidError, NotFoundError
from uwfgit.ids import ThreadId
from uwfgit.store.care.maintain import REPACK
from uwfgit.store.handle import Store
from uwfgit.store.locks.flock import lock
from uwfgit.store.pack import MANY_PACKS
from uwfgit.store.raw import BLOB, name_object
from uwfgit.store.repository import init_store, open_store

ROOT = Path(__file__).parents[1]
DONE = reply(plan="a plan", body="All of it.")


@pytest.fixture
def place(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own store, and a working directory outside of any repository."""
    path = home / "store"
    init_store(path, home=home, fsync=False)
    monkeypatch.chdir(home)
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Ada")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "ada@example.com")
    return path


@pytest.fixture
def inside(place: Path, home: Path) -> Store:
    return open_store(place, home=home, write=True, fsync=False)


@pytest.fixture
def name(inside: Store, clock: Clock, tmp_path: Path) -> ThreadId:
    """A thread of one step."""
    ledger = make_ledger(inside, clock)
    tip = begin(ledger, tmp_path)
    run(ledger, tip.thread, write_script(tmp_path, {"worker": [DONE]}))
    ledger.local.close()
    return tip.thread


def test_all_that_is_public_is_there_and_says_what_it_is() -> None:
    for public in uwfgit.__all__:
        assert getattr(uwfgit, public).__doc__

    assert set(dir(uwfgit)) == set(uwfgit.__all__)
    with pytest.raises(AttributeError):
        uwfgit.Ledger  # noqa: B018 - not public


def test_importing_the_package_imports_nothing_else() -> None:
    code = (
        "import sys, uwfgit; print([m for m in sys.modules if m.startswith('uwfgit.')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"


def test_the_example_of_the_readme_runs(
    name: ThreadId, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)

    exec(example, {})  # noqa: S102 - what the README tells everyone to run

    first, second, third, last = capsys.readouterr().out.splitlines()
    assert len(example.strip().splitlines()) <= 11
    assert first.startswith(f"{name} idle ")
    assert (second, last) == ("1 worker done", "True")
    assert third.endswith(" First the parser, then the printer.")


def test_a_thread_tells_state_steps_outputs_and_text(name: ThreadId) -> None:
    with uwfgit.open_store() as store:
        thread = store.thread(name[:12])
        listed = store.threads()

    assert (thread.id, thread.state.steps) == (name, 1)
    assert [step.role for step in thread.steps] == ["worker"]
    assert thread.outputs == ({"$status": "done", "plan": "a plan"},)
    assert thread.task in thread.text
    assert "All of it." in thread.text
    assert [each.id for each in listed] == [name]


def test_nodes_are_put_got_and_walked(place: Path) -> None:
    with uwfgit.open_store(place) as store:
        schema = store.put(
            "schema",
            {
                "title": "pair",
                "type": "object",
                "properties": {"to": {"type": "string", "format": "ocas_ref"}},
            },
        )
        text = store.put("text", "the end")
        (pair,) = store.put_many([(schema, {"to": text})])
        before = git(place, "rev-parse", "refs/uwf/keep")

        again = store.put("text", "the end")

        assert again == text
        assert git(place, "rev-parse", "refs/uwf/keep") == before
        assert store.get(pair).payload == {"to": text}
        assert [node.hash for node in store.walk(pair)] == [pair, text]


def test_of_many_nodes_all_are_put_or_none(place: Path) -> None:
    with uwfgit.open_store(place) as store:
        with pytest.raises(InvalidError):
            store.put_many([("text", "fine"), ("text", 7)])

        with pytest.raises(NotFoundError):
            store.get(uwfgit.make_node("7VQ43ZSJTEWA7", "fine").hash)  # type: ignore[arg-type]  # a hash as text


def test_a_program_that_puts_for_long_keeps_packs_and_open_files_few(
    place: Path,
) -> None:
    packs, files = [], []
    with uwfgit.open_store(place) as store:
        for number in range(150):
            store.put("text", f"text {number}")
            packs.append(len([*(place / "objects" / "pack").glob("*.pack")]))
            files.append(len([*Path("/dev/fd").iterdir()]))
            if packs[-1] > MANY_PACKS:
                # git merges them in the background, for which no put waits.
                with lock(place / "uwf/locks" / REPACK, command="test", wait=300):
                    pass

        assert store.get(store.put("text", "text 0")).payload == "text 0"
    assert max(packs) < MANY_PACKS + 10
    assert max(files) - files[0] < MANY_PACKS + 10


def test_what_was_lost_is_written_again_by_putting_it_again(place: Path) -> None:
    with uwfgit.open_store(place) as store:
        text = store.put("text", "lost and found")
    oid = name_object(BLOB, b"lost and found")
    object_file(place, oid).unlink()

    with uwfgit.open_store(place) as store:
        assert store.put("text", "lost and found") == text
        assert store.get(text).payload == "lost and found"


def test_a_known_secret_is_masked_with_a_warning(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "verysecretvalue12345")

    with uwfgit.open_store(place) as store:
        with pytest.warns(UserWarning, match="SOME_API_KEY"):
            put = store.put("text", "it is verysecretvalue12345")

        assert "verysecretvalue12345" not in store.get(put).payload


def test_threads_are_verified(name: ThreadId, place: Path) -> None:
    with uwfgit.open_store(place) as store:
        (report,) = store.verify(name)

    assert (report.ok, report.problems) == (True, ())


def test_a_store_is_made_only_when_that_is_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new"
    with pytest.raises(NotFoundError):
        uwfgit.open_store(path)

    with uwfgit.open_store(path, create=True) as store:
        assert (store.path, store.threads()) == (path, ())

    assert capfd.readouterr() == ("", "")
