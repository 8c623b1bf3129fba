"""A gear learner of another kind, which trains both gears on one critic, in the same loop as ever."""

import json

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import Task
from lowgear.evaluation.evaluate import play
from lowgear.policy.controller import Controller
from lowgear.policy.file import load
from lowgear.training.loop import Training
from tests.fixtures.compilations import fully_optimised
from tests.fixtures.ddpg import LOG_STD, SharedDdpg
from tests.fixtures.probes import Valley
from tests.fixtures.training import StopAt, policy_bytes, without_speed

CONFIG = resolve(
    Task("valley", "gym", "valley", gears=(2, 32), cost_coefficient=0.0001),
    steps=2048,
    seeds=(0,),
    discounts=(0.5,),
    learning_rates=(3e-3,),
    overrides={"batch": 64, "critic_units": 32, "random_steps": 256, "master_batch": 16},
    evaluate_every=1024,
    evaluate_episodes=5,
    checkpoint_every=1024,
)


def shared_ddpg(config, spec, goals):  # noqa: ARG001
    recipe = config.recipe
    return (
        SharedDdpg(
            tuple(gear.hidden[0] for gear in config.gears),
            spec.obs_dim,
            spec.act_dim,
            recipe.critic_units,
            recipe.batch,
        ),
    )


def run(path, stop_at=None):
    directory = RunDirectory(path)
    if not path.exists():
        directory.create(CONFIG, {})
    training = Training(
        CONFIG, envs.wrap(Valley, 1), lambda count: envs.wrap(Valley, count), directory, make_learners=shared_ddpg
    )
    try:
        training.run([StopAt(stop_at)] if stop_at else [])
    finally:
        training.close()
    return directory, training


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with fully_optimised():
        return run(tmp_path_factory.mktemp("ddpg") / "run")


def test_its_actors_act(whole) -> None:
    directory, training = whole
    *actors, _ = training.learner.published().networks
    policy = load(directory.policy(0))
    assert [layers[0][0].shape[-1] for layers in policy.weights.gears] == [2, 32]
    for found, learned in zip(policy.weights.gears, actors, strict=True):
        for (weight, bias), layer in zip(found, learned, strict=True):
            np.testing.assert_array_equal(weight, layer.weight)
            np.testing.assert_array_equal(bias, layer.bias)
        np.testing.assert_array_equal(found[-1][1][0, 1], np.float32(LOG_STD))
    assert [job.which for job in training.learner.jobs] in ([(0, 1)], [(0,), (1,)])  # of both gears, and the master


def test_the_large_gear_has_learned_to_follow_the_valley(whole) -> None:
    policy = load(whole[0].policy(0))
    seen = np.linspace(-1, 1, 101, dtype=np.float32)[None, :, None]
    done = Controller.from_policies([policy], 101).act_with(1, seen)[0, :, 0]
    assert np.abs(done - (2 * np.abs(seen[0, :, 0]) - 1)).mean() < 0.2  # doing nothing is 0.5 off
    returns = play([policy], envs.wrap(Valley, 10), 20, "greedy", 0).returns[0]
    assert returns.mean() > 14  # of 20; chance earns 9


def test_its_metrics_are_logged(whole) -> None:
    lines = [json.loads(line) for line in whole[0].metrics.read_text().splitlines()]
    last = [line for line in lines if line["kind"] == "train"][-1]
    assert {name for name in last if name.startswith("gear")} == {"gear0_1_critic_loss", "gear0_1_value"}
    assert np.isfinite([last["gear0_1_critic_loss"], last["master_loss"]]).all()
    assert whole[1].timings.rounds == (2048 - 256) // 64 + 1


@pytest.mark.usefixtures("optimised")
def test_a_broken_run_ends_as_an_unbroken_one(whole, tmp_path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "broken", 1536)
    broken, _ = run(tmp_path / "broken")
    assert policy_bytes(broken, 1) == policy_bytes(whole[0], 1)
    assert without_speed(broken) == without_speed(whole[0])
