"""Runs a trained controller with NumPy alone, and keeps it in a file that can't run code.

The same functions drive one policy on a robot, a population while it collects, and hundreds of episodes while it is
evaluated: every array of `Weights` has a leading axis of P agents, observations are (P, N, obs) for N environments
each. Importing this module pulls in no JAX.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.policy.dial import price

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
Layers = Sequence[tuple[FloatArray, FloatArray]]  # weight (P, in, out), bias (P, out)

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0


class Tariff(NamedTuple):
    """What masters charge their choices for compute; their networks add what the choices earn."""

    low: FloatArray  # (P,): the coefficient at the dial's low end
    ratio: FloatArray  # (P,): of its ends
    each: FloatArray  # (P, choices): at a coefficient of 1


class Weights(NamedTuple):
    """What acts: the gears' actors, cheapest first, and the master."""

    gears: tuple[Layers, ...]
    master: Layers
    tariff: Tariff | None = None  # None: the master's network knows what its choices cost


def mlp(layers: Layers, x: FloatArray, activation: str) -> FloatArray:
    """Forward pass of P networks on (P, N, in); the last layer is linear."""
    for weight, bias in layers[:-1]:
        x = x @ weight
        x += bias[:, None, :]
        x = np.tanh(x, out=x) if activation == "tanh" else np.maximum(x, 0, out=x)
    weight, bias = layers[-1]
    x = x @ weight
    x += bias[:, None, :]
    return x


def act(
    gears: Sequence[Layers],
    observation: FloatArray,
    gear: IntArray,
    activation: str,
    noise: FloatArray | None = None,
) -> FloatArray:
    """Actions in [-1, 1], (P, N, act), of the gear chosen for each; the mean's, or a sample for standard `noise`."""
    head: FloatArray | None = None
    for number, layers in enumerate(gears):
        chosen = gear == number
        if not chosen.any():
            continue
        out = mlp(layers, observation, activation)
        head = out if head is None else np.where(chosen[..., None], out, head)
    assert head is not None, "a gear number is out of range"
    act_dim = head.shape[-1] // 2
    mean = head[..., :act_dim]
    if noise is None:
        return np.tanh(mean)
    log_std = np.clip(head[..., act_dim:], LOG_STD_MIN, LOG_STD_MAX)
    return np.tanh(mean + np.exp(log_std) * noise)


def values(weights: Weights, observation: FloatArray, position: FloatArray | None, activation: str) -> FloatArray:
    """The master's values (P, N, choices); `position` (P, N) of the dial where the master has one.

    Choice c is gear `c % gears` for the duration number `c // gears`.
    """
    if position is None:
        return mlp(weights.master, observation, activation)
    if weights.tariff is None:
        return mlp(weights.master, np.concatenate([observation, position[..., None]], -1, dtype=np.float32), activation)
    low, ratio, each = weights.tariff
    coefficient: FloatArray = price(position, low[:, None], ratio[:, None])
    return mlp(weights.master, observation, activation) - coefficient[..., None] * each[:, None, :]


class Shifter:
    """Which pick holds in each of (P, N) environments, and since when."""

    def __init__(self, shape: tuple[int, ...], gears: int, periods: Sequence[int]) -> None:
        self.gears = gears
        self.periods: IntArray = np.asarray(periods, np.int32)
        self.choice: IntArray = np.zeros(shape, np.int32)
        self.age: IntArray = np.zeros(shape, np.int32)  # steps the pick has held; 0: a new pick is due

    @property
    def gear(self) -> IntArray:
        """The gear that acts."""
        gear: IntArray = self.choice % self.gears
        return gear

    @property
    def due(self) -> BoolArray:
        """Where the master must pick before the next step."""
        return np.equal(self.age, 0)

    def pick(self, choice: npt.NDArray[np.integer[Any]]) -> None:
        """Take over new picks where they are due."""
        self.choice = np.where(self.due, choice, self.choice).astype(np.int32)

    def advance(self, ended: BoolArray) -> BoolArray:
        """Count a step that was taken; returns where the pick ended with it."""
        self.age += 1
        return np.logical_or(self.age >= self.periods[self.choice // self.gears], ended)

    def release(self, closed: BoolArray) -> None:
        """Ask for new picks where the old ones ended."""
        self.age[closed] = 0


def boltzmann(values: FloatArray, chance: FloatArray) -> IntArray:
    """Choices drawn from softmax(values), temperature 1, for `chance` uniform in [0, 1)."""
    weight = np.exp(values - values.max(axis=-1, keepdims=True))
    bound = np.cumsum(weight, axis=-1)
    picked: IntArray = (bound[..., :-1] <= chance[..., None] * bound[..., -1:]).sum(axis=-1).astype(np.int32)
    return picked


def stack(policies: Sequence[Weights]) -> Weights:
    """Several agents' weights of the same shapes as one population."""

    def join(parts: Sequence[Layers]) -> Layers:
        return [
            (np.concatenate([w for w, _ in layer]), np.concatenate([b for _, b in layer]))
            for layer in zip(*parts, strict=True)
        ]

    count, tariffs = len(policies[0].gears), [p.tariff for p in policies if p.tariff is not None]
    if len(tariffs) not in (0, len(policies)):
        raise LowgearError("policies whose masters know prices and policies whose masters learn them do not mix")
    return Weights(
        tuple(join([p.gears[g] for p in policies]) for g in range(count)),
        join([p.master for p in policies]),
        Tariff(*map(np.concatenate, zip(*tariffs, strict=True))) if tariffs else None,
    )


def take(weights: Weights, agent: int) -> Weights:
    """One agent of a population, as a population of one."""

    def one(layers: Layers) -> Layers:
        return [(weight[agent : agent + 1], bias[agent : agent + 1]) for weight, bias in layers]

    tariff = None if weights.tariff is None else Tariff(*(part[agent : agent + 1] for part in weights.tariff))
    return Weights(tuple(one(layers) for layers in weights.gears), one(weights.master), tariff)
