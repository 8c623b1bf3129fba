"""The page in a real browser: it opens from disk, says the right numbers, and moves as one."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lowgear.export.source import read
from lowgear.report.page import embed
from tests.fixtures.chromium import CHROMIUM, Chromium, chromium
from tests.fixtures.runs import evaluate, make_run, write_report

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: on Debian `apt-get install chromium`")
HOSTILE = "</script><script>window.bad = 1</script><img src=x onerror='window.bad = 2'>"


@pytest.fixture(scope="module")
def window() -> Iterator[Chromium]:
    with chromium() as browser:
        browser.size(1440, 900)
        yield browser


@pytest.fixture
def browser(window: Chromium, page: Path) -> Iterator[Chromium]:
    """Open at the page, and without a single complaint when the test is over."""
    window.errors.clear()
    window.requests.clear()
    window.size(1440, 900)
    window.open(page)
    window.run("new Promise((done) => setTimeout(done, 100))")
    yield window
    assert window.errors == []


def centre(browser: Chromium, selector: str) -> tuple[float, float]:
    browser.run(
        f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center', behavior: 'instant'}})"
    )
    box = browser.run(
        f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]; })()"
    )
    return box[0] + box[2] / 2, box[1] + box[3] / 2


def text(browser: Chromium, selector: str) -> Any:
    return browser.run(f"document.querySelector({json.dumps(selector)}).innerText")


@needs_browser
def test_it_opens_from_disk_and_asks_for_nothing_else(browser: Chromium, page: Path) -> None:
    assert browser.run("document.title") == "MountainCarContinuous-v0 – Lowgear report"
    assert [url for url in browser.requests if not url.startswith("data:")] == [page.as_uri()]
    assert page.stat().st_size < 10_000_000


@needs_browser
def test_the_table_has_our_numbers_and_the_papers(browser: Chromium) -> None:
    rows = browser.run("[...document.querySelectorAll('table.summary tbody tr')].map((row) => row.innerText)")
    cells = [" ".join(row.split()) for row in rows]
    assert len(cells) == 5
    assert cells[0].startswith("small-only 40.5 ± 0.7")
    assert "large-only 94.5 ± 0.7" in cells[1]
    assert "best score 90.5 ± 0.7 paper 35.5 ± 48.9 30.0% paper 50.4% 66.5% paper 49.0%" in cells[2]
    assert "cheapest that keeps 95% of the best 87.5 ± 0.7" in cells[3]
    assert cells[3].endswith("2,048 paper 100k")
    assert "λ 0.0001, own setting, which export ships" in cells[4]


@needs_browser
def test_the_scrubber_moves_picture_timeline_and_numbers_together(browser: Chromium) -> None:
    step, last = (
        "Number(document.querySelector('.cursor i').dataset.step)",
        "document.querySelector('.controls input').max",
    )
    browser.run("document.querySelector('.controls input').focus()")
    for name in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        browser.key(name)
    assert browser.run(step) == 2
    assert text(browser, ".now dd").startswith("2 of ")
    browser.key("End")
    assert browser.run(step) == int(browser.run(last))
    left = browser.run("parseFloat(document.querySelector('.cursor i').style.left)")
    assert 99 < left < 100
    x, y = centre(browser, ".cursor")
    browser.mouse("mousePressed", x, y)
    browser.mouse("mouseReleased", x, y)
    assert abs(browser.run(step) - int(browser.run(last)) / 2) <= 2
    assert browser.run("document.querySelector('.controls input').valueAsNumber") == browser.run(step)


@needs_browser
def test_the_gear_shown_is_the_gear_of_the_step(browser: Chromium) -> None:
    data = browser.run(
        "JSON.parse(document.getElementById('data').textContent).runs[0].plays.find((play) => play.first)"
    )
    browser.run("document.querySelector('.controls input').focus()")
    for step in range(1, 40):
        browser.key("ArrowRight")
        named = data["gears"][data["gear"][step]]["name"].split()[0]
        assert browser.run("document.querySelectorAll('.now dd')[1].textContent") == named
    total = sum(data["reward"][:40])
    assert float(browser.run("document.querySelectorAll('.now dd')[3].textContent").replace("−", "-")) == pytest.approx(
        total, abs=0.06
    )


@needs_browser
def test_the_view_follows_when_fewer_steps_are_shown(browser: Chromium) -> None:
    browser.run(
        "(() => { const s = document.querySelector('[aria-label=\"Steps in view\"]');"
        "s.value = '100'; s.dispatchEvent(new Event('change')); })()"
    )
    browser.run("document.querySelector('.controls input').focus()")
    browser.key("End")
    view = browser.run("document.querySelector('.track.lines svg').viewBox.baseVal.x")
    last = int(browser.run("document.querySelector('.controls input').max"))
    assert view == last + 1 - 100
    assert browser.run("parseFloat(document.querySelector('.cursor i').style.left)") == pytest.approx(99.5)


@needs_browser
def test_the_keyboard_zooms_and_the_axis_follows(browser: Chromium) -> None:
    ticks = (
        "[...document.querySelectorAll('.track.steps text')].map((text) => Number(text.textContent.replace(',', '')))"
    )
    last = int(browser.run("document.querySelector('.controls input').max"))
    assert browser.run(ticks)[0] == 0
    assert 0.7 * last < browser.run(ticks)[-1] <= last + 1
    browser.run("document.querySelector('.controls input').focus()")
    browser.key("End")
    views = browser.run("[...document.querySelector('.zoom select').options].map((one) => one.value)")
    for _ in range(3):
        browser.key("+")
    assert browser.run("document.querySelector('.zoom select').value") == views[3]
    assert last - int(views[3]) <= browser.run(ticks)[0]
    browser.key("-")
    assert browser.run("document.querySelector('.zoom select').value") == views[2]
    for _ in range(2):
        browser.run("document.querySelector('[aria-label=\"Zoom out\"]').click()")
    assert browser.run("document.querySelector('.zoom select').value") == "0"
    assert browser.run("document.querySelector('[aria-label=\"Zoom out\"]').disabled") is True


@needs_browser
def test_short_picks_are_columns_of_their_own_and_not_blended(browser: Chromium) -> None:
    """A large gear for one step in five, a thousand steps in 500 pixels: every pixel shows it, or none of it."""
    found = browser.run(
        "(() => { const bars = []; for (let i = 0; i < 1000; i += 5)"
        "bars.push([i, i + 4, 0.45, 'small'], [i + 4, i + 5, 1, 'large']);"
        "const names = ['fill', 'x', 'width', 'height'];"
        "return columns(bars, 0, 1000, 500).map((one) => names.map((name) => one.getAttribute(name))); })()"
    )
    large = [(float(x), float(width), float(height)) for fill, x, width, height in found if fill == "large"]
    assert len(large) == 200
    assert all(x == int(x) and width == 1 for x, width, _ in large)
    assert sum(width * height for _, width, height in large) == pytest.approx(500 * 26 / 5)


@needs_browser
def test_what_is_selected_can_be_exported_by_copy_and_paste(browser: Chromium, page: Path) -> None:
    command = "document.querySelector('.export code').textContent"
    run = page.parents[1]
    assert "own setting" in text(browser, ".card")
    agent = re.findall(r"agent (\d)", text(browser, ".keys"))[0]  # that plays
    assert browser.run(command) == f"lowgear export {run} --format c --agent {agent}"
    browser.run("document.querySelector(\".frontier .dot[aria-label^='asymmetric, λ 0.001']\").focus()")
    browser.key("Enter")
    chosen = browser.run(command)
    assert chosen == f"lowgear export {run} --format c --agent {agent} --cost-coefficient=0.001"
    source = read(run, int(agent), coefficient=float(chosen.split("=")[1]))
    assert source.policy.header.cost_coefficient == 0.001


@needs_browser
def test_little_data_is_said(browser: Chromium) -> None:
    said = text(browser, ".notice")
    assert "Too little data" in said
    assert "20 episodes of each controller" in said
    assert "2 trained agents" in said


@needs_browser
def test_a_step_has_microseconds_beside_its_flops(browser: Chromium) -> None:
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    facts = " ".join(text(browser, ".card dl").split())
    assert re.search(r"FLOPs a step [\d,]+ .* time a step [\d.]+ µs", facts)
    assert "measured with this report on" in text(browser, ".panel:has(.summary) .hint")


@needs_browser
def test_it_plays_and_pauses(browser: Chromium) -> None:
    browser.run("document.querySelector('.play').click()")
    browser.until("Number(document.querySelector('.cursor i').dataset.step) > 5")
    browser.run("document.querySelector('.play').click()")
    stopped = browser.run("document.querySelector('.cursor i').dataset.step")
    browser.run("new Promise((done) => setTimeout(done, 150))")
    assert browser.run("document.querySelector('.cursor i').dataset.step") == stopped


@needs_browser
def test_hover_and_click_on_the_frontier(browser: Chromium) -> None:
    dot = ".frontier .dot[aria-label^='asymmetric, λ 0.00000333']"
    x, y = centre(browser, dot)
    browser.mouse("mouseMoved", x, y)
    tip = text(browser, ".frontier .tip")
    assert "asymmetric, λ 0.00000333" in tip
    assert "return 90.5 ± 0.7" in tip
    assert "66.5% of FLOPs saved" in tip
    browser.mouse("mousePressed", x, y)
    browser.mouse("mouseReleased", x, y)
    assert browser.run(f"document.querySelector({json.dumps(dot)}).getAttribute('aria-pressed')") == "true"
    assert "λ 0.00000333" in text(browser, ".card h4")
    assert "30.0%" in text(browser, ".card")
    assert "λ 0.00000333" in text(browser, ".picker label:has(input:checked)")
    assert "best score" in text(browser, "tr[aria-current=true]")


@needs_browser
def test_the_frontier_works_with_the_keyboard(browser: Chromium) -> None:
    browser.run("document.querySelector(\".frontier .dot[aria-label^='large-only']\").focus()")
    assert "large-only" in text(browser, ".frontier .tip")
    browser.key("Enter")
    assert "large-only" in text(browser, ".card h4")


@needs_browser
def test_the_pointer_reads_the_curves_and_the_scatter(browser: Chromium) -> None:
    browser.mouse("mouseMoved", *centre(browser, ".pair .panel:nth-child(1) svg[viewBox] rect"))
    tip = text(browser, ".pair .panel:nth-child(1) .tip").splitlines()
    assert tip[0] in ("1,000 steps", "1,500 steps")
    assert tip[1].startswith("asymmetric: ")
    assert len(tip) == 4
    browser.mouse("mouseMoved", *centre(browser, ".pair .panel:nth-child(2) .chart polygon"))
    assert "of the large gear's FLOPs" in text(browser, ".pair .panel:nth-child(2) .tip")


@needs_browser
def test_the_selection_outlives_another_width(browser: Chromium) -> None:
    pressed = "document.querySelector('.dot[aria-pressed=true]').getAttribute('aria-label').split(',')[0]"
    browser.run("document.querySelector(\".frontier .dot[aria-label^='small-only']\").focus()")
    browser.key("Enter")
    assert browser.run(pressed) == "small-only"
    browser.size(800, 900)
    browser.run("new Promise((done) => setTimeout(done, 150))")
    assert browser.run(pressed) == "small-only"
    assert browser.run("document.activeElement.getAttribute('aria-label').split(',')[0]") == "small-only"


@needs_browser
@pytest.mark.parametrize("width", [390, 768, 1440, 2560])
def test_nothing_is_wider_than_the_window(browser: Chromium, width: int) -> None:
    browser.size(width, 900)
    browser.run("new Promise((done) => setTimeout(done, 150))")
    assert browser.run("document.documentElement.scrollWidth") <= width


@needs_browser
def test_light_and_dark(browser: Chromium) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(paper)
    browser.size(1440, 900, dark=True)
    dark = browser.run(paper)
    assert light != dark
    browser.run("document.getElementById('theme').click()")
    assert browser.run(paper) == light


@needs_browser
def test_markup_in_the_files_is_only_text(tmp_path: Path, window: Chromium) -> None:
    run = evaluate(make_run(tmp_path / "<img src=x onerror='window.bad = 3'>", variants=("asymmetric",)), [])
    raw = json.loads((run / "config.json").read_text())
    raw["task"] = f"gym:{HOSTILE}"
    raw["provenance"] = {"commit": HOSTILE, HOSTILE: 1}
    (run / "config.json").write_text(json.dumps(raw))
    window.errors.clear()
    window.open(write_report(run, "--out", tmp_path / "out"))
    window.run("new Promise((done) => setTimeout(done, 200))")
    assert window.run("window.bad") is None
    assert window.run("document.querySelectorAll('main img, main script').length") == 0
    assert HOSTILE in window.run("document.querySelector('h1').textContent")
    assert HOSTILE in window.run("document.querySelectorAll('pre')[1].textContent")
    assert window.errors == []


@needs_browser
def test_several_runs_have_a_section_each_and_a_comparison(tmp_path: Path, window: Chromium) -> None:
    runs = [evaluate(make_run(tmp_path / "car"))]
    runs.append(evaluate(make_run(tmp_path / "pole", task="cartpole-swingup")))
    window.errors.clear()
    window.size(1440, 900)
    window.open(write_report(*runs, "--out", tmp_path / "out", "--no-video", "--episodes", 0))
    window.run("new Promise((done) => setTimeout(done, 150))")
    assert window.run("document.querySelectorAll('section.run').length") == 3
    compared = window.run("document.querySelector('#comparison table').innerText")
    assert "MountainCarContinuous-v0" in compared
    assert "cartpole-swingup" in compared
    assert (
        window.run("document.querySelector('#comparison .panel:nth-of-type(2) h3').textContent")
        == "Performance profiles"
    )
    assert "not wanted (--no-video)" in window.run("document.querySelector('#run-0 .notice').innerText")
    assert window.errors == []


@pytest.mark.parametrize("evil", ["</script>", "<!--", "]]>", "\u2028", "&lt;"])
def test_data_cannot_end_its_own_element(evil: str) -> None:
    found = embed({"name": evil, "bad": float("nan")})
    assert not set(found) & set("<>&\u2028")
    assert json.loads(found) == {"name": evil, "bad": None}
