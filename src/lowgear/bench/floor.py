"""The least time that training can take on this machine: the products it needs over the rate reached on them."""

import math
import time

import jax
import jax.numpy as jnp
import numpy as np

from lowgear.bench import gemm
from lowgear.config.run import RunConfig
from lowgear.envs.protocol import EnvSpec
from lowgear.training.setup import learners_needed, method_of

IN_A_ROW = 32  # products of a device's loop: its turns take time of their own, far more than a small product


def update_flops(config: RunConfig, obs_dim: int, act_dim: int) -> int:
    """Multiply-adds, twice, that one update of one agent needs: products forward and backward, nothing else."""
    bounds = (-1.0,) * act_dim, (1.0,) * act_dim
    method = method_of(config, EnvSpec(config.task, obs_dim, act_dim, (("", obs_dim),), None, *bounds))
    return sum(map(method.flops, learners_needed(config, method)))


def machine_rate(config: RunConfig, seconds: float = 0.5) -> float:
    """FLOP/s that this machine reaches on the largest products of a run's updates, on the device that learns."""
    batch, units = config.recipe.batch, max(config.critic_units)
    if jax.default_backend() == "cpu":
        return gemm.rate_alone(units, batch, seconds)
    return device_rate(len(config.agents), units, batch, seconds)


def device_rate(agents: int, units: int, batch: int = 256, seconds: float = 0.5) -> float:
    """FLOP/s of JAX's (batch × units)·(units × units) for both critics of all agents at once, time after time."""
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
