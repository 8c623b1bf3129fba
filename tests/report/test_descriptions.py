"""Learning curves, scatter, profiles and sweeps from known numbers."""

import json
from pathlib import Path

import numpy as np
import pytest

from lowgear.report import curves, profiles, scatter, sweeps
from lowgear.report.figure import Figure, Series
from lowgear.report.matplotlib_figure import save
from lowgear.report.runs import RunData, read_run
from lowgear.report.scatter import ControllerEpisodes, scatter_scaling
from lowgear.report.selection import Selected
from tests.fixtures.runs import evaluate, make_run, row


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evaluate(make_run(tmp_path_factory.mktemp("runs") / "run"))


def curve(run: Path) -> tuple[Figure, Series]:
    figure = curves.describe(read_run(run))
    assert figure is not None
    return figure, figure.charts[0].series[0]


def test_curves_are_the_middle_of_the_seeds(path: Path) -> None:
    figure, first = curve(path)
    assert (figure.charts[0].y.label, figure.facts) == ("return", "modern recipe, 2 seeds")
    assert (first.label, first.x, first.y) == ("asymmetric", (500, 1000, 1500, 2000), (20.5, 40.5, 60.5, 80.5))
    assert first.interval is not None
    assert (first.interval[0][0], first.interval[1][0]) == (20.0, 21.0)


def test_seeds_of_a_relative_dial_share_a_curve_and_other_prices_have_their_own(tmp_path: Path) -> None:
    variants = ("asymmetric", "fixed-cost")
    relative, _ = curve(make_run(tmp_path / "relative", variants=variants, relative=True))
    assert [(each.label, each.y[0]) for each in relative.charts[0].series] == [
        ("asymmetric", 20.5),
        ("fixed-cost", 22.5),
    ]
    given, _ = curve(make_run(tmp_path / "given", variants=variants, seeds=(0,)))
    assert [each.y[0] for each in given.charts[0].series] == [20.0, 21.0, 22.0]


def test_curves_fall_back_to_training_episodes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", variants=("asymmetric",), seeds=(0,))
    lines = [
        {"kind": "train", "steps": steps, "agent": 0, "variant": "asymmetric", "seed": 0, "return": value}
        for steps, value in ((100, None), (200, 1.0), (300, float("nan")), (400, 3.0))
    ]
    (run / "metrics.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    figure, first = curve(run)
    assert "training episodes" in figure.note
    assert (first.x, first.y) == ((200, 400), (1.0, 3.0))


def test_a_step_that_not_all_seeds_have_reached_is_not_drawn(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", variants=("asymmetric",))
    line = {"kind": "evaluation", "steps": 2500, "agent": 0, "variant": "asymmetric", "seed": 0}
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line | {"cost_coefficient": 0.0001, "return_mean": 500.0}) + "\n")
    assert curve(run)[1].x[-1] == 2000


def played(run: RunData, agent: int, returns: list[float]) -> ControllerEpisodes:
    selected = Selected(agent, run.policies[agent], main=agent == 0, first=agent == 0)
    return ControllerEpisodes(selected, np.array(returns), np.linspace(0.2, 0.4, len(returns)))


def test_returns_are_scaled_as_in_the_paper(path: Path) -> None:
    run = read_run(path)
    own = scatter_scaling(run, [played(run, 4, [90.0, 100.0])])
    assert own is not None
    assert (own.random, own.large) == (-33.19, 95.0)
    assert own.apply(np.array([-33.19, 95.0])).tolist() == [0.0, 1.0]
    theirs = scatter_scaling(run, [played(run, 0, [1.0])])
    assert theirs is not None
    assert theirs.large == run.task.published.large_only[0]  # type: ignore[union-attr]
    assert "the paper's large-only agents" in theirs.note
    assert scatter_scaling(run, [played(run, 4, [-50.0])]) is None


def test_the_scatter_counts_every_episode_on_both_margins(path: Path) -> None:
    run = read_run(path)
    figure = scatter.describe(run, [played(run, 0, [60.0, 70.0, 95.0]), played(run, 4, [95.0, 95.0, 95.0])])
    (chart,) = figure.charts
    assert chart.bins is not None
    assert [len(edges) for edges in chart.bins] == [37, 37]
    for series in chart.series:
        assert series.counts is not None
        assert [sum(counts) for counts in series.counts] == [3, 3]
    assert chart.series[1].y == (1.0, 1.0, 1.0)
    assert chart.series[0].hover[2] == (chart.series[0].label, "return 95.0", "40.0% of the large gear's FLOPs")


def test_a_second_setting_is_drawn_as_rings(path: Path) -> None:
    run = read_run(path)
    two = [played(run, agent, [60.0, 70.0]) for agent in (0, 1, 4)]
    assert [one.variant for one in two] == ["asymmetric", "asymmetric", "large-only"]
    assert [series.hollow for series in scatter.describe(run, two).charts[0].series] == [False, True, False]


def test_profiles_need_two_tasks(path: Path, tmp_path: Path) -> None:
    assert profiles.describe([read_run(path)]) is None
    other = evaluate(make_run(tmp_path / "other", task="cartpole-swingup"))
    figure = profiles.describe([read_run(path), read_run(other)])
    assert figure is not None
    assert figure.facts == "2 tasks"
    found = {series.label: series for series in figure.charts[0].series}
    assert set(found) == {"asymmetric", "small-only", "large-only"}
    large = found["large-only"]
    assert (large.y[0], large.y[-1]) == (1.0, 0.0)
    # One seed of two lies at or above the mean of large-only, on both tasks.
    assert large.y[large.x.index(min(large.x, key=lambda at: abs(at - 1.0))) - 2] > 0.4
    assert large.interval is not None
    assert all(low <= share <= high for share, low, high in zip(large.y, *large.interval, strict=True))
    assert [path.name for path in save(figure, tmp_path)] == ["profiles.svg", "profiles.png"]


def test_sweeps_over_coefficients_and_periods(path: Path, tmp_path: Path) -> None:
    run = read_run(path)
    (sweep,) = sweeps.against_coefficient(run)
    assert [point.score for point in sweep.points] == [90.5, 87.5]
    assert sweeps.against_period([run]) == []
    runs = []
    for period in (10, 5):
        one = make_run(tmp_path / f"p{period}", variants=("asymmetric",), overrides={"periods": (period,)})
        runs.append(read_run(evaluate(one, [row(0, "asymmetric", 0.0001, float(period), 0.5)])))
    (sweep,) = sweeps.against_period(runs)
    assert [(point.x, point.score) for point in sweep.points] == [(5.0, 5.0), (10.0, 10.0)]
    svg, _ = save(sweeps.describe_periods(sweep), tmp_path)
    assert svg.name == "periods-MountainCarContinuous-v0.svg"
    assert "period: steps that a pick holds" in svg.read_text()


def test_a_dial_from_below_0_is_swept_whole(tmp_path: Path) -> None:
    one = make_run(tmp_path / "dial", variants=("asymmetric",))
    agents = [row(0, "asymmetric", coefficient, 90.0, 0.5) for coefficient in (-0.006, 0.0, 0.003, 0.06)]
    figure = sweeps.describe_coefficients(read_run(evaluate(one, agents)))
    assert figure is not None
    for chart in figure.charts:
        assert chart.series[0].x == (-0.006, 0.0, 0.003, 0.06)
        assert (chart.x.label, chart.x.log) == ("cost coefficient λ, as the dial turns", False)
        assert chart.x.low < -0.006 < 0.06 < chart.x.high
    svg, _ = save(figure, tmp_path)
    assert "−0.001" in svg.read_text()
