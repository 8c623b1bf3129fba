"""The environments of a population and how its agents act in them while they train.

The only place where environments and controllers meet while training. Every random number is a function of the agent's
seed and the chunk's number, so an agent acts the same alone and in company, and a run can go on from any chunk.
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.envs.protocol import BatchEnv, Step
from lowgear.learning.replay import Columns
from lowgear.policy.arrays import BoolArray, FloatArray, IntArray
from lowgear.policy.controller import Controller, any_choice, greedy
from lowgear.policy.gears import Gear
from lowgear.policy.networks import Weights


class FinishedEpisode(NamedTuple):
    """One finished training episode of one agent."""

    agent: int
    episode_return: float
    length: int
    large_share: float
    success: bool | None  # at its last step


class Behaviour(NamedTuple):
    """How agents act while they train."""

    periods: tuple[int, ...]
    activation: str
    forced_gear: IntArray  # (P,): -1 where the master picks
    seeds: tuple[int, ...]  # of each agent
    environments: int  # of each agent, E
    dial: BoolArray | None  # (P,): whose dial turns, each episode at a position of its own; None: no dials
    random_steps: int
    random_share: float  # of the steps after those whose actions are random too
    noise_hold: int  # steps that a draw of action noise holds
    explore_steps: float  # over which the master's ε falls from 1
    explore_last: float
    kinds: tuple[Gear, ...] | None = None  # of the gears; None: all are trained

    @property
    def holds(self) -> bool:
        """Whether a gear repeats the last action."""
        return any(not gear.computes for gear in self.kinds or ())

    def of(self, agents: slice) -> "Behaviour":
        """Some of the agents'."""
        return self._replace(
            forced_gear=self.forced_gear[agents],
            seeds=self.seeds[agents],
            dial=None if self.dial is None else self.dial[agents],
        )


