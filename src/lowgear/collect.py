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
LONGEST_HOLD = 16  # steps
_WEIGHTS = 1.0 / np.arange(1, LONGEST_HOLD + 1) ** 2
HOLD_ODDS = np.cumsum(_WEIGHTS[:-1]) / _WEIGHTS.sum()  # of 1 step, of 2 or fewer, and so on


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
    environments: int  # of each agent, E
    dial: npt.NDArray[np.bool_] | None  # (P,): whose dial turns, each episode at a position of its own; None: no dials
    random_steps: int
    random_share: float  # of the steps after those whose actions are random too
    noise_hold: int  # steps that a draw of action noise holds
    held_noise: npt.NDArray[np.bool_]  # (P,): whose draws hold for a random number of steps instead
    explore_steps: float  # over which the master's ε falls from 1
    explore_last: float


class Collector:
    """Holds the environments of P agents, E each, and where each stands in its episode and its pick."""

    def __init__(self, env: BatchEnv, behaviour: Behaviour) -> None:
        self.env = env
        self.behaviour = behaviour
        self.columns = Columns(env.spec.obs_dim, env.spec.act_dim)
        self.population = len(behaviour.seeds)
        self._shape = self.population, behaviour.environments
        self.steps = 0  # taken by each agent
        self.restart(0)

    def restart(self, number: int) -> None:
        """Open new episodes everywhere, from seeds that depend on the agents' seeds and `number` alone."""
        agents, environments = self._shape
        # The first environment's words do not depend on how many others there are.
        keys = [
            (seed, number, e) if e else (seed, number) for seed in self.behaviour.seeds for e in range(environments)
        ]
        words = np.array([np.random.SeedSequence(key).generate_state(2) for key in keys], np.uint32)
        first = self.env.reset([int(word >> 1) for word in words[:, 0]])
        self._observation = first.reshape(agents, environments, -1)
        self._shifter = Shifter(self._shape, self.behaviour.gears, self.behaviour.periods)
        self._position = np.zeros(self._shape, np.float32)
        chance = (words[:, 1] * 2.0**-32).astype(np.float32).reshape(self._shape)
        self._open_episodes(np.ones(self._shape, bool), chance)

    def collect(self, weights: Weights, steps: int, last: bool = False) -> tuple[FloatArray, list[Episode]]:
        """Rows (P, steps, width) as `Columns` lays them out, environment by environment, and the episodes that ended.

        With `last`, picks and episodes that are still open after the final step end there: `restart` follows.
        """
        agents, environments = self._shape
        each = steps // environments
        columns, shifter, chunk = self.columns, self._shifter, self._draw(each)
        rows = np.empty((agents, environments, each, columns.width), np.float32)
        episodes: list[Episode] = []
        for k in range(each):
            row = rows[:, :, k]
            self._pick(weights, chunk, k)
            gear = shifter.gear
            action = self._act(weights, gear, chunk, k)
            step = self.env.step(action.reshape(agents * environments, -1))
            ended = (step.terminated | step.truncated).reshape(self._shape)
            reward = step.reward.reshape(self._shape)
            closed = shifter.advance(ended)
            row[..., columns.observation] = self._observation
            row[..., columns.next_observation] = step.last_observation.reshape(agents, environments, -1)
            row[..., columns.action] = action
            row[..., columns.reward] = reward
            row[..., columns.alive] = ~step.terminated.reshape(self._shape)
            row[..., columns.choice] = shifter.choice
            row[..., columns.age] = shifter.age
            row[..., columns.closed] = closed
            row[..., columns.ended] = ended
            self._observation = step.observation.reshape(agents, environments, -1)
            self.steps += environments
            self._returns += reward
            self._lengths += 1
            self._large += gear == self.behaviour.gears - 1
            shifter.release(closed)
            if ended.any():
                episodes += self._finished(ended, step.success)
                self._open_episodes(ended, chunk.dial[:, k])
        if last:
            rows[:, :, -1, columns.closed] = rows[:, :, -1, columns.ended] = 1
        return rows.reshape(agents, steps, columns.width), episodes

    def _pick(self, weights: Weights, chunk: "_Chances", k: int) -> None:
        due = self._shifter.due
        if not due.any():
            return
        behaviour = self.behaviour
        position = None if behaviour.dial is None else self._position
        found = values(weights, self._observation, position, behaviour.activation)
        progress = self.steps / behaviour.explore_steps if behaviour.explore_steps else 1.0
        epsilon = max(behaviour.explore_last, 1 - progress)
        any_choice = chunk.choice[:, k] % found.shape[-1]
        choice = np.where(chunk.explore[:, k] < epsilon, any_choice, found.argmax(axis=-1))
        forced = behaviour.forced_gear[:, None]
        self._shifter.pick(np.where(forced >= 0, forced, choice))

    def _act(self, weights: Weights, gear: npt.NDArray[np.int32], chunk: "_Chances", k: int) -> FloatArray:
        if self.steps < self.behaviour.random_steps:
            return chunk.action[:, k]
        chosen = act(weights.gears, self._observation, gear, self.behaviour.activation, chunk.noise[:, k])
        if not self.behaviour.random_share:
            return chosen
        return np.where(chunk.stray[:, k, :, None] < self.behaviour.random_share, chunk.action[:, k], chosen)

    def _draw(self, steps: int) -> "_Chances":
        """The chunk's random numbers, each agent's from a generator of its own."""
        agents, environments = self._shape
        shape = (agents, steps, environments)
        act_dim, hold = self.env.spec.act_dim, self.behaviour.noise_hold
        chances = _Chances(
            noise=np.empty((*shape, act_dim), np.float32),
            explore=np.empty(shape, np.float32),
            choice=np.empty(shape, np.int64),
            dial=np.empty(shape, np.float32),
            action=np.empty((*shape, act_dim), np.float32),
            stray=np.ones(shape, np.float32),  # nobody does, unless drawn
        )
        draws = (-(-steps // hold), environments, act_dim)
        for agent, seed in enumerate(self.behaviour.seeds):
            generator = np.random.Generator(np.random.Philox(key=np.array([seed, self.steps], np.uint64)))
            chances.noise[agent] = generator.standard_normal(draws, np.float32).repeat(hold, axis=0)[:steps]
            if self.behaviour.held_noise[agent]:
                chances.noise[agent] = held(chances.noise[agent], generator.random(shape[1:], np.float32))
            chances.explore[agent] = generator.random(shape[1:], np.float32)
            chances.choice[agent] = generator.integers(0, 2**31, shape[1:])
            chances.dial[agent] = generator.random(shape[1:], np.float32)
            if self.steps < self.behaviour.random_steps or self.behaviour.random_share:
                chances.action[agent] = generator.uniform(-1, 1, draws).repeat(hold, axis=0)[:steps]
            if self.behaviour.random_share:
                chances.stray[agent] = generator.random(shape[1:], np.float32)
        return chances

    def _finished(self, ended: npt.NDArray[np.bool_], success: npt.NDArray[np.bool_] | None) -> list[Episode]:
        succeeded = None if success is None else success.reshape(self._shape)
        return [
            Episode(
                agent=at[0],
                episode_return=float(self._returns[at]),
                length=int(self._lengths[at]),
                large_share=float(self._large[at] / self._lengths[at]),
                success=None if succeeded is None else bool(succeeded[at]),
            )
            for at in map(tuple, np.argwhere(ended).tolist())
        ]

    def _open_episodes(self, where: npt.NDArray[np.bool_], chance: FloatArray) -> None:
        """Clear the sums and turn the dials of new episodes, to positions given by `chance` uniform in [0, 1)."""
        if self.behaviour.dial is not None:
            turned = where & self.behaviour.dial[:, None]
            self._position[turned] = 2 * chance[turned] - 1
        if where.all():
            self._returns = np.zeros(self._shape)
            self._lengths = np.zeros(self._shape, np.int64)
            self._large = np.zeros(self._shape, np.int64)
        else:
            for tally in (self._returns, self._lengths, self._large):
                tally[where] = 0


def held(noise: FloatArray, chance: FloatArray) -> FloatArray:
    """Noise (steps, E, act) whose draws hold for n steps, n ∼ zeta(2) up to LONGEST_HOLD; `chance` is (steps, E).

    Dabney et al. 2021 hold actions so; what is held here is a Gaussian policy's noise, as FlashSAC does.
    """
    lengths = 1 + np.searchsorted(HOLD_ODDS, chance, side="right")
    ends = np.cumsum(lengths, axis=0)
    step = np.arange(len(noise))
    which = np.stack([np.searchsorted(ends[:, e], step, side="right") for e in range(noise.shape[1])], axis=1)
    return np.take_along_axis(noise, which[..., None], axis=0)


class _Chances(NamedTuple):
    """Random numbers of one chunk, (P, steps, E, ...)."""

    noise: FloatArray
    explore: FloatArray
    choice: npt.NDArray[np.int64]
    dial: FloatArray
    action: FloatArray
    stray: FloatArray
