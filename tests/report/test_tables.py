"""Scores and costs in words and rows, ours beside the paper's."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from lowgear.report import tables
from lowgear.report.paper import published_figures
from lowgear.report.runs import read_run
from lowgear.report.text import number, score_interval, score_pair, short, steps, tick
from tests.fixtures.runs import evaluate, make_run, row


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return evaluate(make_run(tmp_path_factory.mktemp("runs") / "run"))


def test_the_table_has_ours_beside_the_papers(path: Path) -> None:
    found = {(row.setting.variant, row.note): row for row in tables.summary_rows(read_run(path))}
    best = found["asymmetric", "best score"]
    assert best.setting.score.mean == 90.5
    assert (best.paper.score, best.paper.large_share[0], best.paper.flops_reduction) == ((35.5, 48.9), 0.504, 0.49)
    text = tables.markdown(read_run(path))
    assert "| 90.5 ± 0.7 | 35.5 ± 48.9 | 30.0% | 50.4% | 66.5% | 49.0% | 2 |" in text
    table = list(csv.DictReader(io.StringIO(tables.settings_csv([read_run(path)]))))
    assert [line["variant"] for line in table] == ["asymmetric", "asymmetric", "small-only", "large-only"]
    assert float(table[0]["score_mean"]) == 90.5
    assert table[0]["paper_score"] == "35.5"


def test_relative_coefficients_stand_beside_those_in_rewards(tmp_path: Path) -> None:
    run = read_run(evaluate(make_run(tmp_path / "run", relative=True)))
    table = list(csv.DictReader(io.StringIO(tables.settings_csv([run]))))
    assert [line["relative_coefficient"] for line in table] == ["-1.0", "10.0", "", ""]
    assert [float(line["cost_coefficient"]) for line in table] == pytest.approx([-0.0025, 0.025, 0, 0])
    assert "| 0.025 (relative 10) |" in tables.markdown(run)
    found = tables.tiles(run)
    assert found is not None
    assert found["lead"].startswith("Asymmetric agents at λ 0.025 (relative 10) (cheapest")


def test_the_papers_ablations_stand_beside_ours(path: Path) -> None:
    assert published_figures(read_run(path).task, "no-cost").score == (66.3, 40.6)
    assert published_figures(read_run(path).task, "fixed-cost").score is None


def test_the_tiles_say_what_is_kept_and_what_is_saved(path: Path) -> None:
    found = tables.tiles(read_run(path))
    assert found is not None
    assert found["lead"] == "Asymmetric agents at λ 0.001 (cheapest that keeps 95% of the best)"
    assert [cell[1] for cell in found["cells"]] == ["87.5", "92.6%", "85.5%", "10.0%"]
    assert [cell[2] for cell in found["cells"]] == [
        "87.0 to 88.0, paper 35.5",
        "large-only: 94.5, 20 episodes, 2 seeds",
        "paper 49.0%",
        "paper 50.4%",
    ]


def test_success_is_shown_beside_returns(tmp_path: Path) -> None:
    """Of an environment without goals that tells it in its info."""
    path = make_run(tmp_path / "run", variants=("asymmetric",), seeds=(0,))
    one = row(0, "asymmetric", 0.0001, 90.0, 0.3) | {"success_rate": 0.75, "scored_by": "return"}
    run = read_run(evaluate(path, [one]))
    assert run.evaluation.kind == "return"
    assert tables.card(run, run.settings[0])["facts"]["success rate"] == "75.0%"
    tiles, summary = tables.tiles(run), tables.summary(run)
    assert tiles is not None
    assert ["success rate", "75.0%", "at the episodes' last step"] in tiles["cells"]
    assert summary["rows"][0]["cells"][summary["heads"].index("success") - 1] == ["75.0%", None]
    assert next(csv.DictReader(io.StringIO(tables.settings_csv([run]))))["success_rate"] == "0.75"


def test_commands_for_a_run_of_ones_own_environment_trust_it(path: Path) -> None:
    run = read_run(path)
    own = replace(run, config=replace(run.config, task="arm:Arm"))
    assert "--trust" not in tables.export_command(run, run.settings[0])
    assert tables.export_command(own, own.settings[0]).endswith(" --trust")
    assert "--episodes 200 --trust`" in tables.cautions(own)[0]


def test_a_policy_file_is_exported_without_an_agents_number(path: Path) -> None:
    run = read_run(path)
    assert "--agent" in tables.export_command(run, run.settings[0])
    file = next((path / "policies").iterdir())
    assert "--agent" not in tables.export_command(replace(run, path=file), run.settings[0])


def test_numbers_have_as_many_digits_as_make_sense() -> None:
    assert [number(value) for value in (1234.5, 12.34, 1.234, -0.1234)] == ["1,234", "12.3", "1.23", "−0.123"]
    assert score_pair("return", 818.2, 45.1) == "818 ± 45"
    assert [short(value) for value in (0.0000033333, 0.0001, 12)] == ["0.00000333", "0.0001", "12"]
    assert [steps(value) for value in (2048, 300_032, 2_500_000)] == ["2,048", "300k", "2.5M"]
    assert [tick(value, "number") for value in (-0.5, 10_000, 7e-05)] == ["−0.5", "10,000", "7e-05"]
    assert tick(0.125, "percent") == "12.5%"


def test_an_interval_has_digits_enough_to_tell_its_ends_apart() -> None:
    assert score_interval("return", 850.13, 850.02, 850.24) == "850.1 (850.0 to 850.2)"
    assert score_interval("return", 851.0, 820.4, 870.2) == "851 (820 to 870)"
    assert score_interval("return", 5.0, 5.0, 5.0) == "5.00 (5.00 to 5.00)"
    assert score_interval("success rate", 0.9, 0.55, 0.98) == "90.0% (55.0% to 98.0%)"
