"""Running statistics of what an agent has met: the scale of its observations, and that of its rewards.

Both are updated when a chunk is inserted and applied when a batch is drawn, so that old rows are seen on today's scale.
Functions here see one agent; the population axis is added by `jax.vmap` outside.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from lowgear.hindsight import Goals
from lowgear.scale import Scale

LEAST_SPREAD = 0.01  # what hardly moves is not blown up further
LARGEST_RETURN = 5.0  # that a scaled running return may have: SimBaV2, Lee et al. 2025


class Running(NamedTuple):
    """Mean and variance of all values so far; Chan et al. 1979."""

    count: jax.Array  # ()
    mean: jax.Array  # (d,)
    variance: jax.Array  # (d,), of the population


class Statistics(NamedTuple):
    """What one agent has met."""

    observations: Running  # (obs,)
    open_return: jax.Array  # (E,) discounted sum of the rewards of each environment's episode so far
    returns: Running  # (1,), of the open returns after every step
    largest: jax.Array  # () the largest of them, in absolute value


def init(obs_dim: int, environments: int) -> Statistics:
    """Of an agent that has met nothing."""
    return Statistics(_nothing(obs_dim), jnp.zeros(environments), _nothing(1), jnp.zeros(()))


def update(
    statistics: Statistics, observations: jax.Array, rewards: jax.Array, ended: jax.Array, discount: jax.Array
) -> Statistics:
    """After a chunk of K steps in E environments: (E, K, obs), (E, K) and (E, K) in {0, 1}."""

    def step(open_return: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, end = at
        grown = discount * open_return + reward
        return grown * (1 - end), grown

    open_return, returns = jax.lax.scan(step, statistics.open_return, (rewards.T, ended.T))
    return Statistics(
        absorb(statistics.observations, observations.reshape(-1, observations.shape[-1])),
        open_return,
        absorb(statistics.returns, returns.reshape(-1, 1)),
        jnp.maximum(statistics.largest, jnp.abs(returns).max()),
    )


def absorb(running: Running, values: jax.Array) -> Running:
    """With (N, d) values more."""
    new = jnp.float32(values.shape[0])
    count = running.count + new
    share = new / count
    apart = values.mean(axis=0) - running.mean
    variance = (1 - share) * running.variance + share * values.var(axis=0) + share * (1 - share) * apart**2
    return Running(count, running.mean + share * apart, variance)


def observation_scale(statistics: Statistics, goals: Goals | None = None) -> Scale:
    """Centre and spread of the observations. Goals, asked for or achieved, share one: hindsight swaps them."""
    _, mean, variance = statistics.observations
    if goals is not None:
        achieved, desired = slice(*goals.achieved), slice(*goals.desired)
        middle = (mean[achieved] + mean[desired]) / 2
        apart = (mean[achieved] - mean[desired]) / 2
        both = (variance[achieved] + variance[desired]) / 2 + apart**2
        mean = mean.at[achieved].set(middle).at[desired].set(middle)
        variance = variance.at[achieved].set(both).at[desired].set(both)
    return Scale(mean, jnp.maximum(jnp.sqrt(variance), LEAST_SPREAD))


def reward_scale(statistics: Statistics) -> jax.Array:
    """What rewards are divided by, (): max(std G, max |G| / 5) of the running return G; 1 before any reward."""
    spread = jnp.sqrt(statistics.returns.variance[0])
    found = jnp.maximum(spread, statistics.largest / LARGEST_RETURN)
    return jnp.where(found > 1e-8, found, 1.0)


def _nothing(size: int) -> Running:
    return Running(jnp.zeros(()), jnp.zeros(size), jnp.zeros(size))
