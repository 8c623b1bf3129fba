"""Gymnasium behind the protocol: registered ids, passed-in environments, ends, goals."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from lowgear import LowgearError, envs
from lowgear.config.tasks import find
from tests.fixtures.probes import Countdown


class Reach(gymnasium.Env):
    """A goal environment: the action is added to the achieved goal; ends on success or after four steps."""

    def __init__(self, reports: bool = True) -> None:
        goal = spaces.Box(-10, 10, (1,))
        self.observation_space = spaces.Dict(desired_goal=goal, achieved_goal=goal, observation=spaces.Box(-1, 1, (2,)))
        self.action_space = spaces.Box(-1, 1, (1,))
        self.reports = reports

    def observe(self) -> dict[str, Any]:
        values = {"desired_goal": [2.0], "achieved_goal": [self.at], "observation": [0.25, 0.75]}
        return {key: np.array(value, np.float32) for key, value in values.items()}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.at, self.taken = 0.0, 0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.at, self.taken = self.at + float(action[0]), self.taken + 1
        success = self.at >= 2
        info = {"is_success": np.float32(success)} if self.reports else {}
        return self.observe(), float(success) - 1, success, self.taken == 4, info


def test_nested_dict_is_laid_out_in_the_spaces_order() -> None:
    env = envs.wrap(Countdown())
    keys = list(Countdown().observation_space.spaces)
    sizes = {"taken": ("taken", 1), "arm": ("arm.b", 4)}
    assert env.spec.layout == tuple(sizes[key] for key in keys)
    start = 0 if keys[0] == "taken" else 4
    observation = env.reset([0])
    assert observation.dtype == np.float32
    assert observation[0, start] == 0
    assert (np.delete(observation[0], start) == 0.5).all()
    assert env.spec.name == "Countdown"
    assert env.spec.max_episode_steps is None


def test_actions_are_scaled_to_each_bound() -> None:
    inner = Countdown()
    env = envs.wrap(inner)
    env.reset([0])
    env.step(np.array([[-1, 0.5]], np.float32))
    np.testing.assert_array_equal(inner.last_action, np.array([0, 2], np.float32))
    assert inner.action_space.contains(inner.last_action)


@pytest.mark.parametrize("truncate", [False, True])
def test_ends_are_kept_apart_and_the_true_last_observation_is_there(truncate: bool) -> None:
    made = iter([Countdown(3, truncate), Countdown(4, truncate)])
    env = envs.wrap(lambda: next(made), num_envs=2)
    first = env.reset([0, 1])
    column = int(np.flatnonzero(first[0] == 0)[0])
    taken, last_taken, ended = [], [], []
    for _ in range(7):
        step = env.step(np.zeros((2, 2), np.float32))
        taken.append(step.observation[:, column].tolist())
        last_taken.append(step.last_observation[:, column].tolist())
        ended.append((step.truncated if truncate else step.terminated).tolist())
        assert not (step.terminated if truncate else step.truncated).any()
        np.testing.assert_array_equal(step.reward, step.last_observation[:, column])  # no reset step among them
    assert last_taken == [[1, 1], [2, 2], [3, 3], [1, 4], [2, 1], [3, 2], [1, 3]]
    assert taken == [[1, 1], [2, 2], [0, 3], [1, 0], [2, 1], [0, 2], [1, 3]]
    assert ended == [[a == 3, b == 4] for a, b in last_taken]


def test_terminated_wins_where_both_are_set() -> None:
    env = envs.wrap(Countdown(1, both=True))
    env.reset([0])
    step = env.step(np.zeros((1, 2), np.float32))
    assert step.terminated.tolist() == [True]
    assert step.truncated.tolist() == [False]


def test_goals_and_success() -> None:
    env = envs.wrap(Reach, num_envs=2)
    assert env.spec.layout == (("observation", 2), ("achieved_goal", 1), ("desired_goal", 1))
    assert (env.spec.achieved_goal, env.spec.desired_goal, env.spec.has_success) == ((2, 3), (3, 4), True)
    env.reset([0, 1])
    successes, ended = [], []
    for _ in range(5):
        step = env.step(np.array([[1], [0.25]], np.float32))
        assert step.success is not None
        successes.append(step.success.tolist())
        ended.append((step.terminated | step.truncated).tolist())
    assert successes == [[False, False], [True, False], [False, False], [True, False], [False, False]]
    assert ended == [[False, False], [True, False], [False, False], [True, True], [False, False]]
    np.testing.assert_allclose(step.last_observation, [[0.25, 0.75, 1, 2], [0.25, 0.75, 0.25, 2]])


def test_goal_environment_that_never_says_success_is_refused() -> None:
    env = envs.wrap(lambda: Reach(reports=False))
    env.reset([0])
    with pytest.raises(LowgearError, match="Reach has goals but its info has no 'is_success'"):
        env.step(np.zeros((1, 1), np.float32))


def test_registered_id_has_its_time_limit() -> None:
    env = envs.make(find("gym:Pendulum-v1"), 2)
    first = env.reset([4, 5])
    assert env.spec.max_episode_steps == 200
    for k in range(201):
        step = env.step(np.zeros((2, 1), np.float32))
        assert step.truncated.tolist() == [k == 199] * 2
    np.testing.assert_array_equal(env.reset([4, 5]), first)
    assert (env.reset([5, 5])[0] == first[1]).all()


def test_time_limit_put_on_by_hand_is_known() -> None:
    env = envs.wrap(gymnasium.wrappers.TimeLimit(Countdown(50), 5))
    assert env.spec.max_episode_steps == 5
    env.reset([0])
    ends = [env.step(np.zeros((1, 2), np.float32)).truncated[0] for _ in range(10)]
    assert ends == [False] * 4 + [True] + [False] * 4 + [True]


def test_one_instance_cannot_be_many() -> None:
    with pytest.raises(LowgearError, match="one environment cannot be 4; pass a function"):
        envs.wrap(Reach(), num_envs=4)


def test_robotics_is_found_without_being_imported_by_hand() -> None:
    env = envs.make(find("gym:PointMaze_UMaze-v3"), 1)
    assert env.spec.layout == (("observation", 4), ("achieved_goal", 2), ("desired_goal", 2))
    env.reset([0])
    assert env.step(np.zeros((1, 2), np.float32)).success is not None
    env.close()
