"""The page in Chromium and in Firefox: by keyboard alone, and under axe-core, narrow and wide, light and dark."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.browser import Browser
from tests.fixtures.chromium import CHROMIUM, chromium
from tests.fixtures.firefox import FIREFOX, firefox

AXE = os.environ.get("AXE_CORE")  # the path of axe.min.js
BROWSERS = [
    pytest.param(kind, marks=pytest.mark.skipif(path is None, reason=f"no {kind}: `apt-get install {package}`"))
    for kind, path, package in (("chromium", CHROMIUM, "chromium"), ("firefox", FIREFOX, "firefox-esr"))
]
THEMES = ["light", "dark"]
WIDTHS = [390, 1440, 2560]
STEP = "Number(document.querySelector('.cursor i').dataset.step)"
FOCUS = """(() => {
  const at = document.activeElement;
  if (!document.hasFocus() || at === document.body) return null;
  const name = at.getAttribute("aria-label") ?? (at.type === "radio" ? at.name : at.textContent.slice(0, 60));
  const marks = [at, ...at.querySelectorAll(".halo"), at.nextElementSibling].filter(Boolean);
  const seen = marks.some((mark) => {
    const style = getComputedStyle(mark);
    return mark.matches(".halo") ? style.opacity === "1" : style.outlineStyle !== "none";
  });
  return {tag: at.tagName.toLowerCase(), name, seen};
})()"""


class Windows:
    """One browser of each kind, and of each theme where it is settled at its start; opened when first needed."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, bool], Any] = {}
        self._stack = ExitStack()

    def show(self, kind: str, page: Path, width: int, dark: bool = False) -> Browser:
        """A browser at the page, freshly loaded."""
        found = self._browser(kind, dark)
        if kind == "chromium":
            found.size(width, 900, dark=dark)
        else:
            found.size(width, 900)
        found.open(page)
        found.run("new Promise((done) => setTimeout(done, 150))")
        found.errors.clear()
        return found

    def _browser(self, kind: str, dark: bool) -> Any:
        key = kind, dark and kind == "firefox"
        if key not in self._open:
            self._open[key] = self._stack.enter_context(chromium() if kind == "chromium" else firefox(dark))
        return self._open[key]

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def windows() -> Iterator[Windows]:
    opened = Windows()
    yield opened
    opened.close()


def go_to(browser: Browser, tag: str, name: str) -> dict[str, Any]:
    """Press Tab until the element has the focus; one that no Tab reaches is an error."""
    for _ in range(60):
        at = browser.run(FOCUS)
        if at is not None and at["tag"] == tag and at["name"].startswith(name):
            return at
        browser.key("Tab")
    raise AssertionError(f"no Tab reaches {tag} {name}")


@pytest.mark.parametrize("kind", BROWSERS)
def test_tab_reaches_everything_in_order_and_shows_where_it_is(windows: Windows, page: Path, kind: str) -> None:
    browser = windows.show(kind, page, 1440)
    reached = []
    for _ in range(80):
        browser.key("Tab")
        at = browser.run(FOCUS)
        if at is None:
            break
        reached.append(at)
    assert [at for at in reached if not at["seen"]] == []
    names = [at["name"] for at in reached]
    assert names[:2] == ["Skip to the report", "Switch between light and dark"]
    wanted = ["Scores and costs", "asymmetric, λ", "Copy", "Watch an episode", "play-0", "Play", "Step of the episode"]
    places = [next(place for place, name in enumerate(names) if name.startswith(want)) for want in wanted]
    assert places == sorted(places)
    dots = browser.run("document.querySelectorAll('.frontier .dot[tabindex]').length")
    assert sum(at["tag"] == "g" for at in reached) >= dots > 3
    buttons = browser.run("document.querySelectorAll('button:not([disabled]), select, summary').length")
    assert sum(at["tag"] in ("button", "select", "summary") for at in reached) == buttons


@pytest.mark.parametrize("kind", BROWSERS)
def test_keys_press_what_they_are_on(windows: Windows, page: Path, kind: str) -> None:
    browser = windows.show(kind, page, 1440)
    paper = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(paper)
    go_to(browser, "button", "Switch between")
    browser.key("Enter")
    assert browser.run(paper) != light
    browser.key(" ")
    assert browser.run(paper) == light
    go_to(browser, "g", "large-only")
    browser.key("Enter")
    assert "large-only" in browser.run("document.querySelector('.card h4').innerText")
    go_to(browser, "button", "Watch an episode")
    browser.key("Enter")
    assert browser.run(FOCUS)["name"] == "Play"
    browser.key(" ")
    browser.until(f"{STEP} > 3")
    browser.key("Enter")
    stopped = browser.run(STEP)
    browser.run("new Promise((done) => setTimeout(done, 150))")
    assert browser.run(STEP) == stopped
    go_to(browser, "input", "Step of the episode")
    browser.key("Home")
    browser.key("ArrowRight", shift=True)
    browser.key("ArrowRight")
    assert browser.run(STEP) == 11
    browser.key("End")
    assert browser.run(STEP) == int(browser.run("document.querySelector('.controls input').max"))
    go_to(browser, "button", "Zoom in")
    browser.key("Enter")
    assert browser.run("document.querySelector('.zoom select').value") != "0"
    go_to(browser, "summary", "Configuration")
    browser.key("Enter")
    assert browser.run("document.querySelector('details').open") is True
    assert browser.errors == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", BROWSERS)
def test_nothing_is_wider_than_the_window(windows: Windows, page: Path, kind: str, width: int) -> None:
    browser = windows.show(kind, page, width)
    assert browser.run("innerWidth") == width
    assert browser.run("document.documentElement.scrollWidth") <= width
    cut = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth).length"
    assert browser.run(cut) == 0
    assert browser.errors == []


@pytest.mark.skipif(AXE is None, reason="no axe-core: `make test-page` brings it")
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", BROWSERS)
def test_axe_finds_nothing_serious(windows: Windows, page: Path, kind: str, theme: str, width: int) -> None:
    assert AXE is not None
    browser = windows.show(kind, page, width, dark=theme == "dark")
    assert browser.run(f"matchMedia({json.dumps(f'(prefers-color-scheme: {theme})')}).matches")
    browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true")
    browser.run(Path(AXE).read_text(encoding="utf-8"))
    found = browser.run("axe.run().then((found) => found.violations.map((v) => [v.impact, v.id, v.nodes[0].html]))")
    assert [one for one in found if one[0] in ("serious", "critical")] == []
