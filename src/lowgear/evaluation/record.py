"""Whole episodes step by step: what a page shows, and what every export is held against.

Comes in: a policy and environments, or observations alone. Goes out: one `Episode` for each of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear.envs.protocol import BatchEnv
from lowgear.policy.arrays import BoolArray, FloatArray, IntArray
from lowgear.policy.controller import Chooser, Controller, chooser
from lowgear.policy.file import Policy

STEPS_AT_MOST = 10_000  # of an environment that never ends an episode


@dataclass(frozen=True)
class Episode:
    """T steps of one controller."""

    policy: Policy
    observation: FloatArray  # (T, obs)
    due: BoolArray  # (T,): a new pick began with this step
    asked: BoolArray  # (T,): the master made it; a forced gear asks nobody
    left: IntArray  # (T,): steps that the pick before still held, 0 where a new one was due
    choice: IntArray  # (T,)
    values: FloatArray  # (T, choices): the master's where it was asked, else NaN
    action: FloatArray  # (T, act), in [-1, 1]
    reward: FloatArray  # (T,)
    success: bool | None  # at its last step
    ended: bool  # False: it went on after the last step recorded

    @property
    def steps(self) -> int:
        """How long it is."""
        return len(self.choice)

    @property
    def gear(self) -> IntArray:
        """Which acted, (T,)."""
        gear: IntArray = self.choice % len(self.policy.header.gears)
        return gear

    @property
    def last_action(self) -> FloatArray:
        """The action before each step, (T, act), which a gear that holds would repeat; zeros before the first."""
        return np.concatenate([np.zeros_like(self.action[:1]), self.action[:-1]])

    @property
    def total(self) -> float:
        """Its return."""
        return float(self.reward.sum(dtype=np.float64))

    @property
    def gear_steps(self) -> npt.NDArray[np.int64]:
        """Steps in each gear."""
        return np.bincount(self.gear, minlength=len(self.policy.header.gears))

    @property
    def flops_per_step(self) -> float:
        """What the controller cost, its picks counted."""
        return float(self.policy.header.cost.flops(self.gear_steps, int(self.asked.sum())) / self.steps)

    def until(self, steps: int) -> "Episode":
        """Its first steps."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays: dict[str, Any] = {name: part[:steps] for name, part in parts.items() if isinstance(part, np.ndarray)}
        return replace(self, **arrays, ended=self.ended and steps >= self.steps)


def record(
    policy: Policy,
    env: BatchEnv,
    seeds: Sequence[int],
    *,
    master: str = "greedy",
    chance_seed: Sequence[int] = (0, 1),
    steps_at_most: int = STEPS_AT_MOST,
) -> list[Episode]:
    """The first episode of each environment, from its own seed; a sampled master draws from `chance_seed`."""
    controller = Controller.from_policies([policy], env.num_envs)
    choose = chooser(master, np.random.default_rng(chance_seed))
    tracks = [_Track() for _ in seeds]
    running = np.ones(env.num_envs, bool)
    observation = env.reset(seeds)
    while running.any() and max(len(track.rows) for track in tracks) < steps_at_most:
        now = _Step(controller, observation, choose)
        step = env.step(now.action)
        ended = step.terminated | step.truncated
        for e in np.flatnonzero(running).tolist():
            tracks[e].add(observation[e], now, e, step.reward[e])
            tracks[e].ended = bool(ended[e])
            tracks[e].success = None if step.success is None else bool(step.success[e])
        controller.advance(ended[None])
        running &= ~ended
        observation = step.observation
    return [track.episode(policy) for track in tracks]


def respond(policy: Policy, observations: FloatArray) -> Episode:
    """What a policy does where the given observations (T, obs) follow each other, whatever it does; no rewards."""
    controller = Controller.from_policies([policy])
    choose, track = chooser("greedy", np.random.default_rng(0)), _Track()
    for observation in observations:
        track.add(observation, _Step(controller, observation[None], choose), 0, np.float32(0))
        controller.advance(np.zeros((1, 1), bool))
    return track.episode(policy)


class _Step:
    """One step of every environment, before it is taken."""

    def __init__(self, controller: Controller, observation: FloatArray, choose: Chooser) -> None:
        self.due, self.left = controller.due[0], controller.left[0]
        self.values: FloatArray | None = None

        def keep_values(values: FloatArray) -> IntArray:
            self.values = values[0]
            return choose(values)

        self.asked = controller.pick(observation[None], keep_values)[0]
        self.choice = controller.choice[0]
        self.action = controller.act(observation[None])[0]
        self.choices = controller.gear_count * len(controller.periods)


class _Track:
    """One environment's episode so far."""

    def __init__(self) -> None:
        self.rows: list[tuple[object, ...]] = []
        self.success: bool | None = None
        self.ended = False

    def add(self, observation: FloatArray, step: _Step, e: int, reward: np.float32) -> None:
        values = np.full(step.choices, np.nan, np.float32)
        if step.asked[e] and step.values is not None:
            values = step.values[e]
        self.rows.append(
            (observation, step.due[e], step.asked[e], step.left[e], step.choice[e], values, step.action[e], reward)
        )

    def episode(self, policy: Policy) -> Episode:
        observation, due, asked, left, choice, values, action, reward = zip(*self.rows, strict=True)
        return Episode(
            policy=policy,
            observation=np.array(observation, np.float32),
            due=np.array(due, np.bool_),
            asked=np.array(asked, np.bool_),
            left=np.array(left, np.int32),
            choice=np.array(choice, np.int32),
            values=np.array(values, np.float32),
            action=np.array(action, np.float32),
            reward=np.array(reward, np.float32),
            success=self.success,
            ended=self.ended,
        )
