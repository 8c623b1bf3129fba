"""Proofs of learning on two cores with the modern recipe: minutes each, `make test-slow`."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from lowgear.commands.cli import cli

pytestmark = pytest.mark.slow


def train_and_evaluate(path, *arguments, episodes=20):
    trained = CliRunner().invoke(cli, ["train", *arguments, "--evaluate-every", "0", "--out", str(path)])
    assert trained.exit_code == 0, trained.output
    evaluated = CliRunner().invoke(cli, ["evaluate", str(path), "--episodes", str(episodes), "--json"])
    return json.loads(evaluated.stdout)["agents"]


def test_cartpole_swingup_keeps_its_return_at_a_fraction_of_the_cost(tmp_path):
    agents = train_and_evaluate(tmp_path / "run", "cartpole-swingup", "--steps", "100000", "--seeds", "0-2")
    assert np.mean([agent["return_mean"] for agent in agents]) >= 800
    assert np.mean([agent["flops_reduction"] for agent in agents]) >= 0.6


def test_mountain_car_is_solved(tmp_path):
    agents = train_and_evaluate(tmp_path / "run", "MountainCarContinuous-v0", "--steps", "100000", "--seeds", "0-2")
    assert sum(agent["return_mean"] >= 90 for agent in agents) >= 2


def test_fetch_reach_is_solved_in_twenty_thousand_steps(tmp_path):
    options = ["--gears", "8,64", "--cost-coefficients", "0.0001,0.01", "--steps", "20000"]
    (agent,) = train_and_evaluate(tmp_path / "run", "envpool:FetchReach-v1", *options, episodes=50)
    assert agent["success_rate"] == 1.0
