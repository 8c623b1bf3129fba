"""What `lowgear tune` says and writes: on runs of random policies, without training."""

import json
import shutil

import pytest
from click.testing import CliRunner

from lowgear.commands.cli import cli
from lowgear.commands.tune import _miss
from lowgear.policy.file import load
from tests.fixtures.runs import make_run

FEW = ("--episodes", "2")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("made") / "run", seeds=(0,), variants=("asymmetric",))


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


def tune(run, *options):
    return CliRunner().invoke(cli, ["tune", str(run), *options])


def setting(run):
    return load(run / "policies" / "agent0.safetensors").header.cost_coefficient


def test_what_is_written_is_shown_with_what_stood_there_and_its_words_are_explained(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    before, low = setting(run), load(run / "policies" / "agent0.safetensors").header.dial.low
    files = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    dry = tune(run, "--max-flops", "1.5", "--dry-run", *FEW)
    assert dry.exit_code == 0, dry.output
    assert files == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    policy = run / "policies" / "agent0.safetensors"
    change = f"to {policy}, where λ {before:.3g} stood"
    assert f"agent 0: λ {low:.3g} would be written {change}" in dry.stdout
    wet = tune(run, "--max-flops", "1.5", *FEW)
    assert f"agent 0: λ {low:.3g} written {change}" in wet.stdout
    assert setting(run) == low
    for words in ("λ: the best setting of each agent within 150.0%", "saved: FLOPs against", "played: episodes"):
        assert words in wet.stdout
    assert "close" not in wet.stdout  # explained only where it stands
    none = tune(run, "--max-flops", "0.001", "--dry-run", *FEW)
    assert "nearest: no setting meets the demand" in none.stdout
    assert "written to" not in none.stdout


def test_as_many_episodes_as_asked_for_are_played(run):
    report = json.loads(tune(run, "--max-flops", "1.5", "--json", "--episodes", "3").stdout)
    (row,) = report["agents"]
    assert row["episodes"] == 3
    assert row["episodes_in_all"] % 3 == 0


def test_several_runs_are_tuned_one_after_another(run, tmp_path):
    other = shutil.copytree(run, tmp_path / "run2")
    options = ["--max-flops", "1.5", "--dry-run", *FEW]
    both = CliRunner().invoke(cli, ["tune", str(tmp_path / "run*"), *options, "--json"])
    runs = json.loads(both.stdout)["runs"]
    assert [found["directory"] for found in runs] == [str(run), str(other)]
    assert runs[0]["agents"][0]["cost_coefficient"] == runs[1]["agents"][0]["cost_coefficient"]
    shown = CliRunner().invoke(cli, ["tune", str(run), str(other), *options])
    assert shown.stdout.index(f"{run}:") < shown.stdout.index(f"{other}:")
    assert shown.stdout.count("played: episodes") == 1


def test_a_limit_that_is_met_on_average_alone_is_said_to_be_close():
    """Not "no setting spends 20% or less; the nearest spends 19.5%"."""
    row = {"agent": 0, "cost_coefficient": 0.1, "flops_reduction": 0.805, "latency_us": 0.49, "certain": False}
    flops = _miss(row, {"max_flops": 0.2, "max_latency_us": None})
    assert "no setting surely spends 20.0% of the large gear's FLOPs or less" in flops
    assert "spends 19.5%, give or take: more --episodes may show that it does" in flops
    assert "takes 0.49 µs, give or take" in _miss(row, {"max_flops": None, "max_latency_us": 0.5})
    assert _miss(row | {"certain": True, "flops_reduction": 0.7}, {"max_flops": 0.2, "max_latency_us": None}).endswith(
        "spends 30.0%"
    )
