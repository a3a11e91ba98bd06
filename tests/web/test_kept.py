"""What a person wrote is not lost, and what was not done is said."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.builders import git
from tests.cli.calls import Uwf, use_script
from tests.web.browsing import browsing, enter, list_faults, tab
from tests.web.serving import Server, serving
from tests.web.test_live import following

expect.set_options(timeout=30_000)


@pytest.fixture
def play(uwf: Uwf, work: Path) -> str:
    """A thread of ping, and a scripted agent that is usual."""
    uwf("workflow", "add", "ping.yaml")
    use_script(uwf, work / "replies.yaml")
    begun = uwf("thread", "start", "ping", "-p", "# Words\n\nand more", "--json")
    name: str = begun.json["threadId"]
    return name


def post(server: Server, path: str, **fields: str) -> str:
    """Send a form as a script does, and give the page that came back."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    body = "&".join(f"{name}={value}" for name, value in fields.items()).encode()
    headers = {**server.bearer, **kind}
    return server.ask("POST", path, headers=headers, body=body).text


def test_a_form_that_came_to_nothing_shows_what_was_written(
    uwf: Uwf, play: str, work: Path
) -> None:
    uwf("thread", "exec", play, "--all")
    with serving(work) as server:
        refused = post(server, f"/threads/{play}/cancel", reason="my+long+words")
        blank = post(server, "/workflows/ping/start", prompt="+", **{"input.x": "mine"})
        odd = post(server, f"/threads/{play}/resume", prompt="words", agent="nobody")

    assert "What you wrote" in refused
    assert ">my long words</pre>" in refused
    assert "the task is empty" in blank
    assert ">mine</pre>" in blank
    assert "is not one of this user" in odd
    assert ">words</pre>" in odd
    assert f'href="/threads/{play}">Back' in odd


def test_what_was_told_a_client_that_is_gone_is_not_lost(
    uwf: Uwf, thread: str, work: Path
) -> None:
    uwf("web", "hub", "add", "laptop")
    with serving(work, "--hub") as server:
        said = post(server, f"/clients/laptop/threads/{thread}/resume", prompt="words")

    assert "is not connected" in said
    assert ">words</pre>" in said


