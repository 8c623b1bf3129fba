"""The least time that training can take on this machine: the multiplications it needs over the rate reached on them."""

import os
import threading
import time

import numpy as np

from lowgear.config import RunConfig


def update_flops(config: RunConfig, obs_dim: int, act_dim: int) -> int:
    """Multiply-adds, twice, that one update of one agent needs: products forward and backward, nothing else."""
    total = 0
    batch, obs, act = config.recipe.batch, obs_dim, act_dim
    for learner in config.learners:
        if learner == len(config.gears):
            total += _master_flops(config, obs)
            continue
        units, critic = config.gears[learner], config.critic_units[learner]
        forward = obs * critic + act * critic + critic * critic + critic
        inner = critic * critic + critic
        target, fit, climb = 2 * forward, 2 * (2 * forward + inner), 2 * (forward + inner + act * critic)
        actor = obs * units + units * units + 2 * units * act
        actor_inner = units * units + 2 * units * act
        total += 2 * batch * (target + fit + climb + actor + 2 * actor + actor_inner)
    return total


def gemm_rate(units: int, batch: int = 256, seconds: float = 0.5) -> float:
    """FLOP/s of (batch × units)·(units × units), one thread for each core at once."""
    counts: list[int] = []

    def work() -> None:
        a = np.random.default_rng(0).normal(size=(batch, units)).astype(np.float32)
        b = np.random.default_rng(1).normal(size=(units, units)).astype(np.float32)
        out = np.empty((batch, units), np.float32)
        count, stop = 0, time.perf_counter() + seconds
        while time.perf_counter() < stop:
            for _ in range(20):
                np.matmul(a, b, out=out)
            count += 20
        counts.append(count)

    threads = [threading.Thread(target=work) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 2 * batch * units * units * sum(counts) / seconds


def _master_flops(config: RunConfig, obs: int) -> int:
    recipe = config.recipe
    inputs, choices, units = obs + recipe.dial, len(config.gears) * len(recipe.periods), recipe.master_units
    master = inputs * units + units * units + units * choices
    return 2 * recipe.master_batch * (2 * master + 2 * master + master - inputs * units)
