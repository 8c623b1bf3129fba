"""Learning curves, clouds, profiles, sweeps and tables from known numbers."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from lowgear.report import clouds, learning, profiles, summary, sweeps
from lowgear.report.clouds import Cloud
from lowgear.report.runs import read_run
from tests.fixtures.runs import evaluate, make_run, row


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evaluate(make_run(tmp_path_factory.mktemp("runs") / "run"))


def test_curves_are_the_middle_of_the_seeds(path: Path) -> None:
    found = learning.curves(read_run(path))
    assert found.score == "return"
    first = found.curves[0]
    assert (first.label, first.seeds, first.steps) == ("asymmetric", 2, (500, 1000, 1500, 2000))
    assert first.middle == (20.5, 40.5, 60.5, 80.5)
    assert (first.low[0], first.high[0]) == (20.0, 21.0)


def test_curves_fall_back_to_training_episodes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", variants=("asymmetric",), seeds=(0,))
    lines = [
        {"kind": "train", "steps": steps, "agent": 0, "variant": "asymmetric", "seed": 0, "return": value}
        for steps, value in ((100, None), (200, 1.0), (300, float("nan")), (400, 3.0))
    ]
    (run / "metrics.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    found = learning.curves(read_run(run))
    assert "training episodes" in found.source
    assert (found.curves[0].steps, found.curves[0].middle) == ((200, 400), (1.0, 3.0))


def test_a_step_that_not_all_seeds_have_reached_is_not_drawn(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", variants=("asymmetric",))
    line = {"kind": "evaluation", "steps": 2500, "agent": 0, "variant": "asymmetric", "seed": 0}
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line | {"cost_coefficient": 0.0001, "return_mean": 500.0}) + "\n")
    assert learning.curves(read_run(run)).curves[0].steps[-1] == 2000


def cloud(variant: str, returns: list[float]) -> Cloud:
    return Cloud(variant, variant, 0, 0.1, np.array(returns), np.full(len(returns), 0.5))


def test_returns_are_scaled_as_in_the_paper(path: Path) -> None:
    run = read_run(path)
    own = clouds.scale_of(run, [cloud("large-only", [90.0, 100.0])])
    assert own is not None
    assert (own.random, own.large) == (-33.19, 95.0)
    assert own.apply(np.array([-33.19, 95.0])).tolist() == [0.0, 1.0]
    theirs = clouds.scale_of(run, [cloud("asymmetric", [1.0])])
    assert theirs is not None
    assert theirs.large == run.task.published.large_only[0]  # type: ignore[union-attr]
    assert "the paper's large-only agents" in theirs.note
    assert clouds.scale_of(run, [cloud("large-only", [-50.0])]) is None


def test_the_table_has_ours_beside_the_papers(path: Path) -> None:
    found = {(row.setting.variant, row.note): row for row in summary.rows(read_run(path))}
    best = found["asymmetric", "best score"]
    assert best.setting.score.mean == 90.5
    assert best.paper is not None
    assert (best.paper.score, best.paper.large_share, best.paper.saved) == ((35.5, 48.9), 0.504, 0.49)
    text = summary.markdown(read_run(path))
    assert "| 90.5 ± 0.7 | 35.5 ± 48.9 | 30.0% | 50.4% | 66.5% | 49.0% | 2 |" in text
    table = list(csv.DictReader(io.StringIO(summary.sheet([read_run(path)]))))
    assert [line["variant"] for line in table] == ["asymmetric", "asymmetric", "small-only", "large-only"]
    assert float(table[0]["score_mean"]) == 90.5
    assert table[0]["paper_score"] == "35.5"


def test_the_papers_ablations_stand_beside_ours(path: Path) -> None:
    found = summary.printed(read_run(path).task, "no-cost")
    assert found is not None
    assert found.score == (66.3, 40.6)


def test_profiles_need_two_tasks(path: Path, tmp_path: Path) -> None:
    assert profiles.profiles([read_run(path)]) == []
    other = evaluate(make_run(tmp_path / "other", task="cartpole-swingup"))
    found = {profile.variant: profile for profile in profiles.profiles([read_run(path), read_run(other)])}
    assert set(found) == {"asymmetric", "small-only", "large-only"}
    large = found["large-only"]
    assert large.tasks == 2
    assert large.share[0] == 1.0
    assert large.share[-1] == 0.0
    # One seed of two lies at or above the mean of large-only, on both tasks.
    assert large.share[large.at.index(min(large.at, key=lambda at: abs(at - 1.0))) - 2] > 0.4
    assert all(low <= share <= high for low, share, high in zip(large.low, large.share, large.high, strict=True))
    assert [path.name for path in profiles.draw(list(found.values()), tmp_path)] == ["profiles.svg", "profiles.png"]


def test_sweeps_over_coefficients_and_periods(path: Path, tmp_path: Path) -> None:
    run = read_run(path)
    (sweep,) = sweeps.against_coefficient(run)
    assert [s.score.mean for s in sweep.settings] == [90.5, 87.5]
    assert sweeps.against_period([run]) == []
    runs = []
    for period in (10, 5):
        one = make_run(tmp_path / f"p{period}", variants=("asymmetric",), overrides={"periods": (period,)})
        runs.append(read_run(evaluate(one, [row(0, "asymmetric", 0.0001, float(period), 0.5)])))
    (sweep,) = sweeps.against_period(runs)
    assert sweep.x == (5.0, 10.0)
    assert [s.score.mean for s in sweep.settings] == [5.0, 10.0]
    svg, _ = sweeps.draw_periods(sweep, tmp_path)
    assert "period: steps that a pick holds" in svg.read_text()
