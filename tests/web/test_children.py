"""Threads that did steps of others, on pages: folded below them, linked both ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cli.family import Family, make_family
from tests.cli.seats import make_seat
from tests.web.browsing import browsing, tab
from tests.web.serving import serving
from uwfgit.constants import MAX_NESTED
from uwfgit.ids import Oid, ThreadId
from uwfgit.web.export.links import SingleLinks
from uwfgit.web.render.frame import Site
from uwfgit.web.render.threads import threads_page
from uwfgit.web.view.listing import Line, Question, answer


@pytest.fixture
def family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Family:
    return make_family(make_seat(tmp_path / "seats", "Ada", monkeypatch, capsys))


def boxes(page: str) -> dict[str, str]:
    """Return where each box of a page's picture leads."""
    found = re.findall(r'<a href="([^"]*)"><title>(\w+)', page)
    return {name: href for href, name in found}


def test_an_export_takes_children_along_and_links_them_both_ways(
    family: Family, tmp_path: Path
) -> None:
    target = tmp_path / "site"

    done = family.uwf.do("export", "html", str(target), family.parent, "--json").json

    assert done["threads"] == 3
    index = (target / "index.html").read_text()
    top, _, below = index.partition("<details")
    assert f"threads/{family.parent}.html" in top
    assert f"threads/{family.child}.html" not in top
    assert f"threads/{family.child}.html" in below.partition("<details")[0]
    assert f"threads/{family.grandchild}.html" in below.partition("<details")[2]
    assert ">1 ended<" in index
    above = (target / "threads" / f"{family.parent}.html").read_text()
    middle = (target / "threads" / f"{family.child}.html").read_text()
    assert boxes(above)["builder"] == f"../threads/{family.child}.html"
    assert boxes(above)["sender"] == f"../threads/{family.parent}.html#step-3"
    assert f'Done by thread <a href="../threads/{family.child}.html">' in above
    assert f'href="../threads/{family.parent}.html#step-2"' in middle
    assert "this does its step 2" in middle
    assert boxes(middle)["tester"] == f"../threads/{family.grandchild}.html"


def test_a_child_alone_says_what_it_is_a_step_of_and_leads_nowhere(
    family: Family, tmp_path: Path
) -> None:
    target = tmp_path / "site"

    family.uwf.do("export", "html", str(target), family.grandchild)

    page = (target / "threads" / f"{family.grandchild}.html").read_text()
    assert "this does its step 2" in page
    assert f"threads/{family.child}.html" not in page


def test_one_file_has_children_behind_their_parents(
    family: Family, tmp_path: Path
) -> None:
    target = tmp_path / "site.html"

    family.uwf.do("export", "html", str(target), "--one-file")

    page = target.read_text()
    places = [
        page.index(f'<div class="one" id="{thread}"')
        if f'<div class="one" id="{thread}"' in page
        else page.index(f'id="{thread}"')
        for thread in (family.parent, family.child, family.grandchild)
    ]
    assert places == sorted(places)


def test_a_server_shows_and_gives_what_the_command_line_does(family: Family) -> None:
    listed = family.uwf.do("thread", "list", "--all", "--json").json["items"]
    shown = family.uwf.do("thread", "show", family.parent, "--json").json

    with serving(family.uwf.folder) as server:
        assert server.get("/api/threads").json["items"] == listed
        thread = server.get(f"/api/threads/{family.parent}").json
        found = server.get("/api/threads?q=probe").json["items"]

    assert {key: thread[key] for key in shown} == shown
    assert thread["items"][1]["child"]["thread"] == family.child
    # Its parent was not asked for.
    assert [item["threadId"] for item in found] == [family.grandchild]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_reader_without_scripts_finds_the_way_down_and_up(
    family: Family, tmp_path: Path, width: int, scheme: str
) -> None:
    target = tmp_path / "site"
    family.uwf.do("export", "html", str(target))
    name = f"children-{width}-{scheme}"

    with (
        browsing() as browser,
        tab(browser, name, width=width, dark=scheme == "dark", scripts=False) as seen,
    ):
        page = seen.page
        page.goto((target / "index.html").as_uri())
        hidden = page.locator(f"#t-{family.child} .title").first
        assert not hidden.is_visible()
        page.locator(f"#t-{family.parent} > details > summary").click()
        assert hidden.is_visible()
        seen.shot("index")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator(f"#t-{family.parent} > .what .title").click()
        seen.shot("parent")
        page.locator(".path svg a", has_text="builder").click()
        assert page.url.endswith(f"{family.child}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator(".kin a").first.click()
        assert page.url.endswith(f"{family.parent}.html#step-2")
        assert seen.problems() == []


@pytest.mark.slow
def test_what_a_reader_unfolded_stays_so_while_the_page_follows(
    family: Family,
) -> None:
    with (
        serving(family.uwf.folder) as server,
        browsing() as browser,
        tab(browser, "children-live") as seen,
    ):
        page = seen.page
        page.goto(server.url)
        page.locator(f"#t-{family.parent} > details > summary").click()
        family.uwf.do("thread", "start", "probe.yaml", "-p", "More")
        page.wait_for_selector("text=More")
        assert page.locator(f"#t-{family.child} .title").first.is_visible()
        assert not page.locator(f"#t-{family.grandchild} .title").is_visible()
        assert seen.problems() == []


def test_a_strange_listing_is_laid_out_once_and_not_too_deep() -> None:
    threads = [ThreadId(f"01ARZ3NDEKTSV4RRFFQ69G5{n:03d}") for n in range(999)]
    lines = [
        Line(
            thread=each, commit=Oid("0" * 40), status="idle", started_ms=0, updated_ms=0
        )
        for each in threads
    ]
    chain = dict(zip(threads, ((line, line) for line in lines[1:]), strict=False))
    circle = {threads[0]: (lines[0], lines[1])}
    site = Site(links=SingleLinks(inside=frozenset()), name="x", about="", year=2026)

    for below, most in ((chain, MAX_NESTED), (circle, 1)):
        listing = replace(answer(lines[:1], Question()), below=below)
        page = threads_page(site, listing, base=None)
        assert page.count("<details") == most
