"""A short run of a task with random actions: does it work here, how fast is it, and what does it pay?"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from lowgear import envs
from lowgear.config.tasks import Task
from lowgear.policy.arrays import FloatArray

TRIAL_ENVS = 32
TRIAL_S = 1.0
REWARD_EPISODES = 8
REWARD_S = 2.0  # at most, where steps are slow or episodes long


@dataclass(frozen=True)
class Rewards:
    """What random actions earn."""

    episodes: int  # that ended
    steps: int
    return_mean: float | None  # of episodes that ended; None where none did
    return_std: float | None
    length_mean: float | None
    reward_low: float  # of a step
    reward_high: float
    reward_mean: float
    success_rate: float | None  # None where no step told of success


def steps_per_second(task: Task, on_progress: Callable[[float], None] = lambda _: None) -> float:
    """Environment steps a second, over about a second; `on_progress` is told the share that is done."""
    with closing(envs.make(task, TRIAL_ENVS)) as env:
        env.reset(range(TRIAL_ENVS))
        rng = np.random.default_rng(0)
        steps, elapsed, start = 0, 0.0, time.perf_counter()
        while elapsed < TRIAL_S:
            env.step(rng.uniform(-1, 1, (TRIAL_ENVS, env.spec.act_dim)).astype(np.float32))
            steps += TRIAL_ENVS
            elapsed = time.perf_counter() - start
            on_progress(min(1.0, elapsed / TRIAL_S))
        return steps / elapsed


def rewards(task: Task) -> Rewards:
    """What random actions earn in an episode of each of REWARD_EPISODES environments, or in REWARD_S."""
    with closing(envs.make(task, REWARD_EPISODES)) as env:
        env.reset(range(REWARD_EPISODES))
        rng, start = np.random.default_rng(0), time.perf_counter()
        running, told = np.ones(REWARD_EPISODES, np.bool_), env.spec.has_success
        sums, lengths, succeeded = np.zeros(REWARD_EPISODES), np.zeros(REWARD_EPISODES), np.zeros(REWARD_EPISODES)
        seen: list[FloatArray] = []
        while running.any() and (not seen or time.perf_counter() - start < REWARD_S):
            step = env.step(rng.uniform(-1, 1, (REWARD_EPISODES, env.spec.act_dim)).astype(np.float32))
            seen.append(step.reward[running])
            sums[running] += step.reward[running]
            lengths[running] += 1
            if step.success is not None:
                told = True
                succeeded[running] = step.success[running]
            running &= ~(step.terminated | step.truncated)
    each, ended = np.concatenate(seen), ~running
    some = bool(ended.any())
    return Rewards(
        episodes=int(ended.sum()),
        steps=len(each),
        return_mean=float(sums[ended].mean()) if some else None,
        return_std=float(sums[ended].std()) if some else None,
        length_mean=float(lengths[ended].mean()) if some else None,
        reward_low=float(each.min()),
        reward_high=float(each.max()),
        reward_mean=float(each.mean()),
        success_rate=float(succeeded[ended].mean()) if told and some else None,
    )
