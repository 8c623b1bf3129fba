"""Observations on one scale: learners see them centred, and divided by their spread.

Where positions differ by centimetres around a metre and more, small networks learn sooner for it. It costs
nothing at deployment: the first layer of whatever acts takes the scale in, and sees observations as they are.
"""

from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from lowgear.dqn import Picks
from lowgear.sac import Transitions

Batch = TypeVar("Batch", Transitions, Picks)


class Scale(NamedTuple):
    """Of P agents, (P, obs) each; of one, (obs,)."""

    centre: Any
    spread: Any


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
