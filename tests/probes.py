"""Environments with known answers."""

import gymnasium
import numpy as np

from lowgear.envs.protocol import EnvSpec, Step


class Valley(gymnasium.Env):
    """Pays for following 2|x| - 1 of the position seen; a gear of one unit can't, one of 32 can. 20 steps long."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        self._step = 0
        return self._look(), {}

    def step(self, action):
        wanted = 2 * abs(self._x) - 1
        self._step += 1
        reward = 1 - float(abs(action[0] / 2 - wanted))
        return self._look(), reward, False, self._step >= 20, {}

    def _look(self):
        self._x = self.np_random.uniform(-1, 1)
        return np.array([self._x], np.float32)


class Counting:
    """A batch whose environment i has episodes of `lengths[i]` steps and pays the step's number; obs is [i, step].

    Even environments end for real, odd ones by a time limit. With `wins`, the steps of these numbers are successes.
    """

    goal_rule = None

    def __init__(self, lengths, wins=None):
        self.lengths, self.wins = np.array(lengths), wins
        self.num_envs = len(lengths)
        self.spec = EnvSpec("counting", 2, 1, (("", 2),), None, (-1.0,), (1.0,), has_success=wins is not None)

    def reset(self, seeds):
        assert len(seeds) == self.num_envs
        self.seeds = list(seeds)
        self.step_number = np.zeros(self.num_envs, int)
        return self._observe()

    def step(self, actions):
        assert actions.shape == (self.num_envs, 1)
        self.step_number += 1
        reward = self.step_number.astype(np.float32)
        last = self._observe()
        success = None if self.wins is None else np.isin(self.step_number, self.wins)
        ended = self.step_number >= self.lengths
        self.step_number[ended] = 0
        even = np.arange(self.num_envs) % 2 == 0
        return Step(self._observe(), reward, ended & even, ended & ~even, last, success)

    def close(self):
        pass

    def _observe(self):
        return np.stack([np.arange(self.num_envs), self.step_number], axis=1).astype(np.float32)


class Meadow(gymnasium.Env):
    """A goal environment: walk from the middle of a square to within 0.1 of a place in it. 20 steps long, sparse.

    Chance hardly ever gets there and stays, so that without hindsight there is nothing to learn from.
    """

    near, stride, steps = 0.1, 0.15, 20
    observation_space = gymnasium.spaces.Dict(
        {key: gymnasium.spaces.Box(-4, 4, (2,), np.float32) for key in ("observation", "achieved_goal", "desired_goal")}
    )
    action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        self._at, self._step = np.zeros(2, np.float32), 0
        self._goal = self.np_random.choice([-1, 1], 2) * self.np_random.uniform(0.5, 1, 2)
        return self._look(), {}

    def step(self, action):
        self._at = np.clip(self._at + self.stride * np.asarray(action), -1.5, 1.5)
        self._step += 1
        seen = self._look()
        reward = self.compute_reward(seen["achieved_goal"], seen["desired_goal"], {})
        return seen, float(reward), False, self._step >= self.steps, {"is_success": bool(reward == 0)}

    def compute_reward(self, achieved, desired, info):  # noqa: ARG002
        """For one pair or many."""
        return -(np.linalg.norm(achieved - desired, axis=-1) > self.near).astype(np.float32)

    def _look(self):
        seen = {"observation": self._at, "achieved_goal": self._at, "desired_goal": self._goal}
        return {key: value.astype(np.float32) for key, value in seen.items()}
