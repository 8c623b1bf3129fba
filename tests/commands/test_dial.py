"""A run of three gears with a dial, from the command line: trained, then scored at settings of the dial."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import lowgear
from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.policy import cost
from lowgear.policy.file import load
from tests.fixtures.commands import train

VARIANTS = ["asymmetric", "fixed-cost", "fixed-cost", "large-only"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(
        tmp_path_factory.mktemp("runs") / "run",
        *("--variants", "asymmetric,fixed-cost,large-only"),
        *("--cost-coefficients", "0.001,0.1"),
    )


def test_prices_that_are_known_are_kept_with_the_policies_and_only_where_there_is_a_dial(run, tmp_path):
    for agent in range(len(VARIANTS)):
        policy = load(run / "policies" / f"agent{agent}.safetensors")
        assert policy.header.known_prices
        each = policy.weights.tariff.each
        assert each.shape == (1, 6)
        assert each[0].argmin() == 3  # the smallest gear for seven steps
    learned = train(tmp_path / "learned", "--learned-prices", "--evaluate-every", "0", "--steps", "64")
    policy = load(learned / "policies" / "agent0.safetensors")
    assert policy.weights.tariff is None
    assert policy.header.sees_position
    result = CliRunner().invoke(
        cli, ["train", "reacher-easy", "--recipe", "paper", "--known-prices", "--out", str(tmp_path / "run")]
    )
    assert result.exit_code != 0
    assert "known prices need a dial" in str(result.exception)
    assert not (tmp_path / "run").exists()


def evaluate(run, *options):
    result = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "2", "--json", "--replace", *options])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report == json.loads((run / "evaluation.json").read_text())
    return report


def who(report):
    return [(agent["agent"], agent["variant"], agent["cost_coefficient"]) for agent in report["agents"]]


def test_three_gears_train_and_are_scored(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = [line for line in lines if line["kind"] == "train"][-len(VARIANTS) :]
    for name in ("gear0_critic_loss", "gear1_critic_loss", "gear2_critic_loss", "master_loss"):
        assert all(np.isfinite(line[name]) for line in last)
    report = evaluate(run)
    assert who(report) == [
        (0, "asymmetric", 0.002),  # the paper's for the task, within the dial
        (1, "fixed-cost", 0.001),
        (2, "fixed-cost", 0.1),
        (3, "large-only", 0.0),
    ]
    assert report["master"] == "greedy"
    model = load(run / "policies" / "agent0.safetensors").header.cost
    assert model == cost.cost_model(6, 2, (2, 3, 4), 4, periods=2)  # the position is no input
    for agent in report["agents"]:
        assert len(agent["gear_share"]) == 3
        assert sum(agent["gear_share"]) == pytest.approx(1)
        picks = 1 / agent["period_mean"] if agent["period_mean"] else 0
        flops = np.dot(agent["gear_share"], model.gear_flops) + picks * model.pick_flops
        assert agent["flops_per_step"] == pytest.approx(flops)
        assert agent["flops_reduction_ci95"] >= 0
    assert all(2 <= agent["period_mean"] <= 7 for agent in report["agents"][:3])
    assert report["agents"][3]["gear_share"] == [0, 0, 1]


def test_a_policy_of_three_gears_acts(run):
    agent = lowgear.load(run / "policies" / "agent0.safetensors")
    seen = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    action, (choice, age) = agent.predict(seen, master="boltzmann")
    assert action.shape == (200, 2)
    assert set(choice) == set(range(6))
    assert (age == 1).all()  # either duration has steps left


def test_coefficients_are_settings_of_the_dial(run):
    report = evaluate(run, "--cost-coefficients", "0.002,0.05")
    assert who(report) == [
        (0, "asymmetric", 0.002),
        (0, "asymmetric", 0.05),
        (1, "fixed-cost", 0.001),
        (2, "fixed-cost", 0.1),
        (3, "large-only", 0.0),
    ]
    # What is not set is scored as it is without settings.
    assert report["agents"][2:] == evaluate(run)["agents"][1:]
    one = evaluate(run, "--cost-coefficients", "0.05")
    assert who(one)[0] == (0, "asymmetric", 0.05)
    assert one["agents"][0] == report["agents"][1]


def test_a_frontier_goes_from_end_to_end(run):
    found = who(evaluate(run, "--frontier", "3"))
    assert [agent for agent, *_ in found] == [0, 0, 0, 0, 1, 2, 3]
    own = load(run / "policies" / "agent0.safetensors").header.cost_coefficient
    along = [coefficient for agent, _, coefficient in found if agent == 0]
    assert along == pytest.approx(sorted([0.001, 0.01, own, 0.1]))


def test_the_table_a_person_reads_cuts_no_cell(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "1", "--cost-coefficients", "0.002,0.05"])
    assert result.exit_code == 0, result.output
    for shown in ("0.002", "0.05", "fixed-cost", "large-only"):
        assert shown in result.stdout
    assert "…" not in result.stdout


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--cost-coefficients", "0.2"], "0.2 is outside what the agent was trained for, 0.001 to 0.1"),
        (["--cost-coefficients", "0.01,0.0001"], "0.0001"),
        (["--cost-coefficients", "0"], "0 is outside"),
        (["--cost-coefficients", "-0.01"], "-0.01"),
        (["--cost-coefficients", "nan"], "nan"),
        (["--cost-coefficients", "cheap"], "--cost-coefficients 'cheap'"),
        (["--cost-coefficients", ""], "--cost-coefficients ''"),
        (["--frontier", "1"], "--frontier 1"),
        (["--frontier", "0"], "--frontier 0"),
        (["--frontier", "-2"], "--frontier -2"),
        (["--frontier", "3", "--cost-coefficients", "0.01"], "give one of them"),
    ],
)
def test_bad_settings_are_named_and_leave_the_last_scores(run, options, named):
    (run / "evaluation.json").write_text("the last scores")
    result = CliRunner().invoke(cli, ["evaluate", str(run), "--episodes", "1", *options])
    assert isinstance(result.exception, LowgearError), result.output
    assert named in str(result.exception)
    assert "\n" not in str(result.exception)
    assert (run / "evaluation.json").read_text() == "the last scores"


@pytest.mark.parametrize(
    "options",
    [["--recipe", "paper"], ["--cost-coefficients", "0.01"], ["--variants", "large-only"]],
    ids=["paper", "one coefficient", "no master"],
)
def test_a_run_without_a_dial_says_so(tmp_path, options):
    path = train(tmp_path / "run", *options, "--evaluate-every", "0", "--steps", "64")
    for setting in (["--frontier", "3"], ["--cost-coefficients", "0.01"]):
        result = CliRunner().invoke(cli, ["evaluate", str(path), "--episodes", "1", *setting])
        assert isinstance(result.exception, LowgearError), result.output
        assert "no agent has a dial to set" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--cost-coefficients", "-0.1,0"], "-0.1: write a number of 0 or more"),
        (["--period", "5,2"], "period 5,2"),
        (["--period", "0"], "period 0"),
        (["--period", "2,2"], "period 2,2"),
        (["--period", "often"], "--period 'often'"),
        (["--period", "2.5"], "--period '2.5'"),
        (["--variants", "fixed"], "fixed-cost"),
    ],
)
def test_bad_dials_and_periods_are_named_and_leave_nothing(tmp_path, monkeypatch, arguments, named):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["train", "walker-stand", *arguments])
    assert isinstance(result.exception, LowgearError)
    assert named in str(result.exception)
    assert not list(tmp_path.iterdir())
