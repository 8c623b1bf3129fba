"""`lowgear report` as a person runs it, on whole runs, poor ones and none."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lowgear.policy.file import Policy
from lowgear.report.assemble import ReportOptions, assemble
from lowgear.report.runs import RunData
from lowgear.report.timing import StepTimes
from tests.fixtures.runs import evaluate, make_run, row

QUICK = ReportOptions(episodes=0, video=False, setting=None)


@pytest.fixture(autouse=True)
def few_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """An episode of a thousand frames takes a minute to draw."""
    monkeypatch.setattr("lowgear.report.assemble.FRAMES_AT_MOST", 20)
    monkeypatch.setattr("lowgear.report.assemble.FRAMES", 60)


def data(page: Path) -> dict[str, Any]:
    start = '<script id="data" type="application/json">'
    found: dict[str, Any] = json.loads(page.read_text().split(start)[1].split("</script>")[0])
    return found


def build(path: Path, options: ReportOptions = QUICK) -> tuple[dict[str, Any], list[str], list[str]]:
    written, notices = assemble([path], None, options, lambda _: None)
    assert all(one.is_file() for one in written)
    return data(written[0])["runs"][0], [one.name for one in written], notices


def test_everything_that_a_whole_run_gives(tmp_path: Path) -> None:
    run, names, notices = build(evaluate(make_run(tmp_path / "run")), ReportOptions(3, True, None))
    figures = ["timeline", "scatter", "frontier", "coefficients", "curves"]
    assert names[0] == "index.html"
    assert set(names) >= {f"{name}.{kind}" for name in figures for kind in ("svg", "png")}
    assert set(names) >= {"summary.md", "settings.csv", "episodes.csv"}
    assert notices == []
    assert [play["label"] for play in run["plays"]][-2:] == ["small-only", "large-only"]
    scatter = run["figures"]["scatter"]["charts"][0]["series"]
    assert [series["label"].split()[0] for series in scatter].count("asymmetric") == 3  # best, cheapest near it, own
    assert len(scatter[0]["x"]) == len(scatter[0]["hover"]) == 3
    assert (tmp_path / "run" / "report" / "episode.webp").is_file()


def test_without_an_evaluation_the_rest_is_there(tmp_path: Path) -> None:
    run, names, notices = build(make_run(tmp_path / "run"))
    assert "no finite evaluation" in run["summary"]["none"]
    assert "no finite evaluation" in run["figures"]["frontier"]["none"]
    assert len(run["plays"]) == 6  # three settings of the dial, its own and the baselines
    assert [play["own"] for play in run["plays"] if play["first"]] == [True]
    assert "timeline.svg" in names
    assert "frontier.svg" not in names
    assert any("lowgear evaluate" in text for text in run["notices"])
    assert any("--frontier 7" in text for text in notices)


def test_a_run_with_one_agent(tmp_path: Path) -> None:
    one = make_run(tmp_path / "run", variants=("large-only",), seeds=(0,))
    run, names, _ = build(evaluate(one, [row(0, "large-only", 0.0, 90.0, 1.0)]))
    assert [line["cells"][4][0] for line in run["summary"]["rows"]] == ["1"]
    assert len(run["plays"]) == 1
    assert "interval" not in run["figures"]["curves"]["charts"][0]["series"][0]
    assert run["cards"]["large-only 0.0 False"]["facts"]["95% over episodes"] == "89.5 to 90.5"
    assert ["20 episodes" in text for text in run["cautions"]] == [True, False]
    assert "frontier.svg" in names


def test_a_score_that_is_nan_is_left_out_and_said(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run")
    agents = [row(0, "asymmetric", 0.0001, math.nan, 0.5), row(1, "asymmetric", 0.0001, 80.0, 0.5)]
    run, _, _ = build(evaluate(path, agents))
    assert any("1 of 2 scores are not finite" in text for text in run["notices"])
    assert run["summary"]["rows"][0]["cells"][0][0] == "80.0 (79.5 to 80.5)"


def test_a_variant_of_another_version_is_drawn_too(tmp_path: Path) -> None:
    path = make_run(tmp_path / "run", variants=("asymmetric",))
    agents = [row(0, "asymmetric", 0.0001, 80.0, 0.5), row(1, "fixed-coefficient", 0.0001, 70.0, 0.4)]
    run, _, _ = build(evaluate(path, agents))
    assert [line["name"] for line in run["summary"]["rows"]] == ["asymmetric", "fixed-coefficient"]


def test_nothing_but_nan(tmp_path: Path) -> None:
    path = evaluate(make_run(tmp_path / "run"), [row(0, "asymmetric", 0.0001, math.nan, math.nan)])
    run, names, _ = build(path)
    assert "frontier.svg" in names
    assert "no finite evaluation" in run["summary"]["none"]
    assert "no finite evaluation" in run["figures"]["frontier"]["none"]
    assert any("1 of 1 scores are not finite" in text for text in run["notices"])


def test_without_policies_there_is_no_episode(tmp_path: Path) -> None:
    path = evaluate(make_run(tmp_path / "run"))
    for policy in (path / "policies").iterdir():
        policy.unlink()
    run, names, _ = build(path, ReportOptions(5, True, None))
    assert run["plays"] == []
    assert "No episodes were played" in run["figures"]["scatter"]["none"]
    assert "frontier.svg" in names
    assert "timeline.svg" not in names
    assert any("no episode" in text for text in run["notices"])


def test_the_setting_asked_for_is_shown_first(tmp_path: Path) -> None:
    run, _, _ = build(evaluate(make_run(tmp_path / "run")), ReportOptions(0, False, 0.0002))
    (first,) = [play for play in run["plays"] if play["first"]]
    assert first["coefficient"] == 0.0002


def command(*options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "lowgear", "report", *options], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "name one run directory or policy file"),
        (["nowhere"], "nowhere: no such run directory"),
        (["."], "is not a run"),
        (["run", "--episodes", "-1"], "--episodes -1: write 0 or more"),
        (["run", "--setting", "5", "--episodes", "0"], "cost coefficient 5 is outside"),
        (["run", "--out", "file/below", "--no-video"], "could not make"),
    ],
)
def test_wrong_ways_end_in_one_line(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "run", seeds=(0,), variants=("asymmetric",))
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    done = command(*options)
    assert done.returncode == 2
    assert done.stdout == ""
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("lowgear: error:")
    assert said in line


def test_without_matplotlib_the_extra_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        f"sys.argv = ['lowgear', 'report', {str(tmp_path)!r}]\nfrom lowgear.commands.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'lowgear[report]'" in done.stderr


@pytest.mark.slow
def test_a_trained_run_with_frames_of_dm_control(tmp_path: Path) -> None:
    """The whole way on the real thing: train, evaluate, report, look."""
    from tests.fixtures.chromium import CHROMIUM, chromium

    run = str(tmp_path / "run")
    train = ["train", "cartpole-swingup", "--steps", "8000", "--variants", "asymmetric,large-only", "--out", run]
    for options in (train, ["evaluate", run, "--frontier", "3", "--episodes", "4"], ["report", run, "--episodes", "4"]):
        subprocess.run([sys.executable, "-m", "lowgear", *options], check=True)
    page = tmp_path / "run" / "report" / "index.html"
    plays = data(page)["runs"][0]["plays"]
    if plays[0]["frames"] is None:
        pytest.skip(f"no frames here: {data(page)['runs'][0]['notices']}")
    assert {play["simulator"] for play in plays} == {"cartpole-swingup of dm_control"}
    assert [len(play["frames"]["tiles"]) for play in plays if play["first"]] == [1000]  # one for each step
    assert all(100 <= len(play["frames"]["tiles"]) < 200 for play in plays if not play["first"])
    if CHROMIUM is None:
        pytest.skip("no chromium: on Debian `apt-get install chromium`")
    with chromium() as browser:
        browser.size(1440, 900)
        browser.open(page)
        browser.until(
            "document.querySelector('.screen canvas').getContext('2d').getImageData(200, 200, 1, 1).data[3] > 0"
        )
        row = json.loads((tmp_path / "run" / "evaluation.json").read_text())["agents"][-1]
        shown = browser.run("document.querySelector('table.summary').innerText")
        assert f"{row['return_mean']:.{0 if row['return_mean'] >= 100 else 1}f}" in shown
        assert browser.errors == []


def test_what_is_deployed_is_scored_where_the_evaluation_has_none_of_it(tmp_path: Path) -> None:
    path = evaluate(make_run(tmp_path / "run", variants=("asymmetric",), seeds=(0,)), None)
    agents = [row(0, "asymmetric", coefficient, 90.0, 0.3) for coefficient in (0.0001 / 30, 0.001)]
    evaluate(path, agents)
    run, _, _ = build(path, ReportOptions(1, False, None, time_steps=times))
    own = run["summary"]["rows"][-1]
    assert own["note"] == "λ 0.0001, own setting, which export ships"
    assert run["tiles"]["lead"] == "Asymmetric agents at λ 0.0001 (own setting, which export ships)"
    assert run["tiles"]["cells"][3][0] == "a step of the C controller"
    card = run["cards"][own["key"]]
    assert card["export"] == f"lowgear export {path} --format c --agent 0"
    assert run["cards"]["asymmetric 0.001 True"]["export"].endswith("--agent 0 --cost-coefficient=0.001")
    # 7 tenths of 1 µs, 3 tenths of 10 µs, a pick of 4 µs every 8 steps.
    assert run["cards"]["asymmetric 0.001 True"]["facts"]["time a step"] == "4.2 µs"
    stars = [one for one in run["figures"]["frontier"]["charts"][0]["series"] if one.get("label") == "own setting"]
    assert [star["keys"] for star in stars] == [[own["key"]]]


def times(_: RunData, __: Policy) -> StepTimes:
    return StepTimes((1.0, 10.0), 4.0, "a slow machine")


def test_videos_of_every_episode(tmp_path: Path) -> None:
    pytest.importorskip("pygame", reason="classic control is drawn by pygame, of the extra gym")
    path = make_run(tmp_path / "run", variants=("small-only",), seeds=(0,))
    _, names, _ = build(path, ReportOptions(0, True, None, videos=True))
    assert "small-only.webp" in names
    assert (path / "report" / "videos" / "small-only.webp").stat().st_size > 1000
