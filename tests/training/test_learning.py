"""Proofs of learning with the modern recipe: a small task in seconds, real ones in minutes (`make test-slow`)."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from lowgear import envs
from lowgear.commands.cli import cli
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import Task
from lowgear.evaluation.evaluate import play, summarise
from lowgear.policy.file import load
from lowgear.training.loop import Training
from tests.fixtures.probes import Coast


@pytest.mark.usefixtures("optimised")
def test_the_master_keeps_the_large_gears_return_and_uses_the_small_one_where_it_serves(tmp_path):
    """From the environment to the policy file: along a coast of which the small gear can follow one half."""
    # What is picked changes nothing later, so short horizons tell all; what untrained gears earned is soon forgotten.
    overrides = {"batch": 64, "critic_units": 64, "random_steps": 256, "periods": (2, 5), "explore_share": 0.5}
    overrides |= {"actor_learning_rate": 3e-3, "actor_every": 1}
    master = {"master_discount": 0.5, "master_replay": 1000, "master_copy_every": 50, "master_learning_rate": 3e-3}
    config = resolve(
        Task("coast", "gym", "coast", gears=(1, 32)),
        steps=4000,  # on some processors 3,000 leave the large gear at 36.9
        seeds=(0, 1, 2),
        cost_coefficients=(0.0006,),  # the large gear costs 200 times as much: 0.12 more a step
        learning_rates=(3e-3,),
        discounts=(0.5,),
        overrides=overrides | master,
        evaluate_every=0,
    )
    directory = RunDirectory(tmp_path / "run")
    directory.create(config, {})
    training = Training(config, envs.wrap(Coast, 3), None, directory)
    training.run()
    training.close()

    def scores(forced_gear):
        policies = [load(directory.policy(agent)) for agent in range(3)]
        policies = [replace(p, header=replace(p.header, forced_gear=forced_gear)) for p in policies]
        played = play(policies, envs.wrap(Coast, 30), 20, "greedy", 0)
        found = [summarise(played, agent, policies[0].header.cost) for agent in range(3)]
        return {name: np.median([each[name] for each in found]) for name in ("return_mean", "large_share")}

    both, small, large = (scores(gear) for gear in (None, 0, 1))
    assert large["return_mean"] > 37  # of 40; random actions earn about 10, and standing still 13
    assert small["return_mean"] < large["return_mean"] - 3
    assert both["return_mean"] > large["return_mean"] - 1
    assert 0.15 < both["large_share"] < 0.75


def train_and_evaluate(path, *arguments, episodes=20):
    trained = CliRunner().invoke(cli, ["train", *arguments, "--evaluate-every", "0", "--out", str(path)])
    assert trained.exit_code == 0, trained.output
    evaluated = CliRunner().invoke(cli, ["evaluate", str(path), "--episodes", str(episodes), "--json"])
    return json.loads(evaluated.stdout)["agents"]


@pytest.mark.slow
def test_cartpole_swingup_keeps_its_return_at_a_fraction_of_the_cost(tmp_path):
    agents = train_and_evaluate(tmp_path / "run", "cartpole-swingup", "--steps", "100000", "--seeds", "0-2")
    assert np.mean([agent["return_mean"] for agent in agents]) >= 800
    assert np.mean([agent["flops_reduction"] for agent in agents]) >= 0.6


@pytest.mark.slow
def test_mountain_car_is_solved(tmp_path):
    agents = train_and_evaluate(tmp_path / "run", "MountainCarContinuous-v0", "--steps", "100000", "--seeds", "0-2")
    assert sum(agent["return_mean"] >= 90 for agent in agents) >= 2


@pytest.mark.slow
def test_fetch_reach_is_solved_in_twenty_thousand_steps(tmp_path):
    options = ["--gears", "8,64", "--cost-coefficients", "0.0001,0.01", "--steps", "20000"]
    (agent,) = train_and_evaluate(tmp_path / "run", "envpool:FetchReach-v1", *options, episodes=50)
    assert agent["success_rate"] == 1.0