class Collector:
    """Holds the environments of P agents, E each, and where each stands in its episode and its pick."""

    def __init__(self, env: BatchEnv, behaviour: Behaviour, weights: Weights) -> None:
        self.env, self.behaviour, self.weights = env, behaviour, weights
        self.columns = Columns(env.spec.obs_dim, env.spec.act_dim, behaviour.holds)
        self.steps = 0  # taken by each agent
        self.env_seconds = 0.0  # spent inside the environments
        self.bad: dict[int, str] = {}  # agents whose environments failed: what came first
        self.retired: set[int] = set()  # agents whose environments are stepped no more, where that can be had
        env.on_bad, env.retired = self._note_bad, set()
        self._shape = len(behaviour.seeds), behaviour.environments
        self.restart(0)
        if len(self.bad) == len(behaviour.seeds):
            raise LowgearError(self.bad[0])

    def restart(self, number: int) -> None:
        """Open new episodes everywhere, from seeds that depend on the agents' seeds and `number` alone."""
        agents, environments = self._shape
        # The first environment's words do not depend on how many others there are.
        keys = [
            (seed, number, e) if e else (seed, number) for seed in self.behaviour.seeds for e in range(environments)
        ]
        words = np.array([np.random.SeedSequence(key).generate_state(2) for key in keys], np.uint32)
        self.observation = self._by_agent(self.env.reset([int(word >> 1) for word in words[:, 0]]))
        self.controller = Controller(
            self.weights,
            periods=self.behaviour.periods,
            activation=self.behaviour.activation,
            forced_gear=self.behaviour.forced_gear,
            position=None if self.behaviour.dial is None else np.zeros(agents, np.float32),
            environments=environments,
            kinds=self.behaviour.kinds,
        )
        self._returns = np.zeros(self._shape)
        self._lengths = np.zeros(self._shape, np.int64)
        self._large_steps = np.zeros(self._shape, np.int64)
        uniform = (words[:, 1] * 2.0**-32).astype(np.float32).reshape(self._shape)
        self._turn_dials(np.ones(self._shape, bool), uniform)

    def begin_chunk(self, steps: int) -> None:
        """Act with the current weights from now on."""
        self.controller.weights = self.weights
        self._random = self._draw(steps)

    def pick(self, k: int) -> None:
        """New picks where they are due, ε-greedy, before the chunk's step k."""

        def explore(values: FloatArray) -> IntArray:
            behaviour = self.behaviour
            progress = self.steps / behaviour.explore_steps if behaviour.explore_steps else 1.0
            epsilon = max(behaviour.explore_last, 1 - progress)
            drawn = any_choice(self._random.choice[:, k], values)
            return np.where(self._random.explore[:, k] < epsilon, drawn, greedy(values)).astype(np.int32)

        self.controller.pick(self.observation, explore)

    def act(self, k: int) -> FloatArray:
        """Actions (P, E, act) of the chunk's step k: the gears' samples, or random ones.

        Gears that are not trained have no random ones: what holding, or a frozen policy, leads to is learned truly.
        """
        if self.steps < self.behaviour.random_steps:
            return self._untrained(self._random.action[:, k])
        action = self.controller.act(self.observation, self._random.noise[:, k])
        if not self.behaviour.random_share:
            return action
        is_random = self._random.is_random[:, k, :, None] < self.behaviour.random_share
        return self._untrained(np.where(is_random, self._random.action[:, k], action))

    def _untrained(self, action: FloatArray) -> FloatArray:
        """The actions with those of gears that are not trained in their places."""
        for number, kind in enumerate(self.behaviour.kinds or ()):
            chosen = self.controller.gear == number
            if not kind.learns and chosen.any():
                action = np.where(chosen[..., None], self.controller.act_with(number, self.observation), action)
        return action

    def step(self, action: FloatArray) -> tuple[FloatArray, Step]:
        """Take a step everywhere; returns what the agents saw before it, and what it gave."""
        began, seen = time.perf_counter(), self.observation
        step = self.env.step(action.reshape(self.env.num_envs, -1))
        self.env_seconds += time.perf_counter() - began
        self.observation = self._by_agent(step.observation)
        self.ended: BoolArray = (step.terminated | step.truncated).reshape(self._shape)
        self._success = None if step.success is None else step.success.reshape(self._shape)
        self.steps += self.behaviour.environments
        self._returns += step.reward.reshape(self._shape)
        self._lengths += 1
        self._large_steps += self.controller.gear == self.controller.gear_count - 1
        return seen, step

    def finish_episodes(self, k: int) -> list[FinishedEpisode]:
        """Those that ended with the chunk's step k; new ones begin."""
        if not self.ended.any():
            return []
        finished = [
            FinishedEpisode(
                agent=at[0],
                episode_return=float(self._returns[at]),
                length=int(self._lengths[at]),
                large_share=float(self._large_steps[at] / self._lengths[at]),
                success=None if self._success is None else bool(self._success[at]),
            )
            for at in map(tuple, np.argwhere(self.ended).tolist())
        ]
        for sums in (self._returns, self._lengths, self._large_steps):
            sums[self.ended] = 0
        self._turn_dials(self.ended, self._random.dial[:, k])
        return finished

    def retire(self, agents: Iterable[int]) -> None:
        """Step their environments no more: nobody learns from them."""
        for agent in agents:
            self.retired.add(agent)
            first = agent * self.behaviour.environments
            self.env.retired |= set(range(first, first + self.behaviour.environments))

    def _note_bad(self, number: int, why: str) -> None:
        agent = number // self.behaviour.environments
        self.bad.setdefault(agent, why)
        self.retire([agent])

    def _turn_dials(self, where: BoolArray, uniform: FloatArray) -> None:
        """Each new episode has a position of its own."""
        if self.behaviour.dial is not None:
            self.controller.turn(where & self.behaviour.dial[:, None], 2 * uniform - 1)

    def _by_agent(self, observation: FloatArray) -> FloatArray:
        return observation.reshape(*self._shape, -1)

    def _draw(self, steps: int) -> "_Random":
        """The chunk's random numbers, each agent's from a generator of its own."""
        behaviour, act_dim = self.behaviour, self.env.spec.act_dim
        agents, environments = self._shape
        shape = (agents, steps, environments)
        drawn = _Random(
            noise=np.empty((*shape, act_dim), np.float32),
            explore=np.empty(shape, np.float32),
            choice=np.empty(shape, np.int64),
            dial=np.empty(shape, np.float32),
            action=np.empty((*shape, act_dim), np.float32),
            is_random=np.ones(shape, np.float32),
        )
        held = (-(-steps // behaviour.noise_hold), environments, act_dim)
        for agent, seed in enumerate(behaviour.seeds):
            generator = np.random.Generator(np.random.Philox(key=np.array([seed, self.steps], np.uint64)))
            noise = generator.standard_normal(held, np.float32)
            drawn.noise[agent] = noise.repeat(behaviour.noise_hold, axis=0)[:steps]
            drawn.explore[agent] = generator.random(shape[1:], np.float32)
            drawn.choice[agent] = generator.integers(0, 2**31, shape[1:])
            drawn.dial[agent] = generator.random(shape[1:], np.float32)
            if self.steps < behaviour.random_steps or behaviour.random_share:
                drawn.action[agent] = generator.uniform(-1, 1, held).repeat(behaviour.noise_hold, axis=0)[:steps]
            if behaviour.random_share:
                drawn.is_random[agent] = generator.random(shape[1:], np.float32)
        return drawn


class _Random(NamedTuple):
    """Random numbers of one chunk, (P, steps, E, ...)."""

    noise: FloatArray  # standard normal, of the gears' actions
    explore: FloatArray  # uniform: the master explores where it is below ε
    choice: npt.NDArray[np.int64]  # what it then picks
    dial: FloatArray  # uniform: positions of the episodes that begin
    action: FloatArray  # uniform in [-1, 1]
    is_random: FloatArray  # uniform: these are taken where it is below the random share
