"""dm_control behind the protocol."""

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.tasks import find
from lowgear.envs import dmc


def test_layout_seeds_and_types() -> None:
    env = envs.make(find("dmc:walker-stand"), 2)
    assert env.spec.layout == (("orientations", 14), ("height", 1), ("velocity", 9))
    assert (env.spec.obs_dim, env.spec.act_dim, env.spec.max_episode_steps) == (24, 6, 1000)
    first = env.reset([1, 2])
    assert first.dtype == np.float32
    assert (first[0] != first[1]).any()
    np.testing.assert_array_equal(env.reset([2, 1]), first[::-1])
    step = env.step(np.zeros((2, 6), np.float32))
    assert step.success is None
    assert step.reward.dtype == np.float32


def test_time_limit_truncates() -> None:
    env = envs.make(find("dmc:cartpole-swingup"), 1)
    env.reset([0])
    for k in range(1001):
        step = env.step(np.zeros((1, 1), np.float32))
        assert step.truncated[0] == (k == 999)
        assert not step.terminated[0]
        assert (step.observation != step.last_observation).any() == (k == 999)


def test_discount_zero_is_a_real_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """No bounded task of the suite ends early, so one is told to: dm_control then reports discount 0."""
    env = envs.make(find("dmc:cartpole-swingup"), 2)
    env.reset([0, 1])
    assert isinstance(env, dmc.DmcEnv)
    monkeypatch.setattr(env._envs[1].task, "get_termination", lambda _: 0.0)
    step = env.step(np.zeros((2, 1), np.float32))
    assert step.terminated.tolist() == [False, True]
    assert step.truncated.tolist() == [False, False]
    assert (step.observation[1] != step.last_observation[1]).any()
    np.testing.assert_array_equal(step.observation[0], step.last_observation[0])
