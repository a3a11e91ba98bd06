"""Which workflows the next commit concerns, wherever links lead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders import git
from tests.cli.calls import WORKFLOW
from uwfgit.model.workflow.affected import find_affected
from uwfgit.model.workflow.source import FOLDERS
from uwfgit.store.git.staged import Staging, list_changed, write_staged

WITH_PART = WORKFLOW.replace(
    "    capabilities: []\n    procedure: Write.",
    "    capabilities: !include parts/can.yaml\n    procedure: Write.",
)
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


class Tree:
    """A work tree, and a place for what is staged in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.folder = folder
        self.root.mkdir()
        self.git("init", "-q")

    def git(self, *words: str) -> str:
        here = ("--git-dir", str(self.root / ".git"), "--work-tree", str(self.root))
        return git(self.root, *here, *WHO, *words)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", str(path))

    def link(self, name: str, target: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)
        self.git("add", str(path))

    def commit(self) -> None:
        self.git("commit", "-q", "-m", "x")

    def affected(self) -> list[str]:
        """Name the workflows that the next commit concerns."""
        staging = Staging(root=self.root, index=None, environment=os.environ)
        changed = list_changed(staging, FOLDERS)
        place = self.folder / f"staged-{len(list(self.folder.iterdir()))}"
        place.mkdir()
        write_staged(staging, FOLDERS, place)
        found = find_affected(place / name for name in changed)
        return [str(each.relative_to(place)) for each in found]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("links", "flow", "name"),
    [
        pytest.param({".workflows": "a"}, "a/ping.yaml", "ping.yaml", id="folder"),
        pytest.param(
            {".workflows": "a", "a": "b"}, "b/ping.yaml", "ping.yaml", id="twice"
        ),
        pytest.param(
            {".workflows": "a/b", "a": "deep/c"},
            "deep/c/b/ping.yaml",
            "ping.yaml",
            id="above",
        ),
        pytest.param(
            {".workflows/ping.yaml": "../b/x.yaml"}, "b/x.yaml", "ping.yaml", id="file"
        ),
        pytest.param(
            {".workflows/ping.yaml": "../a.yaml", "a.yaml": "b/c/x.yaml"},
            "b/c/x.yaml",
            "ping.yaml",
            id="file-twice",
        ),
        pytest.param(
            {".workflows": "deep/a", "deep/a/ping.yaml": "../../b/x.yaml"},
            "b/x.yaml",
            "ping.yaml",
            id="both",
        ),
        pytest.param(
            {".workflows/ping": "../[a]*", "[a]*": "b"},
            "b/index.yaml",
            "ping/index.yaml",
            id="wild",
        ),
    ],
)
def test_an_edit_behind_links_concerns_the_workflow(
    tree: Tree, links: dict[str, str], flow: str, name: str
) -> None:
    part = str(Path(flow).parent / "parts" / "can.yaml")
    tree.write(flow, WITH_PART)
    tree.write(part, "[]\n")
    for each, target in links.items():
        tree.link(each, target)
    whole = tree.affected()
    tree.commit()
    none = tree.affected()

    tree.write(flow, WITH_PART + "x-a: 1\n")
    edited = tree.affected()
    tree.commit()
    tree.write(part, "[a]\n")
    with_part = tree.affected()
    tree.commit()
    tree.write(str(Path(flow).parent / "other" / "note.yaml"), "a: 1\n")
    tree.write("unrelated/x.yaml", "a: 1\n")

    wanted = [f".workflows/{name}"]
    assert (whole, none, edited, with_part) == (wanted, [], wanted, wanted)
    assert tree.affected() == []


def test_links_in_a_circle_concern_those_that_are_in_it(tree: Tree) -> None:
    tree.link(".workflows/ping.yaml", "../a.yaml")
    tree.link("a.yaml", "b.yaml")
    tree.link("b.yaml", "a.yaml")
    tree.link(".workflows/sub", "../.workflows")

    assert tree.affected() == [".workflows/ping.yaml"]
