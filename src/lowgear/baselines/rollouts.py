"""Plays students that sample their actions, and hands over what they did, batch by batch.

Episodes go on from one batch to the next. Random numbers are a function of a student's seed and of how many steps it
has taken, so a student does the same alone and in company.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lowgear.envs.protocol import BatchEnv
from lowgear.policy.arrays import FloatArray
from lowgear.policy.networks import LOG_STD_MAX, LOG_STD_MIN, Layers, mlp

STARTS = 52  # stream of random numbers


class Rollout(NamedTuple):
    """T steps in E environments of each of P students, (P, T, E, ...)."""

    observation: FloatArray
    raw: FloatArray  # the action before tanh
    last_observation: FloatArray  # where the step led
    terminated: FloatArray  # 1 or 0
    ended: FloatArray  # terminated or at a time limit


class RolloutSampler:
    """Holds the environments of P students."""

    def __init__(self, env: BatchEnv, seeds: Sequence[int]) -> None:
        self.env, self.seeds = env, seeds
        self._shape = len(seeds), env.num_envs // len(seeds)
        words = [np.random.SeedSequence((seed, STARTS)).generate_state(self._shape[1]) >> 1 for seed in seeds]
        self._observation = env.reset([int(word) for part in words for word in part]).reshape(*self._shape, -1)
        self._returns = np.zeros(self._shape)
        self._steps = 0  # taken by each student

    def collect(self, actors: Layers, steps: int) -> tuple[Rollout, FloatArray]:
        """`steps` steps in every environment; also the mean return (P,) of the episodes that ended, or NaN."""
        population, environments = self._shape
        ended_sum, ended_count = np.zeros(population), np.zeros(population)
        noise, taken = self._noise(steps), []
        for k in range(steps):
            mean, log_std = np.split(mlp(actors, self._observation, "tanh"), 2, axis=-1)
            raw = mean + np.exp(np.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)) * noise[:, k]
            step = self.env.step(np.tanh(raw).reshape(self.env.num_envs, -1))
            terminated = step.terminated.reshape(self._shape)
            ended = terminated | step.truncated.reshape(self._shape)
            last_observation = step.last_observation.reshape(*self._shape, -1)
            taken.append((self._observation, raw, last_observation, terminated, ended))
            self._returns += step.reward.reshape(self._shape)
            ended_sum += (self._returns * ended).sum(axis=1)
            ended_count += ended.sum(axis=1)
            self._returns[ended] = 0
            self._observation = step.observation.reshape(*self._shape, -1)
        self._steps += steps * environments
        returns = np.full(population, np.nan, np.float32)
        np.divide(ended_sum, ended_count, out=returns, where=ended_count > 0, casting="same_kind")
        rollout = Rollout(*(np.stack(part, axis=1, dtype=np.float32) for part in zip(*taken, strict=True)))
        return rollout, returns

    def _noise(self, steps: int) -> FloatArray:
        """Standard normal draws (P, steps, E, act), each student's from a generator of its own."""
        draws = (steps, self._shape[1], self.env.spec.act_dim)
        keys = [np.array([seed, self._steps], np.uint64) for seed in self.seeds]
        generators = [np.random.Generator(np.random.Philox(key=key)) for key in keys]
        return np.stack([generator.standard_normal(draws, np.float32) for generator in generators])
