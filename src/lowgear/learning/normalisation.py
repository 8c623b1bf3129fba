"""Observations on one scale: learners see them centred, and divided by how far they strayed in the random steps.

Where positions differ by centimetres around a metre and more, small networks learn sooner for it. It costs
nothing at deployment: the first layer of whatever acts takes the scale in, and sees observations as they are.
"""

from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
import numpy.typing as npt

from lowgear.learning.dqn import Picks
from lowgear.learning.hindsight import Goals
from lowgear.learning.sac import Transitions

LEAST = 0.01  # what hardly moved at random is not blown up further
Batch = TypeVar("Batch", Transitions, Picks)


class Scale(NamedTuple):
    """Of P agents, (P, obs) each; of one, (obs,)."""

    centre: Any
    spread: Any


def plain(population: int, obs_dim: int) -> Scale:
    """Observations as they are."""
    return Scale(np.zeros((population, obs_dim), np.float32), np.ones((population, obs_dim), np.float32))


def measure(observations: npt.NDArray[np.float32], goals: Goals | None = None) -> Scale:
    """The scale of what P agents saw, (P, N, obs). Goals, asked for or achieved, share one: hindsight swaps them."""
    seen = observations.astype(np.float64)
    centre, spread = seen.mean(axis=1), seen.std(axis=1)
    if goals is not None:
        achieved, desired = slice(*goals.achieved), slice(*goals.desired)
        both = np.concatenate([seen[:, :, achieved], seen[:, :, desired]], axis=1)
        centre[:, achieved] = centre[:, desired] = both.mean(axis=1)
        spread[:, achieved] = spread[:, desired] = both.std(axis=1)
    return Scale(centre.astype(np.float32), np.maximum(spread, LEAST).astype(np.float32))


def see(batch: Batch, scale: Scale) -> Batch:
    """One agent's batch as its learners see it."""

    def scaled(observation: jax.Array) -> jax.Array:
        found: jax.Array = (observation - scale.centre[None]) / scale.spread[None]
        return found

    return batch._replace(observation=scaled(batch.observation), next_observation=scaled(batch.next_observation))


def fold(network: Any, scale: Scale) -> Any:
    """Layers of P agents, in NumPy, that make of raw observations what `network`'s make of scaled ones.

    Inputs after the observation, as the dial's position, stay as they are.
    """
    first, *others = network
    seen = scale.spread.shape[1]
    weight, bias = np.array(first.weight, np.float64), np.array(first.bias, np.float64)
    weight[:, :seen] /= scale.spread[:, :, None]
    bias -= np.einsum("pi,pio->po", scale.centre, weight[:, :seen])
    return (first._replace(weight=weight.astype(np.float32), bias=bias.astype(np.float32)), *others)
