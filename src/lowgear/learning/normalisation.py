"""Normalised observations: learners see them centred and divided by their spread.

Where positions differ by centimetres around a metre and more, small networks learn sooner for it. It costs nothing at
deployment: the first layer of whatever acts takes the normaliser in, and sees observations as they are.
"""

from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from lowgear.learning.hindsight import Goals
from lowgear.learning.transitions import MasterTransitions, Transitions
from lowgear.policy.arrays import FloatArray

LEAST_STD = 0.01  # what hardly moved is not blown up further
Batch = TypeVar("Batch", Transitions, MasterTransitions)


class Normaliser(NamedTuple):
    """Of P agents, (P, obs) each; of one, (obs,)."""

    mean: Any
    std: Any


def identity(population: int, obs_dim: int) -> Normaliser:
    """Observations as they are."""
    return Normaliser(np.zeros((population, obs_dim), np.float32), np.ones((population, obs_dim), np.float32))


def estimate(observations: FloatArray, goals: Goals | None = None) -> Normaliser:
    """From what P agents saw, (P, N, obs). Goals, desired or achieved, share one: hindsight swaps them."""
    seen = observations.astype(np.float64)
    mean, std = seen.mean(axis=1), seen.std(axis=1)
    if goals is not None:
        achieved, desired = slice(*goals.achieved), slice(*goals.desired)
        both = np.concatenate([seen[:, :, achieved], seen[:, :, desired]], axis=1)
        mean[:, achieved] = mean[:, desired] = both.mean(axis=1)
        std[:, achieved] = std[:, desired] = both.std(axis=1)
    return Normaliser(mean.astype(np.float32), np.maximum(std, LEAST_STD).astype(np.float32))


def normalise(batch: Batch, normaliser: Normaliser) -> Batch:
    """One agent's batch as its learners see it."""

    def normalised(observation: jax.Array) -> jax.Array:
        found: jax.Array = (observation - normaliser.mean[None]) / normaliser.std[None]
        return found

    return batch._replace(
        observation=normalised(batch.observation), next_observation=normalised(batch.next_observation)
    )


def fold(network: Any, normaliser: Normaliser) -> Any:
    """Layers of P agents, in NumPy, that make of raw observations what `network`'s make of normalised ones.

    Inputs after the observation, as the dial's position, stay as they are.
    """
    first, *others = network
    inputs = normaliser.std.shape[1]
    weight, bias = np.array(first.weight, np.float64), np.array(first.bias, np.float64)
    weight[:, :inputs] /= normaliser.std[:, :, None]
    bias -= np.einsum("pi,pio->po", normaliser.mean, weight[:, :inputs])
    return (first._replace(weight=weight.astype(np.float32), bias=bias.astype(np.float32)), *others)
