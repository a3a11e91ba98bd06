"""Journeys in a real browser: look, act, follow; by mouse, keys, a screen reader."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.builders import git
from tests.cli.calls import Uwf, use_script
from tests.code.repo import Repo
from tests.web.browsing import browsing, enter, list_faults, press, tab
from tests.web.hostile import HOSTILE
from tests.web.serving import serving

SLOW = """\
#!/bin/sh
cat > /dev/null
echo 'I look at **it**.'
sleep 2
printf -- '---\\n$status: done\\ntext: x\\n---\\nDone.\\n'
"""
expect.set_options(timeout=30_000)


@pytest.fixture
def ready(uwf: Uwf, work: Path) -> Path:
    """A work folder with a registered workflow and two agents."""
    uwf("workflow", "add", "ping.yaml")
    use_script(uwf, work / "replies.yaml")
    slow = work / "slow.sh"
    slow.write_text(SLOW)
    slow.chmod(0o700)
    uwf("config", "set", "agents.slow.kind", "stdio")
    uwf("config", "set", "agents.slow.command", str(slow))
    return work


def status(uwf: Uwf, thread: str) -> str:
    return str(uwf("thread", "show", thread, "--json").json["status"])


@pytest.mark.slow
def test_a_thread_is_started_followed_and_acted_on(uwf: Uwf, ready: Path) -> None:
    with serving(ready) as server, browsing() as browser, tab(browser, "act") as found:
        page = found.page
        enter(found.page, server.url)
        assert "code=" not in page.url
        found.shot("empty")

        page.get_by_role("link", name="Workflows").click()
        found.shot("workflows")
        page.get_by_role("link", name="ping", exact=True).click()
        page.get_by_text("Start a thread").click()
        page.get_by_label("The task").fill("# Paint it\n\nblue, please")
        found.shot("workflow")
        page.get_by_role("button", name="Start and run").click()
        page.wait_for_url(re.compile("/threads/[0-9A-Z]{26}$"))
        thread = page.url.rpartition("/")[2]
        expect(page.locator(".chip.end").first).to_be_visible()
        expect(page.locator("#step-4")).to_be_visible()
        # A part that came while it ran stands where a page made anew has it.
        expect(
            page.locator("section:has(> h2:text-is('Task')) + .time")
        ).to_be_visible()
        expect(page.get_by_role("heading", name="Paint it").first).to_be_visible()
        found.shot("thread")
        assert status(uwf, thread) == "end"

        page.locator("#acts").get_by_text("Do the last step again").click()
        page.get_by_label("What to do differently").fill("look closer")
        page.get_by_role("button", name="Do it again").click()
        expect(page.get_by_text("replaced step")).to_be_visible()
        expect(page.get_by_text("done again after a correction")).to_be_visible()

        page.locator("#acts summary", has_text="Approve").click()
        page.get_by_role("button", name="Approve the newest step").click()
        page.wait_for_url(f"**/threads/{thread}")
        path = Path(uwf("store", "path", "--json").json["store"])
        assert f"approved/{thread}/" in git(path, "tag", "--list")
        expect(page.get_by_text("approved: step 4")).to_be_visible()

        page.locator("#acts summary", has_text="Fork").click()
        page.get_by_label("Step", exact=True).fill("1")
        page.get_by_role("button", name="Fork").click()
        page.wait_for_url(lambda url: thread not in url)
        fork = page.url.rpartition("/")[2]
        assert status(uwf, fork) == "idle"
        page.get_by_role("button", name="Run the next step").click()
        expect(page.locator("#step-2")).to_be_visible()
        page.get_by_role("link", name="compare").click()
        expect(page.get_by_text("The same up to step 1")).to_be_visible()
        found.shot("compare")
        page.go_back()

        page.locator("#acts summary", has_text="Cancel").click()
        page.get_by_label("Why").last.fill("enough")
        page.get_by_role("button", name="Cancel the thread").click()
        expect(page.locator(".chip.cancelled").first).to_be_visible()
        assert status(uwf, fork) == "cancelled"
        assert found.problems() == []


@pytest.mark.slow
def test_a_running_thread_is_followed_and_caught_up_with(
    uwf: Uwf, ready: Path, port: int
) -> None:
    begun = uwf("thread", "start", "ping", "-p", "slowly", "--json")
    thread = begun.json["threadId"]
    with browsing() as browser, tab(browser, "live") as found:
        page = found.page
        with serving(ready, port=port) as server:
            enter(found.page, server.url)
            page.goto(f"{server.origin}/threads/{thread}")
            page.evaluate("window.kept = 1")
            uwf("thread", "exec", thread, "--background", "--agent", "slow")
            expect(page.locator("#now")).to_contain_text("I look at it.")
            expect(page.locator(".chip.running").first).to_be_visible()
            found.shot("turns")
            expect(page.locator("#step-1")).to_be_visible()
            expect(page.locator("#now")).to_have_count(0)
        # The server is gone; the thread goes on, and so does the page when it is back.
        uwf("thread", "exec", thread, "--all")
        with serving(ready, port=port):
            expect(page.locator("#step-2")).to_be_visible()
            expect(page.locator(".chip.end").first).to_be_visible()
            assert page.evaluate("window.kept") == 1
        assert status(uwf, thread) == "end"


OUTLINE = """
(main) => [...main.querySelectorAll("section, aside, article, .head, .callout")]
  .map((e) => e.tagName + "." + e.className + "#" + e.id + " " +
    (e.querySelector("h2")?.textContent || ""))
