"""Steps the environments of a population with its current weights and writes down what happened.

The only place where environments and policies meet while training. Every random number is a function of the agent's
seed and the chunk's number, so an agent acts the same alone and in company, and a run can go on from any chunk.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear.envs.protocol import BatchEnv
from lowgear.replay import Columns
from lowgear.runtime import Shifter, Weights, act, values

FloatArray = npt.NDArray[np.float32]


class Episode(NamedTuple):
    """One finished training episode of one agent."""

    agent: int
    episode_return: float
    length: int
    large_share: float
    success: bool | None  # at its last step


class Behaviour(NamedTuple):
    """How agents act while they train."""

    gears: int
    periods: tuple[int, ...]
    activation: str
    forced_gear: npt.NDArray[np.int32]  # (P,): -1 where the master picks
    seeds: tuple[int, ...]  # of each agent
    dial: npt.NDArray[np.bool_] | None  # (P,): whose dial turns, each episode at a position of its own; None: no dials
    random_steps: int
    noise_hold: int  # steps that a draw of action noise holds
    explore_steps: float  # over which the master's ε falls from 1
    explore_last: float


class Collector:
    """Holds one environment for each agent, and where each stands in its episode and its pick."""

    def __init__(self, env: BatchEnv, behaviour: Behaviour) -> None:
        self.env = env
        self.behaviour = behaviour
        self.columns = Columns(env.spec.obs_dim, env.spec.act_dim)
        self.population = len(behaviour.seeds)
        self.steps = 0  # taken by each agent
        self.restart(0)

    def restart(self, number: int) -> None:
        """Open new episodes everywhere, from seeds that depend on the agents' seeds and `number` alone."""
        words = np.array(
            [np.random.SeedSequence((seed, number)).generate_state(2) for seed in self.behaviour.seeds], np.uint32
        )
        self._observation = self.env.reset([int(word >> 1) for word in words[:, 0]])
        self._shifter = Shifter((self.population, 1), self.behaviour.gears, self.behaviour.periods)
        self._position = np.zeros((self.population, 1), np.float32)
        self._open_episodes(np.ones(self.population, bool), (words[:, 1] * 2.0**-32).astype(np.float32))

    def collect(self, weights: Weights, steps: int, last: bool = False) -> tuple[FloatArray, list[Episode]]:
        """Rows (P, steps, width) as `Columns` lays them out, and the episodes that ended.

        With `last`, picks and episodes that are still open after the final step end there: `restart` follows.
        """
        columns, shifter, chunk = self.columns, self._shifter, self._draw(steps)
        rows = np.empty((self.population, steps, columns.width), np.float32)
        episodes: list[Episode] = []
        for k in range(steps):
            row = rows[:, k]
            self._pick(weights, chunk, k)
            gear = shifter.gear
            action = self._act(weights, gear, chunk, k)
            step = self.env.step(action)
            ended = step.terminated | step.truncated
            closed = shifter.advance(ended[:, None])
            row[:, columns.observation] = self._observation
            row[:, columns.next_observation] = step.last_observation
            row[:, columns.action] = action
            row[:, columns.reward] = step.reward
            row[:, columns.alive] = ~step.terminated
            row[:, columns.choice] = shifter.choice[:, 0]
            row[:, columns.age] = shifter.age[:, 0]
            row[:, columns.closed] = closed[:, 0]
            row[:, columns.ended] = ended
            self._observation = step.observation
            self.steps += 1
            self._returns += step.reward
            self._lengths += 1
            self._large += gear[:, 0] == self.behaviour.gears - 1
            shifter.release(closed)
            if ended.any():
                episodes += self._finished(ended, step.success)
                self._open_episodes(ended, chunk.dial[:, k])
        if last:
            rows[:, -1, columns.closed] = rows[:, -1, columns.ended] = 1
        return rows, episodes

    def _pick(self, weights: Weights, chunk: "_Chances", k: int) -> None:
        due = self._shifter.due
        if not due.any():
            return
        behaviour = self.behaviour
        position = None if behaviour.dial is None else self._position
        found = values(weights.master, self._observation[:, None], position, behaviour.activation)
        progress = self.steps / behaviour.explore_steps if behaviour.explore_steps else 1.0
        epsilon = max(behaviour.explore_last, 1 - progress)
        any_choice = chunk.choice[:, k, None] % found.shape[-1]
        choice = np.where(chunk.explore[:, k, None] < epsilon, any_choice, found.argmax(axis=-1))
        forced = behaviour.forced_gear[:, None]
        self._shifter.pick(np.where(forced >= 0, forced, choice))

    def _act(self, weights: Weights, gear: npt.NDArray[np.int32], chunk: "_Chances", k: int) -> FloatArray:
        if self.steps < self.behaviour.random_steps:
            return chunk.action[:, k]
        noise = chunk.noise[:, k, None]
        return act(weights.gears, self._observation[:, None], gear, self.behaviour.activation, noise)[:, 0]

    def _draw(self, steps: int) -> "_Chances":
        """The chunk's random numbers, each agent's from a generator of its own."""
        shape = (self.population, steps, self.env.spec.act_dim)
        chances = _Chances(
            noise=np.empty(shape, np.float32),
            explore=np.empty(shape[:2], np.float32),
            choice=np.empty(shape[:2], np.int64),
            dial=np.empty(shape[:2], np.float32),
            action=np.empty(shape, np.float32),
        )
        hold = self.behaviour.noise_hold
        draws = (-(-steps // hold), shape[2])
        for agent, seed in enumerate(self.behaviour.seeds):
            generator = np.random.Generator(np.random.Philox(key=np.array([seed, self.steps], np.uint64)))
            chances.noise[agent] = generator.standard_normal(draws, np.float32).repeat(hold, axis=0)[:steps]
            chances.explore[agent] = generator.random(steps, np.float32)
            chances.choice[agent] = generator.integers(0, 2**31, steps)
            chances.dial[agent] = generator.random(steps, np.float32)
            if self.steps < self.behaviour.random_steps:
                chances.action[agent] = generator.uniform(-1, 1, draws).repeat(hold, axis=0)[:steps]
        return chances

    def _finished(self, ended: npt.NDArray[np.bool_], success: npt.NDArray[np.bool_] | None) -> list[Episode]:
        return [
            Episode(
                agent=int(i),
                episode_return=float(self._returns[i]),
                length=int(self._lengths[i]),
                large_share=float(self._large[i] / self._lengths[i]),
                success=None if success is None else bool(success[i]),
            )
            for i in np.flatnonzero(ended)
        ]

    def _open_episodes(self, where: npt.NDArray[np.bool_], chance: FloatArray) -> None:
        """Clear the sums and turn the dials of new episodes, to positions given by `chance` uniform in [0, 1)."""
        if self.behaviour.dial is not None:
            turned = where & self.behaviour.dial
            self._position[turned, 0] = 2 * chance[turned] - 1
        if where.all():
            self._returns = np.zeros(self.population)
            self._lengths = np.zeros(self.population, np.int64)
            self._large = np.zeros(self.population, np.int64)
        else:
            for tally in (self._returns, self._lengths, self._large):
                tally[where] = 0


class _Chances(NamedTuple):
    """Random numbers of one chunk, (P, steps, ...)."""

    noise: FloatArray
    explore: FloatArray
    choice: npt.NDArray[np.int64]
    dial: FloatArray
    action: FloatArray
