"""The editor: what is drawn becomes an edit of the text, and nothing is overwritten."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.cli.calls import Uwf
from tests.web.browsing import browsing, enter, tab
from tests.web.serving import Server, serving
from uwfgit.errors import InvalidError, NotFoundError
from uwfgit.model.workflow.source import check_workflow_text
from uwfgit.web.edit.acting import act_on
from uwfgit.web.edit.files import ChangedFileError, Desk
from uwfgit.web.edit.redraw import (
    add_edge,
    add_role,
    delete_edge,
    delete_role,
    move_edge,
    read_drawn,
    rename_role,
)
from uwfgit.web.render.editor import editor_page, editor_side
from uwfgit.web.render.frame import Site
from uwfgit.web.serve.editor import look_at
from uwfgit.web.serve.links import ServedLinks

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
WORKFLOWS = [path for path in EXAMPLES if ".replies" not in path.name]


def comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.lstrip().startswith("#")]


def errors(text: str, path: Path) -> list[str]:
    found = check_workflow_text(text.encode(), folder=path.parent, file=path)
    return [str(each) for each in found if each.severity == "error"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_renamed_role_is_renamed_everywhere_and_back(path: Path) -> None:
    text = path.read_text("utf-8")
    for role in read_drawn(text).roles:
        changed = rename_role(text, role, "someone-else")

        assert role not in read_drawn(changed).roles
        assert role not in {edge.target for edge in read_drawn(changed).edges}
        assert errors(changed, path) == []
        assert comments(changed) == comments(text)
        assert len(changed.splitlines()) == len(text.splitlines())
        assert rename_role(changed, "someone-else", role) == text


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_an_edge_is_added_redrawn_and_deleted(path: Path) -> None:
    text = path.read_text("utf-8")
    role = read_drawn(text).roles[0]

    added = add_edge(text, role, "unsure", "$END")
    edge = next(
        each
        for each in reversed(read_drawn(added).edges)
        if each.role == role and each.target == "$END"
    )
    moved = move_edge(added, edge, role)

    assert len(read_drawn(added).edges) == len(read_drawn(text).edges) + 1
    assert comments(moved) == comments(text)
    assert [
        e.target
        for e in read_drawn(moved).edges
        if e.key == edge.key and e.role == role
    ] == [role]
    kept = delete_edge(moved, edge)
    assert read_drawn(kept) == read_drawn(text)
    assert comments(kept) == comments(text)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_role_is_added_and_deleted(path: Path) -> None:
    text = path.read_text("utf-8")

    added = add_role(text, "auditor")

    assert "auditor" in read_drawn(added).roles
    assert comments(added) == comments(text)
    only = [each for each in errors(added, path) if "auditor" not in each]
    assert only == []
    assert read_drawn(delete_role(added, "auditor")) == read_drawn(text)


@pytest.mark.parametrize(
    ("act", "fields"),
    [
        pytest.param("rename-role.0", {"name.0": "planner"}, id="a taken name"),
        pytest.param("rename-role.0", {"name.0": ""}, id="no name"),
        pytest.param("rename-role.99", {"name.99": "x"}, id="no such role"),
        pytest.param("add-role", {"new-role": "$END"}, id="a name that is none"),
        pytest.param("add-edge.0", {"status.0": "ready", "target.0": "x"}, id="taken"),
        pytest.param("move-edge.999", {}, id="no such edge"),
        pytest.param("remove-file", {}, id="no act"),
        pytest.param("", {}, id="nothing"),
    ],
)
def test_what_makes_no_sense_changes_nothing(act: str, fields: dict[str, str]) -> None:
    text = (EXAMPLES[0].parent / "solve-issue.yaml").read_text("utf-8")

    with pytest.raises(InvalidError):
        act_on(text, act, fields)


@pytest.mark.parametrize("text", ["", "x", "[1, 2]", "a: [", "roles: 1\ngraph: x\n"])
def test_a_text_that_is_no_workflow_has_nothing_to_draw(text: str) -> None:
    assert read_drawn(text).roles == ()
    assert read_drawn(text).edges == ()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path / "repo" / ".workflows"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text("name: mine\n")
    return Desk(folder=folder)


def test_a_file_is_saved_only_while_it_is_what_was_read(desk: Desk) -> None:
    path = desk.folder / "mine.yaml"
    path.chmod(0o640)
    opened = desk.open("mine")
    saved = desk.save("mine", "name: mine # saved\n", was=opened.mark)
    path.write_text("name: theirs\n")

    with pytest.raises(ChangedFileError):
        desk.save("mine", "name: mine # again\n", was=saved.mark)

    assert path.read_text() == "name: theirs\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [each.name for each in desk.folder.iterdir()] == ["mine.yaml"]


def test_lines_end_as_the_file_ended_them(desk: Desk) -> None:
    path = desk.folder / "mine.yaml"
    path.write_bytes(b"name: mine\r\nversion: 1\r\n")

    opened = desk.open("mine")
    desk.save("mine", "name: mine\nversion: 2\n", was=opened.mark)

    assert path.read_bytes() == b"name: mine\r\nversion: 2\r\n"


def test_lines_that_nobody_touched_end_as_they_did(desk: Desk) -> None:
    path = desk.folder / "mine.yaml"
    path.write_bytes(b"name: mine\r\nversion: 1\n# more\r\n")

    opened = desk.open("mine")
    desk.save("mine", "name: mine\nversion: 2\n# more\n", was=opened.mark)

    assert path.read_bytes() == b"name: mine\r\nversion: 2\n# more\r\n"


def test_what_does_not_show_is_edited_as_it_is_and_named(desk: Desk) -> None:
    path, text = desk.folder / "mine.yaml", "\ufeffname: mine\n# a\u202eb\n"
    path.write_text(text, encoding="utf-8")
    site = Site(links=ServedLinks(root=""), name="s")
    opened = desk.open("mine")

    page = editor_page(site, look_at(opened, opened.text), "/edit/mine")

    assert f">\n{text}</textarea>" in page
    assert r"<code>\ufeff</code> in line 1" in page
    assert r"<code>\u202e</code> in line 2" in page


def test_files_are_named_once_and_as_workflows_are_ordered(desk: Desk) -> None:
    for name in ("mine.yml", "mine-too.yaml"):
        (desk.folder / name).write_text("name: x\n")

    assert desk.names() == ("mine", "mine-too")


@pytest.mark.parametrize(
    "name", ["../secret", "secret", "linked", "mine.yaml", "", ".", "a/b", "sub"]
)
def test_nothing_outside_of_the_folder_is_opened(
    desk: Desk, tmp_path: Path, name: str
) -> None:
    secret = tmp_path / "repo" / "secret.yaml"
    secret.write_text("name: secret\n")
    (desk.folder / "linked.yaml").symlink_to(secret)
    (desk.folder / "sub.yaml").mkdir()

    assert desk.names() == ("mine",)
    with pytest.raises(NotFoundError):
        desk.open(name)


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "mine.yaml").write_text("name: mine\n")
    (tmp_path / ".workflows").symlink_to(tmp_path / "real")

    with pytest.raises(NotFoundError):
        Desk(folder=tmp_path / ".workflows").open("mine")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_is_seen_of_a_text_is_there_before_one_has_looked_up(path: Path) -> None:
    opened = Desk(folder=path.parent).open(path.stem)

    def look() -> float:
        begun = time.process_time()
        draft = look_at(opened, opened.text)
        editor_side(draft)
        return time.process_time() - begun

    # Of the 0.3 s that a problem may take, the page waits 0.12 for the next letter.
    assert min(look() for _ in range(5)) < 0.15


def post(server: Server, name: str, **fields: str) -> tuple[int, str]:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = urlencode(fields).encode()
    answer = server.ask(
        "POST", f"/edit/{name}", headers={**server.bearer, **kind}, body=body
    )
    return answer.status, answer.text


@pytest.mark.slow
def test_a_saved_file_validates_as_the_command_line_says(uwf: Uwf, work: Path) -> None:
    uwf("init")
    folder = work / ".workflows"
    folder.mkdir()
    path = folder / "ping.yaml"
    text = (work / "ping.yaml").read_text()
    path.write_text(text)
    was = Desk(folder=folder).open("ping").mark

    with serving(work) as server:
        page = server.get("/edit/ping")
        broken = text.replace("role: checker", "role: nobody")
        checked = post(server, "ping", text=broken, was=was, act="check")
        unchanged = path.read_text()
        saved = post(server, "ping", text=broken, was=was, act="save")
        late = post(server, "ping", text=text, was=was, act="save")

    assert "nothing is wrong" in page.text
    told = uwf("workflow", "validate", str(path), "--json").json["problems"]
    assert unchanged == text
    assert [each["message"] in checked[1].replace("&#x27;", "'") for each in told] == [
        True
    ] * len(told)
    assert told
    assert (saved[0], late[0]) == (200, 409)
    assert path.read_text() == broken


@pytest.mark.slow
def test_the_editor_is_there_for_this_machines_user_only(uwf: Uwf, work: Path) -> None:
    uwf("init")
    (work / ".workflows").mkdir()
    (work / ".workflows" / "ping.yaml").write_text("name: ping\n")

    with serving(work, "--read-only") as server:
        assert server.get("/edit/ping").status == 404
        assert post(server, "ping", text="x", was="", act="save")[0] == 404


@pytest.mark.slow
def test_a_workflow_is_drawn_anew_in_a_browser(uwf: Uwf, work: Path) -> None:
    uwf("init")
    folder = work / ".workflows"
    folder.mkdir()
    (folder / "ping.yaml").write_text(f"# kept\n{(work / 'ping.yaml').read_text()}")

    with serving(work) as server, browsing() as browser, tab(browser, "edit") as found:
        page = found.page
        enter(page, server.url)
        page.goto(f"{server.origin}/workflows")
        page.get_by_role("link", name="ping").click()
        page.locator("#side summary", has_text="writer").click()
        page.get_by_label("Name of writer").fill("author")
        page.locator("details[open]").get_by_role("button", name="Rename").click()
        page.locator("#side summary", has_text="author").wait_for()
        found.shot("renamed")
        page.locator("#side summary", has_text="checker").click()
        page.get_by_label("checker good leads to").select_option("author")
        page.locator("details[open]").get_by_role("button", name="Redraw").first.click()
        expect(page.locator("#text")).to_have_value(re.compile("good: { role: author,"))
        found.shot("redrawn")

        # Problems follow while one types, and lead to their place in the text.
        text = page.locator("#text")
        fine = text.input_value()
        text.fill(fine.replace("role: checker", "role: nobody"))
        problem = page.locator(".problems li", has_text="nobody").first
        expect(problem).to_be_visible()
        problem.get_by_role("link").click()
        chosen = "(t) => t.value.slice(t.selectionStart, t.selectionEnd)"
        assert "role: nobody" in text.evaluate(chosen)
        found.shot("problem")
        text.fill(fine)
        expect(page.locator(".problems li", has_text="nobody")).to_have_count(0)
        page.get_by_role("button", name="Save").click()
        page.get_by_text("saved", exact=True).wait_for()
        assert found.problems() == []

    saved = (folder / "ping.yaml").read_text()
    assert saved.startswith("# kept\n")
    assert read_drawn(saved).roles == ("author", "checker")