"""


@pytest.mark.slow
def test_what_comes_while_one_looks_on_stands_where_a_new_page_has_it(
    uwf: Uwf, ready: Path
) -> None:
    words = ("thread", "start", "ping", "-p", "# Look\n\non, please", "--json")
    thread = uwf(*words).json["threadId"]
    with (
        serving(ready) as server,
        browsing() as browser,
        tab(browser, "order") as found,
    ):
        page = found.page
        enter(found.page, server.url)
        page.goto(f"{server.origin}/threads/{thread}")
        page.evaluate("window.kept = 1")
        expect(page.locator("section.time, .time")).to_have_count(0)
        for number in range(1, 5):
            uwf("thread", "exec", thread)
            expect(page.locator(f"#step-{number}")).to_be_visible()
            expect(page.locator("#now")).to_have_count(0)
            beside = page.context.new_page()
            beside.goto(page.url)
            wanted = beside.locator("#main").evaluate(OUTLINE)
            beside.close()
            # The end of a run may come a moment after its step.
            page.wait_for_function(
                f"(wanted) => ({OUTLINE})(document.getElementById('main')).join()"
                " === wanted.join()",
                arg=wanted,
            )
        assert page.evaluate("window.kept") == 1
        assert found.problems() == []


@pytest.mark.slow
def test_a_page_that_slept_misses_nothing_not_even_a_push(
    uwf: Uwf, ready: Path, tmp_path: Path
) -> None:
    thread = uwf("thread", "start", "ping", "-p", "sleep", "--json").json["threadId"]
    store = Path(uwf("store", "path", "--json").json["store"])
    mirror, ref = tmp_path / "mirror.git", f"refs/heads/thread/{thread}"
    with (
        serving(ready) as server,
        browsing() as browser,
        tab(browser, "slept") as found,
    ):
        page = found.page
        enter(found.page, server.url)
        page.goto(f"{server.origin}/threads/{thread}")
        page.evaluate("window.kept = 1")
        page.context.set_offline(True)
        uwf("thread", "exec", thread, "-c", "2")
        page.wait_for_timeout(1_500)
        expect(page.locator("#step-1")).to_have_count(0)
        page.context.set_offline(False)
        expect(page.locator("#step-2")).to_be_visible()

        # What someone else's git brings is seen as well.
        known = git(store, "rev-parse", ref).strip()
        uwf("thread", "exec", thread, "--all")
        newest = git(store, "rev-parse", ref).strip()
        expect(page.locator(".chip.end").first).to_be_visible()
        git(store, "clone", "-q", "--bare", str(store), str(mirror))
        git(store, "update-ref", ref, known)
        page.reload()
        page.evaluate("window.kept = 1")
        expect(page.locator("#step-3")).to_have_count(0)
        git(mirror, "push", "-q", str(store), ref)
        expect(page.locator("#step-4")).to_be_visible()
        expect(page.locator(".chip.end").first).to_be_visible()
        assert page.locator("#main").get_attribute("data-tip") == newest
        assert page.evaluate("window.kept") == 1


@pytest.mark.slow
def test_the_listing_is_searched_filtered_and_live(uwf: Uwf, ready: Path) -> None:
    for number in range(60):
        # A word that no id can hold by chance.
        uwf("thread", "start", "ping", "-p", f"Task no-{number} of many")
    with serving(ready) as server, browsing() as browser, tab(browser, "list") as found:
        page = found.page
        enter(found.page, server.url)
        expect(page.locator("#list > li")).to_have_count(50)
        found.shot("threads")
        page.get_by_role("link", name="Next").click()
        expect(page.locator("#list > li")).to_have_count(10)
        page.goto(f"{server.origin}/threads")
        page.keyboard.press("/")
        page.keyboard.type("task no-42")
        expect(page.locator("#list > li")).to_have_count(1)
        assert "q=task+no-42" in page.url
        page.get_by_label("Search").fill("")
        page.get_by_label("Status").select_option("end")
        expect(page.locator("#list > li")).to_have_count(0)
        page.get_by_label("Status").select_option("")
        expect(page.locator("#list > li")).to_have_count(50)
        new = uwf("thread", "start", "ping", "-p", "A new one", "--json")
        expect(page.locator("#list > li").first).to_contain_text("A new one")
        page.get_by_label("Search").blur()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/threads/{new.json['threadId']}")
        page.keyboard.press("u")
        page.wait_for_url("**/threads")
        assert found.problems() == []


@pytest.mark.slow
def test_a_hostile_thread_is_words_everywhere(uwf: Uwf, work: Path) -> None:
    text = (work / "ping.yaml").read_text()
    text = text.replace(
        "description: Write and check", f"description: {json.dumps(HOSTILE)}"
    )
    (work / "ping.yaml").write_text(text)
    head = f"---\n$status: done\ntext: {json.dumps(HOSTILE)}\n---\n"
    body = f"{head}{HOSTILE}\n\n```html\n{HOSTILE}\n```\n"
    (work / "hostile.yaml").write_text(
        json.dumps({"replies": {"writer": [body], "checker": []}})
    )
    assert uwf("workflow", "add", "ping.yaml").code == 0
    begun = uwf("thread", "start", "ping", "-p", HOSTILE, "--json")
    thread = begun.json["threadId"]
    ran = uwf("thread", "exec", thread, "--agent", "scripted:hostile.yaml", "--json")
    assert ran.code == 0, ran.out + ran.err
    state = uwf("thread", "show", thread, "--json").json

    with (
        serving(work) as server,
        browsing() as browser,
        tab(browser, "hostile") as found,
    ):
        enter(found.page, server.url)
        page = found.page
        for path in (
            "/threads",
            f"/threads/{thread}",
            "/workflows",
            f"/workflows/ping/{state['workflowHash']}",
            f"/threads/{thread}/nodes/{state['head']}",
            f"/threads?q={HOSTILE[:40]}",
        ):
            page.goto(server.origin + path)
            for each in page.locator("details").all():
                each.evaluate("d => d.open = true")
            page.wait_for_timeout(200)
            assert found.problems() == [], path
            assert page.title() != "pwned"
            assert page.evaluate("document.scripts.length") == 1
            assert "\u202e" not in page.content()
        found.shot("thread")
        page.goto(f"{server.origin}/threads/{thread}")
        shown = page.locator("#step-1").inner_text()
        assert "<script>document.title='pwned'</script>" in shown
        assert "\\u202egnp.exe" in shown
        assert all(url.startswith((server.origin, "data:")) for url in found.requests)


@pytest.mark.slow
def test_an_export_reads_from_disk_without_a_script(
    uwf: Uwf, ended: str, work: Path
) -> None:
    fork = uwf("thread", "fork", ended, "--at", "2", "--json").json["threadId"]
    uwf("thread", "exec", fork, "--all", "--agent", "scripted:replies.yaml")
    uwf("export", "html", "site")
    uwf("export", "html", "one.html", ended, "--one-file")
    with browsing() as browser, tab(browser, "export", scripts=False) as found:
        page = found.page
        page.goto((work / "site" / "index.html").as_uri())
        found.shot("index")
        page.locator("#list .title").first.click()
        expect(page.locator("#step-1")).to_be_visible()
        found.shot("thread")
        page.get_by_role("link", name="compare").first.click()
        expect(page.locator(".pair").first).to_be_visible()
        page.go_back()
        page.locator("article summary", has_text="Record").first.click()
        page.locator("article .record a").first.click()
        expect(page.get_by_role("heading", name="Payload")).to_be_visible()
        found.shot("node")
        page.get_by_role("link", name="Workflows").click()
        page.locator(".title").click()
        expect(page.get_by_role("heading", name="Roles")).to_be_visible()
        found.shot("workflow")
        before = len(found.requests)
        page.goto((work / "one.html").as_uri())
        expect(page.get_by_role("heading", name="Steps")).to_be_visible()
        found.shot("one-file")
        asked = [url for url in found.requests[before:] if not url.startswith("data:")]
        assert asked == [(work / "one.html").as_uri()]
        assert all(url.startswith(("file:", "data:")) for url in found.requests)


@pytest.mark.slow
def test_a_thread_of_others_asks_first_and_holds_for_what_was_shown(
    uwf: Uwf, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{name}_NAME", "Eve")
        monkeypatch.setenv(f"GIT_{name}_EMAIL", "eve@example.org")
    for words in (["init", "-q"], ["add", "ping.yaml"], ["commit", "-qm", "one"]):
        subprocess.run(["git", *words], check=True)
    theirs = uwf("thread", "start", "ping.yaml", "-p", "from afar", "--json")
    thread = theirs.json["threadId"]
    store = uwf("store", "path", "--json").json["store"]
    mine = tmp_path / "mine"
    assert uwf("clone", store, str(mine)).code == 0
    use_script(uwf, work / "replies.yaml")

    here = ("--store", str(mine))
    with (
        serving(work, *here) as server,
        browsing() as browser,
        tab(browser, "trust") as found,
    ):
        page = found.page
        enter(found.page, server.url)
        page.goto(f"{server.origin}/threads/{thread}")
        page.get_by_role("button", name="Run the next step").click()
        expect(page.get_by_role("heading", name="Made by others")).to_be_visible()
        expect(page.locator("pre")).to_contain_text("agent:")
        expect(page.locator("pre")).to_contain_text("directory:")
        found.shot("ask")
        assert list_faults(found) == []
        assert uwf("thread", "show", thread, "--json", *here).json["steps"] == 0
        page.get_by_role("button", name="Trust it, and run").click()
        page.wait_for_url(f"**/threads/{thread}")
        expect(page.locator("#step-1")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_reads_well_to_a_screen_reader_and_on_a_phone(
    uwf: Uwf,
    ready: Path,
    tmp_path: Path,
    width: int,
    dark: bool,  # noqa: FBT001 - a parameter
) -> None:
    begun = uwf("thread", "start", "ping", "-p", "# All of it\n\nand more", "--json")
    thread = begun.json["threadId"]
    (ready / "bad.yaml").write_text("replies:\n  writer: ['no frontmatter']\n")
    uwf("thread", "exec", thread, "--agent", "scripted:bad.yaml")
    waiting = uwf("thread", "start", "ping", "-p", "Waits", "--json").json["threadId"]
    uwf("thread", "exec", waiting, "--agent", "scripted:asking.yaml")
    uwf("thread", "resume", thread, "-p", "again")
    uwf("thread", "exec", thread, "--all")
    fork = uwf("thread", "fork", thread, "--at", "1", "--json").json["threadId"]
    state = uwf("thread", "show", thread, "--json").json
    other = tmp_path / "other-store"
    uwf("init", "--store", str(other))
    uwf("web", "hub", "add", "laptop")
    (ready / ".workflows").mkdir()
    (ready / ".workflows" / "ping.yaml").write_text((ready / "ping.yaml").read_text())
    (ready / ".workflows" / "bad.yaml").write_text("name: bad\nroles: 7\n")
    pages = {
        "threads": "/threads",
        "nothing": "/threads?q=unuttered",
        "thread": f"/threads/{thread}",
        "waiting": f"/threads/{waiting}",
        "compare": f"/compare/{min(thread, fork)}/{max(thread, fork)}",
        "workflows": "/workflows",
        "workflow": f"/workflows/ping/{state['workflowHash']}",
        "node": f"/threads/{thread}/nodes/{state['head']}",
        "missing": "/threads/01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "verify": f"/threads/{thread}/verify",
        "code": f"/threads/{thread}/code/1",
        "changes": f"/workflows/ping/{state['workflowHash']}/changes",
        "other": "/stores/1/threads",
        "editor": "/edit/ping",
        "problems": "/edit/bad",
        "gone": "/clients/laptop/threads",
    }
    name = f"{'dark' if dark else 'light'}-{width}"
    found_all: dict[str, Any] = {}
    with (
        serving(ready, "--all", "--hub") as server,
        browsing() as browser,
        tab(browser, name, width=width, dark=dark) as found,
    ):
        enter(found.page, server.url)
        for each, path in pages.items():
            found.page.goto(server.origin + path)
            found.shot(each)
            if problems := list_faults(found):
                found_all[each] = problems
            for details in found.page.locator("details").all():
                details.evaluate("each => each.open = true")
            if problems := list_faults(found):
                found_all[f"{each}, opened"] = problems

    assert found_all == {}


ASKS = """\
inputs:
  color: { type: string, enum: [red, blue], description: Which one }
  times: { type: integer, default: 1 }
  loud: { type: boolean }
