"""Running statistics of what an agent has met: normalised observations, and rewards on one scale.

Both are updated when a chunk is inserted and applied when a batch is sampled, so that old rows are seen on today's
scale. They cost nothing at deployment: the first layer of whatever acts takes the normaliser in. Functions here see one
agent, except `fold`; the population axis is added by `jax.vmap` outside.
"""

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from lowgear.learning.hindsight import Goals
from lowgear.learning.replay import Columns
from lowgear.learning.transitions import MasterTransitions, Transitions

LEAST_STD = 0.01  # what hardly moves is not blown up further
LARGEST_RETURN = 5.0  # that a scaled running return may have: SimBaV2, Lee et al. 2025
Batch = TypeVar("Batch", Transitions, MasterTransitions)


class Running(NamedTuple):
    """Mean and variance of all values so far; Chan et al. 1979."""

    size: jax.Array  # (): how many they are
    mean: jax.Array  # (d,)
    variance: jax.Array  # (d,), of the population


class Returns(NamedTuple):
    """Running discounted returns, for one discount."""

    open: jax.Array  # (E,): discounted sum of the rewards of each environment's episode so far
    running: Running  # (1,): of the open returns after every step
    largest: jax.Array  # (): of them, in absolute value


class Statistics(NamedTuple):
    """What one agent has met."""

    observation: Running  # (obs,)
    gear_returns: Returns
    master_returns: Returns
    ends: jax.Array  # (): episodes that ended for real


class Normaliser(NamedTuple):
    """What observations are normalised by, (obs,) each; of P agents (P, obs)."""

    mean: Any
    std: Any


def init(obs_dim: int, environments: int) -> Statistics:
    """Of an agent that has met nothing."""
    returns = Returns(jnp.zeros(environments), _nothing(1), jnp.zeros(()))
    return Statistics(_nothing(obs_dim), returns, returns, jnp.zeros(()))


def observe(
    statistics: Statistics, rows: jax.Array, columns: Columns, discount: jax.Array, master_discount: jax.Array
) -> Statistics:
    """After a chunk of K steps in E environments, (E, K, width); both discounts are by the step."""
    observation = rows[..., columns.observation]
    reward, ended = rows[..., columns.reward], rows[..., columns.ended]
    return Statistics(
        merge(statistics.observation, observation.reshape(-1, observation.shape[-1])),
        _go_on(statistics.gear_returns, reward, ended, discount),
        _go_on(statistics.master_returns, reward, ended, master_discount),
        statistics.ends + (1 - rows[..., columns.alive]).sum(),
    )


def _go_on(returns: Returns, reward: jax.Array, ended: jax.Array, discount: jax.Array) -> Returns:
    """With (E, K) more rewards."""

    def step(open_return: jax.Array, at: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        reward, end = at
        grown = discount * open_return + reward
        return grown * (1 - end), grown

    still_open, grown = jax.lax.scan(step, returns.open, (reward.T, ended.T))
    return Returns(
        still_open,
        merge(returns.running, grown.reshape(-1, 1)),
        jnp.maximum(returns.largest, jnp.abs(grown).max()),
    )


def merge(running: Running, values: jax.Array) -> Running:
    """With (N, d) more values."""
    new = jnp.float32(values.shape[0])
    size = running.size + new
    share = new / size
    apart = values.mean(axis=0) - running.mean
    variance = (1 - share) * running.variance + share * values.var(axis=0) + share * (1 - share) * apart**2
    return Running(size, running.mean + share * apart, variance)


def normaliser(statistics: Statistics, goals: Goals | None = None) -> Normaliser:
    """Mean and deviation of the observations; of none, those that change nothing.

    Goals, desired or achieved, share them: hindsight swaps the two.
    """
    size, mean, variance = statistics.observation
    if goals is not None:
        achieved, desired = slice(*goals.achieved), slice(*goals.desired)
        middle = (mean[achieved] + mean[desired]) / 2
        apart = (mean[achieved] - mean[desired]) / 2
        both = (variance[achieved] + variance[desired]) / 2 + apart**2
        mean = mean.at[achieved].set(middle).at[desired].set(middle)
        variance = variance.at[achieved].set(both).at[desired].set(both)
    return Normaliser(mean, jnp.where(size > 0, jnp.maximum(jnp.sqrt(variance), LEAST_STD), 1.0))


def reward_scale(returns: Returns) -> jax.Array:
    """What rewards are divided by, (): max(std G, max |G| / 5) of the running return G; 1 before any reward."""
    scale = jnp.maximum(jnp.sqrt(returns.running.variance[0]), returns.largest / LARGEST_RETURN)
    return jnp.where(scale > 1e-8, scale, 1.0)


def normalise(batch: Batch, normaliser: Normaliser) -> Batch:
    """One agent's batch as its learners see it.

    Inputs after the observation, as the last action, stay as they are.
    """
    inputs = normaliser.mean.shape[-1]

    def normalised(seen: jax.Array) -> jax.Array:
        observation, others = seen[:, :inputs], seen[:, inputs:]
        found: jax.Array = (observation - normaliser.mean[None]) / normaliser.std[None]
        return jnp.concatenate([found, others], axis=-1) if others.shape[-1] else found

    return batch._replace(
        observation=normalised(batch.observation), next_observation=normalised(batch.next_observation)
    )


def fold(network: Any, normaliser: Normaliser) -> Any:
    """Layers of P agents, in NumPy, that make of raw observations what `network`'s make of normalised ones.

    Inputs after the observation, as the last action and the dial's position, stay as they are.
    """
    first, *others = network
    inputs = normaliser.std.shape[1]
    weight, bias = np.array(first.weight, np.float64), np.array(first.bias, np.float64)
    weight[:, :inputs] /= normaliser.std[:, :, None]
    bias -= np.einsum("pi,pio->po", normaliser.mean, weight[:, :inputs])
    return (first._replace(weight=weight.astype(np.float32), bias=bias.astype(np.float32)), *others)


def _nothing(size: int) -> Running:
    return Running(jnp.zeros(()), jnp.zeros(size), jnp.zeros(size))
