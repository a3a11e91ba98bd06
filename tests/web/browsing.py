"""A real browser, if there is one here; what it does wrong is collected."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

SHOTS: Final = Path(__file__).parents[2] / "build" / "screenshots"
"""Kept for people to look at."""
AXE: Final = Path(__file__).parents[2] / "build/axe/node_modules/axe-core/axe.min.js"
_FLAGS: Final = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
_WATCH: Final = """
window.__wrong = [];
document.addEventListener("securitypolicyviolation", (e) =>
  window.__wrong.push(`policy: ${e.violatedDirective} ${e.blockedURI}`));
addEventListener("error", (e) => window.__wrong.push(`error: ${e.message}`));
"""


def find_browser() -> str:
    """Find Chromium, or skip the test and say why."""
    named = os.environ.get("CHROMIUM")
    found = named or shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no browser here: apt-get install chromium")
    return found


@dataclass(slots=True, kw_only=True)
class Tab:
    """A page, and what went wrong in it."""

    page: Page
    name: str
    wrong: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def shot(self, name: str) -> None:
        """Keep a picture of what is seen."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        # What sticks to the window's edge stands where a reader begins.
        self.page.evaluate("scrollTo(0, 0)")
        self.page.screenshot(path=SHOTS / f"{self.name}-{name}.png", full_page=True)

    def problems(self) -> list[str]:
        """Give what went wrong so far, policy violations included."""
        return [*self.wrong, *self.page.evaluate("window.__wrong || []")]


_AXE_RUN: Final = """
async () => (await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21aa"]}))
  .violations.filter((v) => ["serious", "critical"].includes(v.impact))
  .map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`)
"""


def list_faults(found: Tab) -> list[str]:
    """List what keeps people out of a page: by axe-core, or by its width."""
    if not AXE.exists():
        pytest.skip("axe-core is not here: npm install --prefix build/axe axe-core")
    found.page.evaluate(AXE.read_text("utf-8"))
    faults: list[str] = found.page.evaluate(_AXE_RUN)
    wide = found.page.evaluate("document.documentElement.scrollWidth")
    width = found.page.viewport_size
    if width is not None and wide > width["width"]:
        faults.append(f"{wide} px wide")
    return faults


def enter(page: Page, address: str) -> None:
    """Go in by the address of a server's one-time code."""
    page.goto(address)
    page.wait_for_url("**/threads")


def press(page: Page, words: str, *keys: str) -> None:
    """Go to something by the Tab key alone, and press keys there; Enter by default.

    A key of more than one letter is typed as text when it is no name of a key.
    """
    for _ in range(80):
        page.keyboard.press("Tab")
        at = page.evaluate(_AT)
        if words == at or words in at.split("\n"):
            break
    else:
        pytest.fail(f"Tab does not come to '{words}'")
    for key in keys or ("Enter",):
        if key in _KEYS:
            page.keyboard.press(key)
        else:
            page.keyboard.type(key)


_KEYS: Final = frozenset({"Enter", "Space", "Tab", "Escape"})
_AT: Final = """
(() => {
  const at = document.activeElement;
  return (at.ariaLabel || at.labels?.[0]?.innerText || at.innerText || "").trim();
})()
"""


@contextmanager
def browsing() -> Iterator[Browser]:
    """Run the browser for one test."""
    path = find_browser()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def tab(
    browser: Browser,
    name: str,
    *,
    width: int = 1280,
    dark: bool = False,
    scripts: bool = True,
) -> Iterator[Tab]:
    """Open a tab of its own session."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
    )
    context.set_default_timeout(30_000)
    if scripts:
        context.add_init_script(_WATCH)
    page = context.new_page()
    found = Tab(page=page, name=name)

    def ask(request: Request) -> None:
        found.requests.append(request.url)

    page.on("request", ask)
    page.on("pageerror", lambda error: found.wrong.append(str(error)))
    page.on("dialog", lambda dialog: found.wrong.append(f"dialog {dialog.message}"))
    try:
        yield found
    finally:
        context.close()
