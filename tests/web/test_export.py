"""An export: whole, closed in itself, and without what must not leave."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.builders import files_of
from tests.cli.calls import Uwf
from tests.planted import GITHUB
from uwfgit.store.repository import open_store
from uwfgit.sync.secrets.scan import find_in_texts
from uwfgit.web.view.cleaning import Cleaner

ADAPTER = r"""#!/bin/sh
set -e
detail=$(uwf cas put detail '{"kind":"test","assembledPrompt":"","turns":[{"index":0,
"role":"assistant","content":"I look.","toolCalls":[{"name":"list_files",
"arguments":"{}","result":"secret-listing"}],"reasoning":"deep-thought","atMs":1}]}')
output=$(uwf cas put "$UWF_OUTPUT_TYPE" '{"$status":"done","text":"x"}')
uwf cas put step - <<END
{"start":"$UWF_START","role":"$UWF_ROLE","output":"$output","body":"ok",
"detail":"$detail","agent":"$UWF_AGENT","edgePrompt":"$UWF_EDGE_PROMPT",
"cwd":"$UWF_CWD","startedAtMs":$UWF_STARTED_AT_MS,
"completedAtMs":$UWF_STARTED_AT_MS,"warnings":[]}
END
"""


def pages(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text("utf-8")
        for path in folder.rglob("*.html")
    }


def test_all_pages_are_there_and_all_links_lead_to_something(
    uwf: Uwf, ended: str, work: Path
) -> None:
    fork = uwf("thread", "fork", ended, "--at", "2", "--json").json["threadId"]
    uwf("thread", "exec", fork, "--all", "--agent", "scripted:replies.yaml")

    done = uwf("export", "html", "site", "--json")

    assert done.code == 0, done.err
    assert (done.json["threads"], done.json["comparisons"]) == (2, 1)
    found = pages(work / "site")
    assert {"index.html", f"threads/{ended}.html", f"threads/{fork}.html"} <= set(found)
    assert {name.partition("/")[0] for name in found if "/" in name} == {
        *("threads", "workflows", "nodes", "compare"),
    }
    for name, text in found.items():
        for href in re.findall(r'(?:href|src)="(?!data:)([^"]*)"', text):
            path, _, anchor = unquote(href).partition("#")
            target = (
                (work / "site" / name).parent / path if path else work / "site" / name
            )
            assert target.resolve().is_relative_to((work / "site").resolve()), href
            assert target.is_file(), f"{name}: {href}"
            if anchor:
                assert f'id="{anchor}"' in target.read_text("utf-8"), f"{name}: {href}"


def test_the_pages_need_no_script_and_ask_nobody(
    uwf: Uwf, ended: str, work: Path
) -> None:
    uwf("export", "html", "site", ended)

    for name, text in pages(work / "site").items():
        assert "<script" not in text, name
        assert "<form" not in text, name
        assert "http://" not in text, name
        assert "https://" not in text, name
        assert " style=" not in text, name


def test_one_file_is_one_page_without_a_request(
    uwf: Uwf, ended: str, work: Path
) -> None:
    done = uwf("export", "html", "thread.html", ended, "--one-file", "--json")

    assert done.json["files"] == 1
    text = (work / "thread.html").read_text("utf-8")
    assert "default-src 'none'; style-src 'unsafe-inline'" in text.replace(
        "&#x27;", "'"
    )
    hrefs = re.findall(r'(?:href|src)="(?!data:)([^"]*)"', text)
    assert all(href.startswith("#") for href in hrefs)
    assert all(f'id="{href[1:]}"' in text for href in hrefs)


def test_a_planted_key_stops_the_export_until_it_is_let_through(
    uwf: Uwf, work: Path
) -> None:
    started = uwf("thread", "start", "ping.yaml", "-p", f"use {GITHUB}", "--json")
    thread = started.json["threadId"]

    stopped = uwf("export", "html", "site", thread, "--json")

    assert stopped.code == 1
    assert "nothing was exported" in stopped.error["message"]
    assert GITHUB not in stopped.err
    assert not (work / "site").exists()
    found = re.search(r"[a-z-]+-[0-9a-f]{12}", stopped.error["message"])
    assert found
    uwf("hooks", "allow", found[0])
    assert uwf("export", "html", "site", thread).code == 0


@pytest.mark.parametrize("full", [False, True])
def test_homes_and_addresses_do_not_leave(
    uwf: Uwf,
    work: Path,
    tmp_path: Path,
    full: bool,  # noqa: FBT001 - a parameter
) -> None:
    task = f"see {tmp_path}/home/notes, /home/ada/x and /Users/bob; ask eve@example.com"
    thread = uwf("thread", "start", "ping.yaml", "-p", task, "--json").json["threadId"]

    words = ["export", "html", "site", thread, *(["--full"] if full else [])]
    done = uwf(*words, "--json")

    assert done.code == 0, done.err
    texts = "".join(pages(work / "site").values())
    assert "see ~/notes, ~/x and ~; ask" in texts
    for hidden in (f"{tmp_path}/home", "/home/ada", "/Users/bob"):
        assert hidden not in texts
    assert ("eve@example.com" in texts) is full
    assert ("ada@example.org" in texts) is full
    assert (done.json["leftOut"] == []) is full


def test_tool_results_and_reasoning_leave_only_when_asked_for(
    uwf: Uwf, work: Path, thread: str
) -> None:
    adapter = work / "adapter"
    adapter.write_text(ADAPTER)
    adapter.chmod(0o700)
    ran = uwf("thread", "exec", thread, "--agent", f"adapter:{adapter}", "--json")
    assert ran.code == 0, ran.out + ran.err

    uwf("export", "html", "short", thread)
    uwf("export", "html", "whole", thread, "--full")

    short, whole = ("".join(pages(work / name).values()) for name in ("short", "whole"))
    assert "list_files" in short
    assert "secret-listing" not in short
    assert "deep-thought" not in short
    assert "secret-listing" in whole
    assert "deep-thought" in whole


def test_an_earlier_export_is_replaced_and_anything_else_is_refused(
    uwf: Uwf, ended: str, work: Path
) -> None:
    uwf("export", "html", "site", ended)
    other = uwf("thread", "start", "ping.yaml", "-p", "another", "--json")
    kept = work / "site" / "CNAME"
    kept.write_text("pages.example\n")

    again = uwf("export", "html", "site", other.json["threadId"])

    assert again.code == 0
    assert not (work / "site" / "threads" / f"{ended}.html").exists()
    assert kept.exists()
    full = work / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    assert uwf("export", "html", "full").code == 1
    assert [each.name for each in full.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("target", ["one.html", "one"])
def test_one_file_is_replaced_by_the_next_export(
    uwf: Uwf, ended: str, work: Path, target: str
) -> None:
    export = ("export", "html", target, ended, "--one-file")
    page = work / target if target == "one.html" else work / target / "index.html"
    assert uwf(*export).code == 0
    page.write_text(page.read_text().removesuffix("</html>\n"))

    again = uwf(*export)

    assert again.code == 0, again.err
    assert page.read_text().endswith("</html>\n")


def test_a_page_that_somebody_wrote_is_not_replaced(
    uwf: Uwf, ended: str, work: Path
) -> None:
    (work / "mine.html").write_text("<!doctype html>mine")

    done = uwf("export", "html", "mine.html", ended, "--one-file")

    assert (done.code, "is not an earlier export" in done.err) == (1, True)
    assert (work / "mine.html").read_text() == "<!doctype html>mine"


@pytest.mark.parametrize("target", ["site", "one.html"])
def test_an_export_that_failed_does_not_stand_in_the_way(
    uwf: Uwf, ended: str, work: Path, target: str
) -> None:
    export = ("export", "html", target, ended)
    words = (*export, "--one-file") if target == "one.html" else export

    with files_of(8000):
        failed = uwf(*words)
    left = sorted(work.glob(f"*{target}*")) + sorted(work.glob("site/*"))
    done = uwf(*words)

    assert (failed.code, "File too large" in failed.err) == (1, True)
    assert left in ([], [work / "site"])
    assert done.code == 0, done.err


def test_a_list_of_files_that_was_changed_removes_nothing_elsewhere(
    uwf: Uwf, ended: str, work: Path
) -> None:
    uwf("export", "html", "site", ended)
    mine = work / "mine.html"
    mine.write_text("mine")
    (work / "site" / "round.html").symlink_to("round.html")
    (work / "site" / "folder.html").mkdir()
    odd = [7, "round.html", "folder.html", "x\0.html", "\ud800.html"]
    files = ["../mine.html", str(mine), *odd]
    listed = {"format": 1, "files": files}
    (work / "site" / "uwf-export.json").write_text(json.dumps(listed))

    assert uwf("export", "html", "site", ended).code == 0
    assert mine.read_text() == "mine"


def test_attempts_replaced_steps_and_waiting_threads_are_shown(
    uwf: Uwf, thread: str, work: Path
) -> None:
    (work / "bad.yaml").write_text("replies:\n  writer: ['no frontmatter at all']\n")
    uwf("thread", "exec", thread, "--agent", "scripted:bad.yaml")
    waiting = uwf("export", "html", "waiting", thread)
    uwf("thread", "resume", thread, "-p", "again", "--agent", "scripted:replies.yaml")
    uwf("thread", "poke", thread, "-p", "better", "--agent", "scripted:replies.yaml")
    done = uwf("export", "html", "done", thread)

    assert (waiting.code, done.code) == (0, 0)
    before = (work / "waiting" / "threads" / f"{thread}.html").read_text()
    after = (work / "done" / "threads" / f"{thread}.html").read_text()
    assert "writer did not finish" in before
    assert "failed attempt" in before
    assert "failed attempt" in after
    assert "replaced step" in after
    assert "done again after a correction" in after


CHANGING = """\
#!/bin/sh
cat > /dev/null
echo 'a new line' >> "$PWD/notes.txt"
printf -- '---\\n$status: done\\ntext: x\\n---\\nDone.\\n'
"""


def changed(uwf: Uwf, work: Path, text: str) -> str:
    """Have a thread change a file of a repository."""
    for words in (["init", "-q"], ["add", "ping.yaml"], ["commit", "-qm", "one"]):
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
        subprocess.run(["git", *who, *words], check=True, cwd=work)
    script = work.parent / "changing.sh"
    script.write_text(CHANGING.replace("a new line", text))
    script.chmod(0o700)
    begun = uwf("thread", "start", "ping.yaml", "-p", "change it", "--json")
    thread = str(begun.json["threadId"])
    ran = uwf("thread", "exec", thread, "--agent", f"stdio:{script}", "--json")
    assert ran.code == 0, ran.out + ran.err
    return thread


def test_what_steps_changed_in_the_code_comes_along_only_in_full(
    uwf: Uwf, work: Path
) -> None:
    thread = changed(uwf, work, "a new line")

    assert uwf("export", "html", "some", thread).code == 0
    assert uwf("export", "html", "all", thread, "--full").code == 0
    assert uwf("export", "html", "one.html", thread, "--full", "--one-file").code == 0

    assert "a new line" not in "".join(pages(work / "some").values())
    for text in (*pages(work / "all").values(), (work / "one.html").read_text()):
        if f"{thread}" in text and "Steps" in text:
            assert "+a new line" in re.sub("<[^>]+>", "", text)


def test_a_key_in_the_code_does_not_leave(uwf: Uwf, work: Path) -> None:
    thread = changed(uwf, work, f"key = {GITHUB}")
    path = Path(uwf("store", "path", "--json").json["store"])

    assert uwf("export", "html", "site", thread, "--full").code == 0

    assert GITHUB not in "".join(pages(work / "site").values())
    # Snapshots leave such a file out; one that slipped in would stop the export.
    store = open_store(path, home=Path(os.environ["UWF_HOME"]))
    found = find_in_texts(store, {"code of X:1": f"+key = {GITHUB}\n", "of X:2": "+x"})
    assert [each.path for each in found] == ["code of X:1"]


def test_one_page_of_several_threads_begins_with_a_list_of_them(
    uwf: Uwf, ended: str, work: Path
) -> None:
    other = uwf("thread", "fork", ended, "--at", "1", "--json").json["threadId"]

    assert uwf("export", "html", "both.html", ended, other, "--one-file").code == 0
    page = (work / "both.html").read_text()
    names = re.findall(r' id="([^"]+)"', page)

    assert "<h1>Threads</h1>" in page
    for thread in (ended, other):
        assert page.index(f'href="#{thread}"') < page.index(f'id="{thread}"')
    assert len(names) == len(set(names))


def test_a_short_host_name_is_taken_for_a_word() -> None:
    cleaner = Cleaner(full=False, hosts=("mac", "node", "box-1"))

    cleaned = cleaner.text("mac node node2 my-node box-1.local box-10")

    assert cleaned == "mac [host] node2 my-node [host].local box-10"