"""


@pytest.mark.slow
def test_every_act_works_by_keys_alone(uwf: Uwf, ready: Path) -> None:
    text = (ready / "ping.yaml").read_text()
    (ready / "ping.yaml").write_text(text.replace("roles:\n", f"{ASKS}roles:\n", 1))
    assert uwf("workflow", "add", "ping.yaml").code == 0
    uwf("config", "set", "agents.asks.kind", "scripted")
    uwf("config", "set", "agents.asks.script", str(ready / "asking.yaml"))
    uwf("config", "set", "defaultAgent", "asks")
    with serving(ready) as server, browsing() as browser, tab(browser, "keys") as found:
        page = found.page
        enter(found.page, server.url)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.innerText") == (
            "Skip to the content"
        )
        press(page, "Workflows")
        page.wait_for_url("**/workflows")
        press(page, "ping")
        page.wait_for_url("**/workflows/ping/*")
        press(page, "Start a thread")
        found.shot("inputs")
        press(page, "The task", "by keys")
        press(page, "color", "blue")
        press(page, "times", "3")
        press(page, "loud", "Space")
        found.shot("inputs-filled")
        press(page, "Start")
        page.wait_for_url(re.compile("/threads/[0-9A-Z]{26}$"))
        thread = page.url.rpartition("/")[2]
        shown = uwf("thread", "show", thread, "--json").json
        assert shown["inputs"] == {"color": "blue", "times": 3, "loud": True}

        # It leads to the page itself, which may show what came of it before that.
        with page.expect_navigation():
            press(page, "Run the next step")
        expect(page.locator(".chip.suspended").first).to_be_visible()
        assert list_faults(found) == []
        found.shot("waits")
        uwf("config", "set", "defaultAgent", "play")
        press(page, "What to tell the agent", "it is blue")
        with page.expect_navigation():
            press(page, "Resume")
        expect(page.locator("#step-2")).to_be_visible()
        expect(page.locator(".chip.idle").first).to_be_visible()
        assert found.problems() == []
    assert "it is blue" in uwf("thread", "read", thread).out


@pytest.mark.slow
def test_what_was_done_is_done_again_approved_forked_and_cancelled_by_keys(
    uwf: Uwf, ready: Path
) -> None:
    thread = uwf("thread", "start", "ping", "-p", "keys", "--json").json["threadId"]
    uwf("thread", "exec", thread)
    with serving(ready) as server, browsing() as browser, tab(browser, "keys") as found:
        page = found.page
        enter(found.page, server.url)
        page.goto(f"{server.origin}/threads/{thread}")
        press(page, "Do the last step again")
        press(page, "What to do differently", "once more")
        press(page, "Do it again")
        expect(page.get_by_text("replaced step").first).to_be_visible()
        expect(page.locator(".chip.idle").first).to_be_visible()
        page.reload()
        press(page, "Approve")
        press(page, "Why", "fine")
        press(page, "Approve the newest step")
        expect(page.get_by_text("approved: step 1")).to_be_visible()
        press(page, "Fork")
        press(page, "Step")
        page.wait_for_url(lambda url: thread not in url)
        press(page, "Cancel")
        press(page, "Why", "enough")
        page.keyboard.press("Enter")
        expect(page.locator(".chip.cancelled").first).to_be_visible()
        fork = page.url.rpartition("/")[2]
        assert status(uwf, fork) == "cancelled"
        assert found.problems() == []


@pytest.mark.slow
def test_a_workflow_of_a_far_address_and_long_words_fits_a_phone(
    uwf: Uwf, ready: Path, tmp_path: Path
) -> None:
    far = Repo.make(tmp_path / ("far" * 20))
    far.write(".workflows/ping.yaml", (ready / "ping.yaml").read_bytes())
    far.commit("flows")
    added = uwf("workflow", "add", f"git+file://{far.root}:ping", "--yes", "--json")
    path = f"/workflows/ping/{added.json['hash']}"
    assert uwf("thread", "start", "ping", "-p", "word" * 40).code == 0
    with (
        serving(ready) as server,
        browsing() as browser,
        tab(browser, "far", width=375) as found,
    ):
        enter(found.page, server.url)
        found.page.goto(server.origin + path)

        expect(found.page.get_by_text("git+file:")).to_be_visible()
        assert found.page.evaluate("document.documentElement.scrollWidth") == 375
