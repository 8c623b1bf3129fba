"""Proofs of learning on two cores with the modern recipe: minutes each, `make test-slow`."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from lowgear.cli import cli

pytestmark = pytest.mark.slow


def train_and_evaluate(path, *arguments):
    trained = CliRunner().invoke(cli, ["train", *arguments, "--evaluate-every", "0", "--out", str(path)])
    assert trained.exit_code == 0, trained.output
    evaluated = CliRunner().invoke(cli, ["evaluate", str(path), "--episodes", "20", "--json"])
    return json.loads(evaluated.stdout)["agents"]


def test_cartpole_swingup_keeps_its_return_at_a_fraction_of_the_cost(tmp_path):
    agents = train_and_evaluate(tmp_path / "run", "cartpole-swingup", "--steps", "100000", "--seeds", "0-2")
    assert np.mean([agent["return_mean"] for agent in agents]) >= 800
    assert np.mean([agent["flops_reduction"] for agent in agents]) >= 0.6


def test_mountain_car_is_solved(tmp_path):
    agents = train_and_evaluate(tmp_path / "run", "MountainCarContinuous-v0", "--steps", "100000", "--seeds", "0-2")
    assert sum(agent["return_mean"] >= 90 for agent in agents) >= 2
