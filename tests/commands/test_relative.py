"""Runs whose prices are measured against rewards, from the command line: trained, scored along the dial, tuned."""

import json

import pytest
from click.testing import CliRunner

from lowgear.commands.cli import cli
from lowgear.policy.file import load
from lowgear.policy.gears import gears_of
from lowgear.report.settings import aggregate
from tests.fixtures.commands import train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs") / "run", "--seeds", "0-1", "--variants", "asymmetric,large-only")


def units(run):
    return [load(run / "policies" / f"agent{agent}.safetensors").header.cost_unit for agent in range(3)]


def test_seeds_of_other_prices_are_one_setting_of_the_dial(run):
    assert units(run)[0] != units(run)[1]
    assert units(run)[2] is None
    result = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "1", "--frontier", "3", "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    dials = [row for row in report["agents"] if row["variant"] == "asymmetric"]
    for row in dials:
        paid = row["relative_coefficient"] * units(run)[row["agent"]]
        assert row["cost_coefficient"] == pytest.approx(paid, rel=1e-5)
    assert [row["relative_coefficient"] for row in dials[:4]] == [row["relative_coefficient"] for row in dials[4:]]
    # Both ends, the middle, and the policies' own.
    assert [dials[place]["relative_coefficient"] for place in (0, 2, 3)] == [-1, 2, 10]
    settings = [s for s in aggregate(report).settings if s.variant == "asymmetric"]
    assert [(s.relative, s.score.seeds) for s in settings] == [(row["relative_coefficient"], 2) for row in dials[:4]]
    assert all(row["relative_coefficient"] is None for row in report["agents"] if row["variant"] == "large-only")


def test_the_table_has_a_column_for_it_where_there_is_one(run, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "1"])
    assert result.exit_code == 0, result.output
    assert " rel. " in result.stdout
    assert " 2 " in result.stdout
    assert "…" not in result.stdout
    given = train(tmp_path / "given", "--cost-coefficients", "0.01", "--steps", "64", "--evaluate-every", "0")
    plain = CliRunner().invoke(cli, ["evaluate", str(given), "--episodes", "1"])
    assert plain.exit_code == 0, plain.output
    assert " rel. " not in plain.stdout


def test_tuning_tells_it_too(run):
    options = ["--max-flops", "1.5", "--episodes", "8", "--agents", "0"]
    result = CliRunner().invoke(cli, ["tune", str(run), *options, "--json"])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["agents"]
    header = load(run / "policies" / "agent0.safetensors").header
    assert row["relative_coefficient"] == header.relative_coefficient == -1  # where compute is cheapest
    assert row["cost_coefficient"] == header.cost_coefficient == pytest.approx(-header.cost_unit)
    shown = CliRunner().invoke(cli, ["tune", str(run), *options])
    assert " rel. " in shown.stdout


def test_any_task_trains_without_widths_and_prices(tmp_path):
    path = tmp_path / "run"
    sizes = ["--steps", "128", "--critic-units", "8", "--set", "batch=8", "--set", "random_steps=64"]
    sizes += ["--set", "master_batch=8", "--set", "actor_every=1"]
    arguments = ["train", "gym:Pendulum-v1", *sizes, "--evaluate-every", "0", "--out", str(path)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    header = load(path / "policies" / "agent0.safetensors").header
    assert (header.gears, header.relative_coefficient) == (gears_of((16, 128)), 2.0)
    assert list(header.dial) == pytest.approx([-header.cost_unit, 10 * header.cost_unit])
