"""Episodes end: by the environment's own limit, the one that was asked for, or one for those that set none."""

import gymnasium
import numpy as np
import pytest

from lowgear import envs
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.envs import make_env
from lowgear.envs.spaces import ANY_LIMIT
from lowgear.evaluation.evaluate import play_policies
from lowgear.training.loop import Training
from tests.fixtures.training import SMALL


class Endless(gymnasium.Env):
    """Never ends by itself."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):  # noqa: ARG002
        return np.zeros(1, np.float32), 1.0, False, False, {}


@pytest.fixture(scope="module", autouse=True)
def _registered():
    gymnasium.register("Endless-v0", entry_point=Endless)
    yield
    del gymnasium.registry["Endless-v0"]


def ends(env, steps):
    """At which of so many steps the first environment's episodes ended, all of them by time."""
    env.reset(range(env.num_envs))
    found = []
    for number in range(1, steps + 1):
        step = env.step(np.zeros((env.num_envs, env.spec.act_dim), np.float32))
        assert not step.terminated.any()
        if step.truncated[0]:
            found.append(number)
    env.close()
    return found


@pytest.mark.parametrize("name", ["gym:Endless-v0", "gym:Pendulum-v1", "envpool:Pendulum-v1", "dmc:cartpole-swingup"])
def test_a_limit_that_is_asked_for(name):
    env = envs.make(find(name), 2, max_episode_steps=7)
    assert env.spec.max_episode_steps == 7
    assert ends(env, 15) == [7, 14]


def test_an_environment_that_sets_none_is_given_one():
    env = envs.make(find("gym:Endless-v0"), 1)
    assert env.spec.max_episode_steps == ANY_LIMIT == 10_000
    assert ends(env, 10_001) == [10_000]
    own = envs.make(find("gym:Pendulum-v1"), 1)
    assert own.spec.max_episode_steps == 200
    own.close()


def test_training_in_one_comes_to_its_evaluation():
    overrides = SMALL | {"actor_every": 1, "max_episode_steps": 25}
    config = resolve(find("gym:Endless-v0"), steps=128, gears=(2, 4), evaluate_every=64, overrides=overrides)
    training = Training(config, make_env(config, 1), lambda count: make_env(config, count))
    training.run()
    policy = training.policy(0)
    training.close()
    assert [line["episode_length_mean"] for line in training.last_evaluation] == [25]
    played = play_policies([policy], lambda count: make_env(config, count), 3, "greedy", 0)
    assert played.lengths.tolist() == [[25, 25, 25]]
