"""The least time that training can take on this machine: the multiplications it needs over the rate reached on them."""

import math
import os
import subprocess
import sys
import threading
import time

import numpy as np

from lowgear import LowgearError
from lowgear.config.run import RunConfig

IN_A_ROW = 32  # products of a device's loop: its turns take time of their own, far more than a small product


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


def machine_rate(config: RunConfig, seconds: float = 0.5) -> float:
    """FLOP/s that this machine reaches on the largest products of a run's updates, on the device that learns."""
    import jax

    batch, units = config.recipe.batch, max(config.critic_units)
    if jax.default_backend() == "cpu":
        return apart(units, batch, seconds)
    return device_rate(len(config.agents), units, batch, seconds)


def apart(units: int, batch: int = 256, seconds: float = 0.5) -> float:
    """`gemm_rate` in a process of its own: NumPy's BLAS reads only at its start that it may use one thread a call."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    command = [sys.executable, "-m", "lowgear.bench.floor", str(units), str(batch), str(seconds)]
    done = subprocess.run(command, env=os.environ | dict.fromkeys(names, "1"), capture_output=True, text=True)
    if done.returncode:
        raise LowgearError(f"could not measure this machine's rate of products: {done.stderr.strip()[-300:]}")
    return float(done.stdout)


def gemm_rate(units: int, batch: int = 256, seconds: float = 0.5) -> float:
    """FLOP/s of NumPy's (batch × units)·(units × units), one thread for each core at once; see `apart`."""
    rates: list[float] = []

    def work() -> None:
        a = np.random.default_rng(0).normal(size=(batch, units)).astype(np.float32)
        b = np.random.default_rng(1).normal(size=(units, units)).astype(np.float32)
        out = np.empty((batch, units), np.float32)
        count, began = 0, time.perf_counter()
        while (passed := time.perf_counter() - began) < seconds:
            for _ in range(20):
                np.matmul(a, b, out=out)
            count += 20
        rates.append(count / passed)

    threads = [threading.Thread(target=work) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 2 * batch * units * units * sum(rates)


def device_rate(agents: int, units: int, batch: int = 256, seconds: float = 0.5) -> float:
    """FLOP/s of JAX's (batch × units)·(units × units) for both critics of all agents at once, time after time."""
    import jax
    import jax.numpy as jnp

    random = np.random.default_rng(0)
    turn = np.linalg.qr(random.normal(size=(units, units)))[0]  # keeps lengths, so no product overflows or dies out
    x = jnp.asarray(random.normal(size=(2 * agents, batch, units)), jnp.float32)
    weight = jnp.asarray(np.broadcast_to(turn, (2 * agents, units, units)), jnp.float32)

    def some(_: int, y: jax.Array) -> jax.Array:
        for _ in range(IN_A_ROW):
            y = y @ weight
        return y

    chain = jax.jit(lambda x, count: jax.lax.fori_loop(0, count, some, x))

    def timed(count: int) -> float:
        began = time.perf_counter()
        chain(x, count).block_until_ready()
        return time.perf_counter() - began

    count = 10
    timed(count)  # compiles
    while (taken := timed(count)) < seconds / 2:
        count = math.ceil(count * min(10.0, seconds / max(taken, 1e-6)))
    return 2 * 2 * agents * batch * units * units * IN_A_ROW * count / taken


def _master_flops(config: RunConfig, obs: int) -> int:
    from lowgear.learning.dqn import VALUE_UNITS

    recipe = config.recipe
    networks = [(obs + recipe.sees_position, recipe.master_units, len(config.gears) * len(recipe.periods))]
    if recipe.known_prices:
        networks.append((obs + 1, VALUE_UNITS, 1))  # what a state is worth at a position learns beside the earnings
    total = 0
    for inputs, units, outputs in networks:
        forward = inputs * units + units * units + units * outputs
        total += 2 * recipe.master_batch * (2 * forward + 2 * forward + forward - inputs * units)
    return total


if __name__ == "__main__":
    print(gemm_rate(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