def test_a_thread_of_others_without_a_folder_says_how_to_choose_one(
    uwf: Uwf,
    work: Path,
    thread: str,
    tmp_path: Path,
) -> None:
    assert uwf("thread", "exec", thread, "--agent", "scripted:asking.yaml").code == 3
    store = uwf("store", "path", "--json").json["store"]
    mine = str(tmp_path / "mine")
    assert uwf("clone", store, mine).code == 0
    use_script(uwf, work / "replies.yaml")
    resume = ("thread", "resume", thread, "--json", "--store", mine)
    told, known = uwf(*resume), uwf(*resume, "--cwd", ".")
    assert told.error["needs"] == ["--trust", "--cwd DIR"]
    assert known.error["needs"] == ["--trust"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    with serving(elsewhere, "--store", mine) as server:
        run = post(server, f"/threads/{thread}/resume", prompt="")
        said = post(server, f"/threads/{thread}/resume", prompt="my+words")

    for page in (run, said):
        assert "Made by others" in page
        assert "Its folder is not known on this machine" in page
        assert page.count("was not made on this machine alone") == 1
        assert '<pre class="plain" tabindex="0">by: ' in page
        assert "Trust it, and run" not in page
    assert f"uwf thread resume {thread[-6:]} --trust --cwd DIR<" in run
    assert f"uwf thread resume {thread[-6:]} --trust --cwd DIR -p TEXT<" in said
    assert ">my words</pre>" in said


def test_a_server_that_is_ended_ends_its_streams_without_a_word(
    uwf: Uwf, play: str, work: Path, port: int
) -> None:
    command = [sys.executable, "-P", "-m", "uwfgit", "web", "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    token = uwf("web", "token").out.strip()
    server = Server(port=port, url=url, token=token, process=process, folder=work)
    with following(server, play) as stream:
        stream.until("running")
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
        rest = stream.line.recv(1_000)

    assert rest in {b"0\r\n\r\n", b""}
    assert "Traceback" not in told
    assert told.splitlines()[1:] == ["terminated"]


@pytest.mark.slow
def test_lines_that_a_person_wrote_are_lines(uwf: Uwf, work: Path) -> None:
    text = (work / "ping.yaml").read_text()
    asked = "inputs: { note: { type: string } }\nroles:"
    (work / "ping.yaml").write_text(text.replace("roles:", asked, 1))
    words = ("-p", "Pack:\na hat\na coat", "-i", "note=one\ntwo")
    begun = uwf("thread", "start", "ping.yaml", *words, "--json").json["threadId"]
    with serving(work) as server, browsing() as browser, tab(browser, "lines") as found:
        page = found.page
        enter(page, server.url)
        page.goto(f"{server.origin}/threads/{begun}")
        expect(page.locator("section.task p")).to_be_visible()
        assert page.locator("section.task p").inner_text() == "Pack:\na hat\na coat"
        assert page.locator(".fields dd").inner_text() == "one\ntwo"


@pytest.mark.slow
def test_what_is_being_written_outlives_a_step_that_comes(
    uwf: Uwf, play: str, work: Path
) -> None:
    with serving(work) as server, browsing() as browser, tab(browser, "kept") as found:
        page = found.page
        enter(page, server.url)
        page.goto(f"{server.origin}/threads/{play}")
        page.locator("#acts summary", has_text="Cancel").click()
        page.get_by_label("Why").last.fill("a long reason")
        page.get_by_label("Why").last.blur()

        uwf("thread", "exec", play)
        expect(page.locator("#step-1")).to_be_visible()
        expect(page.locator("#acts")).to_contain_text("Do the last step again")

        expect(page.get_by_label("Why").last).to_have_value("a long reason")
        expect(page.get_by_label("Step", exact=True)).to_have_value("1")
        assert found.problems() == []


@pytest.mark.slow
def test_who_moves_by_keys_stays_where_they_were_when_something_changes(
    uwf: Uwf, play: str, work: Path
) -> None:
    uwf("thread", "exec", play)
    with serving(work) as server, browsing() as browser, tab(browser, "focus") as found:
        page = found.page
        enter(page, server.url)
        page.keyboard.press("j")
        expect(page.locator(f'#list a[href$="{play}"]')).to_be_focused()
        uwf("thread", "start", "ping", "-p", "another")
        expect(page.locator("#list > li")).to_have_count(2)
        expect(page.locator(f'#list a[href$="{play}"]')).to_be_focused()
        page.keyboard.press("Enter")

        page.wait_for_url(f"**/threads/{play}")
        page.locator("#acts summary", has_text="Fork").focus()
        uwf("review", "approve", play)
        uwf("thread", "exec", play)
        expect(page.locator("#step-2")).to_be_visible()
        expect(page.get_by_label("Step", exact=True)).to_have_attribute("max", "2")
        expect(page.locator("#acts summary", has_text="Fork")).to_be_focused()
        assert found.problems() == []


@pytest.mark.slow
def test_a_thread_taken_up_again_elsewhere_is_seen_by_who_looks_again(
    uwf: Uwf, play: str, work: Path
) -> None:
    uwf("thread", "exec", play, "--all")
    with serving(work) as server, browsing() as browser, tab(browser, "again") as found:
        page = found.page
        enter(page, server.url)
        page.goto(f"{server.origin}/threads/{play}")
        page.wait_for_timeout(1_000)
        uwf("thread", "resume", play, "-p", "more")
        page.evaluate("dispatchEvent(new Event('focus'))")
        expect(page.locator("#step-5")).to_be_visible()
        assert found.problems() == []


@pytest.mark.slow
def test_a_thread_that_is_removed_or_damaged_says_so_on_its_open_page(
    uwf: Uwf, play: str, work: Path
) -> None:
    store = Path(uwf("store", "path", "--json").json["store"])
    ref = f"refs/heads/thread/{play}"
    tip = git(store, "rev-parse", ref).strip()
    with serving(work) as server, browsing() as browser, tab(browser, "gone") as found:
        page = found.page
        enter(page, server.url)
        page.goto(f"{server.origin}/threads/{play}")
        uwf("thread", "rm", play)
        expect(page.locator("#told")).to_have_text("This thread is not here any more.")
        assert list_faults(found) == []

        uwf("thread", "restore", play)
        page.reload()
        expect(page.locator("#told")).to_have_count(0)
        tree = git(store, "hash-object", "-w", "-t", "tree", "/dev/null").strip()
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        odd = git(store, *who, "commit-tree", "-m", "odd", tree).strip()
        git(store, "update-ref", ref, odd)
        expect(page.locator("#told")).to_contain_text("is not an event")
        git(store, "update-ref", ref, tip)
        uwf("thread", "exec", play)
        expect(page.locator("#step-1")).to_be_visible()
        expect(page.locator("#told")).to_have_count(0)
        assert found.problems() == []


@pytest.mark.slow
def test_the_editor_says_that_nothing_was_saved(
    uwf: Uwf, work: Path, port: int
) -> None:
    path = work / ".workflows" / "ping.yaml"
    path.parent.mkdir()
    path.write_text((work / "ping.yaml").read_text())
    uwf("workflow", "add", "ping.yaml")
    with browsing() as browser, tab(browser, "unsaved") as found:
        page = found.page
        with serving(work, port=port) as server:
            enter(page, server.url)
            page.goto(f"{server.origin}/edit/ping")
            page.locator("#text").press("Control+End")
        page.keyboard.type("# more")
        page.keyboard.press("Control+s")
        said = page.locator("#side .said-line")
        expect(said).to_have_text("not saved: the server does not answer")
        with serving(work, port=port):
            page.keyboard.press("Control+s")
            expect(said).to_have_text("saved")
            page.context.clear_cookies()
            page.keyboard.type(" and more")
            page.keyboard.press("Control+s")
            expect(said).to_contain_text("not saved: open the address")
        assert found.problems() == []
    assert path.read_text().endswith("# more")


@pytest.mark.slow
def test_a_laid_out_text_breaks_no_policy_and_is_read_by_all(
    uwf: Uwf, work: Path
) -> None:
    wide = "| " + " | ".join(f"column{n}" for n in range(30)) + " |"
    rule = "|" + "--:|" * 30
    text = f"See [here](https://a.example) for it.\n\n{wide}\n{rule}\n{wide}\n"
    begun = uwf("thread", "start", "ping.yaml", "-p", f"Look\n\n{text}", "--json")
    with serving(work) as server, browsing() as browser:
        for width in (1280, 360):
            with tab(browser, f"table-{width}", width=width) as found:
                enter(found.page, uwf("web", "link", "--port", str(server.port)).out)
                found.page.goto(f"{server.origin}/threads/{begun.json['threadId']}")
                found.page.get_by_text("Read the whole task").click()
                expect(found.page.locator("td").last).to_have_css("text-align", "right")
                found.shot("thread")
                assert found.problems() == []
                assert list_faults(found) == []
